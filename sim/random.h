// Random numbers that are the same for a seed on every machine. Not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace roost::sim {

class Random {
public:
    explicit Random(uint64_t seed) : engine_(seed) {}
    uint64_t bits() { return engine_(); }
    double uniform() { return static_cast<double>(engine_() >> 11) / 9007199254740992.0; }  // [0, 1)
    uint64_t below(uint64_t n) { return static_cast<uint64_t>(uniform() * static_cast<double>(n)); }
    double exponential(double mean) { return -mean * std::log(1 - uniform()); }

private:
    std::mt19937_64 engine_;
};

// Rank k of n with probability proportional to 1 / (k + 1)^s.
class Zipf {
public:
    Zipf(size_t n, double s) {
        double sum = 0;
        cumulative_.reserve(n);
        for (size_t k = 0; k < n; ++k) cumulative_.push_back(sum += std::pow(static_cast<double>(k + 1), -s));
        for (double &each : cumulative_) each /= sum;
    }
    size_t draw(Random &random) const {
        const auto at = std::lower_bound(cumulative_.begin(), cumulative_.end(), random.uniform());
        return std::min(static_cast<size_t>(at - cumulative_.begin()), cumulative_.size() - 1);
    }

private:
    std::vector<double> cumulative_;
};

}  // namespace roost::sim
