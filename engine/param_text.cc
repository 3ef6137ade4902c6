#include "engine/param_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "duckdb/common/types/bignum.hpp"
#include "duckdb/common/types/timestamp.hpp"
#include "duckdb/common/types/uuid.hpp"
#include "duckdb/main/client_context.hpp"
#include "engine/type_map.h"
#include "engine/value_text.h"
#include "utf8proc_wrapper.hpp"

namespace roost {

using duckdb::LogicalType;
using duckdb::LogicalTypeId;
using duckdb::Value;

namespace {

using int128 = __int128;
using uint128 = unsigned __int128;

constexpr size_t kMaxEchoBytes = 80;
constexpr int kMaxArrayDimensions = 6;  // PostgreSQL's limit
constexpr uint32_t kMaxDecimalDigits = 38;
constexpr int64_t kMicrosPerDay = 86'400'000'000;
constexpr int64_t kNanosPerDay = kMicrosPerDay * 1000;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view trim(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

std::string lower(std::string_view text) { return duckdb::StringUtil::Lower(std::string(text)); }

std::string echo(std::string_view text) {
    if (text.size() <= kMaxEchoBytes) return std::string(text);
    size_t cut = kMaxEchoBytes;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    return std::string(text.substr(0, cut)) + "…";
}

Status fault_status(TextFault fault, std::string_view type_name, std::string_view text) {
    if (fault == TextFault::out_of_range) {
        return Status(Code::invalid_argument, "date/time field value out of range: \"" + echo(text) + "\"")
            .with_sqlstate("22008");
    }
    return Status(Code::invalid_argument,
                  "invalid input syntax for type " + std::string(type_name) + ": \"" + echo(text) + "\"")
        .with_sqlstate("22007");
}

// Any prefix that means one word only, as PostgreSQL takes it.
Result<Value> parse_boolean(std::string_view text) {
    const std::string word = lower(trim(text));
    const auto is_prefix_of = [&](std::string_view full, size_t least) {
        return word.size() >= least && full.substr(0, word.size()) == word;
    };
    if (word == "1" || word == "on" || is_prefix_of("true", 1) || is_prefix_of("yes", 1)) return Value::BOOLEAN(true);
    if (word == "0" || is_prefix_of("off", 2) || is_prefix_of("false", 1) || is_prefix_of("no", 1))
        return Value::BOOLEAN(false);
    return invalid_text("boolean", text);
}

// Sign and digits as a magnitude; `fits` false when it is beyond 128 bits.
struct Digits {
    bool valid = false, fits = true, negative = false;
    uint128 magnitude = 0;
};

Digits read_digits(std::string_view text) {
    Digits out;
    text = trim(text);
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
        out.negative = text.front() == '-';
        text.remove_prefix(1);
    }
    if (text.empty()) return out;
    for (const char c : text) {
        if (c < '0' || c > '9') return out;
        uint128 next;
        if (__builtin_mul_overflow(out.magnitude, uint128{10}, &next)) out.fits = false;
        out.fits = out.fits && !__builtin_add_overflow(next, static_cast<uint128>(c - '0'), &out.magnitude);
    }
    out.valid = true;
    return out;
}

duckdb::hugeint_t hugeint_of(int128 value) {
    duckdb::hugeint_t out;
    out.lower = static_cast<uint64_t>(value);
    out.upper = static_cast<int64_t>(value >> 64);
    return out;
}

template <class T>
bool read_integer(std::string_view text, T &out) {
    const Digits digits = read_digits(text);
    const uint128 limit =
        static_cast<uint128>(std::numeric_limits<T>::max()) + (digits.negative && std::is_signed_v<T> ? 1 : 0);
    if (!digits.fits || digits.magnitude > limit) return false;
    if (digits.negative && !std::is_signed_v<T> && digits.magnitude != 0) return false;
    out = static_cast<T>(digits.negative ? uint128{0} - digits.magnitude : digits.magnitude);
    return true;
}

template <class T>
Result<Value> integer_value(const LogicalType &type, std::string_view text) {
    T value;
    if (!read_digits(text).valid) return invalid_text(pg_type_name(type), text);
    if (!read_integer(text, value)) return out_of_range(pg_type_name(type), text);
    return Value::CreateValue<T>(value).DefaultCastAs(type);
}

Result<Value> hugeint_value(const LogicalType &type, std::string_view text) {
    const Digits digits = read_digits(text);
    if (!digits.valid) return invalid_text(pg_type_name(type), text);
    const uint128 top = uint128{1} << 127;
    if (type.id() == LogicalTypeId::UHUGEINT) {
        if (!digits.fits || (digits.negative && digits.magnitude != 0)) return out_of_range(pg_type_name(type), text);
        duckdb::uhugeint_t value;
        value.lower = static_cast<uint64_t>(digits.magnitude);
        value.upper = static_cast<uint64_t>(digits.magnitude >> 64);
        return Value::UHUGEINT(value);
    }
    if (!digits.fits || digits.magnitude > top - (digits.negative ? 0 : 1))
        return out_of_range(pg_type_name(type), text);
    return Value::HUGEINT(
        hugeint_of(static_cast<int128>(digits.negative ? uint128{0} - digits.magnitude : digits.magnitude)));
}

Result<Value> parse_integer(const LogicalType &type, std::string_view text) {
    switch (type.id()) {
        case LogicalTypeId::TINYINT:
            return integer_value<int8_t>(type, text);
        case LogicalTypeId::UTINYINT:
            return integer_value<uint8_t>(type, text);
        case LogicalTypeId::SMALLINT:
            return integer_value<int16_t>(type, text);
        case LogicalTypeId::USMALLINT:
            return integer_value<uint16_t>(type, text);
        case LogicalTypeId::INTEGER:
            return integer_value<int32_t>(type, text);
        case LogicalTypeId::UINTEGER:
            return integer_value<uint32_t>(type, text);
        case LogicalTypeId::BIGINT:
            return integer_value<int64_t>(type, text);
        case LogicalTypeId::UBIGINT:
            return integer_value<uint64_t>(type, text);
        default:
            return hugeint_value(type, text);
    }
}

template <class T>
Result<Value> parse_float(std::string_view text, std::string_view type_name) {
    std::string_view body = trim(text);
    bool negative = false;
    if (!body.empty() && (body.front() == '+' || body.front() == '-')) {
        negative = body.front() == '-';
        body.remove_prefix(1);
    }
    const std::string word = lower(body.substr(0, 9));
    T value = 0;
    if (word == "nan") {
        value = std::numeric_limits<T>::quiet_NaN();
    } else if (word == "infinity" || word == "inf") {
        value = std::numeric_limits<T>::infinity();
    } else {
        const bool starts_well = !body.empty() && ((body.front() >= '0' && body.front() <= '9') || body.front() == '.');
        const auto read = std::from_chars(body.data(), body.data() + body.size(), value);
        if (!starts_well || read.ptr != body.data() + body.size() || read.ec == std::errc::invalid_argument) {
            return invalid_text(type_name, text);
        }
        if (read.ec == std::errc::result_out_of_range) return out_of_range(type_name, text);
    }
    if (negative) value = -value;
    if constexpr (sizeof(T) == 4) return Value::FLOAT(value);
    return Value::DOUBLE(value);
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

Result<Value> bytea_of_hex(std::string_view digits, std::string_view text) {
    std::string bytes;
    int high = -1;
    for (const char c : digits) {
        // Spaces may stand between bytes, not inside one.
        if (is_space(c) && high < 0) continue;
        const int digit = hex_digit(c);
        if (digit < 0) return invalid_text("bytea", text);
        if (high < 0) {
            high = digit;
        } else {
            bytes += static_cast<char>(high << 4 | digit);
            high = -1;
        }
    }
    if (high >= 0) return invalid_text("bytea", text);
    return Value::BLOB_RAW(bytes);
}

// \x… or the older escapes: \\ and three octal digits.
Result<Value> parse_bytea(std::string_view text) {
    if (text.starts_with("\\x")) return bytea_of_hex(text.substr(2), text);
    std::string bytes;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\') {
            bytes += text[i];
            continue;
        }
        if (text.substr(i + 1).starts_with('\\')) {
            bytes += '\\';
            ++i;
            continue;
        }
        const std::string_view octal = text.substr(i + 1, 3);
        const bool good = octal.size() == 3 && octal[0] >= '0' && octal[0] <= '3' && octal[1] >= '0' &&
                          octal[1] <= '7' && octal[2] >= '0' && octal[2] <= '7';
        if (!good) return invalid_text("bytea", text);
        bytes += static_cast<char>((octal[0] - '0') << 6 | (octal[1] - '0') << 3 | (octal[2] - '0'));
        i += 3;
    }
    return Value::BLOB_RAW(bytes);
}

// 0101, with B or X in front as PostgreSQL allows.
Result<Value> parse_bits(std::string_view text) {
    std::string bits;
    const bool hex = !text.empty() && (text.front() == 'x' || text.front() == 'X');
    std::string_view digits = text;
    if (hex || (!text.empty() && (text.front() == 'b' || text.front() == 'B'))) digits.remove_prefix(1);
    for (const char c : digits) {
        const int digit = hex_digit(c);
        if (digit < 0 || (!hex && digit > 1)) {
            return Status(Code::invalid_argument, "\"" + std::string(1, c) + "\" is not a valid digit of a bit string")
                .with_sqlstate("22P02");
        }
        for (int bit = hex ? 3 : 0; bit >= 0; --bit) bits += (digit >> bit & 1) != 0 ? '1' : '0';
    }
    if (bits.empty()) {
        return Status(Code::invalid_argument, "an empty bit string has no value in the engine").with_sqlstate("22P02");
    }
    return Value::BIT(bits);
}

Result<Value> parse_uuid(std::string_view text) {
    duckdb::hugeint_t value;
    if (!duckdb::UUID::FromString(std::string(trim(text)), value)) return invalid_text("uuid", text);
    return Value::UUID(value);
}

Result<Value> parse_json(std::string_view text) {
    if (!nlohmann::json::accept(text)) return invalid_text("json", text);
    Value value{std::string(text)};
    value.Reinterpret(LogicalType::JSON());
    return value;
}

// What JSON can say about a nested type goes through the engine's JSON casts; else its own text form.
Value nested_text(std::string_view text) {
    Value value{std::string(text)};
    if (nlohmann::json::accept(text)) value.Reinterpret(LogicalType::JSON());
    return value;
}

// A literal split at its exponent, sign and point.
struct NumericText {
    bool valid = false, negative = false;
    std::string digits;    // whole and fraction, without leading zeros
    int64_t fraction = 0;  // how many of them are behind the point
};

NumericText split_numeric(std::string_view text) {
    NumericText out;
    if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
        out.negative = text.front() == '-';
        text.remove_prefix(1);
    }
    bool point = false, any = false;
    size_t i = 0;
    for (; i < text.size(); ++i) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9') break;
        any = true;
        if (point) ++out.fraction;
        if (text[i] != '0' || !out.digits.empty()) out.digits += text[i];
    }
    if (!any) return out;
    if (i < text.size()) {
        if (text[i] != 'e' && text[i] != 'E') return out;
        std::string_view exponent = text.substr(i + 1);
        if (exponent.starts_with('+')) exponent.remove_prefix(1);
        int32_t power = 0;
        const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
        if (read.ec != std::errc() || read.ptr != exponent.data() + exponent.size()) return out;
        out.fraction -= power;
    }
    out.valid = true;
    return out;
}

