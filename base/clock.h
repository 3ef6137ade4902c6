// Time, injected so that tests never wait. Real code takes a Clock&; SystemClock is the one that app/ passes down.
#pragma once

#include <cstdint>

namespace roost {

class Clock {
public:
    virtual ~Clock() = default;
    // Monotonic microseconds from an arbitrary start; for durations and deadlines.
    virtual int64_t monotonic_us() const = 0;
    // Microseconds since 1970-01-01 UTC; for people and records.
    virtual int64_t wall_us() const = 0;
    int64_t monotonic_ms() const { return monotonic_us() / 1000; }
};

class SystemClock final : public Clock {
public:
    int64_t monotonic_us() const override;
    int64_t wall_us() const override;
};

class ManualClock final : public Clock {
public:
    int64_t monotonic_us() const override { return now_us_; }
    int64_t wall_us() const override { return now_us_; }
    void advance_us(int64_t us) { now_us_ += us; }

private:
    int64_t now_us_ = 1'000'000;
};

}  // namespace roost
