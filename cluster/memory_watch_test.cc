#include "cluster/memory_watch.h"

#include <gtest/gtest.h>

namespace roost::cluster {
namespace {

using admission::Pressure;

TEST(MemoryWatch, ShedsThenRefusesThenEndsOneAtATime) {
    MemoryWatch watch(1000);
    EXPECT_EQ(watch.look(900, false, 0).pressure, Pressure::none);
    auto verdict = watch.look(930, false, 0);
    EXPECT_EQ(verdict.pressure, Pressure::shed);
    EXPECT_TRUE(verdict.trim);
    EXPECT_FALSE(watch.look(930, true, 10).trim);
    EXPECT_FALSE(watch.look(930, false, 20).trim) << "it was just done";
    EXPECT_EQ(watch.look(960, false, 30).pressure, Pressure::refuse);
    verdict = watch.look(980, false, 40);
    EXPECT_TRUE(verdict.trim) << "before anybody is ended";
    EXPECT_FALSE(verdict.end_one);
    EXPECT_TRUE(watch.look(980, true, 50).end_one);
    EXPECT_FALSE(watch.look(980, true, 60).end_one) << "the first one has not given back yet";
    EXPECT_TRUE(watch.look(995, true, 70).end_one) << "there is no time left for that";
    EXPECT_TRUE(watch.look(980, true, 600'000).end_one);
}

TEST(MemoryWatch, LeavesABitLowerThanItCame) {
    MemoryWatch watch(1000);
    watch.look(960, false, 0);
    EXPECT_EQ(watch.look(915, false, 1).pressure, Pressure::shed);
    EXPECT_EQ(watch.look(895, false, 2).pressure, Pressure::none);
    EXPECT_EQ(watch.look(915, false, 3).pressure, Pressure::none);
}

TEST(MemoryWatch, KnowsNothingOfUnknownMemory) {
    MemoryWatch watch(0);
    const auto verdict = watch.look(uint64_t{1} << 60, false, 0);
    EXPECT_EQ(verdict.pressure, Pressure::none);
    EXPECT_FALSE(verdict.trim || verdict.end_one);
}

}  // namespace
}  // namespace roost::cluster