Value decimal_of(int128 value, uint32_t digits, uint32_t scale) {
    const auto width = static_cast<uint8_t>(std::max({digits, scale, 1U}));
    const auto places = static_cast<uint8_t>(scale);
    if (width <= 4) return Value::DECIMAL(static_cast<int16_t>(value), width, places);
    if (width <= 9) return Value::DECIMAL(static_cast<int32_t>(value), width, places);
    if (width <= 18) return Value::DECIMAL(static_cast<int64_t>(value), width, places);
    return Value::DECIMAL(hugeint_of(value), width, places);
}

// More digits than a DECIMAL has: 128 bits where they do, else BIGNUM.
Value long_integer(const NumericText &parts) {
    const std::string text = (parts.negative ? "-" : "") + parts.digits;
    for (const auto &type : {LogicalType::HUGEINT, LogicalType::UHUGEINT}) {
        auto value = hugeint_value(type, text);
        if (value.ok()) return std::move(value).value();
    }
    return Value::BIGNUM(duckdb::Bignum::VarcharToBignum(duckdb::string_t(text)));
}

// Reads `{…}` into nested lists. Elements are parsed by `leaf`.
class ArrayParser {
public:
    ArrayParser(std::string_view text, const LogicalType &leaf, const ParamText &values)
        : text_(text), leaf_(leaf), values_(values) {}

