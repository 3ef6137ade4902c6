// Writes: counts, commit marks, conflicts, files kept when a commit fails.
#include <atomic>
#include <fstream>
#include <thread>

#include "base/mutex.h"
#include "engine/test_engine.h"
#include "lake/ducklake.h"

namespace roost {
namespace {

using testing::Outcome;
using testing::TestEngine;

class EngineWrite : public ::testing::Test {
protected:
    TestEngine &lake = TestEngine::get();
    void must(const Outcome &outcome) { ASSERT_TRUE(outcome.status.ok()) << outcome.status.to_string(); }
};

TEST_F(EngineWrite, DdlAndDmlTellWhatChanged) {
    const Outcome made = lake.write("CREATE TABLE w1 (i INTEGER, t VARCHAR)");
    must(made);
    EXPECT_FALSE(made.completion.affected.has_value());
    EXPECT_FALSE(made.header.has_grid);
    const Outcome inserted = lake.write("INSERT INTO w1 SELECT i, 'r' || i FROM range(1000) t(i)");
    must(inserted);
    EXPECT_EQ(inserted.completion.affected, 1000u);
    EXPECT_GT(inserted.completion.timings.commit_us, 0);
    EXPECT_EQ(lake.write("UPDATE w1 SET t = 'x' WHERE i < 10").completion.affected, 10u);
    EXPECT_EQ(lake.write("DELETE FROM w1 WHERE i >= 990").completion.affected, 10u);
    EXPECT_EQ(lake.read("SELECT count(*) FROM w1").value(), "990");
    EXPECT_EQ(lake.read("SELECT count(*) FROM w1 WHERE t = 'x'").value(), "10");
    const Outcome ctas = lake.write("CREATE TABLE w1_copy AS SELECT * FROM w1");
    must(ctas);
    EXPECT_EQ(ctas.completion.affected, 990u);
    must(lake.write("ALTER TABLE w1 ADD COLUMN extra INTEGER"));
    must(lake.write("CREATE VIEW w1_view AS SELECT i FROM w1"));
    EXPECT_EQ(lake.read("SELECT count(*) FROM w1_view").value(), "990");
    must(lake.write("DROP TABLE w1_copy"));
    EXPECT_EQ(lake.read("SELECT * FROM w1_copy").status.sqlstate(), "42P01");
    EXPECT_EQ(lake.write("CREATE TABLE w1 (i INTEGER)").status.sqlstate(), "42P07");
    EXPECT_EQ(lake.write("INSERT INTO w1 VALUES (1)").status.sqlstate(), "42601");
    const Outcome schema = lake.write("CREATE TABLE absent.t (i INTEGER)");
    EXPECT_EQ(schema.status.sqlstate(), "3F000") << schema.status.to_string();
    must(lake.write("CREATE TABLE w_null (i INTEGER NOT NULL)"));
    EXPECT_EQ(lake.write("INSERT INTO w_null VALUES (NULL)").status.sqlstate(), "23502");
}

TEST_F(EngineWrite, ACommitIsFoundByItsStatement) {
    must(lake.write("CREATE TABLE w2 (i INTEGER)"));
    const StatementSpec spec = TestEngine::write_spec("INSERT INTO w2 VALUES (1), (2)");
    must(lake.run(spec));
    const auto found = find_commit(lake.lake(), spec.id);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    ASSERT_TRUE(found->has_value());
    const auto other = find_commit(lake.lake(), Uuid::make());
    ASSERT_TRUE(other.ok());
    EXPECT_FALSE(other->has_value());
}

TEST_F(EngineWrite, AFailedWriteLeavesNothing) {
    must(lake.write("CREATE TABLE w3 (i INTEGER)"));
    const StatementSpec spec = TestEngine::write_spec(
        "INSERT INTO w3 SELECT CASE WHEN i < 90000 THEN i ELSE error('no') END FROM range(100000) t(i)");
    EXPECT_FALSE(lake.run(spec).status.ok());
    EXPECT_EQ(lake.read("SELECT count(*) FROM w3").value(), "0");
    const auto found = find_commit(lake.lake(), spec.id);
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found->has_value());
}

TEST_F(EngineWrite, AReadThatWritesIsRefused) {
    must(lake.write("CREATE TABLE w4 (i INTEGER)"));
    EXPECT_EQ(lake.read("INSERT INTO w4 VALUES (1)").status.code(), Code::internal);
    StatementSpec read_only = TestEngine::write_spec("INSERT INTO w4 VALUES (1)");
    read_only.read_only = true;
    EXPECT_EQ(lake.run(read_only).status.sqlstate(), "25006");
    EXPECT_EQ(lake.read("SELECT count(*) FROM w4").value(), "0");
}

// DuckLake loads the whole schema again after a change of it; eight at once would not fit the small instance.
TEST_F(EngineWrite, ManyTablesAndReadersAfterASchemaChangeFitTheSmallInstance) {
    const Uuid session = Uuid::make();
    for (int i = 0; i < 60; i++) {
        must(lake.run(TestEngine::session_spec(
            session, "CREATE TABLE many" + std::to_string(i) + " (a INTEGER, b VARCHAR, c DOUBLE, d DATE, e BIGINT)",
            true)));
    }
    must(lake.run(TestEngine::end_spec(session, TransactionAction::commit)));
    for (int round = 0; round < 3; round++) {
        must(lake.write("CREATE OR REPLACE TABLE many_changed AS SELECT 1 AS i"));
        std::vector<std::thread> readers;
        for (int r = 0; r < 8; r++) {
            readers.emplace_back([this] {
                const Outcome got = lake.read("SELECT count(*) FROM many7");
                EXPECT_EQ(got.value(), "0") << got.status.to_string();
            });
        }
        for (auto &reader : readers) reader.join();
    }
    for (int i = 0; i < 60; i++) {
        must(lake.run(TestEngine::session_spec(session, "DROP TABLE many" + std::to_string(i), true)));
    }
    must(lake.run(TestEngine::end_spec(session, TransactionAction::commit)));
}

// Without the gateway's lease: whatever happens, the count is that of the writers that were told ok, and the others
// hear a conflict they may retry.
TEST_F(EngineWrite, ConcurrentWritersConflictCleanly) {
    must(lake.write("CREATE TABLE w5 (i INTEGER)"));
    EXPECT_LT(lake.engine().used_bytes(), 32u << 20);
    constexpr int kWriters = 4;
    constexpr int kEach = 5;
    std::atomic<int> done{0};
    std::atomic<int> conflicts{0};
    std::vector<std::string> other;
    Mutex mutex;
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; w++) {
        writers.emplace_back([&] {
            for (int i = 0; i < kEach; i++) {
                const Outcome outcome = lake.write("INSERT INTO w5 VALUES (1)");
                if (outcome.status.ok()) {
                    done++;
                } else if (outcome.status.sqlstate() == "40001" && outcome.status.retryable()) {
                    conflicts++;
                } else {
                    MutexLock lock(mutex);
                    other.push_back(outcome.status.to_string());
                }
            }
        });
    }
    for (auto &writer : writers) writer.join();
    EXPECT_LT(lake.engine().used_bytes(), 32u << 20);
    EXPECT_TRUE(other.empty()) << other.front();
    EXPECT_EQ(done + conflicts, kWriters * kEach);
    EXPECT_GT(done, 0);
    EXPECT_EQ(lake.read("SELECT count(*) FROM w5").value(), std::to_string(done));
}

