// Transactions of sessions: their own view, open results side by side, ends.
#include <thread>

#include "engine/test_engine.h"
#include "lake/ducklake.h"

namespace roost {
namespace {

using testing::Outcome;
using testing::Row;
using testing::RowSink;
using testing::TestEngine;

class EngineSession : public ::testing::Test {
protected:
    TestEngine &lake = TestEngine::get();
    const Uuid session = Uuid::make();

    Outcome in(const std::string &sql, bool writes = false) {
        return lake.run(TestEngine::session_spec(session, sql, writes));
    }
    Outcome end(TransactionAction action) { return lake.run(TestEngine::end_spec(session, action)); }
    void must(const Outcome &outcome) { ASSERT_TRUE(outcome.status.ok()) << outcome.status.to_string(); }
};

TEST_F(EngineSession, ATransactionSeesItsOwnWritesAndCommitsThemTogether) {
    must(lake.write("CREATE TABLE s1 (i INTEGER)"));
    must(in("INSERT INTO s1 VALUES (1), (2)", true));
    EXPECT_TRUE(lake.engine().has_session(session));
    must(in("CREATE TABLE s1b AS SELECT * FROM s1", true));
    EXPECT_EQ(in("SELECT count(*) FROM s1").value(), "2");
    EXPECT_EQ(in("SELECT count(*) FROM s1b").value(), "2");
    EXPECT_EQ(lake.read("SELECT count(*) FROM s1").value(), "0");
    EXPECT_EQ(lake.read("SELECT count(*) FROM s1b").status.sqlstate(), "42P01");
    const StatementSpec commit = TestEngine::end_spec(session, TransactionAction::commit);
    must(lake.run(commit));
    EXPECT_FALSE(lake.engine().has_session(session));
    EXPECT_EQ(lake.read("SELECT count(*) FROM s1").value(), "2");
    EXPECT_EQ(lake.read("SELECT count(*) FROM s1b").value(), "2");
    const auto found = find_commit(lake.lake(), commit.id);
    ASSERT_TRUE(found.ok());
    EXPECT_TRUE(found->has_value());
}

TEST_F(EngineSession, ARollbackLeavesNothing) {
    must(lake.write("CREATE TABLE s2 (i INTEGER)"));
    must(in("INSERT INTO s2 SELECT i FROM range(50000) t(i)", true));
    must(end(TransactionAction::rollback));
    EXPECT_FALSE(lake.engine().has_session(session));
    EXPECT_EQ(lake.read("SELECT count(*) FROM s2").value(), "0");
    must(end(TransactionAction::rollback));
    EXPECT_EQ(end(TransactionAction::commit).status.sqlstate(), "25P01");
}

TEST_F(EngineSession, AFailureLeavesOnlyTheRollback) {
    must(lake.write("CREATE TABLE s3 (i INTEGER)"));
    must(in("INSERT INTO s3 VALUES (1)", true));
    EXPECT_EQ(in("SELECT * FROM nowhere").status.sqlstate(), "42P01");
    EXPECT_EQ(in("SELECT 1").status.sqlstate(), "25P02");
    EXPECT_EQ(end(TransactionAction::commit).status.sqlstate(), "25P02");
    EXPECT_FALSE(lake.engine().has_session(session));
    EXPECT_EQ(lake.read("SELECT count(*) FROM s3").value(), "0");
}

TEST_F(EngineSession, AReadOnlyTransactionRefusesWritesAndKeepsItsSnapshot) {
    must(lake.write("CREATE TABLE s4 (i INTEGER)"));
    StatementSpec read = TestEngine::session_spec(session, "SELECT count(*) FROM s4");
    read.read_only = true;
    EXPECT_EQ(lake.run(read).value(), "0");
    must(lake.write("INSERT INTO s4 VALUES (1)"));
    EXPECT_EQ(lake.run(read).value(), "0");
    StatementSpec write = TestEngine::session_spec(session, "INSERT INTO s4 VALUES (2)", true);
    write.read_only = true;
    EXPECT_EQ(lake.run(write).status.sqlstate(), "25006");
    must(end(TransactionAction::rollback));
    EXPECT_EQ(lake.read("SELECT count(*) FROM s4").value(), "1");
}

// Reads one batch and is left open.
struct OpenStream {
    std::unique_ptr<Execution> execution;
    RowSink sink;
    bool more = false;
    Status step() {
        auto result = execution->step(sink);
        if (!result.ok()) return result.status();
        more = *result;
        return Status();
    }
};

void open_stream(TestEngine &lake, const Uuid &session, const std::string &sql, OpenStream &stream) {
    auto execution = lake.engine().create(TestEngine::session_spec(session, sql));
    ASSERT_TRUE(execution.ok());
    stream.execution = std::move(execution).value();
    stream.sink.stop_after_batch = true;
    ASSERT_TRUE(stream.execution->plan().ok());
    const Status started = stream.execution->start({.lane = Grant::Lane::pinned, .slot = 0, .bytes = 0});
    ASSERT_TRUE(started.ok()) << started.to_string();
    ASSERT_TRUE(stream.step().ok());
    ASSERT_TRUE(stream.more);
}

void finish_stream(OpenStream &stream, uint64_t expect) {
    while (stream.more) {
        const Status status = stream.step();
        ASSERT_TRUE(status.ok()) << status.to_string();
    }
    EXPECT_EQ(stream.execution->finish(Status()).status.to_string(), "ok");
    ASSERT_EQ(stream.sink.kept.size(), expect);
    for (uint64_t i = 0; i < expect; i++) ASSERT_EQ(stream.sink.kept[i][0], std::to_string(i));
}

TEST_F(EngineSession, TwoOpenResultsAreReadInTurn) {
    constexpr uint64_t kRows = 300'000;
    OpenStream first;
    OpenStream second;
    open_stream(lake, session, "SELECT i, 'first ' || i FROM range(300000) t(i)", first);
    open_stream(lake, session, "SELECT i, 'second ' || i FROM range(300000) t(i)", second);
    ASSERT_TRUE(first.step().ok());
    ASSERT_TRUE(second.step().ok());
    EXPECT_EQ(in("SELECT 5").value(), "5");
    finish_stream(second, kRows);
    finish_stream(first, kRows);
    must(end(TransactionAction::rollback));
}

TEST_F(EngineSession, TheRestOfALargeResultSpillsToDisk) {
    OpenStream first;
    open_stream(lake, session, "SELECT i, repeat('x', 60) || i FROM range(3000000) t(i)", first);
    first.sink.keep = false;
    EXPECT_EQ(in("SELECT 5").value(), "5");
    EXPECT_LE(lake.engine().used_bytes(), testing::kPinnedBytes + testing::kSmallBytes);
    while (first.more) ASSERT_TRUE(first.step().ok());
    EXPECT_EQ(first.sink.row_count, 3'000'000u);
    EXPECT_TRUE(first.execution->finish(Status()).status.ok());
    must(end(TransactionAction::rollback));
    EXPECT_LT(lake.engine().used_bytes(), 32u << 20);
}

TEST_F(EngineSession, AnErrorInTheRestOfAResultComesInItsPlace) {
    OpenStream stream;
    open_stream(lake, session, "SELECT CASE WHEN i < 200000 THEN i ELSE error('late') END FROM range(300000) t(i)",
                stream);
    // The rest of the first is computed before the second may run, so its failure is there already.
    EXPECT_EQ(in("SELECT 5").status.sqlstate(), "25P02");
    Status status;
    while (status.ok() && stream.more) status = stream.step();
    EXPECT_NE(status.message().find("late"), std::string::npos) << status.to_string();
    // Less what DuckDB had computed and not handed over yet: how much that is depends on its threads.
    EXPECT_GE(stream.sink.row_count, 1u);
    EXPECT_LT(stream.sink.row_count, 200'000u);
    EXPECT_FALSE(stream.execution->finish(status).status.ok());
    must(end(TransactionAction::rollback));
}

TEST_F(EngineSession, AnOpenResultEndsWithItsTransaction) {
    OpenStream stream;
    open_stream(lake, session, "SELECT i FROM range(3000000) t(i)", stream);
    must(end(TransactionAction::commit));
    const Status status = stream.step();
    EXPECT_EQ(stream.execution->finish(status).status.sqlstate(), "25P02") << status.to_string();
}

TEST_F(EngineSession, AReaderWhoLeavesHarmsNoTransaction) {
    must(lake.write("CREATE TABLE s9 (i INTEGER)"));
    must(in("INSERT INTO s9 VALUES (1)", true));
    OpenStream left;
    open_stream(lake, session, "SELECT i, 'left ' || i FROM range(3000000) t(i)", left);
    left.execution->cancel(Status(Code::cancelled, "left").with_name(std::string(kReaderLeft)));
    EXPECT_EQ(left.step().name(), kReaderLeft);
    EXPECT_EQ(left.execution->finish(Status()).status.name(), kReaderLeft);
    EXPECT_EQ(in("SELECT 5").value(), "5");
    must(end(TransactionAction::commit));
    EXPECT_EQ(lake.read("SELECT count(*) FROM s9").value(), "1");

    OpenStream cancelled;
    open_stream(lake, session, "SELECT i, 'cancelled ' || i FROM range(3000000) t(i)", cancelled);
    cancelled.execution->cancel(Status(Code::cancelled, "left").with_name(std::string(kReaderLeft)));
    cancelled.execution->cancel(Status(Code::cancelled, "asked for"));
    EXPECT_EQ(cancelled.step().message(), "asked for");
    EXPECT_EQ(cancelled.execution->finish(Status()).status.message(), "asked for");
    must(end(TransactionAction::rollback));
}

TEST_F(EngineSession, EndingASessionStopsWhatRunsInIt) {
    must(lake.write("CREATE TABLE s5 (i INTEGER)"));
    must(in("INSERT INTO s5 VALUES (1)", true));
    auto execution =
        lake.engine().create(TestEngine::session_spec(session, "SELECT count(*) FROM range(100000000000)"));
    ASSERT_TRUE(execution.ok());
    ASSERT_TRUE((*execution)->start({.lane = Grant::Lane::pinned, .slot = 0, .bytes = 0}).ok());
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        lake.engine().end_session(session);
    });
    RowSink sink;
    const auto result = (*execution)->step(sink);
    other.join();
    EXPECT_FALSE(result.ok());
    EXPECT_EQ((*execution)->finish(result.status()).status.code(), Code::cancelled);
    EXPECT_FALSE(lake.engine().has_session(session));
    EXPECT_EQ(lake.read("SELECT count(*) FROM s5").value(), "0");
    lake.engine().end_session(session);
}

TEST_F(EngineSession, AGrantRaisesThePinnedLimitWhileItLasts) {
    // The sort needs more than the base limit to stay in memory; with the grant its peak may pass the base.
    StatementSpec spec = TestEngine::session_spec(
        session, "SELECT count(*) FROM (SELECT i, hash(i) h FROM range(6000000) t(i) ORDER BY h)");
    const Outcome got = lake.run(spec, Grant{.lane = Grant::Lane::pinned, .slot = 0, .bytes = 200ull << 20});
    must(got);
    EXPECT_EQ(got.value(), "6000000");
    EXPECT_EQ(got.completion.granted_bytes, 200ull << 20);
    must(end(TransactionAction::rollback));
    EXPECT_LT(lake.engine().used_bytes(), testing::kPinnedBytes);
}

TEST_F(EngineSession, AnImportsInstanceHasItsGrantAndNoMore) {
    StatementSpec spec = TestEngine::session_spec(session, "SELECT current_setting('memory_limit')");
    spec.internal = true;
    for (const uint64_t bytes : {40ull << 20, 40ull << 20}) {  // the instance of the first is that of the second
        const Outcome got = lake.run(spec, Grant{.lane = Grant::Lane::pinned, .slot = 0, .bytes = bytes});
        must(got);
        EXPECT_EQ(got.value(), "40.0 MiB");
    }
    must(end(TransactionAction::rollback));
}

TEST_F(EngineSession, DescribeSeesTheTransactionsOwnTables) {
    must(in("CREATE TABLE s6 (i INTEGER)", true));
    StatementSpec spec = TestEngine::session_spec(session, "SELECT * FROM s6 WHERE i = $1");
    spec.work = Work::describe;
    auto execution = lake.engine().create(spec);
    ASSERT_TRUE(execution.ok());
    const auto plan = (*execution)->plan();
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    EXPECT_EQ(plan->header.columns.size(), 1u);
    EXPECT_EQ(plan->header.param_oids, std::vector<uint32_t>{23});
    (void)(*execution)->finish(Status());
    must(end(TransactionAction::rollback));
}

// A transaction that was lost is ended while the session's next one may have begun.
TEST_F(EngineSession, WhatBeginsAnewIsNotEndedWithTheOld) {
    must(in("SELECT 1"));
    const auto end_old = lake.engine().take_session(session);
    EXPECT_FALSE(lake.engine().has_session(session));
    must(in("SELECT 2"));
    end_old();
    EXPECT_TRUE(lake.engine().has_session(session));
    EXPECT_EQ(in("SELECT 3").value(), "3");
    lake.engine().end_session(session);
    EXPECT_FALSE(lake.engine().has_session(session));
}

}  // namespace
}  // namespace roost