    Result<Value> run() {
        skip_spaces();
        if (peek() == '[') skip_bounds();
        auto list = array(1);
        skip_spaces();
        if (list.ok() && at_ != text_.size()) return malformed();
        return list;
    }

private:
    Status malformed() const {
        return Status(Code::invalid_argument, "malformed array literal: \"" + echo(text_) + "\"")
            .with_sqlstate("22P02");
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_spaces() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    }
    // `[1:3]={…}`: the engine's lists begin at 1 always.
    void skip_bounds() {
        const size_t equals = text_.find('=', at_);
        if (equals != std::string_view::npos) at_ = equals + 1;
        skip_spaces();
    }

    Result<Value> array(int depth) {
        if (depth > kMaxArrayDimensions)
            return Status(Code::invalid_argument, "too many dimensions in an array").with_sqlstate("54000");
        if (peek() != '{') return malformed();
        ++at_;
        duckdb::vector<Value> values;
        skip_spaces();
        if (peek() == '}') {
            ++at_;
            return make_list(leaf_, std::move(values));
        }
        for (;;) {
            skip_spaces();
            auto item = peek() == '{' ? array(depth + 1) : element();
            if (!item.ok()) return item.status();
            values.push_back(std::move(item).value());
            skip_spaces();
            const char next = peek();
            ++at_;
            if (next == '}') break;
            if (next != ',') return malformed();
        }
        return list_of(std::move(values));
    }

