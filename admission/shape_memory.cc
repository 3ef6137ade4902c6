#include "admission/shape_memory.h"

#include <algorithm>
#include <cmath>

namespace roost::admission {

ShapeMemory::ShapeMemory(ShapeMemoryOptions options) : options_(options) {}

std::optional<ShapeMemory::Known> ShapeMemory::find(const std::string &shape, int64_t now_us) {
    const auto found = by_shape_.find(shape);
    if (found == by_shape_.end()) return std::nullopt;
    const auto entry = found->second;
    if (now_us - entry->at_us >= options_.ttl_us) {
        drop(entry);
        return std::nullopt;
    }
    entries_.splice(entries_.begin(), entries_, entry);
    Known known;
    known.estimate = entry->has_plan ? entry->estimate : 0;
    if (!options_.feedback || entry->peaks.empty()) {
        if (!entry->has_plan) return std::nullopt;
        known.bytes = entry->estimate;
        return known;
    }
    const auto largest = std::max_element(entry->peaks.begin(), entry->peaks.end(),
                                          [](const Peak &one, const Peak &other) { return one.bytes < other.bytes; });
    known.why = largest->spilled ? Known::Why::spilled : Known::Why::measured;
    known.peak = largest->bytes;
    const double wanted = static_cast<double>(largest->bytes) * std::max(1.0, options_.safety_multiplier);
    const auto step = static_cast<double>(std::max<uint64_t>(1, options_.step_bytes));
    const double rounded = std::max(1.0, std::ceil(wanted / step)) * step;
    known.bytes = rounded >= 0x1p63 ? uint64_t{1} << 63 : static_cast<uint64_t>(rounded);
    return known;
}

void ShapeMemory::planned(const std::string &shape, const std::vector<std::string> &tables, uint64_t estimate_bytes,
                          int64_t now_us) {
    Entry &entry = touch(shape, tables, now_us);
    entry.estimate = estimate_bytes;
    entry.has_plan = true;
}

void ShapeMemory::ran(const std::string &shape, const std::vector<std::string> &tables, uint64_t peak_bytes,
                      uint64_t granted_bytes, bool has_spilled, int64_t now_us) {
    if (!options_.feedback) return;
    Entry &entry = touch(shape, tables, now_us);
    if (entry.peaks.size() == kPeaksKept) entry.peaks.erase(entry.peaks.begin());
    entry.peaks.push_back({has_spilled ? std::max(peak_bytes, granted_bytes) : peak_bytes, has_spilled});
}

void ShapeMemory::changed(const std::string &table, std::string_view except) {
    const auto found = by_table_.find(table);
    if (found == by_table_.end()) return;
    const std::vector<std::string> shapes(found->second.begin(), found->second.end());
    for (const std::string &shape : shapes) {
        if (shape != except) drop(by_shape_.at(shape));
    }
}

// The shape's entry, made when there is none, with what it depends on now.
ShapeMemory::Entry &ShapeMemory::touch(const std::string &shape, const std::vector<std::string> &tables,
                                       int64_t now_us) {
    const auto found = by_shape_.find(shape);
    if (found != by_shape_.end() &&
        (found->second->tables != tables || now_us - found->second->at_us >= options_.ttl_us)) {
        drop(found->second);
    } else if (found != by_shape_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        entries_.front().at_us = now_us;
        return entries_.front();
    }
    Entry entry;
    entry.shape = shape;
    entry.tables = tables;
    entry.at_us = now_us;
    entries_.push_front(std::move(entry));
    by_shape_[shape] = entries_.begin();
    for (const std::string &table : tables) by_table_[table].insert(shape);
    while (entries_.size() > std::max<size_t>(1, options_.shapes_max)) drop(std::prev(entries_.end()));
    return entries_.front();
}

void ShapeMemory::drop(Entries::iterator entry) {
    for (const std::string &table : entry->tables) {
        const auto found = by_table_.find(table);
        if (found == by_table_.end()) continue;
        found->second.erase(entry->shape);
        if (found->second.empty()) by_table_.erase(found);
    }
    by_shape_.erase(entry->shape);
    entries_.erase(entry);
}

}  // namespace roost::admission
