// The service over a real hub and store, with nodes that run a fake engine: what a statement is to those that ask for
// it, follow it and look it up.
#include "service/gateway_service.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "service/test_service.h"

namespace roost::service {
namespace {

namespace asio = net::asio;
namespace fs = std::filesystem;
using meta::StatementStatus;

// --- parsing

std::string long_text(size_t size_bytes) {
    std::string text = "SELECT '";
    text.append(size_bytes / 2, 'x');
    text += "'";
    while (text.size() < size_bytes) text += ",123456789012345678901234567890123456789";
    return text;
}

TEST_F(GatewayServiceTest, ALongTextIsParsedWhileOthersAreAnswered) {
    std::vector<std::string> order;
    const std::string text = long_text(10 << 20);
    const auto parse = [&](std::string name, std::string_view sql) -> net::Task<bool> {
        const auto statements = co_await service_->parse(sql, sql::Context::session, nullptr);
        order.push_back(name);
        co_return statements.ok();
    };
    std::optional<bool> large, small;
    begin(parse("large", text), large);
    begin(parse("small", "SELECT 1"), small);
    run_until([&] { return large.has_value() && small.has_value(); });
    EXPECT_EQ(order, (std::vector<std::string>{"small", "large"}));
    EXPECT_TRUE(*large && *small);
}

TEST_F(GatewayServiceTest, ALongTextRunsLikeAnyOther) {
    const auto &node = add_node();
    const std::string text = long_text(200 << 10) + " /* rows=7 */ , 1";
    const StatementInfo info = submit(text);
    EXPECT_EQ(info.record.status, StatementStatus::done);
    EXPECT_EQ(info.record.row_count, 7u);
    EXPECT_EQ(node.engine.specs().back().sql, text);
}

TEST_F(GatewayServiceTest, TheVerdictOnATextDependsOnWhoAsks) {
    for (const size_t padding : {size_t{0}, size_t{100} << 10}) {  // at once, and on a thread
        const std::string text = "BEGIN /* " + std::string(padding, ' ') + " */";
        for (int i = 0; i < 2; ++i) {
            EXPECT_TRUE(wait(service_->parse(text, sql::Context::session, nullptr)).ok());
            const auto refused = wait(service_->parse(text, sql::Context::oneshot, nullptr));
            EXPECT_EQ(refused.status().code(), Code::not_allowed) << padding;
        }
    }
    const auto none = wait(service_->parse("SELECT 1; ATTACH 'x'", sql::Context::session, nullptr));
    EXPECT_EQ(none.status().code(), Code::not_allowed);
    EXPECT_EQ(wait(service_->parse("SELEC 1", sql::Context::session, nullptr)).status().code(), Code::syntax_error);
}

TEST_F(GatewayServiceTest, ATextBeyondTheLimitIsRefused) {
    const std::string text(17 << 20, ' ');
    EXPECT_EQ(wait(service_->parse(text, sql::Context::session, nullptr)).status().sqlstate(), "54000");
}

// --- history

TEST_F(GatewayServiceTest, TheHistoryHasTheTextAsItWasSent) {
    add_node();
    const std::string sent = "\n  /* mine */ SELECT /* rows=2 */ 1 ;;  \n";
    const StatementInfo info = submit(sent);
    EXPECT_EQ(info.record.status, StatementStatus::done);
    EXPECT_EQ(info.record.sql, sent);
    EXPECT_EQ(latest().sql, sent);
    EXPECT_EQ(latest().id, info.record.id);
    EXPECT_GE(latest().running_us, latest().started_us);
    EXPECT_GE(latest().finished_us, latest().running_us);
}

TEST_F(GatewayServiceTest, SeveralStatementsInATextAreOneRecord) {
    auto &node = add_node();
    const std::string sent = "SELECT /* hang=step */ 1; SELECT /* rows=3 */ 2";
    // Answered without a hold though the first one still runs.
    const StatementInfo begun = submit(sent, 0);
    EXPECT_FALSE(begun.is_terminal());
    run_until([&] { return latest().status == StatementStatus::running; });
    EXPECT_EQ(latest().sql, sent);
    node.engine.release();
    const auto ended = wait(service_->status(ann_, begun.record.id, 10'000));
    EXPECT_EQ(ended->record.status, StatementStatus::done);
    EXPECT_EQ(ended->record.row_count, 3u);
    EXPECT_EQ(history().size(), 1u);
    EXPECT_EQ(latest().status, StatementStatus::done);
    // One that fails takes the rest with it.
    const StatementInfo failed = submit("SELECT /* fail=step */ 1; SELECT /* rows=4 */ 2");
    EXPECT_EQ(failed.record.status, StatementStatus::failed);
    EXPECT_EQ(history().size(), 2u);
    EXPECT_EQ(latest().status, StatementStatus::failed);
    EXPECT_EQ(node.engine.count("plan SELECT /* rows=4 */ 2"), 0u);
}

TEST_F(GatewayServiceTest, AStatementIsQueuedUntilItIsAdmittedAndThenRuns) {
    auto &node = add_node();
    const StatementInfo a = submit("SELECT /* large hang=step */ 1", 0);
    const StatementInfo b = submit("SELECT /* large hang=step */ 2", 0);
    run_until([&] { return node.engine.hanging("step") == 2; });
    const StatementInfo c = submit("SELECT /* large */ 3", 0);
    const auto status = [&](const Uuid &id) { return wait(service_->status(ann_, id, 0)).value(); };
    run_until([&] { return status(a.record.id).record.status == StatementStatus::running; });
    run_until([&] { return !status(c.record.id).wait.empty(); });
    EXPECT_EQ(status(c.record.id).record.status, StatementStatus::queued);
    EXPECT_EQ(status(c.record.id).wait, "waiting for memory, 1st in line");
    meta::StatementFilter running;
    running.statuses = {StatementStatus::running};
    run_until([&] { return wait(service_->list(ann_, running)).value().items.size() == 2; });
    node.engine.release();
    for (const StatementInfo &each : {a, b, c}) {
        EXPECT_EQ(wait(service_->status(ann_, each.record.id, 10'000))->record.status, StatementStatus::done);
    }
    EXPECT_TRUE(wait(service_->list(ann_, running)).value().items.empty());
}

TEST_F(GatewayServiceTest, AStreamingStatementIsSeenRunningToo) {
    auto &node = add_node();
    const auto session = open_session();
    const auto stream = execute(session, "SELECT /* hang=step */ 1");
    Outcome outcome;
    read(*stream, outcome);
    run_until([&] { return latest().status == StatementStatus::running; });
    EXPECT_EQ(latest().front, "pg");
    EXPECT_EQ(latest().session, session->id);
    EXPECT_EQ(latest().node, node.id);
    node.engine.release();
    run_until([&] { return outcome.ended; });
    EXPECT_EQ(latest().status, StatementStatus::done);
    EXPECT_EQ(history().size(), 1u);
}

TEST_F(GatewayServiceTest, AFailureReadsTheSameInTheAnswerAndInTheHistory) {
    add_node();
    for (const std::string at : {"plan", "step"}) {
        const StatementInfo info = submit("SELECT /* fail=" + at + " */ 1");
        EXPECT_EQ(info.record.status, StatementStatus::failed);
        EXPECT_EQ(info.record.error, "failed as asked\nHINT: ask for less");
        EXPECT_EQ(latest().error, info.record.error);
        EXPECT_EQ(latest().error_code, info.record.error_code);
        EXPECT_EQ(latest().sqlstate, "22012");
    }
    const StatementInfo empty = submit(" ; ");
    EXPECT_EQ(empty.record.status, StatementStatus::failed);
    EXPECT_EQ(latest().error, empty.record.error);
    const auto session = open_session();
    EXPECT_EQ(read(*execute(session, "SELECT /* fail=step */ 1")).status.sqlstate(), "22012");
    EXPECT_EQ(latest().error, "failed as asked\nHINT: ask for less");
}

// --- which node

TEST_F(GatewayServiceTest, AStatementRunsOnTheNodeItAsksFor) {
    auto &one = add_node();
    auto &two = add_node();
    for (int i = 0; i < 3; ++i) {
        for (const auto *node : {&one, &two, &two}) {
            SubmitRequest asked = request("SELECT 1");
            asked.node = node->id;
            const auto info = wait(service_->submit(asked));
            ASSERT_TRUE(info.ok());
            EXPECT_EQ(info->record.status, StatementStatus::done);
            EXPECT_EQ(info->record.node, node->id);
        }
    }
    SubmitRequest asked = request("SELECT 1; SELECT /* large */ 2");
    asked.node = one.id;
    EXPECT_EQ(wait(service_->submit(asked))->record.node, one.id);
    EXPECT_EQ(one.engine.specs().size(), 5u);
}

TEST_F(GatewayServiceTest, ANodeThatIsNotThereIsSaidToBeSo) {
    auto &node = add_node();
    add_node();
    SubmitRequest asked = request("SELECT 1");
    asked.node = Uuid::make();
    const auto unknown = wait(service_->submit(asked));
    EXPECT_EQ(unknown.status().code(), Code::not_found);
    EXPECT_EQ(unknown.status().name(), "agent_not_found");
    node.kill();
    run_until([&] { return hub().members().size() == 1; });
    asked.node = node.id;
    const auto away = wait(service_->submit(asked));
    EXPECT_EQ(away.status().code(), Code::invalid_argument);
    EXPECT_EQ(away.status().name(), "compute_unavailable");
    EXPECT_TRUE(history().empty());
}

// --- what goes out is counted

TEST_F(GatewayServiceTest, BytesOfPagesAndStreamsAreCounted) {
    add_node();
    const std::string bytes = "roost_result_bytes_total{front=\"http\"}";
    const std::string rows = "roost_result_rows_total{front=\"http\"}";
    const StatementInfo info = submit("SELECT /* rows=1000 */ 1");
    const double first_page = metric(bytes);
    EXPECT_EQ(first_page, static_cast<double>(info.first_page.size()));
    const auto page = wait(service_->rows(ann_, info.record.id, 0, 10));
    EXPECT_EQ(metric(bytes), first_page + static_cast<double>(page->rows_json.size()));
    const double rows_before = metric(rows);
    auto stream = wait(service_->arrow(ann_, info.record.id));
    EXPECT_EQ(read(**stream).rows, 1000u);
    EXPECT_EQ(metric(bytes), first_page + static_cast<double>(page->rows_json.size()) + 10'000);
    EXPECT_EQ(metric(rows), rows_before + 1000);
}

// --- a lost node

TEST_F(GatewayServiceTest, AReadIsTriedOnceMoreWhenNothingOfItWasSeen) {
    auto &lost = add_node();
    const auto session = open_session();
    const auto stream = execute(session, "SELECT /* rows=5 hang=plan */ 1");
    Outcome outcome;
    read(*stream, outcome);
    run_until([&] { return lost.engine.hanging("plan") == 1; });
    auto &other = add_node();
    lost.kill();
    run_until([&] { return other.engine.hanging("plan") == 1; });
    // The second loss is told.
    auto &third = add_node();
    other.kill();
    run_until([&] { return outcome.ended; });
    EXPECT_EQ(outcome.status.code(), Code::unavailable);
    EXPECT_TRUE(third.engine.specs().empty());
    EXPECT_EQ(metric("roost_statement_retries_total"), 1);
    EXPECT_EQ(latest().status, StatementStatus::failed);
    EXPECT_EQ(history().size(), 1u);
    expect_quiet();
}

TEST_F(GatewayServiceTest, ARetriedReadEndsWell) {
    auto &lost = add_node();
    const StatementInfo begun = submit("SELECT /* rows=5 hang=plan */ 1", 0);
    run_until([&] { return lost.engine.hanging("plan") == 1; });
    auto &other = add_node();
    lost.kill();
    run_until([&] { return other.engine.hanging("plan") == 1; });
    other.engine.release();
    const auto info = wait(service_->status(ann_, begun.record.id, 10'000));
    EXPECT_EQ(info->record.status, StatementStatus::done);
    EXPECT_EQ(info->record.node, other.id);
    EXPECT_EQ(latest().node, other.id);
}

TEST_F(GatewayServiceTest, AReadWhoseRowsWereSeenIsNotTriedAgain) {
    auto &lost = add_node();
    add_node();
    const auto session = open_session();
    std::vector<std::unique_ptr<ResultStream>> streams;
    std::vector<Outcome> outcomes(2);
    for (Outcome &outcome : outcomes) {  // one on each node
        streams.push_back(execute(session, "SELECT /* rows=100000 hang=step */ 1"));
        read(*streams.back(), outcome);
    }
    run_until([&] { return outcomes[0].rows > 0 && outcomes[1].rows > 0; });
    lost.kill();
    run_until([&] { return outcomes[0].ended || outcomes[1].ended; });
    const Outcome &ended = outcomes[0].ended ? outcomes[0] : outcomes[1];
    EXPECT_EQ(ended.status.code(), Code::unavailable);
    EXPECT_EQ(metric("roost_statement_retries_total"), 0);
}

TEST_F(GatewayServiceTest, AWriteIsNotTriedAgain) {
    auto &lost = add_node();
    const StatementInfo begun = submit("INSERT INTO t VALUES /* ddl hang=step */ (1)", 0);
    run_until([&] { return lost.engine.hanging("step") == 1; });
    auto &other = add_node();
    lost.kill();
    const auto info = wait(service_->status(ann_, begun.record.id, 10'000));
    EXPECT_EQ(info->record.status, StatementStatus::failed);
    EXPECT_EQ(info->record.error_code, "commit_unknown");
    EXPECT_TRUE(other.engine.specs().empty());
    EXPECT_EQ(metric("roost_statement_retries_total"), 0);
    expect_quiet();
}

// --- what became of a commit

TEST_F(GatewayServiceTest, AWriteWhoseCommitOutgrewTheSmallLaneIsRunInASlot) {
    auto &node = add_node();
    const StatementInfo info = submit("INSERT INTO t VALUES /* ddl oom=commit affected=4 */ (1)");
    EXPECT_EQ(info.record.status, StatementStatus::done) << info.record.error_code;
    EXPECT_EQ(info.record.row_count, 4u);
    EXPECT_EQ(lookups(), 1);
    ASSERT_EQ(node.engine.specs().size(), 2u);
    EXPECT_TRUE(node.engine.specs().back().shape_is_large);
    EXPECT_EQ(history().size(), 1u);
    // The next one of its kind begins in a slot.
    EXPECT_EQ(submit("INSERT INTO t VALUES /* ddl oom=commit affected=4 */ (1)").record.status, StatementStatus::done);
    EXPECT_EQ(node.engine.specs().size(), 3u);
    expect_quiet();
}

TEST_F(GatewayServiceTest, ACommitThatOutgrewTheSmallLaneAndMayBeThereIsNotRunAgain) {
    auto &node = add_node();
    set_catalog_up(false);
    const StatementInfo info = submit("INSERT INTO t VALUES /* ddl oom=commit */ (1)");
    EXPECT_EQ(info.record.status, StatementStatus::failed);
    EXPECT_EQ(info.record.error_code, "commit_unknown");
    EXPECT_EQ(node.engine.specs().size(), 1u);
    expect_quiet();
}

TEST_F(GatewayServiceTest, AWriteThatLostARaceIsRunAgain) {
    auto &node = add_node();
    const StatementInfo won = submit("INSERT INTO t VALUES /* ddl conflict=2 affected=4 */ (1)");
    EXPECT_EQ(won.record.status, StatementStatus::done);
    EXPECT_EQ(won.record.row_count, 4u);
    EXPECT_EQ(node.engine.specs().size(), 3u);
    EXPECT_EQ(metric("roost_conflict_retries_total"), 2);
    EXPECT_NE(latest().profile.find("\"conflicts\":2"), std::string::npos) << latest().profile;
    EXPECT_EQ(history().size(), 1u);
    const StatementInfo lost = submit("INSERT INTO t VALUES /* ddl conflict=100 */ (1)");
    EXPECT_EQ(lost.record.sqlstate, "40001");
    expect_quiet();
}

TEST_F(GatewayServiceTest, ATransactionThatLostARaceIsNotRunAgain) {
    add_node();
    const auto session = open_session();
    execute(session, "BEGIN");
    EXPECT_EQ(read(*execute(session, "INSERT INTO t VALUES /* ddl conflict=1 */ (1)")).status.sqlstate(), "40001");
    EXPECT_EQ(session->transaction, TransactionState::failed);
    EXPECT_EQ(metric("roost_conflict_retries_total"), 0);
}

TEST_F(GatewayServiceTest, AWaitAfterALostRaceCanBeCancelled) {
    auto &node = add_node();
    const StatementInfo begun = submit("INSERT INTO t VALUES /* ddl conflict=100 */ (1)", 0);
    run_until([&] { return metric("roost_conflict_retries_total") >= 2; });
    EXPECT_TRUE(wait(service_->cancel(ann_, begun.record.id)).ok());
    const auto ended = wait(service_->status(ann_, begun.record.id, 10'000));
    EXPECT_EQ(ended->record.status, StatementStatus::cancelled);
    EXPECT_LT(node.engine.specs().size(), 6u);
    expect_quiet();
}

TEST_F(GatewayServiceTest, ACommitThatFailedButIsThereSucceeded) {
    add_node();
    const std::string sql = "INSERT INTO t VALUES /* ddl fail=commit affected=3 */ (1)";
    EXPECT_EQ(submit(sql).record.status, StatementStatus::failed);
    EXPECT_EQ(lookups(), 1);
    const auto session = open_session();
    auto stream = execute(session, sql);
    commit(stream->id());
    EXPECT_EQ(read(*stream).status.to_string(), "ok");
    EXPECT_EQ(stream->completion().affected, 3u);
    EXPECT_EQ(latest().status, StatementStatus::done);
    EXPECT_EQ(lookups(), 2);
}

// Until its node is back it may still commit: no answer before that, or an honest one.
TEST_F(GatewayServiceTest, ALostWriteIsAnsweredWhenItsNodeIsBack) {
    auto &lost = add_node();
    const StatementInfo begun = submit("INSERT INTO t VALUES /* ddl hang=commit */ (1)", 0);
    run_until([&] { return lost.engine.hanging("commit") == 1; });
    lost.kill();
    run_until([&] { return lookups() > 0; });
    EXPECT_NE(wait(service_->status(ann_, begun.record.id, 0))->record.status, StatementStatus::failed);
    add_node({.id = lost.id, .incarnation = 2});
    const auto ended = wait(service_->status(ann_, begun.record.id, 10'000));
    EXPECT_EQ(ended->record.status, StatementStatus::failed);
    EXPECT_EQ(ended->record.sqlstate, "57P01");
    EXPECT_NE(ended->record.error.find("nothing was written"), std::string::npos) << ended->record.error;
    expect_quiet();
}

TEST_F(GatewayServiceTest, ALostWriteThatCommittedIsDone) {
    auto &lost = add_node();
    const StatementInfo begun = submit("INSERT INTO t VALUES /* ddl hang=commit */ (1)", 0);
    run_until([&] { return lost.engine.hanging("commit") == 1; });
    commit(begun.record.id);
    lost.kill();
    EXPECT_EQ(wait(service_->status(ann_, begun.record.id, 10'000))->record.status, StatementStatus::done);
    EXPECT_EQ(latest().status, StatementStatus::done);
}

TEST_F(GatewayServiceTest, WhatNobodyKnowsIsSaidSoAndPutRightLater) {
    for (const bool committed : {true, false}) {
        auto &lost = add_node();
        const StatementInfo begun = submit("INSERT INTO t VALUES /* ddl hang=commit */ (1)", 0);
        run_until([&] { return lost.engine.hanging("commit") == 1; });
        lost.kill();
        const auto unsure = wait(service_->status(ann_, begun.record.id, 10'000));
        EXPECT_EQ(unsure->record.sqlstate, "08007");
        EXPECT_EQ(unsure->record.error_code, "commit_unknown");
        if (committed) commit(begun.record.id);
        auto &again = add_node({.id = lost.id, .incarnation = 2});
        const auto status = [&] { return wait(service_->status(ann_, begun.record.id, 0))->record; };
        run_until([&] { return status().error_code != "commit_unknown"; });
        EXPECT_EQ(status().status, committed ? StatementStatus::done : StatementStatus::failed);
        if (!committed) EXPECT_NE(status().error.find("nothing was written"), std::string::npos) << status().error;
        EXPECT_EQ(latest().status, status().status);
        again.kill();
        run_until([&] { return hub().members().empty(); });
    }
    EXPECT_EQ(metric("roost_commits_unknown_total"), 2);
}

TEST_F(GatewayServiceTest, ACatalogThatIsDownIsAskedAgain) {
    auto &lost = add_node();
    const StatementInfo begun = submit("INSERT INTO t VALUES /* ddl hang=commit */ (1)", 0);
    run_until([&] { return lost.engine.hanging("commit") == 1; });
    set_catalog_up(false);
    lost.kill();
    const auto unsure = wait(service_->status(ann_, begun.record.id, 10'000));
    EXPECT_EQ(unsure->record.error_code, "commit_unknown");
    EXPECT_NE(unsure->record.error.find("the catalog is down"), std::string::npos) << unsure->record.error;
    add_node({.id = lost.id, .incarnation = 2});
    commit(begun.record.id);
    set_catalog_up(true);
    run_until([&] { return latest().status == StatementStatus::done; });
}

TEST_F(GatewayServiceTest, ATransactionGoesWithItsNode) {
    auto &node = add_node();
    const auto session = open_session();
    execute(session, "BEGIN");
    EXPECT_TRUE(read(*execute(session, "SELECT /* rows=1 */ 1")).status.ok());
    EXPECT_EQ(session->pinned_node, node.id);
    add_node();
    node.kill();
    run_until([&] { return hub().members().size() == 1; });
    EXPECT_EQ(try_execute(session, "SELECT /* rows=1 */ 1").status().code(), Code::unavailable);
    EXPECT_EQ(session->transaction, TransactionState::failed);
    execute(session, "ROLLBACK");
    EXPECT_TRUE(read(*execute(session, "SELECT /* rows=1 */ 1")).status.ok());
}

// All of it was answered: nothing is lost with the node.
TEST_F(GatewayServiceTest, TheCommitOfATransactionThatWroteNothingOutlivesItsNode) {
    auto &node = add_node();
    node.engine.hang_commits();
    const auto session = open_session();
    execute(session, "BEGIN");
    EXPECT_TRUE(read(*execute(session, "SELECT /* rows=1 */ 1")).status.ok());
    ExecuteRequest commit;
    commit.statement = std::move(wait(service_->parse("COMMIT", sql::Context::session, nullptr))->front());
    std::optional<Result<std::unique_ptr<ResultStream>>> told;
    begin(service_->execute(session, std::move(commit)), told);
    run_until([&] { return node.engine.hanging("commit") == 1; });
    node.kill();
    run_until([&] { return told.has_value(); });
    EXPECT_TRUE(told->ok()) << told->status().to_string();
    EXPECT_EQ(session->transaction, TransactionState::idle);
    expect_quiet();
}

// A node that is back before the client says its next word knows nothing of the transaction: what follows must not
// become a transaction without its beginning.
TEST_F(GatewayServiceTest, ATransactionIsNotContinuedOnARestartedNode) {
    for (const std::string next : {"INSERT INTO t VALUES /* ddl */ (2)", "SELECT /* rows=1 */ 1", "COMMIT"}) {
        auto &node = add_node();
        const auto session = open_session();
        execute(session, "BEGIN");
        EXPECT_TRUE(read(*execute(session, "INSERT INTO t VALUES /* ddl */ (1)")).status.ok());
        ASSERT_EQ(session->pinned_node, node.id);
        node.kill();
        auto &again = add_node({.id = node.id, .incarnation = 2});
        run_until([&] {
            const auto member = hub().members().find(node.id);
            return member != hub().members().end() && member->second.hello.incarnation == 2;
        });
        auto stream = try_execute(session, next);
        const Status told = stream.ok() ? read(**stream).status : stream.status();
        EXPECT_EQ(told.code(), Code::unavailable) << next << ": " << told.to_string();
        EXPECT_TRUE(again.engine.specs().empty()) << next;
        if (next != "COMMIT") {
            EXPECT_EQ(try_execute(session, "SELECT /* rows=1 */ 1").status().sqlstate(), "25P02");
            execute(session, "ROLLBACK");
        }
        EXPECT_EQ(session->transaction, TransactionState::idle);
        EXPECT_TRUE(read(*execute(session, "SELECT /* rows=1 */ 1")).status.ok());
        again.kill();
        run_until([&] { return hub().members().empty(); });
    }
    expect_quiet();
}

// The client had read a part of a result, and commits without asking for the rest.
TEST_F(GatewayServiceTest, ACommitAfterALostResultSaysSo) {
    auto &node = add_node();
    const auto session = open_session();
    execute(session, "BEGIN");
    auto stream = execute(session, "SELECT /* rows=3 hang=step */ 1");
    Outcome outcome;
    read(*stream, outcome);
    run_until([&] { return node.engine.hanging("step") == 1; });
    node.kill();
    run_until([&] { return hub().members().empty(); });
    add_node({.id = node.id, .incarnation = 2});
    run_until([&] { return outcome.ended; });
    EXPECT_EQ(outcome.status.code(), Code::unavailable);
    auto commit = try_execute(session, "COMMIT");
    ASSERT_TRUE(commit.ok()) << "its failure has been told";
    EXPECT_EQ((*commit)->tag(0), "ROLLBACK");
}

// --- the writer's lease

TEST_F(GatewayServiceTest, WritersRunOneAtATimeInTheOrderTheyCame) {
    auto &node = add_node({.small_workers = 4});
    const auto write = [](int i) { return "INSERT INTO t VALUES /* ddl hang=step */ (" + std::to_string(i) + ")"; };
    std::vector<std::shared_ptr<Session>> sessions;
    std::vector<std::unique_ptr<ResultStream>> streams;
    std::vector<Outcome> outcomes(4);
    for (int i = 0; i < 4; ++i) {
        sessions.push_back(open_session());
        streams.push_back(execute(sessions.back(), write(i)));
        read(*streams.back(), outcomes[static_cast<size_t>(i)]);
    }
    run_until([&] { return node.engine.hanging("step") == 1; });
    settle();
    EXPECT_EQ(node.engine.specs().size(), 1u);
    EXPECT_TRUE(read(*execute(open_session(), "SELECT /* rows=1 */ 1")).status.ok()) << "reads wait for no writer";
    // One that gives up while it waits lets the others keep their order.
    streams[2]->cancel(Status(Code::cancelled, "no longer wanted"));
    run_until([&] { return outcomes[2].ended; });
    EXPECT_EQ(outcomes[2].status.code(), Code::cancelled);
    node.engine.release();
    run_until([&] { return std::ranges::all_of(outcomes, &Outcome::ended); });
    std::vector<std::string> ran;
    for (const StatementSpec &spec : node.engine.specs()) {
        if (spec.writes) ran.push_back(spec.sql);
    }
    EXPECT_EQ(ran, (std::vector{write(0), write(1), write(3)}));
    expect_quiet();
}

// --- each statement ends once

TEST_F(GatewayServiceTest, HoweverAStatementEndsItIsSettledOnce) {
    auto &node = add_node();
    const auto session = open_session();
    const auto total = [&](const std::string &status) {
        return metric("roost_statements_total{front=\"pg\",kind=\"select\",status=\"" + status + "\"}");
    };
    EXPECT_TRUE(read(*execute(session, "SELECT /* rows=1 */ 1")).status.ok());
    EXPECT_FALSE(read(*execute(session, "SELECT /* fail=plan */ 1")).status.ok());
    execute(session, "SELECT /* rows=1 */ 1").reset();  // never begun
    {
        const auto stream = execute(session, "SELECT /* rows=100000 hang=step */ 1");
        EXPECT_TRUE(wait(stream->header()).ok());
    }  // dropped before its end
    {
        const auto stream = execute(session, "SELECT /* hang=step */ 1");
        Outcome outcome;
        read(*stream, outcome);
        run_until([&] { return node.engine.hanging("step") > 0; });
        stream->cancel(Status(Code::cancelled, "enough"));
        stream->cancel(Status(Code::cancelled, "really"));
        run_until([&] { return outcome.ended; });
        EXPECT_EQ(outcome.status.message(), "enough");
    }
    expect_quiet();
    EXPECT_EQ(total("done"), 1);
    EXPECT_EQ(total("failed"), 1);
    EXPECT_EQ(total("cancelled"), 3);
    EXPECT_EQ(history().size(), 5u);
    EXPECT_EQ(session->active, 0u);
    for (const auto &record : history()) EXPECT_NE(record.finished_us, 0);
}

TEST_F(GatewayServiceTest, ANodeThatHearsNoCancelIsNotWaitedForForEver) {
    auto &node = add_node();
    const auto stream = execute(open_session(), "SELECT /* hang=step deaf */ 1");
    Outcome outcome;
    read(*stream, outcome);
    run_until([&] { return node.engine.hanging("step") == 1; });
    stream->cancel(Status(Code::cancelled, "enough"));
    run_until([&] { return outcome.ended; });
    EXPECT_EQ(outcome.status.code(), Code::cancelled);
}

// --- the end of the gateway

TEST_F(GatewayServiceTest, ADrainLetsStatementsFinishAndTakesNoNewOnes) {
    auto &node = add_node();
    const auto session = open_session();
    const auto stream = execute(session, "SELECT /* hang=step */ 1");
    Outcome outcome;
    read(*stream, outcome);
    run_until([&] { return node.engine.hanging("step") == 1; });
    bool drained = false;
    asio::co_spawn(loop, service_->drain(60'000), [&](std::exception_ptr) { drained = true; });
    settle();
    EXPECT_FALSE(drained);
    EXPECT_FALSE(service_->ready());
    EXPECT_EQ(wait(service_->submit(request("SELECT 1"))).status().sqlstate(), "57P03");
    node.engine.release();
    run_until([&] { return drained; });
    EXPECT_TRUE(outcome.status.ok());
}

TEST_F(GatewayServiceTest, ADrainTellsWhatDoesNotFinish) {
    auto &node = add_node();
    const auto stream = execute(open_session(), "SELECT /* hang=step */ 1");
    Outcome outcome;
    read(*stream, outcome);
    run_until([&] { return node.engine.hanging("step") == 1; });
    bool drained = false;
    asio::co_spawn(loop, service_->drain(10), [&](std::exception_ptr) { drained = true; });
    run_until([&] { return drained && outcome.ended; });
    EXPECT_EQ(outcome.status.sqlstate(), "57P01");
    EXPECT_EQ(store_->find_statement(stream->id()).value()->status, StatementStatus::failed);
}

TEST_F(GatewayServiceTest, ALoopThatIsStoppedAmidstWorkIsTakenApartInOrder) {
    auto &node = add_node({.small_workers = 4});
    submit("SELECT /* hang=step */ 1", 0);
    submit("SELECT /* hang=step */ 1; SELECT 2", 0);
    const auto session = open_session();
    auto stream = execute(session, "SELECT /* rows=1000000 */ 1");
    EXPECT_TRUE(wait(stream->header()).ok());
    std::optional<Result<StatementInfo>> held;
    begin(service_->submit(request("INSERT INTO t VALUES /* ddl hang=step */ (1)")), held);
    std::optional<Result<std::vector<sql::Statement>>> parsed;
    const std::string text = long_text(1 << 20);
    begin(service_->parse(text, sql::Context::session, nullptr), parsed);
    run_until([&] { return node.engine.open() >= 3; });
    loop.stop();
    stream.reset();
    end();  // what still holds a part of the service lets go of it while the service is there
    EXPECT_EQ(metric("roost_statements_in_flight"), 0);
}

// --- import

TEST_F(GatewayServiceTest, AnImportIsOneRecordWhoseIdMarksItsCommit) {
    auto &node = add_node();
    ImportRequest import;
    import.principal = ann_;
    import.workspace = "main";
    import.import_id = Uuid::make();
    import.table = "t";
    import.files.push_back({"1.csv", "mine.csv", "csv"});
    std::ofstream(service_->staging_path(ann_, import.import_id, "1.csv").value()) << "a\n1\n";
    const auto info = wait(service_->run_import(import, 10'000));
    ASSERT_TRUE(info.ok()) << info.status().to_string();
    EXPECT_EQ(info->record.status, StatementStatus::done) << info->record.error;
    const StatementSpec commit = node.engine.specs().back();
    EXPECT_EQ(commit.transaction, TransactionAction::commit);
    EXPECT_EQ(commit.id, info->record.id);
    EXPECT_EQ(history().size(), 1u);
    EXPECT_EQ(latest().origin, "import");
    run_until([&] { return node.engine.promised_bytes() == 200; });
}

// The folders are the operator's; who may not name them is told so before anything is asked of a node.
TEST_F(GatewayServiceTest, FilesAreRegisteredInPlaceByAdminsOnly) {
    ImportRequest request;
    request.principal = ann_;
    request.workspace = "main";
    request.table = "t";
    request.in_place.emplace().patterns = {"/theirs/a.parquet"};
    const auto refused = wait(service_->run_import(request, 10'000));
    EXPECT_EQ(refused.status().sqlstate(), "42501");
    EXPECT_EQ(refused.status().error().rule, "import.in_place");
    ImportRequest copy = request;
    copy.in_place.reset();
    copy.sources = {"/theirs/a.parquet"};
    EXPECT_EQ(wait(service_->run_import(copy, 10'000)).status().error().rule, "import.sources");
    request.principal.role = "admin";
    request.in_place->patterns.clear();
    EXPECT_EQ(wait(service_->run_import(request, 10'000)).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace roost::service
