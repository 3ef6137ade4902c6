#include "engine/datetime_text.h"

#include <gtest/gtest.h>

#include "duckdb/common/types/date.hpp"

namespace roost {
namespace {

// A canonical form to compare with: days, nanoseconds, zone.
std::string show(std::string_view text) {
    const DateTimeText parts = parse_datetime(text);
    if (parts.fault == TextFault::syntax) return "syntax";
    if (parts.fault == TextFault::out_of_range) return "range";
    if (parts.special == DateTimeText::Special::infinity) return "infinity";
    if (parts.special == DateTimeText::Special::minus_infinity) return "-infinity";
    if (parts.special == DateTimeText::Special::epoch) return "epoch";
    std::string out;
    if (parts.has_date) out += duckdb::Date::ToString(duckdb::date_t(static_cast<int32_t>(parts.days)));
    if (parts.has_time) out += "@" + std::to_string(parts.nanos);
    if (parts.seconds_east) out += "z" + std::to_string(*parts.seconds_east);
    if (!parts.zone.empty()) out += "[" + parts.zone + "]";
    return out;
}

TEST(DateTimeText, TakesWhatPostgresWrites) {
    const struct {
        const char *text, *want;
    } cases[] = {
        {"2024-01-02", "2024-01-02"},
        {" 2024-1-2 ", "2024-01-02"},
        {"2024/01/02", "2024-01-02"},
        {"20240102", "2024-01-02"},
        {"12024-01-02", "12024-01-02"},
        {"0044-03-15 BC", "0044-03-15 (BC)"},
        {"0001-01-01 bc", "0001-01-01 (BC)"},
        {"2024-01-02 AD", "2024-01-02"},
        {"0044-03-15 12:00:00+01 BC", "0044-03-15 (BC)@43200000000000z3600"},
        {"2024-01-02 03:04", "2024-01-02@11040000000000"},
        {"2024-01-02T03:04:05", "2024-01-02@11045000000000"},
        {"2024-01-02 03:04:05.123456789", "2024-01-02@11045123456789"},
        {"2024-01-02 03:04:05.1234567895", "2024-01-02@11045123456790"},
        {"2024-01-02 03:04:05Z", "2024-01-02@11045000000000z0"},
        {"2024-01-02 03:04:05 utc", "2024-01-02@11045000000000z0"},
        {"2024-01-02 03:04:05+05:30", "2024-01-02@11045000000000z19800"},
        {"2024-01-02 03:04:05-0330", "2024-01-02@11045000000000z-12600"},
        {"2024-01-02 03:04:05+1", "2024-01-02@11045000000000z3600"},
        {"2024-01-02 03:04:05 +00:19:32", "2024-01-02@11045000000000z1172"},
        {"2024-01-02 +01", "2024-01-02z3600"},
        {"2024-01-02 03:04:05 Europe/Berlin", "2024-01-02@11045000000000[Europe/Berlin]"},
        {"2024-01-02 03:04:05 America/Port-au-Prince", "2024-01-02@11045000000000[America/Port-au-Prince]"},
        {"03:04:05.5", "@11045500000000"},
        {"3:04", "@11040000000000"},
        {"24:00:00", "@86400000000000"},
        {"23:59:60", "@86400000000000"},
        {"03:04:05+02", "@11045000000000z7200"},
        {"infinity", "infinity"},
        {"-Infinity", "-infinity"},
        {"epoch", "epoch"},
    };
    for (const auto &[text, want] : cases) EXPECT_EQ(show(text), want) << text;
}

TEST(DateTimeText, RefusesTheRest) {
    for (const char *text : {"",
                             " ",
                             "x",
                             "2024",
                             "2024-01",
                             "2024-01-",
                             "2024-01-02x",
                             "2024-01-02 03",
                             "2024-01-02 03:",
                             "03:04:05:06",
                             "2024-01-02 03:04:05+",
                             "2024-01-02 03:04:05+01+02",
                             "2024-01-02 03:04:05 BC BC",
                             "03:04 BC",
                             "2024-01-02 Europe/Berlin UTC",
                             "-epoch",
                             "infinity x",
                             "2024-01/02",
                             "02-01-2024-",
                             "2024-001-02",
                             "now",
                             "2024-01-02 03:04:05.5.5"}) {
        EXPECT_EQ(show(text), "syntax") << text;
    }
    for (const char *text :
         {"2024-02-30", "2024-13-01", "2024-00-10", "0000-01-01", "2024-01-02 25:00", "2024-01-02 24:00:01", "03:61",
          "2024-01-02 03:04:05+16", "99999999-01-01", "6000000-01-01", "123456789012-01-01"}) {
        EXPECT_EQ(show(text), "range") << text;
    }
}

std::string interval(std::string_view text) {
    const IntervalText parsed = parse_interval(text);
    if (parsed.fault == TextFault::syntax) return "syntax";
    if (parsed.fault == TextFault::out_of_range) return "range";
    return std::to_string(parsed.value.months) + "/" + std::to_string(parsed.value.days) + "/" +
           std::to_string(parsed.value.micros);
}

TEST(IntervalText, TakesEveryStyle) {
    const struct {
        const char *text, *want;
    } cases[] = {
        {"1 year 2 mons 3 days 04:05:06", "14/3/14706000000"},
        {"-1 days +00:00:01.5", "0/-1/1500000"},
        {"1 year -2 mons +3 days -04:05:06.7", "10/3/-14706700000"},
        {"00:00:00", "0/0/0"},
        {"100:00:00", "0/0/360000000000"},
        {"-00:00:00.000001", "0/0/-1"},
        {"@ 1 hour 2 mins ago", "0/0/-3720000000"},
        {"0 years 0 mons 1 days 2 hours 3 mins 4.5 secs", "0/1/7384500000"},
        {"P1Y2M3DT4H5M6.7S", "14/3/14706700000"},
        {"P-1Y-2M3DT-4H-5M-6S", "-14/3/-14706000000"},
        {"P2W", "0/14/0"},
        {"PT0S", "0/0/0"},
        {"1-2", "14/0/0"},
        {"-1-2", "-14/0/0"},
        {"+1-2 -3 +4:05:06", "14/-3/14706000000"},
        {"3 4:05:06", "0/3/14706000000"},
        {"5", "0/0/5000000"},
        {"1.5", "0/0/1500000"},
        {"1.5 days", "0/1/43200000000"},
        {"1.5 months", "1/15/0"},
        {"1.5 years", "18/0/0"},
        {"2 weeks", "0/14/0"},
        {"1 decade 1 century 1 millennium", "13320/0/0"},
        {"3 microseconds 2 ms", "0/0/2003"},
        {"1h", "0/0/3600000000"},
        {"1 day 04:05", "0/1/14700000000"},
        {".5 s", "0/0/500000"},
    };
    for (const auto &[text, want] : cases) EXPECT_EQ(interval(text), want) << text;
}

TEST(IntervalText, RefusesTheRest) {
    for (const char *text : {"", "x", "1 dayz", "1 day x", "ago", "P", "PT", "P1", "P1X", "PT1D", "1 day ago 2",
                             "--1 day", "1 2", "1:", "day", "@", "1..5 days"}) {
        EXPECT_EQ(interval(text), "syntax") << text;
    }
    for (const char *text :
         {"99999999999999999999 days", "2147483648 days", "200000000 years", "9999999999999 hours", "1:60", "1-12"}) {
        EXPECT_EQ(interval(text), "range") << text;
    }
}

}  // namespace
}  // namespace roost
