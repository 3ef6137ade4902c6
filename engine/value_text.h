// The text of single values, written straight into a caller's buffer: every function takes where to write, with the
// room its comment names, and returns where it stopped. PostgreSQL's spelling unless the name says otherwise. Pure;
// thread-safe. Called by the row encoders (PostgreSQL rows, JSON pages).
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>

#include "duckdb/common/types/interval.hpp"

namespace roost::value_text {

using int128 = __int128;
using uint128 = unsigned __int128;

extern const char kDigitPairs[201];

inline char *put_two(char *to, uint32_t value) {
    std::memcpy(to, kDigitPairs + 2 * value, 2);
    return to + 2;
}

// Room: 20 bytes.
template <class T>
inline char *put_int(char *to, T value) {
    return std::to_chars(to, to + 20, value).ptr;
}

// Room: 40 bytes.
char *put_uint128(char *to, uint128 value);
char *put_int128(char *to, int128 value);

// value × 10^-scale with exactly `scale` fraction digits. Room: 42 bytes.
char *put_decimal(char *to, int64_t value, uint32_t scale);
char *put_decimal(char *to, int128 value, uint32_t scale);

// Shortest digits that read back the same, laid out as PostgreSQL does: 1, 0.1, 1e+20, NaN, Infinity. Room: 32 bytes.
char *put_float8(char *to, double value);
char *put_float4(char *to, float value);
// The same digits as JSON: always with a point or an exponent; NaN, Infinity, -Infinity bare. Room: 32 bytes.
char *put_json_float8(char *to, double value);
char *put_json_float4(char *to, float value);

struct CivilDate {
    int64_t year;  // astronomical: 0 is 1 BC
    uint32_t month, day;
};
// Proleptic Gregorian. `days` since 1970-01-01, any int32 and a little more.
CivilDate civil_from_days(int64_t days);

// A date of the years 1 to 9999.
inline constexpr int64_t kFirstDayOfYear1 = -719162;
inline constexpr int64_t kLastDayOfYear9999 = 2932896;
inline bool is_common_era(int64_t days) { return days >= kFirstDayOfYear1 && days <= kLastDayOfYear9999; }

// YYYY-MM-DD, ` BC`, infinity. Room: 20 bytes.
char *put_date(char *to, int32_t days);
// HH:MM:SS[.ffffff] without trailing zeros, microseconds since midnight (24:00:00 included). Room: 24 bytes.
char *put_time(char *to, int64_t micros);
// The same with up to nine digits.
char *put_time_ns(char *to, int64_t nanos);
// +HH[:MM[:SS]]. Room: 12 bytes.
char *put_offset(char *to, int32_t seconds_east);
// Date, space, time. `micros` since 1970. Room: 44 bytes.
char *put_timestamp(char *to, int64_t micros);
char *put_timestamp_ns(char *to, int64_t nanos);
// `micros` UTC, shown in local time of an offset, with the offset. Room: 56 bytes.
char *put_timestamptz(char *to, int64_t micros, int32_t seconds_east);
// 1 year 2 mons 3 days 04:05:06 (IntervalStyle postgres). Room: 80 bytes.
char *put_interval(char *to, const duckdb::interval_t &value);
// Lower case with hyphens. `value` as DuckDB keeps a UUID (top bit flipped). Room: 36 bytes.
char *put_uuid(char *to, duckdb::hugeint_t value);
// Two lower-case digits a byte.
char *put_hex(char *to, const char *bytes, size_t size);

inline int128 to_int128(duckdb::hugeint_t value) {
    return static_cast<int128>(static_cast<uint128>(static_cast<uint64_t>(value.upper)) << 64 | value.lower);
}
inline uint128 to_uint128(duckdb::uhugeint_t value) { return static_cast<uint128>(value.upper) << 64 | value.lower; }

}  // namespace roost::value_text
