#include "engine/value_text.h"

#include <bit>
#include <cmath>

#include "duckdb/common/types/date.hpp"
#include "duckdb/common/types/timestamp.hpp"

namespace roost::value_text {

const char kDigitPairs[201] =
    "000102030405060708091011121314151617181920212223242526272829303132333435363738394041424344454647484950515253545556"
    "575859"
    "60616263646566676869707172737475767778798081828384858687888990919293949596979899";

namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;
constexpr int64_t kNanosPerDay = kMicrosPerDay * 1000;
constexpr uint64_t kTen19 = 10'000'000'000'000'000'000ULL;

template <size_t N>
char *put_literal(char *to, const char (&text)[N]) {
    std::memcpy(to, text, N - 1);
    return to + N - 1;
}

// Exactly `digits` digits, leading zeros included.
void put_fixed(char *to, uint64_t value, uint32_t digits) {
    char *at = to + digits;
    while (digits >= 2) {
        at -= 2;
        put_two(at, static_cast<uint32_t>(value % 100));
        value /= 100;
        digits -= 2;
    }
    if (digits == 1) *to = static_cast<char>('0' + value % 10);
}

// `.` and the digits of a fraction of `digits` places, trailing zeros cut; nothing when it is zero.
char *put_fraction(char *to, uint64_t fraction, uint32_t digits) {
    if (fraction == 0) return to;
    while (fraction % 10 == 0) {
        fraction /= 10;
        --digits;
    }
    *to++ = '.';
    put_fixed(to, fraction, digits);
    return to + digits;
}

// Year, month, day without the era. Years take four digits at least.
char *put_civil(char *to, const CivilDate &date) {
    const int64_t year = date.year > 0 ? date.year : 1 - date.year;
    if (year < 10'000) {
        to = put_two(to, static_cast<uint32_t>(year / 100));
        to = put_two(to, static_cast<uint32_t>(year % 100));
    } else {
        to = put_int(to, year);
    }
    *to++ = '-';
    to = put_two(to, date.month);
    *to++ = '-';
    return put_two(to, date.day);
}

char *put_clock(char *to, int64_t seconds) {
    to = put_two(to, static_cast<uint32_t>(seconds / 3600));
    *to++ = ':';
    to = put_two(to, static_cast<uint32_t>(seconds / 60 % 60));
    *to++ = ':';
    return put_two(to, static_cast<uint32_t>(seconds % 60));
}

char *put_era(char *to, const CivilDate &date) { return date.year > 0 ? to : put_literal(to, " BC"); }

// The shortest digits of a finite non-zero value: `count` digits, the first of weight 10^exponent.
struct ShortDigits {
    char digits[24];
    int count = 0;
    int exponent = 0;
};

template <class T>
ShortDigits shortest(T magnitude) {
    char raw[48];
    const char *end = std::to_chars(raw, raw + sizeof raw, magnitude, std::chars_format::scientific).ptr;
    ShortDigits out;
    const char *at = raw;
    for (; *at != 'e'; ++at) {
        if (*at != '.') out.digits[out.count++] = *at;
    }
    std::from_chars(at[1] == '+' ? at + 2 : at + 1, end, out.exponent);
    return out;
}

char *put_scientific(char *to, const ShortDigits &value) {
    *to++ = value.digits[0];
    if (value.count > 1) {
        *to++ = '.';
        std::memcpy(to, value.digits + 1, static_cast<size_t>(value.count) - 1);
        to += value.count - 1;
    }
    *to++ = 'e';
    *to++ = value.exponent < 0 ? '-' : '+';
    const int exponent = std::abs(value.exponent);
    return exponent < 100 ? put_two(to, static_cast<uint32_t>(exponent)) : put_int(to, exponent);
}

char *put_positional(char *to, const ShortDigits &value) {
    if (value.exponent < 0) {
        to = put_literal(to, "0.");
        for (int zeros = -1 - value.exponent; zeros > 0; --zeros) *to++ = '0';
        std::memcpy(to, value.digits, static_cast<size_t>(value.count));
        return to + value.count;
    }
    const int whole = value.exponent + 1;
    for (int i = 0; i < whole; ++i) *to++ = i < value.count ? value.digits[i] : '0';
    if (value.count > whole) {
        *to++ = '.';
        std::memcpy(to, value.digits + whole, static_cast<size_t>(value.count - whole));
        to += value.count - whole;
    }
    return to;
}

// Amounts, ratios in per cent, whole numbers: values with at most two fraction digits and fifteen digits in all, found
// by one multiplication. Two such decimals never share a double, so the digits are the shortest; and the division is
// correctly rounded, so they read back as the value. Null when it is no such value.
char *put_short_decimal(char *to, double magnitude) {
    constexpr double kLimit = 1e13;
    if (!(magnitude < kLimit)) return nullptr;
    const double scaled = std::nearbyint(magnitude * 100);
    if (scaled < 1 || scaled / 100 != magnitude) return nullptr;
    const auto hundredths = static_cast<uint64_t>(scaled);
    to = put_int(to, hundredths / 100);
    return put_fraction(to, hundredths % 100, 2);
}

// PostgreSQL prints positionally for exponents -4 … limit - 1 (15 for float8, 6 for float4).
template <class T>
char *put_float(char *to, T value, int positional_limit) {
    if (std::isnan(value)) return put_literal(to, "NaN");
    if (std::signbit(value)) *to++ = '-';
    if (std::isinf(value)) return put_literal(to, "Infinity");
    const T magnitude = std::abs(value);
    if (magnitude == 0) return put_literal(to, "0");
    if constexpr (sizeof(T) == 8) {
        if (char *end = put_short_decimal(to, magnitude)) return end;
    }
    const ShortDigits digits = shortest(magnitude);
    const bool positional = digits.exponent >= -4 && digits.exponent < positional_limit;
    return positional ? put_positional(to, digits) : put_scientific(to, digits);
}

template <class T>
char *put_json_float(char *to, T value, int positional_limit) {
    char *end = put_float(to, value, positional_limit);
    if (!std::isfinite(value)) return end;
    for (const char *at = to; at < end; ++at) {
        if (*at == '.' || *at == 'e') return end;
    }
    return put_literal(end, ".0");
}

// The unit's text with its sign rules: see put_interval.
char *put_interval_part(char *to, int64_t value, const char *unit, bool &first, bool &negative_before) {
    if (value == 0) return to;
    if (!first) *to++ = ' ';
    if (negative_before && value > 0) *to++ = '+';
    to = put_int(to, value);
    *to++ = ' ';
    const size_t length = std::strlen(unit);
    std::memcpy(to, unit, length);
    to += length;
    if (value != 1) *to++ = 's';
    negative_before = value < 0;
    first = false;
    return to;
}

}  // namespace

