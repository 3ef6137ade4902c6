// When a node's process nears the memory it may have: first nothing is lent beyond what statements require, then
// nothing is granted, then the statement furthest over its grant is ended. What the allocator holds of freed memory is
// given back before anybody is ended for it. Pure; not thread-safe.
#pragma once

#include <cstdint>

#include "admission/ledger.h"

namespace roost::cluster {

class MemoryWatch {
public:
    // 0: nothing is known of the memory, and nothing is done.
    explicit MemoryWatch(uint64_t memory_bytes) : memory_bytes_(memory_bytes) {}

    struct Verdict {
        admission::Pressure pressure = admission::Pressure::none;
        bool trim = false;  // give freed memory back to the system
        bool end_one = false;
    };
    // Of a sample of the process's resident size. `trimmed`: it was taken after a trim.
    Verdict look(uint64_t resident_bytes, bool trimmed, int64_t now_us);

private:
    bool over(uint64_t resident_bytes, uint64_t percent) const {
        return resident_bytes > memory_bytes_ / 100 * percent;
    }

    const uint64_t memory_bytes_;
    admission::Pressure pressure_ = admission::Pressure::none;
    int64_t trimmed_at_us_ = INT64_MIN / 2;
    int64_t ended_at_us_ = INT64_MIN / 2;
};

}  // namespace roost::cluster
