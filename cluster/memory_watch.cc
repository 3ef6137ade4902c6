#include "cluster/memory_watch.h"

namespace roost::cluster {

namespace {

// Percent of the memory. A node that has lent all of its budget is at 90.
constexpr uint64_t kCalmPercent = 90, kShedPercent = 92, kRefusePercent = 95, kEndPercent = 97, kLastPercent = 99;
constexpr int64_t kTrimEvery_us = 1'000'000;
// What was ended needs a moment to give its memory back.
constexpr int64_t kEndEvery_us = 500'000;

}  // namespace

MemoryWatch::Verdict MemoryWatch::look(uint64_t resident_bytes, bool trimmed, int64_t now_us) {
    using admission::Pressure;
    Verdict verdict;
    if (memory_bytes_ == 0) return verdict;
    if (trimmed) trimmed_at_us_ = now_us;
    if (over(resident_bytes, kRefusePercent)) {
        pressure_ = Pressure::refuse;
    } else if (over(resident_bytes, kShedPercent)) {
        pressure_ = Pressure::shed;
    } else if (!over(resident_bytes, kCalmPercent)) {
        pressure_ = Pressure::none;
    } else if (pressure_ == Pressure::refuse) {
        pressure_ = Pressure::shed;
    }
    verdict.pressure = pressure_;
    if (!over(resident_bytes, kShedPercent)) return verdict;
    const bool last = over(resident_bytes, kLastPercent);
    const bool end = over(resident_bytes, kEndPercent);
    // Before anybody is ended, and otherwise now and then.
    verdict.trim = !trimmed && (end || now_us - trimmed_at_us_ >= kTrimEvery_us);
    verdict.end_one = end && trimmed && (last || now_us - ended_at_us_ >= kEndEvery_us);
    if (verdict.end_one) ended_at_us_ = now_us;
    return verdict;
}

}  // namespace roost::cluster