    Result<Value> list_of(duckdb::vector<Value> values) const {
        const bool nested = values[0].type().id() == LogicalTypeId::LIST && !values[0].IsNull();
        for (const auto &value : values) {
            const bool is_list = value.type().id() == LogicalTypeId::LIST && !value.IsNull();
            if (is_list != nested) return malformed();
        }
        return make_list(nested ? values[0].type() : leaf_, std::move(values));
    }

    Result<Value> element() {
        std::string text;
        bool quoted = false;
        if (peek() == '"') {
            quoted = true;
            ++at_;
            while (at_ < text_.size() && text_[at_] != '"') {
                if (text_[at_] == '\\') ++at_;
                if (at_ < text_.size()) text += text_[at_++];
            }
            if (at_ >= text_.size()) return malformed();
            ++at_;
        } else {
            size_t solid = 0;  // trailing spaces are not part of it
            while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}') {
                if (text_[at_] == '{' || text_[at_] == '"') return malformed();
                const bool escaped = text_[at_] == '\\';
                if (escaped) ++at_;
                if (at_ >= text_.size()) return malformed();
                text += text_[at_];
                if (escaped || !is_space(text_[at_])) solid = text.size();
                ++at_;
            }
            text.resize(solid);
            if (text.empty()) return malformed();
        }
        if (!quoted && lower(text) == "null") return Value(leaf_);
        return values_.parse(leaf_, text);
    }

    std::string_view text_;
    const LogicalType &leaf_;
    const ParamText &values_;
    size_t at_ = 0;
};

}  // namespace

Status invalid_text(std::string_view type_name, std::string_view text) {
    return Status(Code::invalid_argument,
                  "invalid input syntax for type " + std::string(type_name) + ": \"" + echo(text) + "\"")
        .with_sqlstate("22P02");
}

Status out_of_range(std::string_view type_name, std::string_view text) {
    return Status(Code::invalid_argument,
                  "value \"" + echo(text) + "\" is out of range for type " + std::string(type_name))
        .with_sqlstate("22003");
}

Status check_utf8(std::string_view text) {
    const bool valid = text.find('\0') == std::string_view::npos &&
                       duckdb::Utf8Proc::Analyze(text.data(), text.size()) != duckdb::UnicodeType::INVALID;
    if (valid) return {};
    return Status(Code::invalid_argument, "invalid byte sequence for encoding \"UTF8\"").with_sqlstate("22021");
}

