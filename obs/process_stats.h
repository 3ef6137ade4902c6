// What the kernel says of this process; for metrics and heartbeats. Thread-safe.
#pragma once

#include <cstdint>

namespace roost::obs {

struct ProcessStats {
    double cpu_seconds = 0;  // user and system, all threads
    uint64_t resident_bytes = 0;
    uint64_t open_files = 0;
    uint64_t threads = 0;
};

// What can't be read is 0.
ProcessStats read_process_stats();
// The cheap part of it (about 3 µs), for those who ask often.
uint64_t resident_bytes();

}  // namespace roost::obs