TEST_F(EngineWrite, TemporaryObjectsAreRefusedWhereNothingKeepsThem) {
    for (const char *kind : {"TEMP TABLE mine AS SELECT 42 AS secret", "TEMP TABLE temp.mine (i INTEGER)",
                             "TEMP VIEW mine AS SELECT 1", "TEMP MACRO mine(x) AS x"}) {
        EXPECT_EQ(lake.run(TestEngine::spec(std::string("CREATE ") + kind)).status.sqlstate(), "0A000") << kind;
    }
}

TEST_F(EngineWrite, TemporaryObjectsDoNotReachTheNextSession) {
    const Uuid session = Uuid::make();
    must(lake.run(TestEngine::session_spec(session, "CREATE TEMP TABLE mine AS SELECT 42 AS secret")));
    EXPECT_EQ(lake.run(TestEngine::session_spec(session, "SELECT secret FROM mine")).value(), "42");
    must(lake.run(TestEngine::end_spec(session, TransactionAction::commit)));
    for (int i = 0; i < 3; i++) EXPECT_EQ(lake.read("SELECT * FROM mine").status.sqlstate(), "42P01");
}

TEST_F(EngineWrite, InternalStatementsReadStagedFilesAndOthersDoNot) {
    const std::string file = lake.lake().staging_path + "/rows.csv";
    { std::ofstream(file) << "i,t\n1,a\n2,b\n"; }
    must(lake.write("CREATE TABLE w6 (i INTEGER, t VARCHAR)"));
    const std::string sql = "INSERT INTO w6 SELECT * FROM read_csv('" + file + "')";
    EXPECT_FALSE(lake.write(sql).status.ok());
    StatementSpec import = TestEngine::write_spec(sql);
    import.internal = true;
    const Outcome imported = lake.run(import);
    must(imported);
    EXPECT_EQ(imported.completion.affected, 2u);
    import = TestEngine::write_spec("COPY (SELECT 1) TO '" + lake.lake().staging_path + "/out.csv'");
    import.internal = true;
    EXPECT_EQ(lake.run(import).status.sqlstate(), "42501");
    import = TestEngine::write_spec(
        "INSERT INTO w6 SELECT 1, content FROM read_csv('/etc/passwd', columns = {'content': 'VARCHAR'})");
    import.internal = true;
    EXPECT_EQ(lake.run(import).status.sqlstate(), "42501");
}

