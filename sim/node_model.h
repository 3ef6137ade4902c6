// A node as the simulator has it: a segment cache (LRU by bytes, one download a unit however many readers), memory for
// so many statements at once with a line for the rest, and vCPUs that the running statements share equally. A model;
// what decides where statements go is placement/ itself.
#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "base/ids.h"

namespace roost::sim {

// LRU over units numbered from 0.
class CacheModel {
public:
    CacheModel(size_t units, uint64_t capacity_bytes);

    uint64_t bytes_of(uint32_t unit) const { return entries_[unit].bytes; }
    uint64_t version_of(uint32_t unit) const { return entries_[unit].version; }
    // The unit is used now and has `bytes` of `version`. Those that had to go for it are added to `evicted`. One that
    // is larger than the cache is not kept and evicts nothing.
    void put(uint32_t unit, uint64_t bytes, uint64_t version, std::vector<uint32_t> &evicted);
    void touch(uint32_t unit);
    uint64_t used_bytes() const { return used_bytes_; }

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    struct Entry {
        uint64_t bytes = 0, version = 0;
        uint32_t newer = kNone, older = kNone;
    };
    void unlink(uint32_t unit);
    void link_newest(uint32_t unit);

    std::vector<Entry> entries_;
    uint64_t capacity_bytes_, used_bytes_ = 0;
    uint32_t newest_ = kNone, oldest_ = kNone;
};

struct NodeModel {
    NodeModel(Uuid identity, uint32_t weight, uint32_t slots, size_t units, uint64_t cache_bytes)
        : id(identity), weight(weight), slots(slots), cache(units, cache_bytes), loading_until_us(units, -1) {}

    Uuid id;
    uint32_t weight, slots;
    uint64_t incarnation = 1;
    bool alive = true;
    CacheModel cache;
    std::vector<double> loading_until_us;  // by unit; in the past: not loading
    uint32_t held = 0;                     // slots taken
    std::deque<uint32_t> line;             // statements waiting for a slot
    std::vector<uint32_t> charged;         // by gateway: statements it has here, waiting ones too
    std::vector<uint64_t> last_used;       // by gateway
    uint64_t served = 0;

    // Statements on the CPU share it: each advances at rate min(1, weight / running). `progress_us` is how far any of
    // them has come since it began, in CPU time.
    struct Job {
        double done_at_progress_us;
        uint32_t statement;
        bool operator>(const Job &other) const {
            return done_at_progress_us != other.done_at_progress_us ? done_at_progress_us > other.done_at_progress_us
                                                                    : statement > other.statement;
        }
    };
    std::priority_queue<Job, std::vector<Job>, std::greater<>> on_cpu;
    double progress_us = 0, progress_at_us = 0;

    double rate() const {
        return on_cpu.size() <= weight ? 1 : static_cast<double>(weight) / static_cast<double>(on_cpu.size());
    }
    void advance(double now_us) {
        if (!on_cpu.empty()) progress_us += (now_us - progress_at_us) * rate();
        progress_at_us = now_us;
    }
    // When the first of those on the CPU is done; infinite when there is none.
    double next_done_us() const;
};

}  // namespace roost::sim
