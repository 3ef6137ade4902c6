#include "engine/param_binary.h"

#include <bit>
#include <cstring>

#include "duckdb/common/types/uuid.hpp"
#include "engine/param_text.h"
#include "engine/scalar_binary.h"
#include "engine/type_map.h"

namespace roost {

using duckdb::LogicalType;
using duckdb::Value;

namespace {

constexpr int64_t kMicrosPerDay = 86'400'000'000;
constexpr uint32_t kMaxArrayDimensions = 6;
constexpr uint16_t kNumericNegative = 0x4000, kNumericNan = 0xC000, kNumericInfinity = 0xD000,
                   kNumericMinusInfinity = 0xF000;
// Beyond this a numeric is nearly infinite or nearly zero as a double; more digits would only cost memory.
constexpr int32_t kMaxNumericWeight = 200;

Status wrong_form() { return Status(Code::invalid_argument, "incorrect binary data format").with_sqlstate("22P03"); }

Status beyond(const char *what) {
    return Status(Code::invalid_argument, std::string(what) + " out of range").with_sqlstate("22008");
}

// Big-endian reader; sticky like base/codec.h's.
class BigEndian {
public:
    explicit BigEndian(std::string_view in) : in_(in) {}
    template <class T>
    T get() {
        T value = 0;
        for (const char c : raw(sizeof(T)))
            value = static_cast<T>(static_cast<uint64_t>(value) << 8 | static_cast<uint8_t>(c));
        return value;
    }
    std::string_view raw(size_t size) {
        if (!ok_ || size > in_.size()) {
            ok_ = false;
            return {};
        }
        const std::string_view out = in_.substr(0, size);
        in_.remove_prefix(size);
        return out;
    }
    size_t remaining() const { return in_.size(); }
    bool ok() const { return ok_; }
    bool done() const { return ok_ && in_.empty(); }

private:
    std::string_view in_;
    bool ok_ = true;
};

// The whole of `bytes` as one integer.
template <class T>
Result<T> whole(std::string_view bytes) {
    BigEndian in(bytes);
    const T value = in.get<T>();
    if (!in.done()) return wrong_form();
    return value;
}

Result<Value> decode_boolean(std::string_view bytes) {
    if (bytes.size() != 1) return wrong_form();
    return Value::BOOLEAN(bytes[0] != 0);
}

Result<Value> decode_text(std::string_view bytes) {
    ROOST_RETURN_IF_ERROR(check_utf8(bytes));
    return Value(std::string(bytes));
}

Result<Value> decode_numeric(std::string_view bytes) {
    BigEndian in(bytes);
    const auto count = in.get<uint16_t>();
    const auto weight = in.get<int16_t>();
    const auto sign = in.get<uint16_t>();
    const auto scale = in.get<uint16_t>();
    if (!in.ok() || in.remaining() != size_t{count} * 2) return wrong_form();
    if (sign == kNumericNan) return Value::DOUBLE(std::numeric_limits<double>::quiet_NaN());
    if (sign == kNumericInfinity) return Value::DOUBLE(std::numeric_limits<double>::infinity());
    if (sign == kNumericMinusInfinity) return Value::DOUBLE(-std::numeric_limits<double>::infinity());
    if (sign != 0 && sign != kNumericNegative) return wrong_form();
    if (weight > kMaxNumericWeight) return out_of_range("numeric", "10^" + std::to_string(4 * weight));
    std::string text = sign == kNumericNegative ? "-" : "";
    // Groups of four digits, from the first (or the units) to the last that the scale shows.
    const int32_t last = std::max<int32_t>(-static_cast<int32_t>((scale + 3) / 4), -kMaxNumericWeight);
    for (int32_t group = std::max<int32_t>(weight, 0); group >= last; --group) {
        const int32_t at = weight - group;
        uint16_t digits = 0;
        if (at >= 0 && at < count) {
            BigEndian digit(bytes.substr(8 + 2 * static_cast<size_t>(at), 2));
            digits = digit.get<uint16_t>();
        }
        if (digits > 9999) return wrong_form();
        if (group == -1) text += '.';
        char four[4];
        value_text::put_two(value_text::put_two(four, digits / 100), digits % 100);
        text.append(four, 4);
    }
    // The last group may show more digits than the scale.
    if (scale % 4 != 0 && last == -static_cast<int32_t>((scale + 3) / 4)) text.resize(text.size() - (4 - scale % 4));
    return parse_numeric(text);
}

Result<Value> decode_date(std::string_view bytes) {
    ROOST_ASSIGN_OR_RETURN(const int32_t days, whole<int32_t>(bytes));
    if (days == INT32_MAX) return Value::DATE(duckdb::date_t::infinity());
    if (days == INT32_MIN) return Value::DATE(duckdb::date_t::ninfinity());
    int32_t ours;
    if (__builtin_add_overflow(days, scalar_binary::kPgEpochDays, &ours) || ours == INT32_MAX || ours <= -INT32_MAX)
        return beyond("date");
    return Value::DATE(duckdb::date_t(ours));
}

Result<Value> decode_time(std::string_view bytes) {
    ROOST_ASSIGN_OR_RETURN(const int64_t micros, whole<int64_t>(bytes));
    if (micros < 0 || micros > kMicrosPerDay) return beyond("time");
    return Value::TIME(duckdb::dtime_t(micros));
}

Result<Value> decode_timetz(std::string_view bytes) {
    BigEndian in(bytes);
    const auto micros = in.get<int64_t>();
    const auto west = in.get<int32_t>();
    if (!in.done()) return wrong_form();
    if (micros < 0 || micros > kMicrosPerDay) return beyond("time");
    if (west < duckdb::dtime_tz_t::MIN_OFFSET || west > duckdb::dtime_tz_t::MAX_OFFSET)
        return beyond("time zone displacement");
    return Value::TIMETZ(duckdb::dtime_tz_t(duckdb::dtime_t(micros), -west));
}

Result<Value> decode_timestamp(std::string_view bytes, bool zoned) {
    ROOST_ASSIGN_OR_RETURN(const int64_t micros, whole<int64_t>(bytes));
    int64_t ours;
    if (micros == INT64_MAX || micros == INT64_MIN) {
        ours = micros == INT64_MAX ? INT64_MAX : -INT64_MAX;
    } else if (__builtin_add_overflow(micros, scalar_binary::kPgEpochMicros, &ours) || ours == INT64_MAX ||
               ours <= -INT64_MAX) {
        return beyond("timestamp");
    }
    return zoned ? Value::TIMESTAMPTZ(duckdb::timestamp_tz_t(ours)) : Value::TIMESTAMP(duckdb::timestamp_t(ours));
}

Result<Value> decode_interval(std::string_view bytes) {
    BigEndian in(bytes);
    duckdb::interval_t value{};
    value.micros = in.get<int64_t>();
    value.days = in.get<int32_t>();
    value.months = in.get<int32_t>();
    if (!in.done()) return wrong_form();
    return Value::INTERVAL(value);
}

Result<Value> decode_uuid(std::string_view bytes) {
    if (bytes.size() != 16) return wrong_form();
    return Value::UUID(duckdb::UUID::FromBlob(reinterpret_cast<duckdb::const_data_ptr_t>(bytes.data())));
}

Result<Value> decode_bits(std::string_view bytes) {
    BigEndian in(bytes);
    const auto count = in.get<int32_t>();
    if (!in.ok() || count < 0 || (static_cast<size_t>(count) + 7) / 8 != in.remaining()) return wrong_form();
    std::string text(static_cast<size_t>(count), '0');
    const std::string_view raw = in.raw(in.remaining());
    for (size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<uint8_t>(raw[i / 8]) >> (7 - i % 8) & 1) != 0) text[i] = '1';
    }
    return ParamText(nullptr).parse(LogicalType::BIT, text);
}