size_t threads_of_this_process() {
    size_t count = 0;
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) count += task.exists() ? 1 : 0;
    return count;
}

// Some transactions of sessions, of which `conflicts` fail at their commit, in an engine of their own.
void run_and_close_an_engine(int conflicts) {
    TestEngine lake;
    ASSERT_TRUE(lake.write("CREATE TABLE contested AS SELECT range AS i FROM range(5000)").status.ok());
    for (int n = 0; n < 4; n++) {
        const Uuid session = Uuid::make();
        const std::string deletion = "DELETE FROM contested WHERE i = " + std::to_string(n);
        ASSERT_TRUE(lake.run(TestEngine::session_spec(session, deletion, true)).status.ok());
        if (n < conflicts) ASSERT_TRUE(lake.write(deletion).status.ok());
        const Outcome end = lake.run(TestEngine::end_spec(session, TransactionAction::commit));
        EXPECT_EQ(end.status.ok(), n >= conflicts) << end.status.to_string();
        if (n < conflicts) EXPECT_EQ(end.status.sqlstate(), "40001") << end.status.to_string();
        EXPECT_EQ(lake.read("SELECT count(*) FROM contested").value(), std::to_string(5000 - n - 1));
    }
}

size_t files_below(const std::string &dir) {
    size_t count = 0;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(dir))
        count += entry.is_regular_file() ? 1 : 0;
    return count;
}

// A commit that fails leaves the files it wrote; once it can't have been taken after all they go, and no others.
TEST(EngineFailedCommit, ItsFilesAreRemovedLaterAndThoseOfTheLakeAreNot) {
    TestEngine lake;
    ASSERT_TRUE(lake.write("CREATE TABLE contested AS SELECT range AS i FROM range(5000)").status.ok());
    const Uuid session = Uuid::make();
    const std::string change = "UPDATE contested SET i = i + 1 WHERE i < 4000";
    ASSERT_TRUE(lake.run(TestEngine::session_spec(session, change, true)).status.ok());
    ASSERT_TRUE(lake.write(change).status.ok());
    const size_t with_lost = files_below(lake.lake().data_path);
    EXPECT_EQ(lake.run(TestEngine::end_spec(session, TransactionAction::commit)).status.sqlstate(), "40001");
    EXPECT_EQ(files_below(lake.lake().data_path), with_lost) << "kept: the commit might have been taken";
    lake.engine().sweep();  // a grace of nothing in tests
    EXPECT_LT(files_below(lake.lake().data_path), with_lost);
    EXPECT_EQ(lake.read("SELECT count(*) FROM contested").value(), "5000");
    const size_t named = files_below(lake.lake().data_path);
    lake.engine().sweep();
    EXPECT_EQ(files_below(lake.lake().data_path), named);
}

// DuckLake would keep the transaction, its connection and so the whole instance with its threads and memory for ever.
TEST(EngineFailedCommit, LeavesNothingBehind) {
    run_and_close_an_engine(0);  // what a first engine brings for good
    const size_t before = threads_of_this_process();
    run_and_close_an_engine(3);
    EXPECT_EQ(threads_of_this_process(), before);
}

}  // namespace
}  // namespace roost
