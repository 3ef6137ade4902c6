// Which members get statements: drains, nodes that stop, that fail, that are silent, that are of another version.
#include "service/test_service.h"

namespace roost::service {
namespace {

class MembersTest : public GatewayServiceTest {
protected:
    NodeInfo info(const Uuid &node) {
        for (NodeInfo &each : service_->nodes()) {
            if (each.id == node) return each;
        }
        ADD_FAILURE() << "no such node";
        return {};
    }
    Result<NodeInfo> drain(const Uuid &node, bool drained = true) {
        return wait(service_->drain_node({Uuid::make(), "root", "admin"}, node.to_string(), drained));
    }
    size_t ran(const cluster::TestNode &node) { return node.engine.specs().size(); }
    Outcome run(const std::shared_ptr<Session> &session, const std::string &sql) {
        return read(*execute(session, sql));
    }
};

TEST_F(MembersTest, ADrainedNodeGetsNothingNewAndKeepsItsTransactions) {
    auto &a = add_node();
    auto &b = add_node();
    const auto session = open_session();
    execute(session, "BEGIN");
    EXPECT_TRUE(run(session, "INSERT INTO t VALUES /* ddl */ (1)").status.ok());
    auto &mine = ran(a) > 0 ? a : b;
    auto &other = ran(a) > 0 ? b : a;
    const auto drained = drain(mine.id);
    ASSERT_TRUE(drained.ok()) << drained.status().to_string();
    EXPECT_EQ(drained->status, "draining");
    EXPECT_EQ(drained->transactions, 1u);
    EXPECT_FALSE(drained->routable);
    const size_t before = ran(mine);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(run(open_session(), "SELECT /* rows=1 */ 1").status.ok());
    EXPECT_EQ(ran(mine), before);
    EXPECT_EQ(ran(other), 5u);
    EXPECT_TRUE(run(session, "INSERT INTO t VALUES /* ddl */ (2)").status.ok()) << "its transaction is there";
    EXPECT_EQ(ran(mine), before + 1);
    EXPECT_TRUE(try_execute(session, "COMMIT").ok());
    EXPECT_EQ(info(mine.id).transactions, 0u);
    ASSERT_TRUE(drain(mine.id, false).ok());
    EXPECT_TRUE(info(mine.id).routable);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(run(open_session(), "SELECT /* rows=1 */ 1").status.ok());
    EXPECT_GT(ran(mine), before + 1);
}

TEST_F(MembersTest, ADrainIsForAdminsAndIsRemembered) {
    auto &node = add_node();
    EXPECT_EQ(wait(service_->drain_node(ann_, node.id.to_string(), true)).status().sqlstate(), "42501");
    EXPECT_EQ(wait(service_->drain_node({Uuid::make(), "root", "admin"}, "nobody", true)).status().name(),
              "node_not_found");
    ASSERT_TRUE(drain(node.id).ok());
    ASSERT_EQ(store_->members()->size(), 1u);
    EXPECT_TRUE(store_->members()->front().drained);
    const auto refused = run(open_session(), "SELECT /* rows=1 */ 1");
    EXPECT_EQ(refused.status.name(), "no_nodes") << "an operator's word holds, also for the last node";
}

TEST_F(MembersTest, AStoppingNodePassesOnWhatReachesItAndEndsItsTransactions) {
    auto &a = add_node();
    auto &b = add_node();
    const auto session = open_session();
    execute(session, "BEGIN");
    EXPECT_TRUE(run(session, "INSERT INTO t VALUES /* ddl */ (1)").status.ok());
    auto &mine = ran(a) > 0 ? a : b;
    auto &other = ran(a) > 0 ? b : a;
    const size_t before = ran(mine);
    mine.drain(60'000);
    // Some are sent before its word of it is here.
    std::vector<std::unique_ptr<ResultStream>> streams;
    std::vector<Outcome> outcomes(10);
    for (Outcome &outcome : outcomes) {
        streams.push_back(execute(open_session(), "SELECT /* rows=1 */ 1"));
        read(*streams.back(), outcome);
    }
    const auto late = open_session();
    execute(late, "BEGIN");
    EXPECT_TRUE(run(late, "SELECT /* rows=1 */ 1").status.ok());
    run_until([&] { return std::ranges::all_of(outcomes, &Outcome::ended); });
    for (const Outcome &outcome : outcomes) EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
    run_until([&] { return !info(mine.id).routable; });
    EXPECT_EQ(info(mine.id).state, "stopping");
    EXPECT_TRUE(run(session, "INSERT INTO t VALUES /* ddl */ (2)").status.ok());
    EXPECT_TRUE(run(late, "SELECT /* rows=1 */ 2").status.ok()) << "a transaction stays where its first statement ran";
    EXPECT_FALSE(mine.ended());
    EXPECT_TRUE(try_execute(session, "COMMIT").ok());
    EXPECT_TRUE(try_execute(late, "COMMIT").ok());
    run_until([&] { return mine.ended(); });
    EXPECT_GE(ran(other), 10u);
    EXPECT_GE(ran(mine), before + 1);
    expect_quiet();
}

TEST_F(MembersTest, WhatAStoppingNodeDoesNotDescribeIsDescribedElsewhere) {
    auto &stopping = add_node({.small_workers = 4});
    auto &other = add_node({.small_workers = 4});
    // The one that stops is the less loaded, so what comes goes there until its word is here.
    std::vector<std::unique_ptr<ResultStream>> streams;
    std::vector<Outcome> outcomes(3);
    EXPECT_TRUE(drain(stopping.id).ok());
    for (size_t i = 0; i < 2; ++i)
        read(*streams.emplace_back(execute(open_session(), "SELECT /* hang=step */ 1")), outcomes[i]);
    run_until([&] { return other.engine.hanging("step") == 2; });
    EXPECT_TRUE(drain(stopping.id, false).ok());
    read(*streams.emplace_back(execute(open_session(), "SELECT /* hang=step */ 1")), outcomes[2]);
    run_until([&] { return stopping.engine.hanging("step") == 1; });
    const auto statements = wait(service_->parse("SELECT /* rows=1 */ 1", sql::Context::session, nullptr));
    const auto session = open_session();
    stopping.drain(60'000);
    std::vector<std::optional<Result<ResultHeader>>> headers(10);
    for (auto &header : headers) begin(service_->describe(session, statements->front(), {}), header);
    run_until([&] { return std::ranges::all_of(headers, [](const auto &each) { return each.has_value(); }); });
    for (const auto &header : headers) EXPECT_TRUE(header->ok()) << header->status().to_string();
    stopping.engine.release();
    other.engine.release();
    run_until([&] { return std::ranges::all_of(outcomes, &Outcome::ended); });
}

TEST_F(MembersTest, WhatAStoppingNodeEndsIsRunElsewhere) {
    auto &a = add_node();
    auto &b = add_node();
    const auto reading = execute(open_session(), "SELECT /* rows=3 hang=start */ 1");
    Outcome read_outcome, write_outcome;
    read(*reading, read_outcome);
    run_until([&] { return a.engine.hanging("start") + b.engine.hanging("start") == 1; });
    auto &mine = a.engine.hanging("start") == 1 ? a : b;
    auto &other = a.engine.hanging("start") == 1 ? b : a;
    other.engine.release();
    mine.drain(20);
    run_until([&] { return read_outcome.ended; });
    EXPECT_TRUE(read_outcome.status.ok()) << read_outcome.status.to_string();
    EXPECT_EQ(read_outcome.rows, 3u);
    EXPECT_EQ(metric("roost_statement_retries_total"), 1);
}

TEST_F(MembersTest, ANodeThatFailsLeavesRoutingAndComesBackByAProbe) {
    auto &a = add_node();
    auto &b = add_node();
    // All that reaches the node fails; the others never notice but for these three.
    for (int i = 0; i < 20 && info(a.id).routable && info(b.id).routable; ++i) {
        run(open_session(), "SELECT /* fail=plan outage */ 1");
    }
    const Uuid failing = info(a.id).routable ? b.id : a.id;
    EXPECT_EQ(info(failing).state, "failing");
    auto &well = failing == a.id ? b : a;
    const size_t before = ran(well);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(run(open_session(), "SELECT /* rows=1 */ 1").status.ok());
    EXPECT_EQ(ran(well), before + 4);
    run_until([&] { return info(failing).routable; });
}

TEST_F(MembersTest, AllThatFailAreAsGoodAsAny) {
    auto &a = add_node();
    auto &b = add_node();
    for (int i = 0; i < 8; ++i) run(open_session(), "SELECT /* fail=plan outage */ 1");
    EXPECT_FALSE(info(a.id).routable || info(b.id).routable);
    EXPECT_TRUE(run(open_session(), "SELECT /* rows=1 */ 1").status.ok());
}

}  // namespace
}  // namespace roost::service
