// Reads by frozen catalogs through the engine: the answers are those of the live catalog, and never older.
#include <fstream>
#include <thread>

#include "engine/test_engine.h"
#include "lake/ducklake.h"

namespace roost {
namespace {

using testing::Outcome;
using testing::TestEngine;

class FrozenReadsTest : public ::testing::Test {
protected:
    FrozenReadsTest() {
        EngineOptions options = lake.options();
        options.dir = lake.dir() + "/frozen-node";
        options.small_bytes = 192ull << 20;
        options.frozen_quiet_ms = 0;
        std::filesystem::create_directories(options.dir);
        engine = std::move(Engine::open(options, lake.log()).value());
    }
    Outcome run(const StatementSpec &spec) {
        Outcome outcome;
        testing::RowSink sink;
        auto execution = engine->create(spec);
        auto plan = (*execution)->plan();
        outcome.status = plan.status();
        if (plan.ok()) outcome.status = (*execution)->start(TestEngine::grant_for(spec, *plan));
        for (bool more = true; outcome.status.ok() && more;) {
            const auto stepped = (*execution)->step(sink);
            outcome.status = stepped.status();
            more = stepped.ok() && *stepped;
        }
        outcome.completion = (*execution)->finish(outcome.status);
        outcome.status = outcome.completion.status;
        outcome.rows = std::move(sink.kept);
        return outcome;
    }
    Outcome read(const std::string &sql) { return run(TestEngine::spec(sql)); }
    void write(const std::string &sql) {
        const Outcome outcome = run(TestEngine::write_spec(sql));
        ASSERT_TRUE(outcome.status.ok()) << sql << ": " << outcome.status.to_string();
    }
    // Reads until it is done by a frozen catalog; what it said then.
    Outcome read_frozen(const std::string &sql) {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        for (;;) {
            Outcome outcome = read(sql);
            if (outcome.completion.frozen || std::chrono::steady_clock::now() > give_up) return outcome;
        }
    }