std::string pg_type_name(const LogicalType &type) {
    switch (pg_type_of(type).oid) {
        case pg_oid::boolean:
            return "boolean";
        case pg_oid::int2:
            return "smallint";
        case pg_oid::int4:
            return "integer";
        case pg_oid::int8:
            return "bigint";
        case pg_oid::numeric:
            return "numeric";
        case pg_oid::float4:
            return "real";
        case pg_oid::float8:
            return "double precision";
        case pg_oid::bytea:
            return "bytea";
        case pg_oid::timestamptz:
            return "timestamp with time zone";
        case pg_oid::timetz:
            return "time with time zone";
        default:
            return lower(type.ToString());
    }
}

Value make_list(const LogicalType &element, duckdb::vector<Value> values) {
    // Numerics have each their own precision: the list takes the widest of them.
    LogicalType common = element;
    if (element.id() == LogicalTypeId::DECIMAL || element.id() == LogicalTypeId::UNKNOWN) {
        bool first = true;
        for (const auto &value : values) {
            if (value.IsNull()) continue;
            common = first ? value.type() : LogicalType::ForceMaxLogicalType(common, value.type());
            first = false;
        }
    }
    for (auto &value : values) {
        if (value.type() != common) value = value.DefaultCastAs(common);
    }
    return Value::LIST(common, std::move(values));
}

Result<Value> parse_numeric(std::string_view text) {
    const std::string_view body = trim(text);
    const NumericText parts = split_numeric(body);
    if (!parts.valid) {
        const std::string word = lower(body);
        if (word == "nan" || word.ends_with("inf") || word.ends_with("infinity"))
            return parse_float<double>(text, "numeric");
        return invalid_text("numeric", text);
    }
    const int64_t digits = static_cast<int64_t>(parts.digits.size());
    // A negative count of fraction digits (an exponent) is zeros to append.
    const int64_t zeros = parts.fraction < 0 && digits > 0 ? -parts.fraction : 0;
    const int64_t scale = std::max<int64_t>(parts.fraction, 0);
    if (digits + zeros > kMaxDecimalDigits || scale > kMaxDecimalDigits) {
        if (parts.fraction != 0) return parse_float<double>(text, "numeric");
        return long_integer(parts);
    }
    int128 value = 0;
    for (const char c : parts.digits) value = value * 10 + (c - '0');
    for (int64_t i = 0; i < zeros; ++i) value *= 10;
    if (parts.negative) value = -value;
    return decimal_of(value, static_cast<uint32_t>(digits + zeros), static_cast<uint32_t>(scale));
}

Result<Value> ParamText::parse_timestamptz(const DateTimeText &parts, std::string_view text) const {
    using Special = DateTimeText::Special;
    if (parts.special == Special::infinity) return Value::TIMESTAMPTZ(duckdb::timestamp_tz_t(INT64_MAX));
    if (parts.special == Special::minus_infinity) return Value::TIMESTAMPTZ(duckdb::timestamp_tz_t(-INT64_MAX));
    if (parts.special == Special::epoch) return Value::TIMESTAMPTZ(duckdb::timestamp_tz_t(0));
    const int64_t micros_of_day = (parts.nanos + 500) / 1000;
    int64_t local;
    if (__builtin_mul_overflow(parts.days, kMicrosPerDay, &local) ||
        __builtin_add_overflow(local, micros_of_day, &local)) {
        return fault_status(TextFault::out_of_range, "timestamp with time zone", text);
    }
    if (parts.seconds_east) {
        int64_t utc;
        if (__builtin_sub_overflow(local, int64_t{*parts.seconds_east} * 1'000'000, &utc)) {
            return fault_status(TextFault::out_of_range, "timestamp with time zone", text);
        }
        return Value::TIMESTAMPTZ(duckdb::timestamp_tz_t(utc));
    }
    // A local time of the named zone, or the session's: only the engine knows its offset.
    const std::string named =
        duckdb::Timestamp::ToString(duckdb::timestamp_t(local)) + (parts.zone.empty() ? "" : " " + parts.zone);
    Value value(named);
    if (!context_) return value;
    Value zoned;
    std::string message;
    if (!value.TryCastAs(*context_, LogicalType::TIMESTAMP_TZ, zoned, &message) || zoned.IsNull()) {
        return fault_status(TextFault::syntax, "timestamp with time zone", text);
    }
    return zoned;
}

