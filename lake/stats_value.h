// Values as DuckLake's statistics write them, compared as DuckDB compares values of the column's type. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace roost {

class StatsType {
public:
    // `type`: DuckLake's name, int32, decimal(18,3), …
    explicit StatsType(std::string_view type);

    // Whether statistics of this type say anything here.
    bool known() const { return kind_ != Kind::unknown; }
    bool floating() const { return kind_ == Kind::float32 || kind_ == Kind::float64; }

    struct Value {
        __int128 number = 0;    // whole numbers, decimals by their scale, dates in days, times in microseconds
        double real = 0;        // float and double
        std::string_view text;  // everything compared by its bytes: a view of what was parsed
    };
    // Nothing where the text is not a value of the type.
    std::optional<Value> parse(std::string_view text) const;
    // Negative, 0, positive. NaN is above all.
    int compare(const Value &a, const Value &b) const;
    bool is_nan(const Value &value) const { return floating() && value.real != value.real; }

private:
    friend std::optional<uint32_t> bucket_of(std::string_view type, std::string_view value, uint32_t buckets);
    enum class Kind : uint8_t {
        unknown,
        boolean,
        integer,
        decimal,
        float32,
        float64,
        date,
        time,
        timestamp,
        timestamptz,
        text,
    };
    std::optional<__int128> number_of(std::string_view text) const;

    Kind kind_ = Kind::unknown;
    int width_ = 0;
    int scale_ = 0;
};

}  // namespace roost
