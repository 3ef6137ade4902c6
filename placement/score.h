// The score of weighted rendezvous hashing, compared without floating point.
//
// A node of weight w whose hash with a unit is h scores -w / ln(x), x = ((h >> 11) + 0.5) / 2^53; the highest score has
// the unit. Larger score means smaller -log2(x) / w, so two nodes are compared by cross-multiplying integers. log2 is
// computed bit by bit in fixed point: exact to the last bit of 56, the same on every machine, and monotonic by
// construction (each step of the recurrence is), which is what keeps the order of all nodes an order. Mostly it is not
// computed at all: of equal weights the larger hash wins, and bounds from a small table decide nearly all the rest.
//
// Source of the score: J. K. Resch, M. Volvovski, "New hashing algorithms for data storage", SDC 2015. Pure.
#pragma once

#include <bit>
#include <cstdint>

namespace roost::placement {

// Weights are effective vCPUs; more than this counts as this.
inline constexpr uint32_t kMaxWeight = 1u << 16;

// -log2(x) of a hash in units of 2^-56, rounded up; in [1, 54 << 56]. Never grows with h.
uint64_t negative_log2(uint64_t hash);

// Bounds of negative_log2 without computing it; no wider than 2^-17.
struct Log2Bounds {
    uint64_t low, high;
};
Log2Bounds negative_log2_bounds(uint64_t hash);

// A weight made ready to be divided by, and how far a cost of it may be too high.
struct Scale {
    uint64_t inverse = 0;  // 2^63 / weight
    uint64_t slack = 0;
    uint64_t low = 0;  // of inverse, for low_cost
};
Scale scale_of(uint32_t weight);

// log2 at 1 + i/256, in units of 2^-56.
struct Log2Grid {
    uint64_t at[257] = {};
};
extern const Log2Grid kLog2Grid;

// negative_log2 by a chord of the grid: too high by 2^-18 at most, and a few units either way.
inline uint64_t near_negative_log2(uint64_t hash) {
    const uint64_t x = (hash >> 11 << 1) | 1;
    const int exponent = 63 - std::countl_zero(x);
    const uint64_t mantissa = x << (63 - exponent);
    const uint64_t cell = mantissa << 1 >> 56;
    const uint64_t within = mantissa << 9;  // of the cell, in units of 2^-64
    const uint64_t step = kLog2Grid.at[cell + 1] - kLog2Grid.at[cell];
    const auto rise = static_cast<uint64_t>((static_cast<unsigned __int128>(step) * within) >> 64);
    return (static_cast<uint64_t>(54 - exponent) << 56) - kLog2Grid.at[cell] - rise;
}

// negative_log2 / (2 * weight), nearly: low by a few units at most, high by the scale's slack at most.
inline uint64_t near_cost(uint64_t hash, const Scale &scale) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(near_negative_log2(hash)) * scale.inverse) >> 64);
}

// Less than near_cost, or the same, by a multiplication alone: -ln(x) >= 1 - x. Close where x is near 1, and what wins
// a unit is.
inline uint64_t low_cost(uint64_t hash, const Scale &scale) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(~hash) * scale.low) >> 64);
}

// What near costs say of two nodes: > 0: the first surely scores higher; < 0: the second; 0: too close to say.
inline constexpr uint64_t kCostRounding = 1024;  // of two near costs together, and more
inline int compare_near_costs(uint64_t cost_a, const Scale &a, uint64_t cost_b, const Scale &b) {
    return cost_a + b.slack + kCostRounding < cost_b ? 1 : cost_b + a.slack + kCostRounding < cost_a ? -1 : 0;
}

// > 0: the first scores higher; < 0: the second; 0: equal hashes (of the 53 bits that count) and equal weights.
// REQUIRES: weights in [1, kMaxWeight].
int compare_scores_slowly(uint64_t hash_a, uint32_t weight_a, uint64_t hash_b, uint32_t weight_b);
inline int compare_scores(uint64_t hash_a, uint32_t weight_a, uint64_t hash_b, uint32_t weight_b) {
    const uint64_t a = hash_a >> 11, b = hash_b >> 11;
    // Not less in both, and more in one of them.
    if (weight_a == weight_b) return a > b ? 1 : a < b ? -1 : 0;
    if (weight_a > weight_b && a >= b) return 1;
    if (weight_a < weight_b && a <= b) return -1;
    return compare_scores_slowly(hash_a, weight_a, hash_b, weight_b);
}

}  // namespace roost::placement