namespace {

Result<Value> date_value(const DateTimeText &parts) {
    using Special = DateTimeText::Special;
    if (parts.special == Special::infinity) return Value::DATE(duckdb::date_t::infinity());
    if (parts.special == Special::minus_infinity) return Value::DATE(duckdb::date_t::ninfinity());
    return Value::DATE(duckdb::date_t(static_cast<int32_t>(parts.days)));
}

// `per_second` units a second: the engine's four timestamp types.
Result<Value> timestamp_value(const LogicalType &type, const DateTimeText &parts, std::string_view text) {
    using Special = DateTimeText::Special;
    int64_t per_second = 1'000'000;
    if (type.id() == LogicalTypeId::TIMESTAMP_SEC) per_second = 1;
    if (type.id() == LogicalTypeId::TIMESTAMP_MS) per_second = 1000;
    if (type.id() == LogicalTypeId::TIMESTAMP_NS) per_second = 1'000'000'000;
    const int64_t nanos_per_unit = 1'000'000'000 / per_second;
    int64_t value = 0;
    if (parts.special == Special::infinity) {
        value = INT64_MAX;
    } else if (parts.special == Special::minus_infinity) {
        value = -INT64_MAX;
    } else {
        const int64_t units = (parts.nanos + nanos_per_unit / 2) / nanos_per_unit;
        if (__builtin_mul_overflow(parts.days, kNanosPerDay / nanos_per_unit, &value) ||
            __builtin_add_overflow(value, units, &value)) {
            return fault_status(TextFault::out_of_range, "timestamp", text);
        }
    }
    switch (type.id()) {
        case LogicalTypeId::TIMESTAMP_SEC:
            return Value::TIMESTAMPSEC(duckdb::timestamp_sec_t(value));
        case LogicalTypeId::TIMESTAMP_MS:
            return Value::TIMESTAMPMS(duckdb::timestamp_ms_t(value));
        case LogicalTypeId::TIMESTAMP_NS:
            return Value::TIMESTAMPNS(duckdb::timestamp_ns_t(value));
        default:
            return Value::TIMESTAMP(duckdb::timestamp_t(value));
    }
}

Result<Value> time_value(const LogicalType &type, const DateTimeText &parts) {
    if (type.id() == LogicalTypeId::TIME_NS) return Value::TIME_NS(duckdb::dtime_ns_t(parts.nanos));
    const int64_t micros = std::min((parts.nanos + 500) / 1000, kMicrosPerDay);
    if (type.id() == LogicalTypeId::TIME_TZ) {
        return Value::TIMETZ(duckdb::dtime_tz_t(duckdb::dtime_t(micros), parts.seconds_east.value_or(0)));
    }
    return Value::TIME(duckdb::dtime_t(micros));
}

}  // namespace

Result<Value> ParamText::parse_temporal(const LogicalType &type, std::string_view text) const {
    const std::string name = pg_type_name(type);
    if (type.id() == LogicalTypeId::INTERVAL) {
        const IntervalText interval = parse_interval(text);
        if (interval.fault == TextFault::none) return Value::INTERVAL(interval.value);
        return fault_status(interval.fault, name, text);
    }
    const DateTimeText parts = parse_datetime(text);
    if (parts.fault != TextFault::none) return fault_status(parts.fault, name, text);
    const bool is_time =
        type.id() == LogicalTypeId::TIME || type.id() == LogicalTypeId::TIME_NS || type.id() == LogicalTypeId::TIME_TZ;
    const bool special = parts.special != DateTimeText::Special::none;
    if (is_time ? !parts.has_time : !parts.has_date && !special) return fault_status(TextFault::syntax, name, text);
    if (type.id() == LogicalTypeId::TIME_TZ && !parts.zone.empty()) return fault_status(TextFault::syntax, name, text);
    if (is_time) return time_value(type, parts);
    if (type.id() == LogicalTypeId::DATE) return date_value(parts);
    if (type.id() == LogicalTypeId::TIMESTAMP_TZ) return parse_timestamptz(parts, text);
    // As in PostgreSQL a zone says nothing to a type without one.
    return timestamp_value(type, parts, text);
}

