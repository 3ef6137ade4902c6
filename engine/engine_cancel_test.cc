// Cancellation at each stage: within a second, with the caller's own reason, and the engine goes on.
#include <atomic>
#include <chrono>
#include <thread>

#include "engine/test_engine.h"

namespace roost {
namespace {

using testing::RowSink;
using testing::TestEngine;
using Clock = std::chrono::steady_clock;

class EngineCancel : public ::testing::Test {
protected:
    TestEngine &lake = TestEngine::get();

    // Cancels once the statement runs (its execution reports that it was started) and says how long it took to end.
    void expect_prompt(StatementSpec spec, const Grant &grant) {
        auto execution = lake.engine().create(spec);
        ASSERT_TRUE(execution.ok());
        const Status started = (*execution)->start(grant);
        ASSERT_TRUE(started.ok()) << started.to_string();
        Clock::time_point cancelled_at;
        std::thread other([&] {
            // Not synchronisation: the statement should be in the middle of its work.
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            cancelled_at = Clock::now();
            (*execution)->cancel(Status(Code::timeout, "the statement took too long"));
        });
        RowSink sink;
        sink.keep = false;
        Status end;
        for (;;) {
            auto more = (*execution)->step(sink);
            end = more.status();
            if (!more.ok() || !*more) break;
        }
        const auto ended_at = Clock::now();
        other.join();
        const Completion completion = (*execution)->finish(end);
        EXPECT_EQ(completion.status.code(), Code::timeout) << spec.sql << ": " << completion.status.to_string();
        EXPECT_EQ(completion.status.message(), "the statement took too long");
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(ended_at - cancelled_at);
        EXPECT_LT(took.count(), 1000) << spec.sql;
        EXPECT_EQ(lake.read("SELECT 7").value(), "7");
    }
};

TEST_F(EngineCancel, RunningStatementsStopWithinASecond) {
    const Grant slot{.lane = Grant::Lane::slot, .slot = 0, .bytes = testing::kSlotBytes};
    const Grant small{.lane = Grant::Lane::small, .slot = 0, .bytes = 0};
    for (const std::string sql : {
             "SELECT count(*) FROM range(100000000000) t(i) WHERE i % 7 = 3",
             "SELECT count(*) FROM range(1000000) a(i), range(1000000) b(j) WHERE i + j = 5",
             "SELECT i FROM range(100000000000) t(i) ORDER BY hash(i) LIMIT 1",
             "SELECT max(n) FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 1000000000) "
             "SELECT n FROM r)",
             "SELECT count(*) FROM range(3000000) t(i) GROUP BY hash(i) % 2000000 HAVING count(*) > 100000 AND (SELECT "
             "count(*) FROM range(100000000000)) > 0",
             "SELECT i FROM range(100000000000) t(i)",
         }) {
        expect_prompt(TestEngine::spec(sql), slot);
        expect_prompt(TestEngine::spec(sql), small);
    }
}

TEST_F(EngineCancel, AWriteStopsAndLeavesNothing) {
    ASSERT_TRUE(lake.write("CREATE OR REPLACE TABLE c1 (i BIGINT)").status.ok());
    expect_prompt(TestEngine::write_spec("INSERT INTO c1 SELECT i FROM range(100000000000) t(i)"),
                  Grant{.lane = Grant::Lane::slot, .slot = 0, .bytes = testing::kSlotBytes});
    EXPECT_EQ(lake.read("SELECT count(*) FROM c1").value(), "0");
}

TEST_F(EngineCancel, AStatementCancelledBeforeItsPlanDoesNothing) {
    auto execution = lake.engine().create(TestEngine::spec("SELECT 1"));
    ASSERT_TRUE(execution.ok());
    (*execution)->cancel(Status(Code::cancelled, "first"));
    (*execution)->cancel(Status(Code::timeout, "second"));
    EXPECT_EQ((*execution)->plan().status().message(), "first");
    EXPECT_EQ((*execution)->finish(Status()).status.message(), "first");
}

TEST_F(EngineCancel, ProgressIsSeenFromOutsideWhileItRuns) {
    ASSERT_TRUE(lake.write("CREATE OR REPLACE TABLE c2 AS SELECT i FROM range(200000) t(i)").status.ok());
    auto execution = lake.engine().create(TestEngine::spec("SELECT sum(hash(a.i + b.i)) FROM c2 a, c2 b"));
    ASSERT_TRUE(execution.ok());
    EXPECT_LT((*execution)->progress(), 0);
    ASSERT_TRUE((*execution)->start({.lane = Grant::Lane::slot, .slot = 0, .bytes = testing::kSlotBytes}).ok());
    std::atomic<double> seen{-1};
    std::thread other([&] {
        const auto give_up = Clock::now() + std::chrono::seconds(60);
        while (seen <= 0 && Clock::now() < give_up) {
            seen = (*execution)->progress();
            std::this_thread::yield();
        }
        (*execution)->cancel(Status(Code::cancelled, "seen"));
    });
    RowSink sink;
    const auto result = (*execution)->step(sink);
    other.join();
    (void)(*execution)->finish(result.status());
    EXPECT_GT(seen, 0);
    EXPECT_LE(seen, 100);
}

TEST_F(EngineCancel, AnAbandonedStreamGivesItsInstanceBack) {
    for (int i = 0; i < 3; i++) {
        auto execution = lake.engine().create(TestEngine::spec("SELECT i FROM range(10000000) t(i)"));
        ASSERT_TRUE(execution.ok());
        ASSERT_TRUE((*execution)->start({.lane = Grant::Lane::slot, .slot = 1, .bytes = testing::kSlotBytes}).ok());
        RowSink sink;
        sink.stop_after_batch = true;
        const auto more = (*execution)->step(sink);
        ASSERT_TRUE(more.ok() && *more);
        const Completion end = (*execution)->finish(Status(Code::cancelled, "the client left"));
        EXPECT_EQ(end.status.message(), "the client left");
        EXPECT_LT(lake.engine().used_bytes(), 64u << 20);
    }
}

}  // namespace
}  // namespace roost
