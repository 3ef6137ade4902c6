// A node's agent over a fake engine, joined to a real hub by a Unix socket: what a statement meets on its way.
#include "cluster/node_agent.h"

#include <gtest/gtest.h>

#include "cluster/test_pool.h"

namespace roost::cluster {
namespace {

using net::FrameType;
using Types = std::vector<FrameType>;

class NodeAgentTest : public TestPool {
protected:
    void run_until_ended(const Seen &seen) {
        run_until([&] { return seen.ended; });
    }
    std::shared_ptr<RemoteStream> open(const TestNode &node, const StatementSpec &spec) {
        auto stream = hub().open(node.id, FrameType::dispatch, encode(spec));
        EXPECT_TRUE(stream.ok()) << stream.status().to_string();
        return std::move(*stream);
    }
    // Runs it to its end and says how it ended.
    Status end_of(const TestNode &node, const StatementSpec &spec) {
        Seen seen;
        run(node.id, spec, seen);
        run_until_ended(seen);
        return seen.status.ok() ? seen.completion.status : seen.status;
    }
    bool waits(const std::shared_ptr<RemoteStream> &stream) {
        return stream->progress().phase == Progress::Phase::waiting;
    }
    static const Status &gone() {
        static const Status reason(Code::cancelled, "canceling statement due to user request");
        return reason;
    }
};

StatementSpec in_session(std::string words, const Uuid &session,
                         TransactionAction action = TransactionAction::in_session) {
    StatementSpec spec = spec_of(std::move(words));
    spec.session = session;
    spec.transaction = action;
    return spec;
}

TEST_F(NodeAgentTest, ASmallResultIsHeaderRowsEnd) {
    TestNode &node = add_node();
    Seen seen;
    run(node.id, spec_of("rows=3"), seen);
    run_until_ended(seen);
    EXPECT_EQ(seen.types, (Types{FrameType::header, FrameType::rows, FrameType::end}));
    EXPECT_EQ(seen.rows, 3u);
    EXPECT_TRUE(seen.completion.status.ok());
    EXPECT_EQ(seen.completion.rows, 3u);
    EXPECT_EQ(node.engine.log(),
              (std::vector<std::string>{"plan rows=3", "start rows=3", "step rows=3", "finish rows=3: ok"}));
    EXPECT_EQ(hub().members().at(node.id).in_flight, 0u);
}

TEST_F(NodeAgentTest, ALargeResultComesWholeOverALinkOfItsOwn) {
    TestNode &node = add_node();
    for (int i = 0; i < 2; ++i) {  // the second one finds the link of the first
        Seen seen;
        run(node.id, spec_of("rows=100000 bytes=100"), seen);
        run_until_ended(seen);
        EXPECT_TRUE(seen.status.ok()) << seen.status.to_string();
        EXPECT_EQ(seen.rows, 100'000u);
        EXPECT_EQ(seen.types.back(), FrameType::end);
    }
}

TEST_F(NodeAgentTest, LargeResultsSideBySideDoNotMix) {
    TestNode &node = add_node();
    std::vector<Seen> seen(4);
    for (size_t i = 0; i < seen.size(); ++i) {
        run(node.id, spec_of("bytes=100 rows=" + std::to_string(20'000 + i)), seen[i]);
    }
    run_until([&] { return std::ranges::all_of(seen, &Seen::ended); });
    for (size_t i = 0; i < seen.size(); ++i) {
        EXPECT_TRUE(seen[i].status.ok());
        EXPECT_EQ(seen[i].rows, 20'000 + i);
    }
}

TEST_F(NodeAgentTest, FailuresComeAsTheEnd) {
    TestNode &node = add_node();
    for (const char *at : {"plan", "start", "step"}) {
        const Status status = end_of(node, spec_of(std::string("fail=") + at));
        EXPECT_EQ(status.sqlstate(), "22012") << at;
        EXPECT_EQ(status.error().hint, "ask for less");
    }
    // After more rows than fit inline.
    Seen seen;
    run(node.id, spec_of("rows=100000 fail=step"), seen);
    run_until_ended(seen);
    EXPECT_EQ(seen.completion.status.sqlstate(), "22012");
    EXPECT_EQ(node.engine.open(), 0u);
}

TEST_F(NodeAgentTest, ADescriptionRunsNothing) {
    TestNode &node = add_node();
    StatementSpec spec = spec_of("large");
    spec.work = Work::describe;
    Seen seen;
    run(node.id, spec, seen);
    run_until_ended(seen);
    EXPECT_EQ(seen.types, (Types{FrameType::header, FrameType::end}));
    EXPECT_EQ(node.engine.count("start large"), 0u);
}

TEST_F(NodeAgentTest, WhoWouldHaveToWaitIsRefusedAtOnceOrWaits) {
    TestNode &node = add_node();
    Seen first, second, refused, waited;
    run(node.id, spec_of("large hang=step a"), first);
    run(node.id, spec_of("large hang=step b"), second);
    run_until([&] { return node.engine.hanging("step") == 2; });
    StatementSpec spec = spec_of("large c");
    spec.no_wait = true;
    run(node.id, spec, refused);
    run_until_ended(refused);
    EXPECT_EQ(refused.types, Types{FrameType::refused});
    EXPECT_EQ(node.engine.count("start large c"), 0u);
    spec.no_wait = false;
    const auto stream = open(node, spec);
    read(stream, waited);
    run_until([&] { return waits(stream); });
    EXPECT_EQ(stream->progress().place, 1u);
    // What fits the small lane passes the waiter.
    EXPECT_TRUE(end_of(node, spec_of("rows=1")).ok());
    EXPECT_FALSE(waited.ended);
    node.engine.release();
    run_until_ended(waited);
    EXPECT_TRUE(waited.completion.status.ok());
    EXPECT_GT(waited.completion.timings.admission_us, 0);
    EXPECT_LE(node.engine.promised_max_bytes(), 1200u);
}

TEST_F(NodeAgentTest, WhoHasPatienceIsRefusedAfterItAndNotBefore) {
    TestNode &node = add_node();
    Seen first, second, refused, patient;
    run(node.id, spec_of("large hang=step a"), first);
    run(node.id, spec_of("large hang=step b"), second);
    run_until([&] { return node.engine.hanging("step") == 2; });
    StatementSpec spec = spec_of("large c");
    spec.no_wait = true;
    spec.patience_us = 60'000;
    run(node.id, spec, refused);
    run_until_ended(refused);
    EXPECT_EQ(refused.types, Types{FrameType::refused}) << "no error: another node is asked";
    EXPECT_EQ(node.engine.count("start large c"), 0u);
    // Memory that comes in time is its own.
    spec = spec_of("large d");
    spec.no_wait = true;
    spec.patience_us = 600'000'000;
    const auto waiting = open(node, spec);
    read(waiting, patient);
    run_until([&] { return waits(waiting); });
    node.engine.release();
    run_until_ended(patient);
    EXPECT_TRUE(patient.completion.status.ok());
    EXPECT_EQ(node.engine.count("start large d"), 1u);
}

TEST_F(NodeAgentTest, ItIsSaidToRunWhenItRuns) {
    TestNode &node = add_node();
    Seen seen;
    const auto stream = open(node, spec_of("hang=step"));
    read(stream, seen);
    run_until([&] { return stream->progress().phase == Progress::Phase::running; });
    node.engine.release();
    run_until_ended(seen);
}

TEST_F(NodeAgentTest, WhatRanOutOfMemoryInTheSmallLaneGetsASlot) {
    TestNode &node = add_node();
    Seen seen;
    run(node.id, spec_of("oom rows=5"), seen);
    run_until_ended(seen);
    EXPECT_TRUE(seen.completion.status.ok());
    EXPECT_TRUE(seen.completion.ran_large);
    EXPECT_EQ(seen.completion.granted_bytes, 500u);
    EXPECT_EQ(seen.types, (Types{FrameType::header, FrameType::rows, FrameType::end})) << "the header once";
}

// --- cancel in each phase

TEST_F(NodeAgentTest, CancelWhileQueuedNeedsNoFreeWorker) {
    TestNode &node = add_node({.small_workers = 1});
    Seen busy, queued;
    run(node.id, spec_of("hang=step deaf"), busy);
    run_until([&] { return node.engine.hanging("step") == 1; });
    const auto stream = open(node, spec_of("rows=2"));
    read(stream, queued);
    settle();
    EXPECT_FALSE(queued.ended);
    stream->cancel(gone());
    run_until_ended(queued);
    EXPECT_EQ(queued.completion.status.code(), Code::cancelled);
    EXPECT_FALSE(busy.ended);
    node.engine.release();
    run_until_ended(busy);
    EXPECT_EQ(node.engine.count("plan rows=2"), 0u);
}

TEST_F(NodeAgentTest, CancelWhilePlanningStartingAndRunning) {
    TestNode &node = add_node();
    for (const char *at : {"plan", "start", "step"}) {
        Seen seen;
        const auto stream = open(node, spec_of(std::string("hang=") + at));
        read(stream, seen);
        run_until([&] { return node.engine.hanging(at) == 1; });
        stream->cancel(gone());
        run_until_ended(seen);
        EXPECT_EQ(seen.completion.status.code(), Code::cancelled) << at;
        EXPECT_EQ(seen.completion.status.message(), gone().message());
    }
    EXPECT_EQ(node.engine.open(), 0u);
}

TEST_F(NodeAgentTest, CancelWhileWaitingForMemoryLeavesTheLine) {
    TestNode &node = add_node({.small_workers = 3});
    Seen holders[2], waiting, last;
    run(node.id, spec_of("large hang=step a"), holders[0]);
    run(node.id, spec_of("large hang=step b"), holders[1]);
    run_until([&] { return node.engine.hanging("step") == 2; });
    const auto stream = open(node, spec_of("large c"));
    read(stream, waiting);
    run_until([&] { return waits(stream); });
    const auto behind = open(node, spec_of("large d"));
    read(behind, last);
    run_until([&] { return waits(behind) && behind->progress().place == 2; });
    stream->cancel(gone());
    run_until_ended(waiting);
    EXPECT_EQ(waiting.completion.status.code(), Code::cancelled);
    run_until([&] { return behind->progress().place == 1; });
    node.engine.release();
    run_until_ended(last);
    EXPECT_TRUE(last.completion.status.ok());
    EXPECT_EQ(node.engine.count("start large c"), 0u);
}

TEST_F(NodeAgentTest, CancelWhileParkedBehindASlowReader) {
    TestNode &node = add_node();
    const auto stream = open(node, spec_of("rows=1000000 bytes=100"));
    run_until([&] { return node.engine.count("start rows=1000000 bytes=100") == 1; });
    Seen other;
    run(node.id, spec_of("rows=1"), other);
    run_until_ended(other);
    stream->cancel(gone());
    run_until([&] { return node.engine.open() == 0; });
    Seen seen;
    read(stream, seen);
    run_until_ended(seen);
    EXPECT_EQ(seen.completion.status.code(), Code::cancelled);
    EXPECT_LT(seen.rows, 1'000'000u);
}

TEST_F(NodeAgentTest, ADroppedStreamStopsTheWorkAndTheLinkGoesOn) {
    TestNode &node = add_node();
    auto stream = open(node, spec_of("rows=1000000 bytes=100"));
    run_until([&] { return node.engine.count("start rows=1000000 bytes=100") == 1; });
    stream.reset();
    run_until([&] { return node.engine.open() == 0; });
    run_until([&] { return hub().members().at(node.id).in_flight == 0; });
    Seen seen;
    run(node.id, spec_of("rows=100000"), seen);
    run_until_ended(seen);
    EXPECT_EQ(seen.rows, 100'000u);
}

// --- backpressure, limits

TEST_F(NodeAgentTest, AReaderThatDoesNotReadHoldsNoWorker) {
    TestNode &node = add_node({.small_workers = 1});
    const auto slow = open(node, spec_of("rows=300000 bytes=100"));
    run_until([&] { return node.engine.count("start rows=300000 bytes=100") == 1; });
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(end_of(node, spec_of("rows=5")).ok());
    EXPECT_EQ(node.engine.open(), 1u) << "it is not done: what nobody reads is not produced";
    Seen seen;
    read(slow, seen);
    run_until_ended(seen);
    EXPECT_EQ(seen.rows, 300'000u);
    EXPECT_GT(seen.completion.timings.blocked_us, 0);
}

TEST_F(NodeAgentTest, AStatementThatRunsTooLongTimesOut) {
    TestNode &node = add_node();
    StatementSpec spec = spec_of("hang=step");
    spec.timeout_ms = 60;
    EXPECT_EQ(end_of(node, spec).code(), Code::timeout);
    spec = spec_of("hang=plan");
    spec.timeout_ms = 60;
    EXPECT_EQ(end_of(node, spec).code(), Code::timeout);
}

TEST_F(NodeAgentTest, AWaitForMemoryEndsWithItsDeadlineAndIsNotCountedAsRunning) {
    TestNode &node = add_node();
    Seen holders[2];
    run(node.id, spec_of("large hang=step a"), holders[0]);
    run(node.id, spec_of("large hang=step b"), holders[1]);
    run_until([&] { return node.engine.hanging("step") == 2; });
    StatementSpec spec = spec_of("large c");
    spec.admission_wait_ms = 120;
    const Status status = end_of(node, spec);
    EXPECT_EQ(status.name(), "admission_timeout") << status.to_string();
    EXPECT_EQ(status.sqlstate(), "53200");
    // Its own timeout ends the wait as well.
    spec = spec_of("large d");
    spec.timeout_ms = 30;
    EXPECT_EQ(end_of(node, spec).sqlstate(), "57014");
}

TEST_F(NodeAgentTest, AFullQueueSaysSo) {
    TestNode &node = add_node({.small_workers = 1, .queue_max = 2});
    std::vector<Seen> seen(3);
    for (Seen &one : seen) run(node.id, spec_of("hang=step"), one);
    const Status status = end_of(node, spec_of("rows=1"));
    EXPECT_EQ(status.name(), "queue_full");
    EXPECT_TRUE(status.retryable());
    node.engine.release();
    run_until([&] { return std::ranges::all_of(seen, &Seen::ended); });
    EXPECT_TRUE(end_of(node, spec_of("rows=1")).ok());
}

// --- memory: what is promised at one time never passes the budget

TEST_F(NodeAgentTest, AnImportHoldsItsSlotUntilItsTransactionEnds) {
    for (const bool commits : {true, false}) {
        TestNode &node = add_node();
        const Uuid session = Uuid::make();
        StatementSpec import = in_session("ddl one", session);
        import.internal = import.writes = true;
        EXPECT_TRUE(end_of(node, import).ok());
        EXPECT_EQ(node.engine.promised_bytes(), 200u + 500u) << "its instance is there between its statements too";
        Seen large, other;
        run(node.id, spec_of("large hang=step a"), large);
        run_until([&] { return node.engine.hanging("step") == 1; });
        const auto waiting = open(node, spec_of("large b"));
        read(waiting, other);
        run_until([&] { return waits(waiting); });
        // The next statement of the import waits for nobody: its memory is there.
        import = in_session("ddl two", session);
        import.internal = import.writes = true;
        EXPECT_TRUE(end_of(node, import).ok());
        EXPECT_FALSE(other.ended);
        if (commits) {
            EXPECT_TRUE(end_of(node, in_session("", session, TransactionAction::commit)).ok());
        } else {
            hub().end_session(node.id, session);
        }
        run_until_ended(other);
        EXPECT_TRUE(other.completion.status.ok());
        node.engine.release();
        run_until_ended(large);
        EXPECT_EQ(node.engine.promised_bytes(), 200u);
        EXPECT_LE(node.engine.promised_max_bytes(), 1200u);
    }
}

TEST_F(NodeAgentTest, AnImportThatIsEndedWhileItRunsGivesItsSlotBackWhenItHasStopped) {
    TestNode &node = add_node();
    const Uuid session = Uuid::make();
    StatementSpec import = in_session("ddl hang=step deaf", session);
    import.internal = import.writes = true;
    Seen running, large, waiting;
    run(node.id, import, running);
    run_until([&] { return node.engine.hanging("step") == 1; });
    hub().end_session(node.id, session);
    run_until([&] { return node.engine.count("end_session") == 1; });
    run(node.id, spec_of("large hang=step a"), large);
    run_until([&] { return node.engine.hanging("step") == 2; });
    const auto stream = open(node, spec_of("large b"));
    read(stream, waiting);
    run_until([&] { return waits(stream); });
    node.engine.release();
    run_until_ended(waiting);
    EXPECT_TRUE(waiting.completion.status.ok());
}

TEST_F(NodeAgentTest, ALostGatewayGivesTheMemoryOfImportsBack) {
    TestNode &node = add_node();
    StatementSpec import = in_session("ddl one", Uuid::make());
    import.internal = import.writes = true;
    EXPECT_TRUE(end_of(node, import).ok());
    start_hub();
    run_until([&] { return hub().members().contains(node.id); });
    EXPECT_EQ(node.engine.promised_bytes(), 200u);
    Seen seen[2];
    run(node.id, spec_of("large hang=step a"), seen[0]);
    run(node.id, spec_of("large hang=step b"), seen[1]);
    run_until([&] { return node.engine.hanging("step") == 2; });
}

TEST_F(NodeAgentTest, StatementsOfManyKindsNeverHoldMoreThanTheBudget) {
    TestNode &node = add_node({.small_workers = 4});
    std::vector<Seen> seen(60);
    for (size_t i = 0; i < seen.size(); ++i) {
        const std::string words = i % 3 == 0 ? "large rows=2000" : i % 3 == 1 ? "oom rows=2000" : "rows=2000";
        StatementSpec spec = i % 5 == 0 ? in_session(words, Uuid::make()) : spec_of(words);
        if (i % 10 == 0) spec.internal = spec.writes = true;
        run(node.id, spec, seen[i]);
        if (i % 10 == 0) {
            run_until_ended(seen[i]);
            hub().end_session(node.id, spec.session);
        }
    }
    run_until([&] { return std::ranges::all_of(seen, &Seen::ended); });
    EXPECT_LE(node.engine.promised_max_bytes(), 1200u);
    run_until([&] { return node.engine.promised_bytes() == 200; });
}

// --- what may not happen, and happens

TEST_F(NodeAgentTest, AGatewayThatGoesTakesItsWorkWithIt) {
    TestNode &node = add_node();
    const Uuid session = Uuid::make();
    EXPECT_TRUE(end_of(node, in_session("rows=1", session)).ok());
    EXPECT_TRUE(node.engine.has_session(session));
    Seen running, parked;
    run(node.id, spec_of("hang=step"), running);
    const auto slow = open(node, spec_of("rows=1000000 bytes=100"));
    run_until([&] { return node.engine.hanging("step") == 1 && node.engine.open() == 2; });
    start_hub();
    run_until_ended(running);
    EXPECT_EQ(running.status.code(), Code::unavailable);
    EXPECT_TRUE(running.status.retryable());
    run_until([&] { return hub().members().contains(node.id); });
    EXPECT_EQ(node.engine.open(), 0u) << "all of it had ended before the node said hello again";
    EXPECT_FALSE(node.engine.has_session(session));
    EXPECT_TRUE(end_of(node, spec_of("rows=1")).ok());
}

TEST_F(NodeAgentTest, ANodeThatGoesIsAnErrorOfItsStatements) {
    TestNode &node = add_node();
    Seen seen, after_rows;
    run(node.id, spec_of("hang=step deaf"), seen);
    run(node.id, spec_of("rows=100000 hang=step deaf"), after_rows);
    run_until([&] { return after_rows.rows > 0; });
    node.kill();
    run_until_ended(seen);
    run_until_ended(after_rows);
    EXPECT_EQ(seen.status.code(), Code::unavailable);
    EXPECT_TRUE(seen.status.retryable());
    EXPECT_EQ(after_rows.status.code(), Code::unavailable);
    run_until([&] { return hub().members().empty(); });
}

TEST_F(NodeAgentTest, ADispatchThatCantBeReadIsAnswered) {
    TestNode &node = add_node();
    for (const std::string &payload : {std::string(), std::string("garbage"), encode(spec_of("x")) + "more"}) {
        auto stream = hub().open(node.id, FrameType::dispatch, payload);
        ASSERT_TRUE(stream.ok());
        Seen seen;
        read(std::move(*stream), seen);
        run_until_ended(seen);
        EXPECT_FALSE(seen.completion.status.ok());
    }
    for (const FrameType type : {FrameType::read_page, FrameType::open_arrow}) {
        auto stream = hub().open(node.id, type, "garbage");
        ASSERT_TRUE(stream.ok());
        Seen seen;
        read(std::move(*stream), seen);
        run_until_ended(seen);
        EXPECT_FALSE(seen.completion.status.ok());
    }
    EXPECT_TRUE(end_of(node, spec_of("rows=1")).ok());
}

TEST_F(NodeAgentTest, TheSameStatementTwiceAtOnceHarmsNobody) {
    // A read that the gateway retries while the node has not noticed yet that nobody reads the first try.
    TestNode &node = add_node();
    const StatementSpec spec = spec_of("large hang=step");
    Seen seen[3];
    for (Seen &one : seen) run(node.id, spec, one);
    run_until([&] { return node.engine.hanging("step") == 2; });
    node.engine.release();
    run_until([&] { return std::ranges::all_of(seen, &Seen::ended); });
    for (const Seen &one : seen) EXPECT_TRUE(one.completion.status.ok());
    EXPECT_LE(node.engine.promised_max_bytes(), 1200u);
}

TEST_F(NodeAgentTest, ADrainedNodeLetsStatementsFinishAndTakesNoMore) {
    TestNode &node = add_node();
    Seen running;
    run(node.id, spec_of("hang=step"), running);
    run_until([&] { return node.engine.hanging("step") == 1; });
    node.drain(60'000);
    run_until([&] {
        Seen seen;
        run(node.id, spec_of("rows=1"), seen);
        run_until_ended(seen);
        return seen.types.back() == FrameType::refused;
    });
    EXPECT_FALSE(running.ended);
    node.engine.release();
    run_until_ended(running);
    EXPECT_TRUE(running.completion.status.ok());
    run_until([&] { return node.ended(); });
}

TEST_F(NodeAgentTest, ADrainThatTakesTooLongTellsWhatStillRuns) {
    TestNode &node = add_node();
    Seen running;
    run(node.id, spec_of("hang=step"), running);
    run_until([&] { return node.engine.hanging("step") == 1; });
    node.drain(10);
    run_until_ended(running);
    EXPECT_EQ(running.status.ok() ? running.completion.status.code() : running.status.code(), Code::unavailable);
    run_until([&] { return node.ended(); });
}

// --- stored results

TEST_F(NodeAgentTest, AStoredResultIsReadInPagesAndAsAStream) {
    TestNode &node = add_node();
    StatementSpec spec = spec_of("rows=1000");
    spec.format = ResultFormat::stored;
    EXPECT_TRUE(end_of(node, spec).ok());
    const auto ask = [&](FrameType type, const std::string &payload, Seen &seen) {
        auto stream = hub().open(node.id, type, payload);
        ASSERT_TRUE(stream.ok());
        read(std::move(*stream), seen);
        run_until_ended(seen);
    };
    Seen page, whole;
    ask(FrameType::read_page, encode(ReadPage{spec.id, 998, 10}), page);
    EXPECT_EQ(page.types, (Types{FrameType::rows, FrameType::end}));
    ask(FrameType::open_arrow, encode_id(spec.id), whole);
    EXPECT_EQ(whole.rows, 1000u);
    hub().drop_result(node.id, spec.id);
    // Another worker may read it before the first has dropped it.
    run_until([&] {
        Seen missing;
        ask(FrameType::read_page, encode(ReadPage{spec.id, 0, 10}), missing);
        return missing.completion.status.code() == Code::not_found;
    });
}

TEST_F(NodeAgentTest, AnArrowStreamThatNobodyReadsIsParkedAndADroppedOneStops) {
    TestNode &node = add_node({.small_workers = 1});
    StatementSpec spec = spec_of("rows=10000000");
    spec.format = ResultFormat::stored;
    EXPECT_TRUE(end_of(node, spec).ok());
    auto stream = hub().open(node.id, FrameType::open_arrow, encode_id(spec.id));
    ASSERT_TRUE(stream.ok());
    EXPECT_TRUE(end_of(node, spec_of("rows=1")).ok()) << "the one worker is free";
    settle();
    stream->reset();
    run_until([&] { return node.engine.count("reader left") == 1; });
    run_until([&] { return hub().members().at(node.id).in_flight == 0; });
}

}  // namespace
}  // namespace roost::cluster
