#include "routing/member_health.h"

#include <gtest/gtest.h>

namespace roost::routing {
namespace {

TEST(MemberHealth, LeavesAfterThreeFailuresInARowOnly) {
    MemberHealth health;
    EXPECT_FALSE(health.note(true, 0));
    EXPECT_FALSE(health.note(true, 0));
    EXPECT_FALSE(health.note(false, 0)) << "a success between them";
    EXPECT_FALSE(health.note(true, 0));
    EXPECT_FALSE(health.note(true, 0));
    EXPECT_FALSE(health.failing());
    EXPECT_TRUE(health.note(true, 0));
    EXPECT_TRUE(health.failing());
    EXPECT_FALSE(health.note(true, 0)) << "said once";
}

TEST(MemberHealth, ComesBackAfterAProbeAndNotBefore) {
    MemberHealth health;
    EXPECT_FALSE(health.take_probe(1LL << 60));
    for (int i = 0; i < 3; ++i) health.note(true, 100);
    EXPECT_FALSE(health.take_probe(100 + MemberHealth::kPauseMinUs - 1));
    int64_t now_us = 100 + MemberHealth::kPauseMinUs;
    EXPECT_TRUE(health.take_probe(now_us));
    EXPECT_FALSE(health.take_probe(now_us)) << "one at a time";
    health.note(false, now_us);
    EXPECT_TRUE(health.failing()) << "a statement from before proves nothing";
    int64_t pause_us = MemberHealth::kPauseMinUs;
    for (int i = 0; i < 10; ++i) {
        health.probed(false, now_us);
        pause_us = std::min(2 * pause_us, MemberHealth::kPauseMaxUs);
        EXPECT_FALSE(health.take_probe(now_us + pause_us - 1));
        now_us += pause_us;
        EXPECT_TRUE(health.take_probe(now_us));
    }
    health.probed(true, now_us);
    EXPECT_FALSE(health.failing());
    EXPECT_FALSE(health.note(true, now_us)) << "it begins anew";
}

}  // namespace
}  // namespace roost::routing