Result<Value> decode_json(std::string_view bytes, bool jsonb) {
    if (jsonb) {
        if (!bytes.starts_with('\1')) return wrong_form();
        bytes.remove_prefix(1);
    }
    ROOST_RETURN_IF_ERROR(check_utf8(bytes));
    return ParamText(nullptr).parse(LogicalType::JSON(), bytes);
}

// Elements of one dimension, those of the deeper ones inside.
Result<Value> decode_dimension(BigEndian &in, const std::vector<uint32_t> &lengths, size_t depth, uint32_t oid) {
    LogicalType leaf = type_of_pg_oid(oid);
    duckdb::vector<Value> values;
    for (uint32_t i = 0; i < lengths[depth]; ++i) {
        if (depth + 1 < lengths.size()) {
            ROOST_ASSIGN_OR_RETURN(auto inner, decode_dimension(in, lengths, depth + 1, oid));
            values.push_back(std::move(inner));
            continue;
        }
        const auto size = in.get<int32_t>();
        if (!in.ok() || size < -1) return wrong_form();
        if (size == -1) {
            values.emplace_back(leaf);
            continue;
        }
        const std::string_view bytes = in.raw(static_cast<size_t>(size));
        if (!in.ok()) return wrong_form();
        ROOST_ASSIGN_OR_RETURN(auto value, decode_binary_param(oid, bytes));
        values.push_back(std::move(value));
    }
    const bool nested = depth + 1 < lengths.size() && !values.empty();
    return make_list(nested ? values[0].type() : leaf, std::move(values));
}

