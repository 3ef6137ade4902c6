#include "engine/value_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "duckdb/common/types/date.hpp"
#include "duckdb/common/types/hugeint.hpp"
#include "duckdb/common/types/uuid.hpp"

namespace roost::value_text {
namespace {

template <class Put, class... Args>
std::string text(Put put, Args... args) {
    char buffer[128];
    return {buffer, put(buffer, args...)};
}

TEST(ValueText, EveryDayHasTheEnginesDate) {
    const auto check = [](int64_t days) {
        int32_t year, month, day;
        duckdb::Date::Convert(duckdb::date_t(static_cast<int32_t>(days)), year, month, day);
        const CivilDate got = civil_from_days(days);
        ASSERT_EQ(got.year, year) << days;
        ASSERT_EQ(got.month, static_cast<uint32_t>(month)) << days;
        ASSERT_EQ(got.day, static_cast<uint32_t>(day)) << days;
    };
    for (int64_t days = -800'000; days < 800'000; ++days) check(days);
    std::mt19937_64 random(1);
    // All that DATE can hold.
    for (int i = 0; i < 200'000; ++i) check(static_cast<int64_t>(random() % 4'294'967'293) - 2'147'483'646);
    check(-2'147'483'646);
    check(2'147'483'646);
}

TEST(ValueText, DecimalsAreExactAtEveryScale) {
    std::mt19937_64 random(2);
    for (int i = 0; i < 100'000; ++i) {
        const auto value =
            static_cast<int64_t>(random() >> (random() % 60)) % 1'000'000'000'000'000'000 * (i % 2 == 0 ? 1 : -1);
        const uint32_t scale = static_cast<uint32_t>(random() % 19);
        // By strings: pad, then put the point.
        std::string digits = std::to_string(value < 0 ? -value : value);
        if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
        if (scale > 0) digits.insert(digits.size() - scale, ".");
        const std::string want = (value < 0 ? "-" : "") + digits;
        ASSERT_EQ(text([](char *to, int64_t v, uint32_t s) { return put_decimal(to, v, s); }, value, scale), want);
        ASSERT_EQ(text([](char *to, int128 v, uint32_t s) { return put_decimal(to, v, s); }, static_cast<int128>(value),
                       scale),
                  want);
    }
}

TEST(ValueText, WideIntegersMatchTheEngine) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 100'000; ++i) {
        duckdb::hugeint_t value;
        value.lower = random();
        value.upper = static_cast<int64_t>(random()) >> (random() % 64);
        ASSERT_EQ(text(put_int128, to_int128(value)), duckdb::Hugeint::ToString(value));
    }
    EXPECT_EQ(text(put_uint128, ~uint128{0}), "340282366920938463463374607431768211455");
    EXPECT_EQ(text(put_uint128, uint128{10'000'000'000'000'000'000U}), "10000000000000000000");
}

// Read back by strtod: the same bits, and no shorter digits would do.
TEST(ValueText, DoublesAreTheShortestThatReadBack) {
    std::mt19937_64 random(4);
    const auto check = [](double value) {
        const std::string got = text(put_float8, value);
        ASSERT_EQ(std::strtod(got.c_str(), nullptr), value) << got;
        char shortest[64];
        *std::to_chars(shortest, shortest + 64, std::abs(value), std::chars_format::scientific).ptr = '\0';
        std::string want_digits, got_digits;
        for (const char *at = shortest; *at != 'e'; ++at) {
            if (*at != '.') want_digits += *at;
        }
        for (const char c : got) {
            if (c == 'e') break;
            if (c >= '0' && c <= '9' && (c != '0' || !got_digits.empty())) got_digits += c;
        }
        while (got_digits.ends_with('0')) got_digits.pop_back();
        while (want_digits.size() > 1 && want_digits.ends_with('0')) want_digits.pop_back();
        ASSERT_EQ(got_digits, want_digits) << got;
    };
    for (int i = 0; i < 300'000; ++i) {
        const double bits = std::bit_cast<double>(random());
        if (std::isfinite(bits) && bits != 0) check(bits);
        // Amounts, and their neighbours that are none.
        const double amount = static_cast<double>(random() % 2'000'000'000'000'000) / 100;
        if (amount != 0) check(amount);
        check(std::nextafter(amount, 1e300));
        check(static_cast<double>(1 + random() % 100'000'000) / 1000);
    }
}

TEST(ValueText, FloatsReadBack) {
    std::mt19937 random(5);
    for (int i = 0; i < 300'000; ++i) {
        const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
        if (!std::isfinite(value)) continue;
        const std::string got = text(put_float4, value);
        ASSERT_EQ(std::strtof(got.c_str(), nullptr), value) << got;
    }
}

TEST(ValueText, UuidsMatchTheEngine) {
    std::mt19937_64 random(6);
    for (int i = 0; i < 10'000; ++i) {
        duckdb::hugeint_t value;
        value.lower = random();
        value.upper = static_cast<int64_t>(random());
        ASSERT_EQ(text(put_uuid, value), duckdb::UUID::ToString(value));
    }
}

TEST(ValueText, IntervalsAtTheirLimits) {
    duckdb::interval_t value{};
    value.months = INT32_MIN;
    value.days = INT32_MIN;
    value.micros = INT64_MIN;
    EXPECT_EQ(text(put_interval, value), "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808");
    value.months = INT32_MAX;
    value.days = INT32_MAX;
    value.micros = INT64_MAX;
    EXPECT_EQ(text(put_interval, value), "178956970 years 7 mons 2147483647 days 2562047788:00:54.775807");
}

TEST(ValueText, OffsetsShowOnlyWhatTheyHave) {
    EXPECT_EQ(text(put_offset, 0), "+00");
    EXPECT_EQ(text(put_offset, -3600), "-01");
    EXPECT_EQ(text(put_offset, 19'800), "+05:30");
    EXPECT_EQ(text(put_offset, -12'652), "-03:30:52");
    EXPECT_EQ(text(put_offset, 1172), "+00:19:32");
}

}  // namespace
}  // namespace roost::value_text
