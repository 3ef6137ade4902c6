#include "cluster/statement_sizes.h"

#include <gtest/gtest.h>

namespace roost::cluster {
namespace {

using Why = admission::ShapeMemory::Known::Why;
constexpr uint64_t kMiB = admission::kMiB;

StatementSpec spec_of(uint64_t shape) {
    StatementSpec spec;
    spec.shape = shape;
    spec.settings.catalog = "lake";
    return spec;
}

PlanInfo plan_of(uint64_t estimate, uint64_t rows = 1'000, bool written = false) {
    PlanInfo plan;
    plan.estimated_bytes = estimate;
    plan.bound_to = "lake:3,";
    plan.tables.push_back({.name = "lake.orders", .rows = rows, .written = written});
    return plan;
}

Completion end_of(uint64_t peak, uint64_t granted, uint64_t spilled = 0) {
    Completion end;
    end.peak_memory_bytes = peak;
    end.granted_bytes = granted;
    end.memory.spilled_bytes = spilled;
    return end;
}

class Sizes : public ::testing::Test {
protected:
    StatementSizes sizes{admission::ShapeMemoryOptions{}};
};

TEST_F(Sizes, TheFirstRunIsSizedByItsPlanAndTheNextByWhatTheFirstUsed) {
    const auto first = sizes.planned(spec_of(7), plan_of(900 * kMiB), 1);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->why, Why::planned);
    EXPECT_EQ(first->bytes, 900 * kMiB);
    sizes.ran(spec_of(7), plan_of(900 * kMiB), end_of(100 * kMiB, 900 * kMiB), 2);
    const auto second = sizes.planned(spec_of(7), plan_of(900 * kMiB), 3);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->why, Why::measured);
    EXPECT_EQ(second->bytes, 128 * kMiB);  // 125 MiB, by steps of 16
    EXPECT_EQ(second->estimate, 900 * kMiB);
}

TEST_F(Sizes, ARunThatSpilledGetsMoreNextTime) {
    (void)sizes.planned(spec_of(7), plan_of(64 * kMiB), 1);
    sizes.ran(spec_of(7), plan_of(64 * kMiB), end_of(60 * kMiB, 64 * kMiB, kMiB), 2);
    const auto next = sizes.planned(spec_of(7), plan_of(64 * kMiB), 3);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->why, Why::spilled);
    EXPECT_EQ(next->bytes, 80 * kMiB);
}

TEST_F(Sizes, AnotherSchemaIsAnotherShape) {
    (void)sizes.planned(spec_of(7), plan_of(900 * kMiB), 1);
    sizes.ran(spec_of(7), plan_of(900 * kMiB), end_of(100 * kMiB, 900 * kMiB), 2);
    PlanInfo altered = plan_of(900 * kMiB);
    altered.bound_to = "lake:4,";
    EXPECT_EQ(sizes.planned(spec_of(7), altered, 3)->why, Why::planned);
    StatementSpec elsewhere = spec_of(7);
    elsewhere.settings.catalog = "other";
    EXPECT_EQ(sizes.planned(elsewhere, plan_of(900 * kMiB), 3)->why, Why::planned);
}

TEST_F(Sizes, AWriteDropsWhatReadsTheTableButNotTheWriter) {
    (void)sizes.planned(spec_of(7), plan_of(900 * kMiB), 1);
    sizes.ran(spec_of(7), plan_of(900 * kMiB), end_of(100 * kMiB, 900 * kMiB), 2);
    const PlanInfo insert = plan_of(300 * kMiB, 0, true);
    (void)sizes.planned(spec_of(8), insert, 3);
    sizes.ran(spec_of(8), insert, end_of(32 * kMiB, 300 * kMiB), 4);
    sizes.wrote(spec_of(8), insert);
    EXPECT_EQ(sizes.planned(spec_of(7), plan_of(900 * kMiB), 5)->why, Why::planned);
    EXPECT_EQ(sizes.planned(spec_of(8), insert, 5)->why, Why::measured);
}

TEST_F(Sizes, ATableThatOthersMadeLargerDropsWhatReadsIt) {
    (void)sizes.planned(spec_of(7), plan_of(900 * kMiB, 1'000), 1);
    sizes.ran(spec_of(7), plan_of(900 * kMiB, 1'000), end_of(100 * kMiB, 900 * kMiB), 2);
    EXPECT_EQ(sizes.planned(spec_of(7), plan_of(900 * kMiB, 1'050), 3)->why, Why::measured);
    EXPECT_EQ(sizes.planned(spec_of(7), plan_of(900 * kMiB, 2'000), 4)->why, Why::planned);
}

TEST_F(Sizes, AnUnknownShapeIsPlannedEachTimeAndAFailedRunTeachesNothing) {
    sizes.ran(spec_of(0), plan_of(64 * kMiB), end_of(10 * kMiB, 64 * kMiB), 1);
    EXPECT_EQ(sizes.planned(spec_of(0), plan_of(64 * kMiB), 2)->why, Why::planned);
    Completion failed = end_of(10 * kMiB, 64 * kMiB);
    failed.status = Status(Code::cancelled, "cancelled");
    sizes.ran(spec_of(7), plan_of(64 * kMiB), failed, 3);
    EXPECT_EQ(sizes.planned(spec_of(7), plan_of(64 * kMiB), 4)->why, Why::planned);
    EXPECT_FALSE(sizes.planned(spec_of(9), plan_of(0), 5));
}

TEST_F(Sizes, AnAbandonedEstimateIsSizedByEarlierRuns) {
    sizes.ran(spec_of(7), plan_of(64 * kMiB), end_of(32 * kMiB, 64 * kMiB), 1);
    EXPECT_EQ(sizes.planned(spec_of(7), plan_of(0), 2)->bytes, 48 * kMiB);
}

}  // namespace
}  // namespace roost::cluster
