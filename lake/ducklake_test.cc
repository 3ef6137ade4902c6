#include "lake/ducklake.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>

namespace roost {
namespace {

// A catalog with only the table that find_commit reads; commits by a real engine are in engine/engine_write_test.cc.
class FindCommit : public ::testing::Test {
protected:
    FindCommit() {
        char name[] = "/tmp/roost-lake-XXXXXX";
        dir_ = mkdtemp(name);
        lake_.catalog = "lake";
        lake_.metadata_path = dir_ + "/catalog.sqlite";
    }
    ~FindCommit() override { std::filesystem::remove_all(dir_); }
    void run(const std::string &sql) {
        sqlite3 *database = nullptr;
        ASSERT_EQ(sqlite3_open(lake_.metadata_path.c_str(), &database), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(database);
        sqlite3_close(database);
    }
    void make_table() { run("CREATE TABLE ducklake_snapshot_changes (snapshot_id BIGINT, commit_extra_info VARCHAR)"); }

    std::string dir_;
    LakeLocation lake_;
};

TEST_F(FindCommit, TellsTheSnapshotOfAMarkedCommit) {
    make_table();
    const Uuid id = Uuid::make();
    run("INSERT INTO ducklake_snapshot_changes VALUES (6, NULL), (7, '" + commit_mark(id) + "'), (8, 'roost:other')");
    const auto found = find_commit(lake_, id);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(*found, std::optional<uint64_t>(7));
    const auto none = find_commit(lake_, Uuid::make());
    ASSERT_TRUE(none.ok());
    EXPECT_FALSE(none->has_value());
}

TEST_F(FindCommit, AMissingOrForeignFileIsAnErrorAndIsNotMade) {
    EXPECT_EQ(find_commit(lake_, Uuid::make()).status().code(), Code::io_error);
    EXPECT_FALSE(std::filesystem::exists(lake_.metadata_path));
    run("CREATE TABLE something_else (i INTEGER)");
    EXPECT_EQ(find_commit(lake_, Uuid::make()).status().code(), Code::io_error);
}

TEST(AttachSql, QuotesWhatItIsGiven) {
    const LakeLocation lake{
        .catalog = "my \"lake", .metadata_path = "/a/it's.sqlite", .data_path = "/d/", .staging_path = ""};
    EXPECT_EQ(attach_sql(lake, {.create = true, .busy_timeout_ms = 5}),
              "ATTACH 'ducklake:sqlite:/a/it''s.sqlite' AS \"my \"\"lake\" (DATA_PATH '/d/', META_JOURNAL_MODE 'WAL', "
              "META_BUSY_TIMEOUT 5, CREATE_IF_NOT_EXISTS true)");
}

}  // namespace
}  // namespace roost