char *put_uint128(char *to, uint128 value) {
    if (value <= UINT64_MAX) return put_int(to, static_cast<uint64_t>(value));
    const uint128 high = value / kTen19;
    to = high <= UINT64_MAX ? put_int(to, static_cast<uint64_t>(high)) : put_uint128(to, high);
    put_fixed(to, static_cast<uint64_t>(value % kTen19), 19);
    return to + 19;
}

char *put_int128(char *to, int128 value) {
    if (value >= 0) return put_uint128(to, static_cast<uint128>(value));
    *to++ = '-';
    return put_uint128(to, uint128{0} - static_cast<uint128>(value));
}

char *put_decimal(char *to, int64_t value, uint32_t scale) {
    if (scale == 0) return put_int(to, value);
    uint64_t magnitude = static_cast<uint64_t>(value);
    if (value < 0) {
        *to++ = '-';
        magnitude = uint64_t{0} - magnitude;
    }
    static constexpr uint64_t kPowers[] = {1,
                                           10,
                                           100,
                                           1'000,
                                           10'000,
                                           100'000,
                                           1'000'000,
                                           10'000'000,
                                           100'000'000,
                                           1'000'000'000,
                                           10'000'000'000,
                                           100'000'000'000,
                                           1'000'000'000'000,
                                           10'000'000'000'000,
                                           100'000'000'000'000,
                                           1'000'000'000'000'000,
                                           10'000'000'000'000'000,
                                           100'000'000'000'000'000,
                                           1'000'000'000'000'000'000};
    // A 64-bit DECIMAL has at most 18 digits.
    const uint64_t power = kPowers[scale];
    // Two fraction digits are money, the common case: a constant divisor spares the division.
    const uint64_t whole = scale == 2 ? magnitude / 100 : magnitude / power;
    to = put_int(to, whole);
    *to++ = '.';
    put_fixed(to, magnitude - whole * power, scale);
    return to + scale;
}

