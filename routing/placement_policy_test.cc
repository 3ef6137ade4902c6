#include "routing/placement_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace roost::routing {
namespace {

ClusterSnapshot three() {
    ClusterSnapshot cluster;
    for (const char *name : {"a", "b", "c"}) {
        NodeState node;
        node.id = Uuid::from_name(name);
        node.name = name;
        node.incarnation = 1;
        cluster.nodes.push_back(node);
    }
    return cluster;
}

StatementFeatures reading(uint64_t table) {
    StatementFeatures statement;
    statement.tables.push_back({1, table, 1, 1000, false, nullptr});
    return statement;
}

TEST(PlacementPolicy, TheSecondStatementFollowsTheFirst) {
    for (const auto mode : {placement::Mode::automatic, placement::Mode::affinity}) {
        placement::DirectoryOptions options;
        options.mode = mode;
        const auto policy = std::make_unique<PlacementPolicy>(options);
        const ClusterSnapshot cluster = three();
        Decision first = policy->decide(cluster, reading(7));
        EXPECT_EQ(first.reason, "claim");
        EXPECT_EQ(first.candidates.size(), 3u);
        EXPECT_EQ(first.looks.size(), 3u);
        policy->ended(first, {true, {}, 0});
        const Decision told = policy->explain(cluster, reading(7));
        Decision second = policy->decide(cluster, reading(7));
        EXPECT_EQ(second.reason, "sticky_fresh");
        EXPECT_EQ(second.candidates.front(), first.candidates.front());
        EXPECT_EQ(told.candidates, second.candidates);
        EXPECT_NE(second.why.find("1000 B warm of 1000 B"), std::string::npos) << second.why;
        EXPECT_EQ(policy->name(), placement::mode_name(mode));
    }
}

TEST(PlacementPolicy, AStatementThatWentOnTakesItsClaimAlong) {
    const auto policy = make_policy("affinity");
    const ClusterSnapshot cluster = three();
    Decision first = policy->decide(cluster, reading(7));
    const auto &second = *std::ranges::find(cluster.nodes, first.candidates[1], &NodeState::id);
    policy->dispatched(first, second);
    policy->ended(first, {true, {}, 0});
    EXPECT_EQ(policy->decide(cluster, reading(7)).candidates.front(), second.id);
}

TEST(PlacementPolicy, PinnedAndNoTablesAndNoNodes) {
    const auto policy = make_policy("affinity");
    ClusterSnapshot cluster = three();
    cluster.nodes[0].in_flight = 1;
    EXPECT_EQ(policy->decide(cluster, {}).reason, "no_refs");
    EXPECT_NE(policy->decide(cluster, {}).candidates.front(), cluster.nodes[0].id);
    StatementFeatures pinned = reading(7);
    pinned.pinned_node = cluster.nodes[2].id;
    EXPECT_EQ(policy->decide(cluster, pinned).candidates, std::vector<Uuid>{cluster.nodes[2].id});
    EXPECT_EQ(policy->decide(cluster, pinned).reason, "pinned");
    EXPECT_EQ(policy->decide({}, reading(7)).reason, "no_members");
}

TEST(PlacementPolicy, SegmentsNeedNoMemory) {
    const auto policy = make_policy("segments");
    EXPECT_EQ(policy->decide(three(), reading(7)).reason, "owner");
    EXPECT_EQ(policy->directory()->size(), 0u);
}

}  // namespace
}  // namespace roost::routing
