// How much of the machine's memory a node may promise to statements, and how many threads it has. Pure: what the
// machine gives is read by config/machine.h. Called by app/.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "config/machine.h"

namespace roost::admission {

// What the process itself needs beside the engine's buffers: code and relocations, catalogs and plans of its instances,
// encoders, network buffers. Measured on an idle node with its instances open and on one that streams to 16 slow
// readers.
inline constexpr uint64_t kProcessReserveBytes = uint64_t{160} << 20;
// A node with less than this for statements is no use.
inline constexpr uint64_t kBudgetMinBytes = uint64_t{192} << 20;

// The smallest of the machine's limits (cgroup v1 and v2 along the whole path, MemTotal) and the configured cap.
struct Effective {
    uint64_t memory_bytes = 0;
    std::string memory_source;
    uint32_t cpus = 1;
};
// 0: nothing is configured. More CPUs than the machine gives may be configured, more memory may not.
Effective effective_of(const config::Machine &machine, uint64_t configured_bytes, uint32_t configured_cpus);

// 0.90 of the memory; the rest is the kernel's, and what no limit of the engine counts.
uint64_t usable_bytes(uint64_t memory_bytes);
// What is usable less the process's reserve and what the cache holds. The cache's part may be cut to leave the least
// that a node needs. invalid_argument: the node is too small.
Result<uint64_t> budget_of(uint64_t memory_bytes, uint64_t cache_bytes);

}  // namespace roost::admission