char *put_decimal(char *to, int128 value, uint32_t scale) {
    char digits[48];
    if (value < 0) *to++ = '-';
    const uint128 magnitude = value < 0 ? uint128{0} - static_cast<uint128>(value) : static_cast<uint128>(value);
    const size_t count = static_cast<size_t>(put_uint128(digits, magnitude) - digits);
    if (scale == 0) {
        std::memcpy(to, digits, count);
        return to + count;
    }
    if (count <= scale) {
        to = put_literal(to, "0.");
        std::memset(to, '0', scale - count);
        to += scale - count;
        std::memcpy(to, digits, count);
        return to + count;
    }
    std::memcpy(to, digits, count - scale);
    to += count - scale;
    *to++ = '.';
    std::memcpy(to, digits + count - scale, scale);
    return to + scale;
}

char *put_float8(char *to, double value) { return put_float(to, value, 15); }

char *put_float4(char *to, float value) { return put_float(to, value, 6); }

char *put_json_float8(char *to, double value) { return put_json_float(to, value, 15); }

char *put_json_float4(char *to, float value) { return put_json_float(to, value, 6); }

// Neri and Schneider, "Euclidean affine functions and their application to calendar algorithms" (2022), in 64 bits so
// that the whole range of DATE fits.
CivilDate civil_from_days(int64_t days) {
    constexpr int64_t kShiftEras = 14'700;  // × 400 years, puts every date's day number above zero
    const auto shifted = static_cast<uint64_t>(days + 719'468 + 146'097 * kShiftEras);
    const uint64_t n1 = 4 * shifted + 3;
    const uint64_t century = n1 / 146'097;
    const auto day_of_century = static_cast<uint32_t>(n1 % 146'097 / 4);
    const uint32_t n2 = 4 * day_of_century + 3;
    const uint64_t p2 = 2'939'745ULL * n2;
    const auto year_of_century = static_cast<uint32_t>(p2 >> 32);
    const uint32_t day_of_year = static_cast<uint32_t>(p2) / 2'939'745 / 4;
    const uint32_t n3 = 2141 * day_of_year + 197'913;
    const uint32_t month = n3 >> 16;
    const uint32_t day = (n3 & 0xffff) / 2141;
    const bool january_or_february = day_of_year >= 306;
    const int64_t year = static_cast<int64_t>(100 * century + year_of_century) - 400 * kShiftEras;
    return {year + (january_or_february ? 1 : 0), january_or_february ? month - 12 : month, day + 1};
}

char *put_date(char *to, int32_t days) {
    if (days == duckdb::date_t::infinity().days) return put_literal(to, "infinity");
    if (days == duckdb::date_t::ninfinity().days) return put_literal(to, "-infinity");
    const CivilDate date = civil_from_days(days);
    return put_era(put_civil(to, date), date);
}

char *put_time(char *to, int64_t micros) {
    to = put_clock(to, micros / kMicrosPerSecond);
    return put_fraction(to, static_cast<uint64_t>(micros % kMicrosPerSecond), 6);
}

char *put_time_ns(char *to, int64_t nanos) {
    to = put_clock(to, nanos / 1'000'000'000);
    return put_fraction(to, static_cast<uint64_t>(nanos % 1'000'000'000), 9);
}

char *put_offset(char *to, int32_t seconds_east) {
    *to++ = seconds_east < 0 ? '-' : '+';
    const auto magnitude = static_cast<uint32_t>(std::abs(seconds_east));
    to = put_two(to, magnitude / 3600);
    if (magnitude % 3600 == 0) return to;
    *to++ = ':';
    to = put_two(to, magnitude / 60 % 60);
    if (magnitude % 60 == 0) return to;
    *to++ = ':';
    return put_two(to, magnitude % 60);
}

namespace {

struct DayAndRest {
    int64_t days, rest;
};

DayAndRest split_days(int64_t value, int64_t per_day) {
    int64_t days = value / per_day;
    int64_t rest = value % per_day;
    if (rest < 0) {
        rest += per_day;
        --days;
    }
    return {days, rest};
}

}  // namespace

char *put_timestamp(char *to, int64_t micros) {
    if (micros == duckdb::timestamp_t::infinity().value) return put_literal(to, "infinity");
    if (micros == duckdb::timestamp_t::ninfinity().value) return put_literal(to, "-infinity");
    const auto [days, rest] = split_days(micros, kMicrosPerDay);
    const CivilDate date = civil_from_days(days);
    to = put_civil(to, date);
    *to++ = ' ';
    return put_era(put_time(to, rest), date);
}

char *put_timestamp_ns(char *to, int64_t nanos) {
    if (nanos == duckdb::timestamp_t::infinity().value) return put_literal(to, "infinity");
    if (nanos == duckdb::timestamp_t::ninfinity().value) return put_literal(to, "-infinity");
    const auto [days, rest] = split_days(nanos, kNanosPerDay);
    const CivilDate date = civil_from_days(days);
    to = put_civil(to, date);
    *to++ = ' ';
    return put_era(put_time_ns(to, rest), date);
}

char *put_timestamptz(char *to, int64_t micros, int32_t seconds_east) {
    if (micros == duckdb::timestamp_t::infinity().value) return put_literal(to, "infinity");
    if (micros == duckdb::timestamp_t::ninfinity().value) return put_literal(to, "-infinity");
    // Split first: the sum may not fit at the ends of the range.
    auto [days, rest] = split_days(micros, kMicrosPerDay);
    const auto [carry, local] = split_days(rest + int64_t{seconds_east} * kMicrosPerSecond, kMicrosPerDay);
    const CivilDate date = civil_from_days(days + carry);
    to = put_civil(to, date);
    *to++ = ' ';
    return put_era(put_offset(put_time(to, local), seconds_east), date);
}

// A part after a negative one shows its plus sign, because the sign of each part is its own.
char *put_interval(char *to, const duckdb::interval_t &value) {
    bool first = true;
    bool negative_before = false;
    to = put_interval_part(to, value.months / 12, "year", first, negative_before);
    to = put_interval_part(to, value.months % 12, "mon", first, negative_before);
    to = put_interval_part(to, value.days, "day", first, negative_before);
    if (value.micros == 0 && !first) return to;
    if (!first) *to++ = ' ';
    if (value.micros < 0) {
        *to++ = '-';
    } else if (negative_before) {
        *to++ = '+';
    }
    const uint64_t micros =
        value.micros < 0 ? uint64_t{0} - static_cast<uint64_t>(value.micros) : static_cast<uint64_t>(value.micros);
    const uint64_t seconds = micros / kMicrosPerSecond;
    const uint64_t hours = seconds / 3600;
    to = hours < 100 ? put_two(to, static_cast<uint32_t>(hours)) : put_int(to, hours);
    *to++ = ':';
    to = put_two(to, static_cast<uint32_t>(seconds / 60 % 60));
    *to++ = ':';
    to = put_two(to, static_cast<uint32_t>(seconds % 60));
    return put_fraction(to, micros % kMicrosPerSecond, 6);
}

char *put_hex(char *to, const char *bytes, size_t size) {
    static constexpr char kHex[] = "0123456789abcdef";
    for (size_t i = 0; i < size; ++i) {
        const auto byte = static_cast<uint8_t>(bytes[i]);
        *to++ = kHex[byte >> 4];
        *to++ = kHex[byte & 15];
    }
    return to;
}

char *put_uuid(char *to, duckdb::hugeint_t value) {
    char bytes[16];
    const uint64_t upper = __builtin_bswap64(static_cast<uint64_t>(value.upper) ^ (uint64_t{1} << 63));
    const uint64_t lower = __builtin_bswap64(value.lower);
    std::memcpy(bytes, &upper, 8);
    std::memcpy(bytes + 8, &lower, 8);
    static constexpr int kGroups[] = {4, 2, 2, 2, 6};
    const char *from = bytes;
    for (const int group : kGroups) {
        if (from != bytes) *to++ = '-';
        to = put_hex(to, from, static_cast<size_t>(group));
        from += group;
    }
    return to;
}

}  // namespace roost::value_text
