#include "sim/node_model.h"

#include <limits>

namespace roost::sim {

CacheModel::CacheModel(size_t units, uint64_t capacity_bytes) : entries_(units), capacity_bytes_(capacity_bytes) {}

void CacheModel::unlink(uint32_t unit) {
    Entry &entry = entries_[unit];
    (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
    (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
}

void CacheModel::link_newest(uint32_t unit) {
    Entry &entry = entries_[unit];
    entry.newer = kNone;
    entry.older = newest_;
    (newest_ == kNone ? oldest_ : entries_[newest_].newer) = unit;
    newest_ = unit;
}

void CacheModel::touch(uint32_t unit) {
    if (entries_[unit].bytes == 0) return;
    unlink(unit);
    link_newest(unit);
}

void CacheModel::put(uint32_t unit, uint64_t bytes, uint64_t version, std::vector<uint32_t> &evicted) {
    Entry &entry = entries_[unit];
    if (bytes > capacity_bytes_) return;
    if (entry.bytes > 0) {
        unlink(unit);
        used_bytes_ -= entry.bytes;
    }
    entry.bytes = bytes;
    entry.version = version;
    used_bytes_ += bytes;
    link_newest(unit);
    while (used_bytes_ > capacity_bytes_) {
        const uint32_t victim = oldest_;
        unlink(victim);
        used_bytes_ -= entries_[victim].bytes;
        entries_[victim].bytes = 0;
        evicted.push_back(victim);
    }
}

double NodeModel::next_done_us() const {
    if (on_cpu.empty()) return std::numeric_limits<double>::infinity();
    const double left_us = on_cpu.top().done_at_progress_us - progress_us;
    return progress_at_us + (left_us > 0 ? left_us / rate() : 0);
}

}  // namespace roost::sim
