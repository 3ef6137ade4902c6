#include "app/backoff.h"

#include <gtest/gtest.h>

#include <vector>

namespace roost::app {
namespace {

TEST(Backoff, DoublesUpToTenSeconds) {
    Backoff backoff;
    std::vector<int64_t> pauses;
    for (int i = 0; i < 9; ++i) pauses.push_back(backoff.pause_ms(50));
    EXPECT_EQ(pauses, (std::vector<int64_t>{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000}));
}

TEST(Backoff, AHealthyRunMakesTheNextCrashAFirstOne) {
    Backoff backoff;
    for (int i = 0; i < 5; ++i) backoff.pause_ms(0);
    EXPECT_EQ(backoff.pause_ms(30'000), 100);
    EXPECT_EQ(backoff.pause_ms(29'999), 200);
}

}  // namespace
}  // namespace roost::app
