// Making a lake and filling it with the TPC-H tables, in a trusted DuckDB instance of its own that is gone afterwards.
// For a process that runs no statements on the lake meanwhile (it is one writer more). Stateless, thread-safe. Called
// by app/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "lake/lake_location.h"

namespace roost {

struct SampleOptions {
    std::string extension_dir;
    std::string spill_dir;  // generated tables that do not fit memory
    uint32_t threads = 1;
    uint64_t memory_bytes = 512ull << 20;
};

// Makes an empty lake (schema main) and its data directory where there is none; fine when it exists.
Status create_lake(const LakeLocation &lake, const SampleOptions &options);

// Told of each step: its name and how many of all are done.
using SampleProgress = std::function<void(const std::string &step, uint32_t done, uint32_t of)>;

// Creates and fills the 8 tables of TPC-H at this scale factor in schema main, in one transaction. Does nothing when
// the lake has a table, of whatever name. REQUIRES: the lake exists.
Status fill_tpch(const LakeLocation &lake, double scale_factor, const SampleOptions &options,
                 const SampleProgress &progress);

}  // namespace roost
