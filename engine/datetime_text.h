// Reads dates, times, timestamps and intervals as PostgreSQL writes them (ISO order; all interval styles). Pure;
// thread-safe. Called for statement parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "duckdb/common/types/interval.hpp"

namespace roost {

enum class TextFault : uint8_t {
    none,
    syntax,        // 22007
    out_of_range,  // 22008
};

struct DateTimeText {
    enum class Special : uint8_t { none, infinity, minus_infinity, epoch };
    TextFault fault = TextFault::none;
    Special special = Special::none;
    bool has_date = false;
    bool has_time = false;
    int64_t days = 0;                     // since 1970-01-01
    int64_t nanos = 0;                    // since midnight; 24:00:00 is allowed
    std::optional<int32_t> seconds_east;  // a numeric zone
    std::string zone;                     // a named one
};

// Date, time or both, each with an optional zone: `2024-01-02`, `04:05:06.789+02`, `2024-01-02T04:05Z`, `0044-03-15
// BC`, infinity, epoch.
DateTimeText parse_datetime(std::string_view text);

struct IntervalText {
    TextFault fault = TextFault::none;
    duckdb::interval_t value{};
};

// `1 year 2 mons -3 days +04:05:06.7`, `@ 1 hour ago`, `1-2`, `3 4:05`, `P1Y2M3DT4H5M6.7S`.
IntervalText parse_interval(std::string_view text);

}  // namespace roost