Result<Value> decode_array(std::string_view bytes, uint32_t declared_element) {
    BigEndian in(bytes);
    const auto dimensions = in.get<uint32_t>();
    const auto flags = in.get<uint32_t>();
    const auto element = in.get<uint32_t>();
    if (!in.ok() || flags > 1) return wrong_form();
    if (dimensions > kMaxArrayDimensions) {
        return Status(Code::invalid_argument, "too many dimensions in an array").with_sqlstate("54000");
    }
    // Text types may stand for each other, as they do in PostgreSQL's own input.
    if (element != declared_element && type_of_pg_oid(element) != type_of_pg_oid(declared_element)) {
        return Status(Code::invalid_argument, "wrong element type of an array").with_sqlstate("42804");
    }
    std::vector<uint32_t> lengths;
    uint64_t items = 1;
    for (uint32_t i = 0; i < dimensions; ++i) {
        lengths.push_back(in.get<uint32_t>());
        in.get<uint32_t>();  // lower bound: lists begin at 1
        // Each element takes four bytes at least.
        if (!in.ok() || lengths.back() > bytes.size() / 4) return wrong_form();
        items *= lengths.back();
        if (items > bytes.size() / 4) return wrong_form();
    }
    if (dimensions == 0 || items == 0) {
        if (in.remaining() != 0) return wrong_form();
        return make_list(type_of_pg_oid(element), {});
    }
    ROOST_ASSIGN_OR_RETURN(auto list, decode_dimension(in, lengths, 0, element));
    if (!in.done()) return wrong_form();
    return list;
}

}  // namespace

Result<Value> decode_binary_param(uint32_t oid, std::string_view bytes) {
    switch (oid) {
        case pg_oid::boolean:
            return decode_boolean(bytes);
        case pg_oid::int2: {
            ROOST_ASSIGN_OR_RETURN(const int16_t value, whole<int16_t>(bytes));
            return Value::SMALLINT(value);
        }
        case pg_oid::int4: {
            ROOST_ASSIGN_OR_RETURN(const int32_t value, whole<int32_t>(bytes));
            return Value::INTEGER(value);
        }
        case pg_oid::int8: {
            ROOST_ASSIGN_OR_RETURN(const int64_t value, whole<int64_t>(bytes));
            return Value::BIGINT(value);
        }
        case pg_oid::oid: {
            ROOST_ASSIGN_OR_RETURN(const uint32_t value, whole<uint32_t>(bytes));
            return Value::BIGINT(value);
        }
        case pg_oid::float4: {
            ROOST_ASSIGN_OR_RETURN(const uint32_t bits, whole<uint32_t>(bytes));
            return Value::FLOAT(std::bit_cast<float>(bits));
        }
        case pg_oid::float8: {
            ROOST_ASSIGN_OR_RETURN(const uint64_t bits, whole<uint64_t>(bytes));
            return Value::DOUBLE(std::bit_cast<double>(bits));
        }
        case pg_oid::numeric:
            return decode_numeric(bytes);
        case pg_oid::bytea:
            return Value::BLOB_RAW(std::string(bytes));
        case pg_oid::internal_char:
        case pg_oid::name:
        case pg_oid::text:
        case pg_oid::unknown:
        case pg_oid::bpchar:
        case pg_oid::varchar:
            return decode_text(bytes);
        case pg_oid::date:
            return decode_date(bytes);
        case pg_oid::time:
            return decode_time(bytes);
        case pg_oid::timetz:
            return decode_timetz(bytes);
        case pg_oid::timestamp:
            return decode_timestamp(bytes, false);
        case pg_oid::timestamptz:
            return decode_timestamp(bytes, true);
        case pg_oid::interval:
            return decode_interval(bytes);
        case pg_oid::uuid:
            return decode_uuid(bytes);
        case pg_oid::bit:
        case pg_oid::varbit:
            return decode_bits(bytes);
        case pg_oid::json:
            return decode_json(bytes, false);
        case pg_oid::jsonb:
            return decode_json(bytes, true);
        default:
            break;
    }
    if (const uint32_t element = pg_element_oid(oid)) return decode_array(bytes, element);
    return Status(Code::unimplemented, "no binary input for type oid " + std::to_string(oid)).with_sqlstate("0A000");
}

}  // namespace roost