Result<Value> ParamText::parse_array(const LogicalType &type, std::string_view text) const {
    // The engine's own list syntax, for parameters nobody declared.
    if (trim(text).starts_with('[') && text.find('=') == std::string_view::npos) return Value(std::string(text));
    LogicalType leaf = type;
    while (leaf.id() == LogicalTypeId::LIST || leaf.id() == LogicalTypeId::ARRAY)
        leaf = LogicalType(element_type(leaf));
    return ArrayParser(text, leaf, *this).run();
}

Result<Value> ParamText::parse_scalar(const LogicalType &type, std::string_view text) const {
    switch (type.id()) {
        case LogicalTypeId::BOOLEAN:
            return parse_boolean(text);
        case LogicalTypeId::TINYINT:
        case LogicalTypeId::UTINYINT:
        case LogicalTypeId::SMALLINT:
        case LogicalTypeId::USMALLINT:
        case LogicalTypeId::INTEGER:
        case LogicalTypeId::UINTEGER:
        case LogicalTypeId::BIGINT:
        case LogicalTypeId::UBIGINT:
        case LogicalTypeId::HUGEINT:
        case LogicalTypeId::UHUGEINT:
            return parse_integer(type, text);
        case LogicalTypeId::FLOAT:
            return parse_float<float>(text, "real");
        case LogicalTypeId::DOUBLE:
            return parse_float<double>(text, "double precision");
        case LogicalTypeId::DECIMAL:
            return parse_numeric(text);
        case LogicalTypeId::BLOB:
            return parse_bytea(text);
        case LogicalTypeId::BIT:
            return parse_bits(text);
        case LogicalTypeId::UUID:
            return parse_uuid(text);
        default:
            return parse_temporal(type, text);
    }
}

Result<Value> ParamText::parse(const LogicalType &type, std::string_view text) const {
    if (type.IsJSONType()) return parse_json(text);
    switch (type.id()) {
        case LogicalTypeId::LIST:
        case LogicalTypeId::ARRAY:
            if (is_pg_array(type) || trim(text).starts_with('{')) return parse_array(type, text);
            return nested_text(text);
        case LogicalTypeId::STRUCT:
        case LogicalTypeId::MAP:
        case LogicalTypeId::UNION:
        case LogicalTypeId::VARIANT:
            return nested_text(text);
        case LogicalTypeId::BOOLEAN:
        case LogicalTypeId::TINYINT:
        case LogicalTypeId::UTINYINT:
        case LogicalTypeId::SMALLINT:
        case LogicalTypeId::USMALLINT:
        case LogicalTypeId::INTEGER:
        case LogicalTypeId::UINTEGER:
        case LogicalTypeId::BIGINT:
        case LogicalTypeId::UBIGINT:
        case LogicalTypeId::HUGEINT:
        case LogicalTypeId::UHUGEINT:
        case LogicalTypeId::FLOAT:
        case LogicalTypeId::DOUBLE:
        case LogicalTypeId::DECIMAL:
        case LogicalTypeId::BLOB:
        case LogicalTypeId::BIT:
        case LogicalTypeId::UUID:
        case LogicalTypeId::DATE:
        case LogicalTypeId::TIME:
        case LogicalTypeId::TIME_NS:
        case LogicalTypeId::TIME_TZ:
        case LogicalTypeId::TIMESTAMP:
        case LogicalTypeId::TIMESTAMP_SEC:
        case LogicalTypeId::TIMESTAMP_MS:
        case LogicalTypeId::TIMESTAMP_NS:
        case LogicalTypeId::TIMESTAMP_TZ:
        case LogicalTypeId::INTERVAL:
            return parse_scalar(type, text);
        default:
            // Text, and what the engine casts from text itself (ENUM, BIGNUM, …).
            return Value(std::string(text));
    }
}

}  // namespace roost
