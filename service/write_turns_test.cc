#include "service/write_turns.h"

#include "service/test_service.h"

namespace roost::service {
namespace {

using meta::StatementStatus;

class PostgresTurns : public GatewayServiceTest {
protected:
    PostgresTurns() : GatewayServiceTest(true) {}
    double waits() { return metric("roost_write_lease_wait_seconds_count"); }
    Outcome run(const std::shared_ptr<Session> &session, const std::string &sql) {
        return read(*execute(session, sql));
    }
    // A session that lost a race for t, and now has its turn there in a transaction.
    std::shared_ptr<Session> with_turn_at_t() {
        const auto session = open_session();
        execute(session, "BEGIN");
        EXPECT_TRUE(run(session, "INSERT INTO v VALUES /* ddl */ (1)").status.ok());
        EXPECT_EQ(run(session, "UPDATE t SET a = /* ddl conflict=1 */ 1").status.sqlstate(), "40001");
        execute(session, "ROLLBACK");
        EXPECT_EQ(waits(), 0);
        execute(session, "BEGIN");
        EXPECT_TRUE(run(session, "SELECT /* rows=1 */ 1").status.ok());
        EXPECT_EQ(waits(), 1);
        return session;
    }
};

TEST_F(PostgresTurns, ATransactionThatLostARaceHasItsTurnWhenItIsRunAgain) {
    add_node({.small_workers = 4});
    const auto session = with_turn_at_t();
    Outcome update, merge;
    const auto updating = execute(open_session(), "UPDATE main.T SET a = /* ddl */ 2");
    read(*updating, update);
    const auto merging = execute(open_session(), "DELETE FROM lake.t WHERE /* ddl */ a = 2");
    read(*merging, merge);
    for (const auto *free : {"INSERT INTO t VALUES /* ddl */ (1)", "UPDATE u SET a = /* ddl */ 1",
                             "CREATE TABLE w AS SELECT /* ddl */ 1", "UPDATE other.t SET a = /* ddl */ 1"}) {
        EXPECT_TRUE(run(open_session(), free).status.ok()) << free;
    }
    EXPECT_FALSE(update.ended || merge.ended);
    EXPECT_TRUE(run(session, "UPDATE t SET a = /* ddl */ 1").status.ok());
    execute(session, "COMMIT");
    run_until([&] { return update.ended && merge.ended; });
    EXPECT_TRUE(update.status.ok() && merge.status.ok());
    execute(session, "BEGIN");
    EXPECT_TRUE(run(session, "UPDATE t SET a = /* ddl */ 1").status.ok());
    EXPECT_EQ(session->leases.size(), 0u) << "it lost no race last time";
    execute(session, "ROLLBACK");
    expect_quiet();
}

TEST_F(PostgresTurns, AClientThatVanishesLeavesItsTurn) {
    add_node({.small_workers = 4});
    const auto session = with_turn_at_t();
    Outcome update;
    const auto updating = execute(open_session(), "UPDATE t SET a = /* ddl */ 2");
    read(*updating, update);
    settle();
    EXPECT_FALSE(update.ended);
    service_->close_session(session);
    run_until([&] { return update.ended; });
    EXPECT_TRUE(update.status.ok());
}

TEST_F(PostgresTurns, AStatementTakesItsTurnOnceItLostARace) {
    add_node();
    EXPECT_EQ(submit("UPDATE t SET a = /* ddl conflict=2 */ 1").record.status, StatementStatus::done);
    EXPECT_EQ(waits(), 1);
    EXPECT_EQ(submit("INSERT INTO t VALUES /* ddl conflict=2 */ (1)").record.status, StatementStatus::done);
    EXPECT_EQ(submit("UPDATE t SET a = /* ddl */ 1").record.status, StatementStatus::done);
    EXPECT_EQ(waits(), 1) << "an insert has none, and nobody is in the way of the last";
    expect_quiet();
}

TEST_F(PostgresTurns, DefinitionsRunOneAtATime) {
    auto &node = add_node({.small_workers = 4});
    Outcome first, second;
    const auto one = execute(open_session(), "CREATE TABLE t1 /* ddl hang=step */ (a INTEGER)");
    read(*one, first);
    run_until([&] { return node.engine.hanging("step") == 1; });
    const auto two = execute(open_session(), "ALTER TABLE t2 /* ddl */ ADD COLUMN b INTEGER");
    read(*two, second);
    EXPECT_TRUE(run(open_session(), "CREATE TABLE t3 AS SELECT /* ddl */ 1").status.ok());
    EXPECT_FALSE(first.ended || second.ended);
    node.engine.release();
    run_until([&] { return first.ended && second.ended; });
    EXPECT_TRUE(first.status.ok() && second.status.ok());
}

}  // namespace
}  // namespace roost::service
