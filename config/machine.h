// What this process may use of the machine: its cgroup's limits (v1, v2, hybrid), CPU affinity and the memory there is.
// Reads /proc and /sys/fs/cgroup: at start, and on nodes with each heartbeat.
#pragma once

#include <cstdint>
#include <string>

namespace roost::config {

struct Machine {
    uint32_t cpus = 1;          // whole CPUs, a quota rounded up; at least 1
    uint64_t memory_bytes = 0;  // the smallest of the limits
    std::string cpus_source;    // "affinity", "cgroup v2 cpu.max /pods/a", …: for logs and `roost config`
    std::string memory_source;
};

// `root` stands in front of /proc and /sys, for tests on made-up trees.
Machine read_machine(const std::string &root = "");

}  // namespace roost::config
