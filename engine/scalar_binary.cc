#include "engine/scalar_binary.h"

#include "duckdb/common/exception.hpp"

namespace roost::scalar_binary {

namespace {

constexpr uint16_t kNegative = 0x4000;

// `groups` base-10 000 digits, the first of weight `weight`.
char *put_groups(char *to, const uint16_t *groups, size_t count, int32_t weight, bool negative, uint32_t scale) {
    while (count > 0 && groups[0] == 0) {
        ++groups;
        --count;
        --weight;
    }
    while (count > 0 && groups[count - 1] == 0) --count;
    if (count == 0) {
        weight = 0;
        negative = false;
    }
    to = put_be16(to, static_cast<uint16_t>(count));
    to = put_be16(to, static_cast<uint16_t>(weight));
    to = put_be16(to, negative ? kNegative : 0);
    to = put_be16(to, static_cast<uint16_t>(scale));
    for (size_t i = 0; i < count; ++i) to = put_be16(to, groups[i]);
    return to;
}

}  // namespace

char *put_numeric(char *to, std::string_view digits, bool negative, uint32_t scale) {
    // The digit of weight 10^e is digits[first - e].
    const auto first = static_cast<int64_t>(digits.size()) - 1 - scale;
    const auto group_of = [](int64_t exponent) { return exponent >= 0 ? exponent / 4 : -((3 - exponent) / 4); };
    const int64_t top = group_of(first);
    const int64_t bottom = -static_cast<int64_t>((scale + 3) / 4);
    std::string groups;  // of uint16_t: a BIGNUM has millions
    uint16_t fixed[24];
    const auto count = static_cast<size_t>(top - bottom + 1);
    uint16_t *out = fixed;
    if (count > sizeof fixed / sizeof fixed[0]) {
        groups.resize(count * sizeof(uint16_t));
        out = reinterpret_cast<uint16_t *>(groups.data());
    }
    for (int64_t group = top; group >= bottom; --group) {
        uint16_t value = 0;
        for (int64_t exponent = 4 * group + 3; exponent >= 4 * group; --exponent) {
            const int64_t at = first - exponent;
            const bool inside = at >= 0 && at < static_cast<int64_t>(digits.size());
            value = static_cast<uint16_t>(value * 10 + (inside ? digits[static_cast<size_t>(at)] - '0' : 0));
        }
        out[top - group] = value;
    }
    return put_groups(to, out, count, static_cast<int32_t>(top), negative, scale);
}

char *put_numeric(char *to, uint64_t magnitude, bool negative, uint32_t scale) {
    static constexpr uint64_t kPowers[] = {1, 10, 100, 1'000};
    static constexpr uint64_t kTens[] = {1,
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
                                         10'000'000'000'000'000};
    // Above sixteen places the padded fraction does not fit 64 bits.
    if (scale > 16) return put_numeric(to, static_cast<uint128>(magnitude), negative, scale);
    const uint64_t whole = magnitude / kTens[scale];
    uint64_t fraction = (magnitude - whole * kTens[scale]) * kPowers[(4 - scale % 4) % 4];
    uint16_t groups[10] = {};
    const uint32_t fraction_groups = (scale + 3) / 4;
    constexpr uint32_t kWholeGroups = 5;
    for (uint32_t i = fraction_groups; i > 0; --i) {
        groups[kWholeGroups + i - 1] = static_cast<uint16_t>(fraction % 10'000);
        fraction /= 10'000;
    }
    uint64_t rest = whole;
    uint32_t used = 0;
    for (; rest > 0; rest /= 10'000) groups[kWholeGroups - ++used] = static_cast<uint16_t>(rest % 10'000);
    return put_groups(to, groups + kWholeGroups - used, used + fraction_groups, static_cast<int32_t>(used) - 1,
                      negative, scale);
}

char *put_numeric(char *to, uint128 magnitude, bool negative, uint32_t scale) {
    if (magnitude <= UINT64_MAX && scale <= 16)
        return put_numeric(to, static_cast<uint64_t>(magnitude), negative, scale);
    char digits[40];
    const char *end = value_text::put_uint128(digits, magnitude);
    return put_numeric(to, std::string_view(digits, static_cast<size_t>(end - digits)), negative, scale);
}

void throw_out_of_range(const char *type) {
    throw duckdb::OutOfRangeException("%s out of range for the binary format", type);
}

}  // namespace roost::scalar_binary
