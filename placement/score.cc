#include "placement/score.h"

#include <array>
#include <bit>

namespace roost::placement {
namespace {

using Wide = unsigned __int128;

constexpr int kFractionBits = 56;

// The fraction of log2 of a mantissa in [1, 2) with 63 bits after the point, rounded down to 56 bits: squaring doubles
// the logarithm, and whether the square reaches 2 is its next bit. Truncation keeps each step monotonic, and the error
// of step i weighs 2^-i.
constexpr uint64_t log2_fraction(uint64_t mantissa) {
    uint64_t fraction = 0;
    for (int bit = 0; bit < kFractionBits; ++bit) {
        const Wide square = static_cast<Wide>(mantissa) * mantissa;
        const bool reaches_two = (square >> 127) != 0;
        mantissa = static_cast<uint64_t>(square >> (reaches_two ? 64 : 63));
        fraction = fraction << 1 | (reaches_two ? 1 : 0);
    }
    return fraction;
}

constexpr Log2Grid make_grid() {
    Log2Grid grid;
    for (uint64_t i = 0; i < 256; ++i) grid.at[i] = log2_fraction((uint64_t{1} << 63) + (i << 55));
    grid.at[256] = uint64_t{1} << kFractionBits;
    return grid;
}

// A chord lies below the logarithm, by at most (1/256)^2 / (8 ln 2) < 2^-18.
constexpr uint64_t kChordError = uint64_t{1} << (kFractionBits - 18);
// What rounding of the grid, of the chord and of log2_fraction comes to, and more.
constexpr uint64_t kRounding = 64;

// x as an integer of 54 bits: 2^54 * x. Odd, so never 0 and never 2^54.
constexpr uint64_t numerator(uint64_t hash) { return (hash >> 11 << 1) | 1; }

}  // namespace

constinit const Log2Grid kLog2Grid = make_grid();

uint64_t negative_log2(uint64_t hash) {
    const uint64_t x = numerator(hash);
    const int exponent = 63 - std::countl_zero(x);
    const uint64_t log2 = (static_cast<uint64_t>(exponent) << kFractionBits) | log2_fraction(x << (63 - exponent));
    return (uint64_t{54} << kFractionBits) - log2;
}

Log2Bounds negative_log2_bounds(uint64_t hash) {
    const uint64_t near = near_negative_log2(hash);
    const uint64_t below = kChordError + kRounding;
    return {near > below ? near - below : 1, near + kRounding};
}

Scale scale_of(uint32_t weight) {
    const uint64_t inverse = (uint64_t{1} << 63) / weight;
    // A hash counts to 2^64, its logarithm to 2^56. 1 / ln 2, rounded down.
    const auto low = static_cast<uint64_t>((static_cast<Wide>(inverse >> 8) * 1'442'695'040) / 1'000'000'000);
    return {inverse, (kChordError / 2) / weight + 1, low};
}

int compare_scores_slowly(uint64_t hash_a, uint32_t weight_a, uint64_t hash_b, uint32_t weight_b) {
    const Log2Bounds a = negative_log2_bounds(hash_a), b = negative_log2_bounds(hash_b);
    if (static_cast<Wide>(a.high) * weight_b < static_cast<Wide>(b.low) * weight_a) return 1;
    if (static_cast<Wide>(a.low) * weight_b > static_cast<Wide>(b.high) * weight_a) return -1;
    const Wide cost_a = static_cast<Wide>(negative_log2(hash_a)) * weight_b;
    const Wide cost_b = static_cast<Wide>(negative_log2(hash_b)) * weight_a;
    if (cost_a != cost_b) return cost_a < cost_b ? 1 : -1;
    // Equal to the last bit: the larger hash, as between equal weights.
    const uint64_t x = hash_a >> 11, y = hash_b >> 11;
    return x > y ? 1 : x < y ? -1 : 0;
}

}  // namespace roost::placement
