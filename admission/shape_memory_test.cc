#include "admission/shape_memory.h"

#include <gtest/gtest.h>

namespace roost::admission {
namespace {

using Why = ShapeMemory::Known::Why;

TEST(ShapeMemory, the_plan_counts_until_a_run_was_measured) {
    ShapeMemory memory;
    EXPECT_FALSE(memory.find("q", 0).has_value());
    memory.planned("q", {"t"}, 900 * kMiB, 0);
    EXPECT_EQ(memory.find("q", 1)->bytes, 900 * kMiB);
    EXPECT_EQ(memory.find("q", 1)->why, Why::planned);
    memory.ran("q", {"t"}, 100 * kMiB, 900 * kMiB, false, 2);
    const auto known = memory.find("q", 3);
    EXPECT_EQ(known->bytes, 128 * kMiB) << "125 MiB, rounded up to 16";
    EXPECT_EQ(known->why, Why::measured);
    EXPECT_EQ(known->estimate, 900 * kMiB);
    EXPECT_EQ(known->peak, 100 * kMiB);
}

TEST(ShapeMemory, the_largest_of_the_last_three_peaks_counts) {
    ShapeMemory memory({.safety_multiplier = 1});
    for (const uint64_t peak : {500, 64, 96}) memory.ran("q", {}, peak * kMiB, 0, false, 0);
    EXPECT_EQ(memory.find("q", 0)->bytes, 512 * kMiB);
    memory.ran("q", {}, 32 * kMiB, 0, false, 0);
    EXPECT_EQ(memory.find("q", 0)->bytes, 96 * kMiB);
}

TEST(ShapeMemory, a_run_that_spilled_grows_the_next_grant_each_time) {
    ShapeMemory memory;
    uint64_t grant = 256 * kMiB;
    for (int i = 0; i < 4; ++i) {
        memory.ran("q", {}, grant / 2, grant, true, i);
        const auto known = memory.find("q", i);
        EXPECT_EQ(known->why, Why::spilled);
        EXPECT_GE(known->bytes, grant + grant / 4);
        grant = known->bytes;
    }
}

TEST(ShapeMemory, writes_drop_what_depends_on_the_table_and_nothing_else) {
    ShapeMemory memory;
    memory.planned("reads t", {"t", "u"}, 1, 0);
    memory.ran("reads u", {"u"}, 1, 1, false, 0);
    memory.ran("writes t", {"t"}, 1, 1, false, 0);
    memory.changed("t", "writes t");
    EXPECT_FALSE(memory.find("reads t", 0).has_value());
    EXPECT_TRUE(memory.find("reads u", 0).has_value());
    EXPECT_TRUE(memory.find("writes t", 0).has_value());
    memory.changed("t");
    EXPECT_EQ(memory.size(), 1U);
    memory.changed("nothing of this name");
    // Tables of a shape may change: a view was replaced.
    memory.ran("reads u", {"v"}, 1, 1, false, 0);
    memory.changed("u");
    EXPECT_TRUE(memory.find("reads u", 0).has_value());
    memory.changed("v");
    EXPECT_FALSE(memory.find("reads u", 0).has_value());
}

TEST(ShapeMemory, the_least_recently_used_goes_first_and_all_expire) {
    ShapeMemory memory({.shapes_max = 2, .ttl_us = 100});
    memory.planned("a", {"t"}, 1, 0);
    memory.planned("b", {"t"}, 1, 0);
    EXPECT_TRUE(memory.find("a", 1).has_value());
    memory.planned("c", {"t"}, 1, 2);
    EXPECT_FALSE(memory.find("b", 3).has_value());
    EXPECT_TRUE(memory.find("a", 99).has_value());
    EXPECT_FALSE(memory.find("a", 100).has_value()) << "to look at it is not to measure it";
    memory.ran("c", {"t"}, 5 * kMiB, 0, false, 101);
    EXPECT_TRUE(memory.find("c", 200).has_value());
    EXPECT_FALSE(memory.find("c", 201).has_value());
    EXPECT_EQ(memory.size(), 0U);
}

TEST(ShapeMemory, without_feedback_the_plan_alone_counts) {
    ShapeMemory memory({.feedback = false});
    memory.ran("q", {}, 1, 1, true, 0);
    EXPECT_FALSE(memory.find("q", 0).has_value());
    memory.planned("q", {}, 70 * kMiB, 0);
    memory.ran("q", {}, 1, 1, true, 0);
    EXPECT_EQ(memory.find("q", 0)->bytes, 70 * kMiB);
}

TEST(ShapeMemory, sizes_do_not_wrap) {
    ShapeMemory memory({.safety_multiplier = 1e9});
    memory.ran("q", {}, UINT64_MAX, UINT64_MAX, true, 0);
    EXPECT_EQ(memory.find("q", 0)->bytes, uint64_t{1} << 63);
    memory.ran("none", {}, 0, 0, false, 0);
    EXPECT_EQ(memory.find("none", 0)->bytes, 16 * kMiB);
}

}  // namespace
}  // namespace roost::admission
