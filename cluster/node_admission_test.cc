// A node's admission under `auto`, over a fake engine: what the ledger orders is carried out, and what is promised at
// one time never passes the budget.
#include "cluster/node_admission.h"

#include <gtest/gtest.h>

#include <random>

#include "cluster/test_pool.h"

namespace roost::cluster {
namespace {

using net::FrameType;

constexpr uint64_t kMiB = uint64_t{1} << 20, kGiB = uint64_t{1} << 30;
constexpr uint64_t kBudget = 12 * kGiB;  // lanes of 1 GiB each; buckets of 1, 2, 4, 6, 12 GiB, 4 at most

class NodeAdmissionTest : public TestPool {
protected:
    TestNode &add_auto_node(admission::Profile profile = admission::Profile::automatic) {
        return add_node({.small_workers = 4, .budget_bytes = kBudget, .profile = profile});
    }
    void run_until_ended(const Seen &seen) {
        run_until([&] { return seen.ended; });
    }
    Completion end_of(const TestNode &node, const StatementSpec &spec) {
        Seen seen;
        run(node.id, spec, seen);
        run_until_ended(seen);
        EXPECT_TRUE(seen.status.ok()) << seen.status.to_string();
        return seen.completion;
    }
    std::shared_ptr<RemoteStream> open(const TestNode &node, const StatementSpec &spec) {
        auto stream = hub().open(node.id, FrameType::dispatch, encode(spec));
        EXPECT_TRUE(stream.ok()) << stream.status().to_string();
        return std::move(*stream);
    }
    bool waits(const std::shared_ptr<RemoteStream> &stream) {
        return stream->progress().phase == Progress::Phase::waiting;
    }
    Status set_profile(const TestNode &node, const std::string &profile) {
        auto stream = hub().open(node.id, FrameType::set_profile, encode(SetProfile{profile}));
        EXPECT_TRUE(stream.ok());
        Seen seen;
        read(std::move(*stream), seen);
        run_until_ended(seen);
        return seen.completion.status;
    }
    const MemoryReport &report(const TestNode &node) { return hub().members().at(node.id).heartbeat.memory; }
};

StatementSpec large(uint64_t estimate_bytes, std::string more = "") {
    return spec_of("large estimate=" + std::to_string(estimate_bytes) + " " + more);
}

StatementSpec of_session(const Uuid &session, StatementSpec spec) {
    spec.session = session;
    spec.session_lasts = true;
    return spec;
}

TEST_F(NodeAdmissionTest, AStatementGetsItsBucketAndWhatIsFree) {
    TestNode &node = add_auto_node();
    Seen seen;
    run(node.id, large(1'500 * kMiB, "hang=step"), seen);
    run_until([&] { return node.engine.hanging("step") == 1; });
    // 85 % of the 10 GiB that can be lent.
    EXPECT_EQ(node.engine.slot_limits(), std::vector<uint64_t>{10 * kGiB / 100 * 85});
    run_until([&] { return report(node).elastic_bytes > 0; });
    EXPECT_EQ(report(node).profile, "auto");
    EXPECT_EQ(report(node).required_bytes, 2 * kGiB);
    node.engine.release();
    run_until_ended(seen);
    EXPECT_EQ(seen.completion.granted_bytes, 2 * kGiB);
    const MemoryAccount &memory = seen.completion.memory;
    EXPECT_EQ(memory.estimate_bytes, 1'500 * kMiB);
    EXPECT_EQ(memory.wanted_bytes, 2 * kGiB);
    EXPECT_EQ(memory.bucket, "S");
    EXPECT_EQ(memory.why, "plan");
    EXPECT_EQ(memory.profile, "auto");
    ASSERT_EQ(memory.elastic.size(), 1);
    EXPECT_EQ(memory.elastic[0].elastic_bytes, 10 * kGiB / 100 * 85 - 2 * kGiB);
    run_until([&] { return report(node).required_bytes == 0; });
    EXPECT_TRUE(node.engine.slot_limits().empty());
}

TEST_F(NodeAdmissionTest, OneOfUnknownSizeGetsTheMiddleBucketEvenWhenItsShapeIsKnownAsLarge) {
    TestNode &node = add_auto_node();
    StatementSpec spec = large(0);
    spec.shape_is_large = true;
    const Completion completion = end_of(node, spec);
    EXPECT_EQ(completion.granted_bytes, 4 * kGiB);
    EXPECT_EQ(completion.memory.why, "unknown");
    EXPECT_EQ(node.engine.count("plan " + spec.sql), 1) << "an estimate is wanted";
}

TEST_F(NodeAdmissionTest, WhatIsLentComesBackBeforeItIsGivenToOthers) {
    TestNode &node = add_auto_node();
    Seen first, second;
    run(node.id, large(1, "hang=step used=9000000000 a"), first);
    run_until([&] { return node.engine.hanging("step") == 1; });
    run(node.id, large(0, "hang=step b"), second);
    run_until([&] { return node.engine.hanging("step") == 2; });
    EXPECT_LE(node.engine.promised_max_bytes(), kBudget);
    node.engine.release();
    run_until([&] { return first.ended && second.ended; });
    EXPECT_EQ(second.completion.granted_bytes, 4 * kGiB);
    const auto &steps = first.completion.memory.elastic;
    const auto least = std::ranges::min_element(steps, {}, &MemoryAccount::Step::elastic_bytes);
    EXPECT_LE(least->elastic_bytes, 5 * kGiB) << "it went down while it ran";
    EXPECT_EQ(steps[0].elastic_bytes, 10 * kGiB / 100 * 85 - kGiB);
    EXPECT_LE(node.engine.promised_max_bytes(), kBudget);
}

TEST_F(NodeAdmissionTest, WhatIsPinnedIsNotLentTwice) {
    TestNode &node = add_auto_node();
    Seen first, second;
    run(node.id, large(1, "hang=step pins used=9000000000 a"), first);
    run_until([&] { return node.engine.hanging("step") == 1; });
    const auto stream = open(node, large(0, "b"));
    read(stream, second);
    // Its floor is 2 GiB, and 1.5 are free. After two seconds nobody counts on the rest any more, and it still waits.
    run_until([&] { return report(node).not_shrunk == 1; });
    EXPECT_TRUE(waits(stream));
    EXPECT_EQ(stream->progress().place, 1);
    node.engine.release();
    run_until([&] { return first.ended && second.ended; });
    EXPECT_TRUE(second.completion.status.ok());
    EXPECT_LE(node.engine.promised_max_bytes(), kBudget);
}

TEST_F(NodeAdmissionTest, ASessionKeepsItsInstanceUntilItEnds) {
    TestNode &node = add_auto_node();
    const Uuid session = Uuid::make();
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(end_of(node, of_session(session, large(1, "used=5000000000"))).status.ok());
        run_until([&] { return report(node).required_bytes == 0 && report(node).elastic_bytes > 0; });
        EXPECT_EQ(node.engine.slot_limits().size(), 1) << "the same one each time";
    }
    hub().end_session(node.id, session);
    run_until([&] { return node.engine.slot_limits().empty(); });
    EXPECT_EQ(node.engine.count("slot taken twice"), 0);
}

TEST_F(NodeAdmissionTest, WhatIdleSessionsKeepIsThereForOthers) {
    TestNode &node = add_auto_node();
    std::vector<Uuid> sessions(5);
    for (Uuid &session : sessions) {
        session = Uuid::make();
        EXPECT_TRUE(end_of(node, of_session(session, large(1, "used=5000000000"))).status.ok());
    }
    EXPECT_EQ(node.engine.slot_limits().size(), 5);
    Seen seen[2];
    run(node.id, large(0, "hang=step a"), seen[0]);
    run(node.id, large(0, "hang=step b"), seen[1]);
    run_until([&] { return node.engine.hanging("step") == 2; });
    node.engine.release();
    run_until([&] { return seen[0].ended && seen[1].ended; });
    for (const Seen &one : seen) EXPECT_EQ(one.completion.granted_bytes, 4 * kGiB);
    EXPECT_LE(node.engine.promised_max_bytes(), kBudget);
    for (const Uuid &session : sessions) hub().end_session(node.id, session);
    run_until([&] { return node.engine.slot_limits().empty(); });
}

TEST_F(NodeAdmissionTest, TheSmallLaneHoldsNoMoreThanItsEstimates) {
    TestNode &node = add_auto_node();
    Seen first, second, third;
    run(node.id, spec_of("estimate=600000000 hang=step a"), first);
    run_until([&] { return node.engine.hanging("step") == 1; });
    run(node.id, spec_of("estimate=600000000 hang=step b"), second);
    run(node.id, spec_of("estimate=300000000 hang=step c"), third);
    run_until([&] { return node.engine.hanging("step") == 3; });
    node.engine.release();
    run_until([&] { return first.ended && second.ended && third.ended; });
    EXPECT_EQ(first.completion.memory.why, "lane");
    EXPECT_EQ(second.completion.memory.why, "plan");
    EXPECT_TRUE(second.completion.ran_large);
    EXPECT_EQ(second.completion.granted_bytes, kGiB);
    EXPECT_EQ(third.completion.memory.why, "lane");
    run_until([&] { return report(node).lane_bytes == 0; });
}

TEST_F(NodeAdmissionTest, AProfileIsSwitchedUnderRunningStatements) {
    TestNode &node = add_auto_node(admission::Profile::equal_2);
    Seen first, second, third;
    run(node.id, large(1, "hang=step a"), first);
    run(node.id, large(1, "hang=step b"), second);
    run_until([&] { return node.engine.hanging("step") == 2; });
    EXPECT_TRUE(set_profile(node, "auto").ok());
    EXPECT_EQ(set_profile(node, "many").code(), Code::invalid_argument);
    const auto stream = open(node, large(1, "c"));
    read(stream, third);
    run_until([&] { return waits(stream); });
    node.engine.release();
    run_until([&] { return first.ended && second.ended && third.ended; });
    EXPECT_EQ(first.completion.granted_bytes, 5 * kGiB);
    EXPECT_EQ(first.completion.memory.why, "ladder");
    EXPECT_EQ(third.completion.granted_bytes, kGiB);
    EXPECT_TRUE(set_profile(node, "decaying_3").ok());
    EXPECT_EQ(end_of(node, large(1)).granted_bytes, 5 * kGiB);
    EXPECT_LE(node.engine.promised_max_bytes(), kBudget);
}

TEST_F(NodeAdmissionTest, WithNoAdmissionWaitItRunsAtOnceAtWhatIsFreeOrNotAtAll) {
    TestNode &node = add_auto_node();
    std::deque<Seen> seen;
    bool refused = false;
    while (!refused && seen.size() < 200) {
        StatementSpec spec = large(4 * kGiB, "hang=step");
        spec.admission_wait_ms = 0;
        Seen &one = seen.emplace_back();
        run(node.id, spec, one);
        run_until([&] { return one.ended || node.engine.hanging("step") == seen.size(); });
        refused = one.ended;
    }
    ASSERT_TRUE(refused);
    EXPECT_EQ(seen.back().completion.status.name(), "admission_timeout");
    EXPECT_EQ(seen.back().completion.status.sqlstate(), "53200");
    seen.pop_back();
    node.engine.release();
    run_until([&] { return std::ranges::all_of(seen, &Seen::ended); });
    uint64_t sum = 0;
    for (const Seen &one : seen) {
        EXPECT_GE(one.completion.granted_bytes, 64 * kMiB);
        sum += one.completion.granted_bytes;
    }
    EXPECT_LE(sum, 10 * kGiB);
    EXPECT_GE(sum, 10 * kGiB - 64 * kMiB);
}

TEST_F(NodeAdmissionTest, AWaitThatIsCancelledLeavesTheLineAndASessionThatEndsLeavesNothing) {
    TestNode &node = add_auto_node();
    const Uuid session = Uuid::make();
    EXPECT_TRUE(end_of(node, of_session(session, large(1, "used=5000000000"))).status.ok());
    std::vector<Seen> holders(3);
    for (Seen &one : holders) run(node.id, large(3 * kGiB, "hang=step"), one);
    run_until([&] { return node.engine.hanging("step") == 3; });
    Seen waiter;
    const auto stream = open(node, of_session(session, large(1)));
    read(stream, waiter);
    run_until([&] { return waits(stream); });
    hub().end_session(node.id, session);
    stream->cancel(Status(Code::cancelled, "canceling statement due to user request"));
    run_until_ended(waiter);
    EXPECT_EQ(waiter.completion.status.code(), Code::cancelled);
    node.engine.release();
    run_until([&] { return std::ranges::all_of(holders, &Seen::ended); });
    run_until([&] { return node.engine.slot_limits().empty(); });
    run_until([&] { return report(node).elastic_bytes == 0 && report(node).required_bytes == 0; });
}

TEST_F(NodeAdmissionTest, AProcessThatNearsItsMemoryLendsNothingThenGrantsNothingThenEndsTheFurthestOver) {
    std::atomic<uint64_t> resident{100};
    TestNode &node = add_node({.small_workers = 4,
                               .budget_bytes = kBudget,
                               .profile = admission::Profile::automatic,
                               .memory_bytes = 1'000,
                               .resident_bytes = [&resident] { return resident.load(); }});
    Seen modest, greedy, waiting;
    run(node.id, large(3 * kGiB, "hang=step used=1000 modest"), modest);
    run_until([&] { return node.engine.hanging("step") == 1; });
    run(node.id, large(1, "hang=step used=3000000000 pins greedy"), greedy);
    run_until([&] { return node.engine.hanging("step") == 2; });
    resident = 930;
    run_until([&] { return report(node).pressure == 1; });
    resident = 960;
    run_until([&] { return report(node).pressure == 2; });
    const auto stream = open(node, large(1, "late"));
    read(stream, waiting);
    run_until([&] { return waits(stream); });
    resident = 980;
    run_until_ended(greedy);
    resident = 500;
    EXPECT_EQ(greedy.completion.status.name(), "ended_for_memory");
    EXPECT_EQ(greedy.completion.status.sqlstate(), "53200");
    run_until_ended(waiting);
    EXPECT_TRUE(waiting.completion.status.ok());
    EXPECT_FALSE(modest.ended);
    run_until([&] { return report(node).pressure == 0; });
    EXPECT_EQ(report(node).cancelled_for_memory, 1);
    node.engine.release();
    run_until_ended(modest);
}

TEST_F(NodeAdmissionTest, AGroupAtItsCapWaitsForItselfAndTheOthersPass) {
    TestNode &node = add_node({.small_workers = 4,
                               .budget_bytes = kBudget,
                               .profile = admission::Profile::automatic,
                               .groups = {{.name = "etl", .running_max = 1}}});
    const auto of = [](std::string user, std::string group, StatementSpec spec) {
        spec.user = std::move(user);
        spec.group = std::move(group);
        return spec;
    };
    Seen first, second, other;
    run(node.id, of("dbt", "etl", large(1, "hang=step a")), first);
    run_until([&] { return node.engine.hanging("step") == 1; });
    const auto stream = open(node, of("loader", "etl", large(1, "b")));
    read(stream, second);
    run_until([&] { return waits(stream); });
    run(node.id, of("ann", "", large(1, "c")), other);
    run_until_ended(other);
    EXPECT_TRUE(other.completion.status.ok());
    run_until([&] { return report(node).groups.size() == 2 && report(node).groups[1].waiting == 1; });
    EXPECT_EQ(report(node).groups[1].name, "etl");
    EXPECT_EQ(report(node).groups[1].running, 1);
    node.engine.release();
    run_until([&] { return first.ended && second.ended; });
    EXPECT_TRUE(second.completion.status.ok());
}

// Statements of all kinds, cancels, sessions that come and go, while the profile changes all the time.
TEST_F(NodeAdmissionTest, WhateverComesNoMoreIsPromisedThanThereIs) {
    TestNode &node = add_auto_node();
    const char *seed_text = std::getenv("ROOST_TEST_SEED");
    const auto seed = static_cast<uint32_t>(seed_text ? std::atoi(seed_text) : 20);
    SCOPED_TRACE("ROOST_TEST_SEED=" + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&](uint32_t n) { return std::uniform_int_distribution<uint32_t>(0, n - 1)(random); };
    std::vector<Uuid> sessions(4);
    for (Uuid &session : sessions) session = Uuid::make();
    std::deque<Seen> seen;
    std::vector<std::shared_ptr<RemoteStream>> streams;
    for (int i = 0; i < 400; ++i) {
        const std::string size = std::to_string(uint64_t{pick(60)} * 100 * kMiB);
        std::string words = (pick(4) == 0 ? "estimate=" : "large estimate=") + size + " used=" + size;
        if (pick(5) == 0) words += " pins";
        if (pick(9) == 0) words = "oom";
        if (pick(7) == 0) words += " fail=step";
        StatementSpec spec = spec_of(words + " rows=3000");
        if (pick(2) == 0) spec = of_session(sessions[pick(4)], spec);
        if (pick(6) == 0) spec.admission_wait_ms = 0;
        if (pick(8) == 0) spec.no_wait = true;
        streams.push_back(open(node, spec));
        read(streams.back(), seen.emplace_back());
        if (pick(4) == 0) streams[pick(static_cast<uint32_t>(streams.size()))]->cancel(Status(Code::cancelled, "no"));
        if (pick(20) == 0) hub().end_session(node.id, sessions[pick(4)]);
        constexpr const char *kProfiles[] = {"auto", "auto", "single", "equal_2", "decaying_3"};
        if (pick(15) == 0) EXPECT_TRUE(set_profile(node, kProfiles[pick(5)]).ok());
        if (pick(10) == 0) run_until([&] { return std::ranges::count(seen, false, &Seen::ended) < 10; });
    }
    run_until([&] { return std::ranges::all_of(seen, &Seen::ended); });
    EXPECT_LE(node.engine.promised_max_bytes(), kBudget);
    EXPECT_EQ(node.engine.count("slot taken twice"), 0);
    for (const Uuid &session : sessions) hub().end_session(node.id, session);
    run_until([&] { return node.engine.slot_limits().empty(); });
    run_until([&] { return hub().members().at(node.id).heartbeat.granted_bytes == 0; });
}

}  // namespace
}  // namespace roost::cluster
