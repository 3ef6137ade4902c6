#include "base/clock.h"

#include <gtest/gtest.h>

namespace roost {
namespace {

TEST(SystemClock, is_monotonic_and_knows_the_year) {
    const SystemClock clock;
    int64_t last = clock.monotonic_us();
    for (int i = 0; i < 10'000; ++i) {
        const int64_t now = clock.monotonic_us();
        ASSERT_GE(now, last);
        last = now;
    }
    EXPECT_GT(clock.wall_us(), 1'700'000'000'000'000);
    EXPECT_EQ(clock.monotonic_ms() / 1000, clock.monotonic_us() / 1'000'000);
}

TEST(ManualClock, moves_only_when_told) {
    ManualClock clock;
    const int64_t start = clock.monotonic_us();
    EXPECT_EQ(clock.monotonic_us(), start);
    clock.advance_us(2'500);
    EXPECT_EQ(clock.monotonic_us(), start + 2'500);
    EXPECT_EQ(clock.wall_us(), clock.monotonic_us());
    EXPECT_EQ(clock.monotonic_ms(), (start + 2'500) / 1000);
}

}  // namespace
}  // namespace roost