    TestEngine lake;
    std::unique_ptr<Engine> engine;
};

TEST_F(FrozenReadsTest, AnswersAreThoseOfTheLiveCatalog) {
    write(
        "CREATE TABLE f AS SELECT range AS i, 'v' || range AS t, DATE '2020-01-01' + range::INTEGER AS d FROM "
        "range(5000)");
    write("DELETE FROM f WHERE i % 7 = 0");
    write("INSERT INTO f VALUES (-1, NULL, NULL)");
    write("ALTER TABLE f ADD COLUMN n DOUBLE DEFAULT 2.5");
    write("CREATE VIEW fv AS SELECT t, count(*) AS c FROM f GROUP BY t");
    write("CREATE SCHEMA s2");
    write("CREATE TABLE s2.other AS SELECT 1 AS one");
    for (const std::string sql :
         {"SELECT count(*), sum(i), sum(n), max(d), sum(hash(t)) FROM f", "SELECT sum(c) FROM fv",
          "SELECT one FROM lake.s2.other", "SELECT t FROM f WHERE i = 4321"}) {
        const Outcome frozen = read_frozen(sql);
        EXPECT_TRUE(frozen.completion.frozen) << sql;
        EXPECT_EQ(frozen.rows, lake.read(sql).rows) << sql << ": " << frozen.status.to_string();
    }
}

TEST_F(FrozenReadsTest, ACommitIsSeenAtOnce) {
    write("CREATE TABLE seen (i INTEGER)");
    for (int i = 1; i <= 5; i++) {
        EXPECT_TRUE(read_frozen("SELECT count(*) FROM seen").completion.frozen);
        // By this engine, and by another client of the lake.
        if (i % 2 == 0) {
            write("INSERT INTO seen VALUES (1)");
        } else {
            ASSERT_TRUE(lake.write("INSERT INTO seen VALUES (1)").status.ok());
        }
        EXPECT_EQ(read("SELECT count(*) FROM seen").value(), std::to_string(i));
        EXPECT_EQ(read_frozen("SELECT count(*) FROM seen").value(), std::to_string(i));
    }
}

// A frozen catalog holds one snapshot: the past is asked of the live one, also when a view asks.
TEST_F(FrozenReadsTest, ThePastIsTheLiveCatalogs) {
    write("CREATE TABLE past AS SELECT 1 AS i");
    write("INSERT INTO past VALUES (2)");
    write("CREATE VIEW history AS SELECT count(*) AS n FROM lake.snapshots()");
    write("CREATE VIEW changes AS SELECT count(*) AS n FROM lake.table_changes('past', 0, 2)");
    EXPECT_TRUE(read_frozen("SELECT count(*) FROM past").completion.frozen);
    for (const std::string sql :
         {"SELECT n FROM history", "SELECT count(*) FROM ducklake_snapshots('lake')", "SELECT n FROM changes",
          "SELECT count(*) FROM lake.snapshots()", "SELECT count(*) FROM past AT (VERSION => 1)",
          "SELECT count(*) FROM lake.table_insertions('past', 1, 2)"}) {
        const Outcome outcome = read(sql);
        const Outcome live = lake.read(sql);
        EXPECT_FALSE(outcome.completion.frozen) << sql;
        EXPECT_EQ(outcome.status.to_string(), live.status.to_string()) << sql;
        EXPECT_EQ(outcome.rows, live.rows) << sql;
    }
}

TEST_F(FrozenReadsTest, WritesAndMistakesAreTheLiveCatalogs) {
    write("CREATE TABLE mine AS SELECT range AS i FROM range(10)");
    EXPECT_TRUE(read_frozen("SELECT count(*) FROM mine").completion.frozen);
    const Outcome wrong = read("SELECT nothing FROM mine");
    EXPECT_EQ(wrong.status.sqlstate(), "42703") << wrong.status.to_string();
    EXPECT_FALSE(read("SELECT 1 FROM missing").status.ok());
    const Outcome written = run(TestEngine::write_spec("INSERT INTO mine VALUES (10)"));
    EXPECT_TRUE(written.status.ok());
    EXPECT_FALSE(written.completion.frozen);
    EXPECT_EQ(read("SELECT count(*) FROM mine").value(), "11");
    // Not for tenants, whatever instance it is.
    EXPECT_FALSE(read("SELECT * FROM duckdb_settings()").status.ok());
    EXPECT_FALSE(read("SELECT * FROM __ducklake_metadata_lake.ducklake_data_file").status.ok());
}

TEST_F(FrozenReadsTest, ReadersAndWritersAtOnceSeeWholeCommits) {
    write("CREATE TABLE pairs (a INTEGER, b INTEGER)");
    std::atomic<bool> stop{false};
    std::atomic<int> committed{0}, frozen{0};
    std::vector<std::thread> readers;
    for (int r = 0; r < 3; r++) {
        readers.emplace_back([&] {
            while (!stop) {
                const int least = committed;
                const Outcome outcome = read("SELECT count(*), count(*) FILTER (a = b) FROM pairs");
                ASSERT_TRUE(outcome.status.ok()) << outcome.status.to_string();
                frozen += outcome.completion.frozen ? 1 : 0;
                const int seen = std::stoi(*outcome.rows.at(0).at(0));
                EXPECT_EQ(outcome.rows.at(0).at(0), outcome.rows.at(0).at(1));
                EXPECT_EQ(seen % 2, 0);
                EXPECT_GE(seen, least);
            }
        });
    }
    for (int i = 0; i < 15; i++) {
        write("INSERT INTO pairs VALUES (" + std::to_string(i) + ", " + std::to_string(i) + "), (-1, -1)");
        committed = 2 * (i + 1);
        const int before = frozen;
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (i % 5 == 4 && frozen == before && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    }
    stop = true;
    for (auto &reader : readers) reader.join();
    EXPECT_GT(frozen, 0);
}

}  // namespace
}  // namespace roost
