// PostgreSQL's binary form of fixed-size scalars, the counterpart of scalar_text.h: one small function object a type.
// What has no place in PostgreSQL's range throws duckdb::OutOfRangeException. Internal to the encoders.
#pragma once

#include <bit>
#include <string_view>

#include "engine/scalar_text.h"

namespace roost::scalar_binary {

using value_text::int128;
using value_text::uint128;

// Days and microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
inline constexpr int32_t kPgEpochDays = 10'957;
inline constexpr int64_t kPgEpochMicros = int64_t{kPgEpochDays} * 86'400 * 1'000'000;

inline char *put_be16(char *to, uint16_t value) {
    value = __builtin_bswap16(value);
    std::memcpy(to, &value, 2);
    return to + 2;
}
inline char *put_be32(char *to, uint32_t value) {
    value = __builtin_bswap32(value);
    std::memcpy(to, &value, 4);
    return to + 4;
}
inline char *put_be64(char *to, uint64_t value) {
    value = __builtin_bswap64(value);
    std::memcpy(to, &value, 8);
    return to + 8;
}

// A numeric: ndigits, weight, sign, dscale, base-10 000 digits without zero digits at either end. Room: 8 + 2 × (digits
// / 4 + 2). `digits` is the decimal magnitude × 10^scale, without a sign.
char *put_numeric(char *to, std::string_view digits, bool negative, uint32_t scale);
char *put_numeric(char *to, uint64_t magnitude, bool negative, uint32_t scale);
char *put_numeric(char *to, uint128 magnitude, bool negative, uint32_t scale);
inline constexpr size_t kNumericRoom = 40;

[[noreturn]] void throw_out_of_range(const char *type);

struct Boolean {
    using Value = bool;
    static constexpr size_t kRoom = 1;
    char *operator()(char *to, bool value) const {
        *to = value ? 1 : 0;
        return to + 1;
    }
};

// `Wire` is the PostgreSQL integer that holds every T.
template <class T, class Wire>
struct Integer {
    using Value = T;
    static constexpr size_t kRoom = sizeof(Wire);
    char *operator()(char *to, T value) const {
        const auto wire = static_cast<Wire>(value);
        if constexpr (sizeof(Wire) == 2) return put_be16(to, static_cast<uint16_t>(wire));
        if constexpr (sizeof(Wire) == 4) return put_be32(to, static_cast<uint32_t>(wire));
        if constexpr (sizeof(Wire) == 8) return put_be64(to, static_cast<uint64_t>(wire));
    }
};

struct Float4 {
    using Value = float;
    static constexpr size_t kRoom = 4;
    char *operator()(char *to, float value) const { return put_be32(to, std::bit_cast<uint32_t>(value)); }
};

struct Float8 {
    using Value = double;
    static constexpr size_t kRoom = 8;
    char *operator()(char *to, double value) const { return put_be64(to, std::bit_cast<uint64_t>(value)); }
};

struct Ubigint {
    using Value = uint64_t;
    static constexpr size_t kRoom = kNumericRoom;
    char *operator()(char *to, uint64_t value) const { return put_numeric(to, value, false, 0); }
};

struct Hugeint {
    using Value = duckdb::hugeint_t;
    static constexpr size_t kRoom = kNumericRoom;
    uint32_t scale = 0;
    char *operator()(char *to, const Value &value) const {
        const int128 wide = value_text::to_int128(value);
        const uint128 magnitude = wide < 0 ? uint128{0} - static_cast<uint128>(wide) : static_cast<uint128>(wide);
        return put_numeric(to, magnitude, wide < 0, scale);
    }
};

struct Uhugeint {
    using Value = duckdb::uhugeint_t;
    static constexpr size_t kRoom = kNumericRoom;
    char *operator()(char *to, const Value &value) const {
        return put_numeric(to, value_text::to_uint128(value), false, 0);
    }
};

template <class T>
struct Decimal {
    using Value = T;
    static constexpr size_t kRoom = kNumericRoom;
    uint32_t scale;
    char *operator()(char *to, T value) const {
        const int64_t wide = value;
        const uint64_t magnitude = wide < 0 ? uint64_t{0} - static_cast<uint64_t>(wide) : static_cast<uint64_t>(wide);
        return put_numeric(to, magnitude, wide < 0, scale);
    }
};

struct Date {
    using Value = int32_t;
    static constexpr size_t kRoom = 4;
    char *operator()(char *to, int32_t days) const {
        int32_t wire = INT32_MAX;
        if (days == -INT32_MAX) wire = INT32_MIN;
        if (days != INT32_MAX && days != -INT32_MAX && __builtin_sub_overflow(days, kPgEpochDays, &wire))
            throw_out_of_range("date");
        return put_be32(to, static_cast<uint32_t>(wire));
    }
};

struct Time {
    using Value = int64_t;
    static constexpr size_t kRoom = 8;
    char *operator()(char *to, int64_t micros) const { return put_be64(to, static_cast<uint64_t>(micros)); }
};

struct TimeNs {
    using Value = int64_t;
    static constexpr size_t kRoom = 8;
    char *operator()(char *to, int64_t nanos) const { return put_be64(to, static_cast<uint64_t>(nanos / 1000)); }
};

struct TimeTz {
    using Value = duckdb::dtime_tz_t;
    static constexpr size_t kRoom = 12;
    char *operator()(char *to, Value value) const {
        to = put_be64(to, static_cast<uint64_t>(value.time().micros));
        return put_be32(to, static_cast<uint32_t>(-value.offset()));
    }
};

// `ToMicros` brings the stored unit to microseconds, infinities kept.
template <int64_t (*ToMicros)(int64_t)>
struct Timestamp {
    using Value = int64_t;
    static constexpr size_t kRoom = 8;
    char *operator()(char *to, int64_t value) const {
        const int64_t micros = ToMicros(value);
        int64_t wire = INT64_MAX;
        if (micros == -INT64_MAX) wire = INT64_MIN;
        if (micros != INT64_MAX && micros != -INT64_MAX && __builtin_sub_overflow(micros, kPgEpochMicros, &wire)) {
            throw_out_of_range("timestamp");
        }
        return put_be64(to, static_cast<uint64_t>(wire));
    }
};
inline int64_t same_micros(int64_t micros) { return micros; }

struct Interval {
    using Value = duckdb::interval_t;
    static constexpr size_t kRoom = 16;
    char *operator()(char *to, const Value &value) const {
        to = put_be64(to, static_cast<uint64_t>(value.micros));
        to = put_be32(to, static_cast<uint32_t>(value.days));
        return put_be32(to, static_cast<uint32_t>(value.months));
    }
};

struct Uuid {
    using Value = duckdb::hugeint_t;
    static constexpr size_t kRoom = 16;
    char *operator()(char *to, const Value &value) const {
        to = put_be64(to, static_cast<uint64_t>(value.upper) ^ (uint64_t{1} << 63));
        return put_be64(to, value.lower);
    }
};

template <class Take>
bool visit_decimal(const duckdb::LogicalType &type, const Take &take) {
    const uint32_t scale = duckdb::DecimalType::GetScale(type);
    switch (type.InternalType()) {
        case duckdb::PhysicalType::INT16:
            return take(Decimal<int16_t>{scale});
        case duckdb::PhysicalType::INT32:
            return take(Decimal<int32_t>{scale});
        case duckdb::PhysicalType::INT64:
            return take(Decimal<int64_t>{scale});
        default:
            return take(Hugeint{scale});
    }
}

// As scalar_text::visit_type.
template <class Visit>
bool visit_type(const duckdb::LogicalType &type, Visit &&visit) {
    using duckdb::LogicalTypeId;
    const auto take = [&](auto binary) {
        visit(binary);
        return true;
    };
    switch (type.id()) {
        case LogicalTypeId::BOOLEAN:
            return take(Boolean{});
        case LogicalTypeId::TINYINT:
            return take(Integer<int8_t, int16_t>{});
        case LogicalTypeId::UTINYINT:
            return take(Integer<uint8_t, int16_t>{});
        case LogicalTypeId::SMALLINT:
            return take(Integer<int16_t, int16_t>{});
        case LogicalTypeId::USMALLINT:
            return take(Integer<uint16_t, int32_t>{});
        case LogicalTypeId::INTEGER:
            return take(Integer<int32_t, int32_t>{});
        case LogicalTypeId::UINTEGER:
            return take(Integer<uint32_t, int64_t>{});
        case LogicalTypeId::BIGINT:
            return take(Integer<int64_t, int64_t>{});
        case LogicalTypeId::UBIGINT:
            return take(Ubigint{});
        case LogicalTypeId::HUGEINT:
            return take(Hugeint{});
        case LogicalTypeId::UHUGEINT:
            return take(Uhugeint{});
        case LogicalTypeId::FLOAT:
            return take(Float4{});
        case LogicalTypeId::DOUBLE:
            return take(Float8{});
        case LogicalTypeId::DATE:
            return take(Date{});
        case LogicalTypeId::TIME:
            return take(Time{});
        case LogicalTypeId::TIME_NS:
            return take(TimeNs{});
        case LogicalTypeId::TIME_TZ:
            return take(TimeTz{});
        case LogicalTypeId::TIMESTAMP:
        case LogicalTypeId::TIMESTAMP_TZ:
            return take(Timestamp<same_micros>{});
        case LogicalTypeId::TIMESTAMP_SEC:
            return take(Timestamp<scalar_text::CoarseTimestamp<1'000'000>::to_micros>{});
        case LogicalTypeId::TIMESTAMP_MS:
            return take(Timestamp<scalar_text::CoarseTimestamp<1'000>::to_micros>{});
        case LogicalTypeId::TIMESTAMP_NS:
            return take(Timestamp<scalar_text::TimestampNs::to_micros>{});
        case LogicalTypeId::INTERVAL:
            return take(Interval{});
        case LogicalTypeId::UUID:
            return take(Uuid{});
        case LogicalTypeId::DECIMAL:
            return visit_decimal(type, take);
        default:
            return false;
    }
}

}  // namespace roost::scalar_binary
