#include "lake/stats_value.h"

#include <charconv>
#include <cmath>

#include "duckdb/common/types/date.hpp"
#include "duckdb/common/types/value.hpp"
#include "lake/lake_state.h"

namespace roost {

namespace {

// The digits of a whole number, or of one with at most `scale` digits after the point, times 10^scale.
std::optional<__int128> scaled(std::string_view text, int scale) {
    const bool negative = !text.empty() && text.front() == '-';
    if (negative || (!text.empty() && text.front() == '+')) text.remove_prefix(1);
    __int128 value = 0;
    int after_point = -1;
    size_t digits = 0;
    for (const char c : text) {
        if (c == '.' && after_point < 0) {
            after_point = 0;
            continue;
        }
        if (c < '0' || c > '9' || after_point == scale) return std::nullopt;
        if (after_point >= 0) after_point++;
        // 38 digits fit; a number above that is beyond every type but uint128.
        if (++digits > 38) return std::nullopt;
        value = value * 10 + (c - '0');
    }
    if (digits == 0) return std::nullopt;
    for (int i = after_point < 0 ? 0 : after_point; i < scale; i++) {
        if (++digits > 38) return std::nullopt;
        value *= 10;
    }
    return negative ? -value : value;
}

// YYYY-MM-DD, without a cast of DuckDB's.
std::optional<int64_t> plain_date(std::string_view text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
    int32_t part[3] = {};
    const std::string_view pieces[3] = {text.substr(0, 4), text.substr(5, 2), text.substr(8, 2)};
    for (int i = 0; i < 3; i++) {
        const auto [end, error] = std::from_chars(pieces[i].data(), pieces[i].data() + pieces[i].size(), part[i]);
        if (error != std::errc() || end != pieces[i].data() + pieces[i].size()) return std::nullopt;
    }
    if (!duckdb::Date::IsValid(part[0], part[1], part[2])) return std::nullopt;
    return duckdb::Date::FromDate(part[0], part[1], part[2]).days;
}

// YYYY-MM-DD hh:mm:ss[.ffffff] in microseconds.
std::optional<int64_t> plain_timestamp(std::string_view text) {
    if (text.size() < 19 || text[10] != ' ' || text[13] != ':' || text[16] != ':') return std::nullopt;
    const auto days = plain_date(text.substr(0, 10));
    if (!days) return std::nullopt;
    const auto two = [&](size_t at) {
        const int tens = text[at] - '0', ones = text[at + 1] - '0';
        return tens < 0 || tens > 9 || ones < 0 || ones > 9 ? -1 : tens * 10 + ones;
    };
    const int hour = two(11), minute = two(14), second = two(17);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return std::nullopt;
    int64_t micros = ((*days * 24 + hour) * 60 + minute) * 60 + second;
    micros *= 1'000'000;
    if (text.size() == 19) return micros;
    if (text[19] != '.' || text.size() > 26) return std::nullopt;
    int64_t unit = 100'000;
    for (size_t i = 20; i < text.size(); i++, unit /= 10) {
        if (text[i] < '0' || text[i] > '9') return std::nullopt;
        micros += (text[i] - '0') * unit;
    }
    return micros;
}

std::optional<__int128> cast(std::string_view text, const duckdb::LogicalType &type) {
    duckdb::Value value;
    if (!duckdb::Value(std::string(text)).DefaultTryCastAs(type, value, nullptr) || value.IsNull()) return std::nullopt;
    switch (type.id()) {
        case duckdb::LogicalTypeId::DATE:
            return duckdb::DateValue::Get(value).days;
        case duckdb::LogicalTypeId::TIME:
            return duckdb::TimeValue::Get(value).micros;
        default:
            return duckdb::TimestampValue::Get(value).value;
    }
}

std::optional<double> real(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

StatsType::StatsType(std::string_view name) {
    const std::string type = folded(name);
    struct Known {
        std::string_view name;
        Kind kind;
        int width;
    };
    static constexpr Known kKnown[] = {
        {"boolean", Kind::boolean, 0},
        {"int8", Kind::integer, 8},
        {"int16", Kind::integer, 16},
        {"int32", Kind::integer, 32},
        {"int64", Kind::integer, 64},
        {"int128", Kind::integer, 128},
        {"uint8", Kind::integer, 8},
        {"uint16", Kind::integer, 16},
        {"uint32", Kind::integer, 32},
        {"uint64", Kind::integer, 64},
        {"uint128", Kind::integer, 128},
        {"float32", Kind::float32, 32},
        {"float64", Kind::float64, 64},
        {"date", Kind::date, 0},
        {"time", Kind::time, 0},
        {"timestamp", Kind::timestamp, 0},
        {"timestamp_us", Kind::timestamp, 0},
        {"timestamptz", Kind::timestamptz, 0},
        {"varchar", Kind::text, 0},
        {"json", Kind::text, 0},
        {"uuid", Kind::text, 0},
    };
    for (const Known &known : kKnown) {
        if (known.name != type) continue;
        kind_ = known.kind;
        width_ = known.width;
    }
    if (!type.starts_with("decimal(")) return;
    const size_t comma = type.find(',');
    if (comma == std::string::npos) return;
    std::from_chars(type.data() + 8, type.data() + comma, width_);
    const auto parsed = std::from_chars(type.data() + comma + 1, type.data() + type.size(), scale_);
    if (parsed.ec == std::errc()) kind_ = Kind::decimal;
}

std::optional<__int128> StatsType::number_of(std::string_view text) const {
    switch (kind_) {
        case Kind::boolean:
            if (text == "true" || text == "1") return 1;
            if (text == "false" || text == "0") return 0;
            return std::nullopt;
        case Kind::integer:
            return scaled(text, 0);
        case Kind::decimal:
            return scaled(text, scale_);
        case Kind::date:
            if (const auto days = plain_date(text)) return *days;
            return cast(text, duckdb::LogicalType::DATE);
        case Kind::time:
            return cast(text, duckdb::LogicalType::TIME);
        case Kind::timestamp:
            if (const auto micros = plain_timestamp(text)) return *micros;
            return cast(text, duckdb::LogicalType::TIMESTAMP);
        case Kind::timestamptz: {
            // Without a zone it would be in the session's, which is not known here.
            if (text.ends_with("+00")) {
                if (const auto micros = plain_timestamp(text.substr(0, text.size() - 3))) return *micros;
            }
            const size_t sign = text.find_last_of("+-");
            if (sign == std::string_view::npos || sign < 11) return std::nullopt;
            return cast(text, duckdb::LogicalType::TIMESTAMP_TZ);
        }
        default:
            return std::nullopt;
    }
}

std::optional<StatsType::Value> StatsType::parse(std::string_view text) const {
    Value value;
    if (kind_ == Kind::unknown) return std::nullopt;
    if (kind_ == Kind::text) {
        value.text = text;
        return value;
    }
    if (floating()) {
        const auto number = real(text);
        if (!number) return std::nullopt;
        value.real = kind_ == Kind::float32 ? static_cast<double>(static_cast<float>(*number)) : *number;
        return value;
    }
    const auto number = number_of(text);
    if (!number) return std::nullopt;
    value.number = *number;
    return value;
}

int StatsType::compare(const Value &a, const Value &b) const {
    if (kind_ == Kind::text) return a.text.compare(b.text);
    if (floating()) {
        const bool a_nan = std::isnan(a.real), b_nan = std::isnan(b.real);
        if (a_nan || b_nan) return static_cast<int>(a_nan) - static_cast<int>(b_nan);
        return a.real < b.real ? -1 : a.real > b.real ? 1 : 0;
    }
    return a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
}

}  // namespace roost
