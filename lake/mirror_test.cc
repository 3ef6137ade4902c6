#include "lake/mirror.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <thread>

#include "lake/frozen_catalog.h"
#include "lake/test_lake.h"

namespace roost {
namespace {

using testing::LakeClient;
using testing::TestLake;
using testing::TextRows;

CallLimits soon() { return CallLimits::in(std::chrono::seconds(60)); }

class MirrorOfLake : public ::testing::Test {
protected:
    MirrorOfLake() : client_(lake_.client()), mirror_(lake_.address()) {
        client_->must("CREATE TABLE t (i INTEGER, v VARCHAR)");
        insert(100);
    }
    // As a file of its own.
    void insert(int rows) {
        client_->must("INSERT INTO t SELECT i, 'v' || i FROM range(" + std::to_string(rows) + ") r(i)");
    }
    std::shared_ptr<const LakeState> refresh() {
        auto state = mirror_.refresh(soon());
        EXPECT_TRUE(state.ok()) << state.status().to_string();
        return state.ok() ? *state : nullptr;
    }
    uint64_t rows(const LakeState &state) { return state.table("main", "T")->data->live_rows(); }
    void execute(const std::string &sql) {
        sqlite3 *database = nullptr;
        ASSERT_EQ(sqlite3_open(lake_.address().where.c_str(), &database), SQLITE_OK);
        sqlite3_busy_timeout(database, 10'000);
        EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(database);
        sqlite3_close(database);
    }

    TestLake lake_;
    std::unique_ptr<LakeClient> client_;
    LakeMirror mirror_;
};

TEST_F(MirrorOfLake, KnowsNothingBeforeTheFirstRefreshAndSharesWhatDidNotChange) {
    EXPECT_EQ(mirror_.current(), nullptr);
    client_->must("CREATE TABLE other (i INTEGER)");
    const auto first = refresh();
    EXPECT_EQ(rows(*first), 100u);
    EXPECT_EQ(mirror_.current(), first);
    EXPECT_EQ(refresh(), first);
    insert(50);
    const auto second = refresh();
    EXPECT_EQ(rows(*second), 150u);
    EXPECT_EQ(rows(*first), 100u);
    EXPECT_EQ(second->table("main", "other"), first->table("main", "other"));
    EXPECT_EQ(second->shared_names(), first->shared_names());
    const MirrorCounts counts = mirror_.counts();
    EXPECT_EQ(counts.checks, 3u);
    EXPECT_EQ(counts.loads, 1u);
    EXPECT_EQ(counts.advances, 1u);
}

TEST_F(MirrorOfLake, SeesWhatATransactionDeletedOfItsOwnFile) {
    refresh();
    client_->must("BEGIN");
    insert(200);
    client_->must("DELETE FROM t WHERE i >= 150");
    client_->must("COMMIT");
    const auto state = refresh();
    EXPECT_EQ(rows(*state), 250u);
    EXPECT_EQ(state->table("main", "t")->data->segments.delete_file_count(), 1u);
    EXPECT_EQ(mirror_.counts().advances, 1u);
}

TEST_F(MirrorOfLake, ReadsEverythingWhenACommitSaysWhatItDoesNotKnow) {
    refresh();
    insert(50);
    execute(
        "UPDATE ducklake_snapshot_changes SET changes_made = 'teleported_table:1' WHERE snapshot_id = (SELECT "
        "max(snapshot_id) FROM ducklake_snapshot)");
    EXPECT_EQ(rows(*refresh()), 150u);
    EXPECT_EQ(mirror_.counts().loads, 2u);
}

TEST_F(MirrorOfLake, ReadsEverythingWhenCommitsExpiredUnseen) {
    refresh();
    insert(50);
    client_->must("DELETE FROM t WHERE i < 20");
    client_->must("CALL ducklake_expire_snapshots('lake', older_than => now())");
    EXPECT_EQ(rows(*refresh()), 110u);
    EXPECT_EQ(mirror_.counts().loads, 2u);
}

TEST_F(MirrorOfLake, ReadsEverythingWhenTheCatalogIsAnotherOne) {
    const auto before = refresh();
    client_->must("USE memory");
    client_->must("DETACH lake");
    for (const char *end : {"", "-wal", "-shm"}) std::filesystem::remove(lake_.address().where + end);
    EXPECT_EQ(mirror_.refresh(soon()).status().code(), Code::io_error);
    EXPECT_EQ(mirror_.current(), before);
    client_ = lake_.client();
    client_->must("CREATE TABLE t (i INTEGER, v VARCHAR)");
    insert(7);
    insert(7);
    EXPECT_EQ(rows(*refresh()), 14u);
    EXPECT_EQ(mirror_.counts().loads, 2u);
}

TEST_F(MirrorOfLake, ACommitThatTheCallerHasSeenIsInItsState) {
    refresh();
    constexpr int kThreads = 4, kRounds = 25;
    std::atomic<uint64_t> committed{0};
    std::atomic<int> stale{0}, failed{0};
    std::vector<std::thread> readers;
    std::atomic<bool> done{false};
    for (int i = 0; i < kThreads; i++) {
        readers.emplace_back([&] {
            while (!done) {
                const uint64_t seen = committed;
                const auto state = mirror_.refresh(soon());
                failed += state.ok() ? 0 : 1;
                stale += state.ok() && (*state)->snapshot().id < seen ? 1 : 0;
            }
        });
    }
    for (int i = 0; i < kRounds; i++) {
        insert(1);
        committed = std::stoull(client_->value("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')"));
    }
    done = true;
    for (std::thread &reader : readers) reader.join();
    EXPECT_EQ(stale, 0);
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(rows(*refresh()), 100u + kRounds);
    EXPECT_EQ(mirror_.counts().loads, 1u);
}

TEST_F(MirrorOfLake, ALockedCatalogIsATimeoutOrACancellationAndNoLoss) {
    client_->must("USE memory");
    client_->must("DETACH lake");
    sqlite3 *other = nullptr;
    ASSERT_EQ(sqlite3_open(lake_.address().where.c_str(), &other), SQLITE_OK);
    // In WAL mode readers go on beside a writer; this keeps them out as well.
    ASSERT_EQ(sqlite3_exec(other, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE", nullptr, nullptr, nullptr),
              SQLITE_OK);
    LakeMirror fresh(lake_.address());
    const auto late = fresh.refresh(CallLimits::in(std::chrono::milliseconds(50)));
    EXPECT_EQ(late.status().code(), Code::timeout) << late.status().to_string();
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(fresh.refresh(CallLimits::in(std::chrono::seconds(60), stop.get_token())).status().code(),
              Code::cancelled);
    EXPECT_EQ(fresh.current(), nullptr);
    sqlite3_close(other);
    const auto after = fresh.refresh(soon());
    ASSERT_TRUE(after.ok()) << after.status().to_string();
    EXPECT_EQ(rows(**after), 100u);
}

TEST_F(MirrorOfLake, ADeadlineThatHasPassedIsATimeout) {
    refresh();
    EXPECT_EQ(mirror_.refresh(CallLimits::in(std::chrono::milliseconds(-1))).status().code(), Code::timeout);
    EXPECT_EQ(rows(*mirror_.current()), 100u);
    EXPECT_EQ(mirror_.at(1, {}, CallLimits::in(std::chrono::milliseconds(-1))).status().code(), Code::timeout);
}

TEST_F(MirrorOfLake, TellsThePastUntilItExpires) {
    insert(50);
    client_->must("ALTER TABLE t RENAME TO renamed");
    client_->must("DELETE FROM renamed WHERE i < 10");
    const std::vector<TableName> wanted{{.schema = "main", .name = "t"}};
    const auto past = mirror_.at(2, wanted, soon());
    ASSERT_TRUE(past.ok()) << past.status().to_string();
    EXPECT_EQ((*past)->table("main", "t")->data->live_rows(), 100u);
    EXPECT_EQ((*past)->table("main", "renamed"), nullptr);
    EXPECT_EQ(mirror_.current()->table("main", "renamed")->data->live_rows(), 130u);
    // Again: kept. Without tables: only names.
    EXPECT_EQ(*mirror_.at(2, wanted, soon()), *past);
    EXPECT_EQ((*mirror_.at(3, {}, soon()))->table("main", "t")->data, nullptr);
    EXPECT_EQ((*mirror_.at_time((*past)->snapshot().time_us + 1, wanted, soon()))->snapshot().id, 2u);
    EXPECT_EQ(mirror_.at(99, wanted, soon()).status().code(), Code::not_found);
    EXPECT_EQ(mirror_.at_time(1, wanted, soon()).status().code(), Code::not_found);
    client_->must("CALL ducklake_expire_snapshots('lake', versions => [2])");
    EXPECT_EQ(mirror_.at(2, wanted, soon()).status().code(), Code::not_found);
}

TEST_F(MirrorOfLake, APastThatWasCompactedIsReadAnew) {
    insert(50);
    const std::vector<TableName> wanted{{.schema = "main", .name = "t"}};
    ASSERT_TRUE(mirror_.at(2, wanted, soon()).ok());
    client_->must("CALL ducklake_merge_adjacent_files('lake')");
    client_->must("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)");
    const auto past = mirror_.at(2, wanted, soon());
    ASSERT_TRUE(past.ok());
    const TableState &table = *(*past)->table("main", "t");
    table.data->segments.for_each([&](const Segment &segment, const SegmentDeletes *) {
        EXPECT_TRUE(std::filesystem::exists(table.resolve(segment.path, segment.path_is_relative))) << segment.path;
    });
}

TEST(EncryptedLake, ItsKeysAreInFrozenCatalogsAndNeverInText) {
    TestLake lake;
    LakeClient client(lake.attach_sql(", ENCRYPTED true, DATA_INLINING_ROW_LIMIT 0"));
    client.must("USE lake");
    client.must("SET force_mbedtls_unsafe = 'true'");  // for want of httpfs
    client.must("CREATE TABLE t AS SELECT i FROM range(100) r(i)");
    client.must("DELETE FROM t WHERE i < 10");
    LakeMirror mirror(lake.address());
    const auto state = *mirror.refresh(soon());
    EXPECT_TRUE(state->encrypted());
    ASSERT_EQ(state->tables().size(), 1u);
    std::vector<std::string> keys;
    state->tables()[0]->data->segments.for_each([&](const Segment &segment, const SegmentDeletes *deletes) {
        keys.emplace_back(segment.encryption_key);
        if (deletes != nullptr && deletes->file) keys.push_back(deletes->file->encryption_key);
    });
    ASSERT_EQ(keys.size(), 2u);
    const std::string text = describe(*state);
    for (const std::string &key : keys) {
        EXPECT_FALSE(key.empty());
        EXPECT_EQ(text.find(key), std::string::npos);
    }
    auto writer = FrozenCatalogWriter::open(
        {.address = lake.address(), .extension_dir = std::string(deps::kBuildTreeExtensionDir)});
    ASSERT_TRUE(writer.ok());
    const std::string path = lake.dir() + "/frozen.ducklake";
    ASSERT_TRUE((*writer)->write(*state, std::nullopt, path, soon()).ok());
    client.must("ATTACH 'ducklake:" + path + "' AS frozen (READ_ONLY)");
    EXPECT_EQ(client.value("SELECT sum(i) FROM frozen.t"), client.value("SELECT sum(i) FROM lake.t"));
}

// DuckLake reads rows in the catalog in the shape of their time, for which it loads the whole lake of that snapshot.
// Other tables must be whole in it or absent: here their columns have changed since.
TEST(FrozenCatalog, OfRowsInAnOldShapeBesideTablesThatHaveChanged) {
    TestLake lake;
    const auto client = lake.client();
    lake.attach_again(*client, ", DATA_INLINING_ROW_LIMIT 0");
    const std::vector<std::string> shapes = {"l INTEGER[]", "s STRUCT(a INTEGER, b VARCHAR[])",
                                             "m MAP(INTEGER, VARCHAR)", "i INTEGER"};
    for (const std::string &columns : shapes) {
        for (const char *change : {"REN", "ALT", "DRO"}) {
            const std::string name = quote_identifier(columns + change);
            client->must("CREATE TABLE " + name + " (" + columns + ", other INTEGER)");
            client->must("INSERT INTO " + name + " (other) SELECT range FROM range(20)");
        }
    }
    lake.attach_again(*client, ", DATA_INLINING_ROW_LIMIT 10");
    client->must("CREATE TABLE old (i INTEGER)");
    client->must("INSERT INTO old VALUES (1), (2)");
    for (const auto &row :
         client->rows("SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake' AND table_name <> 'old'")) {
        const std::string column = row[0].substr(0, 1), name = quote_identifier(row[0]);
        const std::string change = row[0].substr(row[0].size() - 3);
        if (change == "REN") client->must("ALTER TABLE " + name + " RENAME " + column + " TO x");
        if (change == "ALT") client->must("ALTER TABLE " + name + " ALTER " + column + " SET DEFAULT NULL");
        if (change == "DRO") client->must("ALTER TABLE " + name + " DROP " + column);
        if (change == "REN") client->must("ALTER TABLE " + name + " RENAME other TO another");
    }
    client->must("ALTER TABLE old ADD COLUMN j INTEGER DEFAULT 7");
    client->must("CREATE TABLE young (i INTEGER[])");
    LakeMirror mirror(lake.address());
    const auto state = *mirror.refresh(soon());
    ASSERT_EQ(state->tables().size(), 14u);
    auto writer = FrozenCatalogWriter::open(
        {.address = lake.address(), .extension_dir = std::string(deps::kBuildTreeExtensionDir)});
    ASSERT_TRUE(writer.ok());
    const std::string path = lake.dir() + "/frozen.ducklake";
    const auto written = (*writer)->write(*state, std::nullopt, path, soon());
    ASSERT_TRUE(written.ok()) << written.status().to_string();
    EXPECT_EQ(written->inlined_rows, 2u);
    client->must("ATTACH 'ducklake:" + path + "' AS frozen (READ_ONLY)");
    EXPECT_EQ(client->rows("SELECT * FROM frozen.old ORDER BY i"), (TextRows{{"1", "7"}, {"2", "7"}}));
    for (const auto &table : state->tables()) {
        const std::string name = quote_identifier(table->definition->name);
        EXPECT_EQ(client->rows("FROM frozen." + name), client->rows("FROM lake." + name)) << name;
    }
}

// Clients that keep no rows in the catalog change the table, so that the first who does makes a place for them under a
// schema version at which another table has changed.
TEST(FrozenCatalog, OfRowsWhosePlaceWasMadeLongAfterTheTablesLastChange) {
    for (const char *change :
         {"DROP COLUMN b", "RENAME b TO c", "ALTER b SET DATA TYPE BIGINT", "ADD COLUMN d VARCHAR[]"}) {
        TestLake lake;
        const auto client = lake.client();
        lake.attach_again(*client, ", DATA_INLINING_ROW_LIMIT 0");
        client->must("CREATE TABLE t (a INTEGER, b INTEGER, e VARCHAR)");
        client->must(std::string("ALTER TABLE t ") + change);
        client->must("ALTER TABLE t RENAME e TO f");
        client->must("CREATE TABLE other (i INTEGER)");
        lake.attach_again(*client, ", DATA_INLINING_ROW_LIMIT 10");
        client->must("INSERT INTO t (a, f) VALUES (1, 'x'), (2, NULL)");
        const TextRows rows = client->rows("FROM lake.t");
        client->must("ALTER TABLE other ADD COLUMN j INTEGER");
        LakeMirror mirror(lake.address());
        const auto state = *mirror.refresh(soon());
        ASSERT_EQ(state->table("main", "t")->data->inlined_rows(), 2u);
        auto writer = FrozenCatalogWriter::open(
            {.address = lake.address(), .extension_dir = std::string(deps::kBuildTreeExtensionDir)});
        ASSERT_TRUE(writer.ok());
        const std::string path = lake.dir() + "/frozen.ducklake";
        const auto written = (*writer)->write(*state, std::nullopt, path, soon());
        ASSERT_TRUE(written.ok()) << change << ": " << written.status().to_string();
        client->must("ATTACH 'ducklake:" + path + "' AS frozen (READ_ONLY)");
        EXPECT_EQ(client->rows("FROM frozen.t"), rows) << change;
    }
}

TEST(FrozenCatalog, OfALakeThatWasFlushedMeanwhileIsRefusedAndLeavesNothing) {
    TestLake lake;
    const auto client = lake.client();
    client->must("CREATE TABLE t (i INTEGER)");
    client->must("INSERT INTO t VALUES (1), (2)");
    LakeMirror mirror(lake.address());
    const auto state = *mirror.refresh(soon());
    ASSERT_EQ(state->table("main", "t")->data->inlined_rows(), 2u);
    auto writer = std::move(FrozenCatalogWriter::open({.address = lake.address(),
                                                       .extension_dir = std::string(deps::kBuildTreeExtensionDir)}))
                      .value();
    const std::string path = lake.dir() + "/frozen.ducklake";
    client->must("INSERT INTO t VALUES (3)");
    const auto beside = writer->write(*state, std::nullopt, path, soon());
    ASSERT_TRUE(beside.ok()) << beside.status().to_string();
    EXPECT_EQ(beside->inlined_rows, 2u);
    client->must("ATTACH 'ducklake:" + path + "' AS frozen (READ_ONLY)");
    EXPECT_EQ(client->value("SELECT sum(i) FROM frozen.t"), "3");
    client->must("DETACH frozen");
    client->must("CALL ducklake_flush_inlined_data('lake')");
    EXPECT_EQ(writer->write(*state, std::nullopt, lake.dir() + "/other.ducklake", soon()).status().code(),
              Code::conflict);
    int left = 0;
    for (const auto &entry : std::filesystem::directory_iterator(lake.dir())) {
        left += entry.path().filename().string().starts_with("other.ducklake");
    }
    EXPECT_EQ(left, 0);
    EXPECT_TRUE(writer->write(**mirror.refresh(soon()), std::nullopt, path, soon()).ok());
    EXPECT_EQ(writer->write(*state, std::vector<FrozenTable>{{.table_id = 77, .data_file_ids = {}}}, path, soon())
                  .status()
                  .code(),
              Code::not_found);
    EXPECT_EQ(writer->write(*state, std::nullopt, path, CallLimits::in(std::chrono::milliseconds(-1))).status().code(),
              Code::timeout);
}

}  // namespace
}  // namespace roost
