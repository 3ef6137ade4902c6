#include "lake/ducklake_sqlite.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/ids.h"

namespace roost {
namespace {

namespace fs = std::filesystem;

class SqliteCommit : public ::testing::Test {
protected:
    SqliteCommit() {
        fs::create_directories(dir_);
        keeper_ = open();
        run(keeper_, "PRAGMA journal_mode = WAL");
        run(keeper_, "CREATE TABLE ducklake_snapshot_changes (snapshot_id BIGINT, commit_extra_info TEXT)");
        run(keeper_, "INSERT INTO ducklake_snapshot_changes VALUES (1, 'first')");
    }
    ~SqliteCommit() override {
        sqlite3_close(keeper_);
        fs::remove_all(dir_);
    }
    sqlite3 *open() {
        sqlite3 *database = nullptr;
        EXPECT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
        return database;
    }
    static void run(sqlite3 *database, const std::string &sql) {
        char *error = nullptr;
        EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << (error ? error : "");
        sqlite3_free(error);
    }
    std::optional<uint64_t> found(const std::string &mark) { return found_in(path_, mark); }
    // As found after all processes were killed: the first to open the file makes the index anew from the log.
    std::optional<uint64_t> found_after_all_died(const std::string &mark) {
        const std::string copy = (dir_ / "copy.sqlite").string();
        fs::copy_file(path_, copy, fs::copy_options::overwrite_existing);
        fs::copy_file(path_ + "-wal", copy + "-wal", fs::copy_options::overwrite_existing);
        return found_in(copy, mark);
    }
    static std::optional<uint64_t> found_in(const std::string &path, const std::string &mark) {
        const auto answer = find_sqlite_commit(path, mark);
        EXPECT_TRUE(answer.ok()) << answer.status().to_string();
        return answer.ok() ? *answer : std::nullopt;
    }
    // As a process that was killed between writing its commit to the log and entering it in the log's index.
    void commit_unindexed(const std::string &row) {
        const std::string index_path = path_ + "-shm";
        std::vector<char> header(136);  // of the index: two copies of its header, and the checkpoint's marks
        std::fstream index(index_path, std::ios::in | std::ios::out | std::ios::binary);
        index.read(header.data(), static_cast<std::streamsize>(header.size()));
        run(keeper_, "INSERT INTO ducklake_snapshot_changes VALUES " + row);
        index.seekp(0);
        index.write(header.data(), static_cast<std::streamsize>(header.size()));
        index.flush();
        EXPECT_TRUE(index.good());
    }

    const fs::path dir_ = fs::temp_directory_path() / ("roost-sqlite-commit-" + Uuid::make().to_string());
    const std::string path_ = (dir_ / "lake.sqlite").string();
    sqlite3 *keeper_ = nullptr;  // another process that has the file open: the index is not made anew meanwhile
};

TEST_F(SqliteCommit, IsFoundByItsMark) {
    EXPECT_EQ(found("first"), std::optional<uint64_t>(1));
    EXPECT_EQ(found("second"), std::nullopt);
    run(keeper_, "INSERT INTO ducklake_snapshot_changes VALUES (2, 'second')");
    EXPECT_EQ(found("second"), std::optional<uint64_t>(2));
}

// What makes a look-up hard: without a change of its own, what it did not find is there after a restart.
TEST_F(SqliteCommit, ThatIsNotInTheIndexComesBackWhenNobodyAsked) {
    commit_unindexed("(2, 'lost')");
    EXPECT_EQ(found_after_all_died("lost"), std::optional<uint64_t>(2));
}

TEST_F(SqliteCommit, ThatWasNotFoundDoesNotComeBack) {
    commit_unindexed("(2, 'lost')");
    EXPECT_EQ(found("lost"), std::nullopt);
    EXPECT_EQ(found_after_all_died("lost"), std::nullopt);
    EXPECT_EQ(found_after_all_died("first"), std::optional<uint64_t>(1));
}

TEST_F(SqliteCommit, WaitsForAWriterOnlySoLong) {
    run(keeper_, "BEGIN IMMEDIATE");
    const auto answer = find_sqlite_commit(path_, "second");
    EXPECT_EQ(answer.status().code(), Code::unavailable);
    EXPECT_TRUE(answer.status().retryable());
    run(keeper_, "COMMIT");
    EXPECT_EQ(found("second"), std::nullopt);
}

}  // namespace
}  // namespace roost
