#include "routing/policy.h"

#include <gtest/gtest.h>

namespace roost::routing {
namespace {

NodeState node(const char *name, uint32_t weight, uint32_t in_flight, uint64_t last_used) {
    return {Uuid::from_name(name), name, weight, in_flight, last_used, true};
}

TEST(LeastLoaded, TakesTheSmallestLoadByWeight) {
    const auto policy = make_policy("least_loaded");
    const ClusterSnapshot cluster{{node("a", 2, 4, 1), node("b", 8, 8, 2), node("c", 1, 3, 3)}};
    const Decision decision = policy->decide(cluster, {});
    EXPECT_EQ(decision.candidates.front(), Uuid::from_name("b"));
    EXPECT_EQ(decision.candidates.back(), Uuid::from_name("c"));
    EXPECT_EQ(decision.reason, "least_loaded");
}

TEST(LeastLoaded, BreaksTiesByLeastRecentlyUsed) {
    const auto policy = make_policy("auto");
    const ClusterSnapshot cluster{{node("a", 1, 1, 9), node("b", 1, 1, 3), node("c", 1, 1, 5)}};
    const Decision decision = policy->decide(cluster, {});
    const std::vector<Uuid> expected{Uuid::from_name("b"), Uuid::from_name("c"), Uuid::from_name("a")};
    EXPECT_EQ(decision.candidates, expected);
}

TEST(LeastLoaded, PinnedStatementsGoNowhereElse) {
    const auto policy = make_policy("auto");
    const ClusterSnapshot cluster{{node("a", 1, 0, 0), node("b", 1, 9, 0)}};
    StatementFeatures statement;
    statement.pinned_node = Uuid::from_name("b");
    EXPECT_EQ(policy->decide(cluster, statement).candidates, std::vector<Uuid>{Uuid::from_name("b")});
    statement.pinned_node = Uuid::from_name("gone");
    EXPECT_TRUE(policy->decide(cluster, statement).candidates.empty());
}

TEST(LeastLoaded, AvoidsTheLostNodeUnlessItIsTheOnlyOne) {
    const auto policy = make_policy("auto");
    StatementFeatures statement;
    statement.avoid = Uuid::from_name("a");
    const ClusterSnapshot two{{node("a", 1, 0, 0), node("b", 1, 9, 0)}};
    EXPECT_EQ(policy->decide(two, statement).candidates, std::vector<Uuid>{Uuid::from_name("b")});
    const ClusterSnapshot one{{node("a", 1, 0, 0)}};
    EXPECT_EQ(policy->decide(one, statement).candidates, std::vector<Uuid>{Uuid::from_name("a")});
}

TEST(RoundRobin, GoesThroughAllNodes) {
    const auto policy = make_policy("round_robin");
    const ClusterSnapshot cluster{{node("a", 1, 0, 0), node("b", 1, 0, 0), node("c", 1, 0, 0)}};
    std::vector<Uuid> firsts;
    for (int i = 0; i < 3; ++i) firsts.push_back(policy->decide(cluster, {}).candidates.front());
    std::sort(firsts.begin(), firsts.end());
    EXPECT_EQ(std::unique(firsts.begin(), firsts.end()), firsts.end());
}

TEST(Policies, EmptyPoolAndUnknownName) {
    EXPECT_EQ(make_policy("auto")->decide({}, {}).reason, "no_members");
    EXPECT_EQ(make_policy("nonsense"), nullptr);
    EXPECT_EQ(make_policy("auto")->name(), "least_loaded")
        << "warmth is worth nothing where the data is on this machine";
    EXPECT_EQ(make_policy("auto", true)->name(), "affinity");
}

}  // namespace
}  // namespace roost::routing
