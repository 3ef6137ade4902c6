// Random numbers, injected so that tests repeat: the same seed, the same run. Not for secrets (see base/ids.h).
// Thread-safe and free of locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace roost {

class Random {
public:
    virtual ~Random() = default;
    virtual uint64_t next() = 0;
    // 0 .. bound - 1; 0 when bound is 0. The bias of the remainder is below bound / 2^64.
    uint64_t below(uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
    // 0 ≤ x < 1.
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    bool chance(double probability) { return unit() < probability; }
};

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class SeededRandom : public Random {
public:
    explicit SeededRandom(uint64_t seed) : state_(seed) {}
    uint64_t next() override {
        constexpr uint64_t step = 0x9E3779B97F4A7C15;
        uint64_t z = state_.fetch_add(step, std::memory_order_relaxed) + step;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }

private:
    std::atomic<uint64_t> state_;
};

}  // namespace roost
