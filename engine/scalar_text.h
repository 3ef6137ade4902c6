// PostgreSQL's text of fixed-size scalars as small function objects, one for each type, so that the column kernels,
// arrays and JSON share them and the compiler can inline each into its loop. Internal to the encoders.
#pragma once

#include <utility>

#include "duckdb/common/types.hpp"
#include "duckdb/common/types/date.hpp"
#include "duckdb/common/types/datetime.hpp"
#include "duckdb/common/types/timestamp.hpp"
#include "engine/value_text.h"
#include "engine/zone_offsets.h"

namespace roost::scalar_text {

using namespace value_text;  // NOLINT: the functions this file is made of

struct Boolean {
    using Value = bool;
    static constexpr size_t kRoom = 1;
    char *operator()(char *to, bool value) const {
        *to = value ? 't' : 'f';
        return to + 1;
    }
};

template <class T>
struct Integer {
    using Value = T;
    static constexpr size_t kRoom = 20;
    char *operator()(char *to, T value) const { return put_int(to, value); }
};

struct Hugeint {
    using Value = duckdb::hugeint_t;
    static constexpr size_t kRoom = 40;
    char *operator()(char *to, const Value &value) const { return put_int128(to, to_int128(value)); }
};

struct Uhugeint {
    using Value = duckdb::uhugeint_t;
    static constexpr size_t kRoom = 40;
    char *operator()(char *to, const Value &value) const { return put_uint128(to, to_uint128(value)); }
};

template <class T>
struct Decimal {
    using Value = T;
    static constexpr size_t kRoom = 42;
    uint32_t scale;
    char *operator()(char *to, T value) const { return put_decimal(to, int64_t{value}, scale); }
};

struct WideDecimal {
    using Value = duckdb::hugeint_t;
    static constexpr size_t kRoom = 42;
    uint32_t scale;
    char *operator()(char *to, const Value &value) const { return put_decimal(to, to_int128(value), scale); }
};

struct Float4 {
    using Value = float;
    static constexpr size_t kRoom = 32;
    char *operator()(char *to, float value) const { return put_float4(to, value); }
};

struct Float8 {
    using Value = double;
    static constexpr size_t kRoom = 32;
    char *operator()(char *to, double value) const { return put_float8(to, value); }
};

struct Date {
    using Value = int32_t;
    static constexpr size_t kRoom = 20;
    char *operator()(char *to, int32_t days) const { return put_date(to, days); }
};

struct Time {
    using Value = int64_t;
    static constexpr size_t kRoom = 24;
    char *operator()(char *to, int64_t micros) const { return put_time(to, micros); }
};

// PostgreSQL keeps microseconds: the rest is cut.
struct TimeNs {
    using Value = int64_t;
    static constexpr size_t kRoom = 24;
    char *operator()(char *to, int64_t nanos) const { return put_time(to, nanos / 1000); }
};

struct TimeTz {
    using Value = duckdb::dtime_tz_t;
    static constexpr size_t kRoom = 36;
    char *operator()(char *to, Value value) const {
        return put_offset(put_time(to, value.time().micros), value.offset());
    }
};

struct Timestamp {
    using Value = int64_t;
    static constexpr size_t kRoom = 44;
    char *operator()(char *to, int64_t micros) const { return put_timestamp(to, micros); }
};

// TIMESTAMP_S and _MS. Values outside the range of microseconds do not come from SQL.
template <int64_t kMicrosPerUnit>
struct CoarseTimestamp {
    using Value = int64_t;
    static constexpr size_t kRoom = 44;
    char *operator()(char *to, int64_t value) const { return put_timestamp(to, to_micros(value)); }
    static int64_t to_micros(int64_t value) {
        int64_t micros;
        if (value == INT64_MAX || value == -INT64_MAX) return value;
        if (!__builtin_mul_overflow(value, kMicrosPerUnit, &micros)) return micros;
        return value < 0 ? -INT64_MAX : INT64_MAX;
    }
};

struct TimestampNs {
    using Value = int64_t;
    static constexpr size_t kRoom = 44;
    char *operator()(char *to, int64_t nanos) const { return put_timestamp(to, to_micros(nanos)); }
    // Towards the past, so that the digits that stay are those of the whole value.
    static int64_t to_micros(int64_t nanos) {
        if (nanos == INT64_MAX || nanos == -INT64_MAX) return nanos;
        return nanos / 1000 - (nanos % 1000 < 0 ? 1 : 0);
    }
};

struct TimestampTz {
    using Value = int64_t;
    static constexpr size_t kRoom = 56;
    ZoneOffsets *zone;
    char *operator()(char *to, int64_t micros) const {
        const bool finite = micros != INT64_MAX && micros != -INT64_MAX;
        return put_timestamptz(to, micros, finite ? zone->seconds_east(micros) : 0);
    }
};

struct Interval {
    using Value = duckdb::interval_t;
    static constexpr size_t kRoom = 80;
    char *operator()(char *to, const Value &value) const { return put_interval(to, value); }
};

struct Uuid {
    using Value = duckdb::hugeint_t;
    static constexpr size_t kRoom = 36;
    char *operator()(char *to, const Value &value) const { return put_uuid(to, value); }
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
            return take(WideDecimal{scale});
    }
}

// Calls `visit` with the function object of a fixed-size scalar type; false when the type is not one.
template <class Visit>
bool visit_type(const duckdb::LogicalType &type, ZoneOffsets &zone, Visit &&visit) {
    using duckdb::LogicalTypeId;
    const auto take = [&](auto text) {
        visit(text);
        return true;
    };
    switch (type.id()) {
        case LogicalTypeId::BOOLEAN:
            return take(Boolean{});
        case LogicalTypeId::TINYINT:
            return take(Integer<int8_t>{});
        case LogicalTypeId::UTINYINT:
            return take(Integer<uint8_t>{});
        case LogicalTypeId::SMALLINT:
            return take(Integer<int16_t>{});
        case LogicalTypeId::USMALLINT:
            return take(Integer<uint16_t>{});
        case LogicalTypeId::INTEGER:
            return take(Integer<int32_t>{});
        case LogicalTypeId::UINTEGER:
            return take(Integer<uint32_t>{});
        case LogicalTypeId::BIGINT:
            return take(Integer<int64_t>{});
        case LogicalTypeId::UBIGINT:
            return take(Integer<uint64_t>{});
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
            return take(Timestamp{});
        case LogicalTypeId::TIMESTAMP_SEC:
            return take(CoarseTimestamp<1'000'000>{});
        case LogicalTypeId::TIMESTAMP_MS:
            return take(CoarseTimestamp<1'000>{});
        case LogicalTypeId::TIMESTAMP_NS:
            return take(TimestampNs{});
        case LogicalTypeId::TIMESTAMP_TZ:
            return take(TimestampTz{&zone});
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

}  // namespace roost::scalar_text
