// A metric with labels, bounded and cheap to find. Thread-safe.
//
// prometheus-cpp makes a map of strings for each look-up, about 2 µs; this keeps the handles by their label values.
// Past `series_max` combinations everything new counts under "other", so that no bug or client can fill the memory of
// whoever scrapes.
#pragma once

#include <prometheus/family.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace roost::obs {

template <class Metric, size_t kLabels>
class Series {
public:
    using Values = std::array<std::string_view, kLabels>;
    using Make = std::function<Metric &(const std::map<std::string, std::string> &labels)>;

    Series(std::array<std::string, kLabels> names, size_t series_max, Make make)
        : names_(std::move(names)), series_max_(series_max), make_(std::move(make)) {}

    // The handle lives as long as the registry.
    Metric &get(const Values &values) {
        char key[kKeyMaxBytes];
        size_t size = 0;
        for (const auto value : values) {
            const size_t take = std::min(value.size(), kValueMaxBytes);
            std::memcpy(key + size, value.data(), take);
            size += take;
            key[size++] = '\x1f';
        }
        const std::string_view found(key, size);
        const MutexLock lock(mutex_);
        const auto it = known_.find(found);
        return it != known_.end() ? *it->second : add(found, values);
    }

private:
    static constexpr size_t kValueMaxBytes = 60;
    static constexpr size_t kKeyMaxBytes = kLabels * (kValueMaxBytes + 1);

    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };

    Metric &add(std::string_view key, const Values &values) ROOST_REQUIRES(mutex_) {
        const bool full = known_.size() >= series_max_;
        if (full && other_ != nullptr) return *other_;
        std::map<std::string, std::string> labels;
        for (size_t i = 0; i < kLabels; ++i) {
            labels[names_[i]] = full ? "other" : std::string(values[i].substr(0, kValueMaxBytes));
        }
        Metric &metric = make_(labels);
        if (full) {
            other_ = &metric;
        } else {
            known_.emplace(key, &metric);
        }
        return metric;
    }

    const std::array<std::string, kLabels> names_;
    const size_t series_max_;
    const Make make_;
    Mutex mutex_;
    std::unordered_map<std::string, Metric *, Hash, std::equal_to<>> known_ ROOST_GUARDED_BY(mutex_);
    Metric *other_ ROOST_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace roost::obs
