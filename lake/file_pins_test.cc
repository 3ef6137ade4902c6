#include "lake/file_pins.h"

#include <gtest/gtest.h>

#include <chrono>

#include "lake/named_files.h"
#include "lake/test_lake.h"

namespace roost {
namespace {

using testing::LakeClient;
using testing::TestLake;
using testing::TestPostgres;

CallLimits soon() { return CallLimits::in(std::chrono::seconds(30)); }

// By name: sqlite, postgres.
class FilePinsTest : public ::testing::TestWithParam<const char *> {
protected:
    void SetUp() override {
        if (std::string(GetParam()) == "postgres") {
            server_ = TestPostgres::start();
            if (!server_) GTEST_SKIP() << "no Postgres here";
        }
        lake_ = std::make_unique<TestLake>(server_.get());
        where_.catalog = "lake";
        where_.metadata_path = lake_->address().where;
        where_.data_path = lake_->data_path();
        where_.on_postgres = server_ != nullptr;
        client_ = lake_->client();
        client_->must("CREATE TABLE t (i INTEGER)");
        file_ = lake_->dir() + "/theirs.parquet";
        write(1);
    }
    void write(int value) {
        client_->must("COPY (SELECT " + std::to_string(value) + " AS i) TO '" + file_ + "' (FORMAT parquet)");
    }
    // As roost registers: the pin, then the commit with its mark.
    Uuid add(const FileVersion &version, bool commit = true) {
        const Uuid id = Uuid::make();
        const Status written = write_pins(where_, id, {{file_, version}, {file_ + ".other", {}}}, soon());
        EXPECT_TRUE(written.ok()) << written.to_string();
        client_->must("BEGIN");
        client_->must("CALL ducklake_add_data_files('lake', 't', '" + file_ + "')");
        client_->must(commit_message_sql(where_.catalog, id));
        client_->must(commit ? "COMMIT" : "ROLLBACK");
        return id;
    }
    std::vector<DataFileKey> keys() {
        std::vector<DataFileKey> keys;
        const auto reader = make_metadata_reader(lake_->address());
        const Status read = reader->select(
            "SELECT path, mapping_id, row_id_start FROM ducklake_data_file ORDER BY data_file_id",
            [&](const MetadataRow &row) {
                keys.push_back({row.string(0), row.id(1), row.id(2)});
                return true;
            },
            soon());
        EXPECT_TRUE(read.ok()) << read.to_string();
        return keys;
    }
    std::optional<FileVersion> found(const DataFileKey &key) {
        FilePins pins(where_);
        const auto version = pins.find(key, soon());
        EXPECT_TRUE(version.ok()) << version.status().to_string();
        return version.ok() ? *version : std::nullopt;
    }
    uint64_t settle(int64_t keep_us) {
        const int64_t later_us = 4'000'000'000'000'000;
        const auto dropped = settle_pins(where_, later_us, keep_us, soon());
        EXPECT_TRUE(dropped.ok()) << dropped.status().to_string();
        return dropped.ok() ? *dropped : 0;
    }

    std::unique_ptr<TestPostgres> server_;
    std::unique_ptr<TestLake> lake_;
    LakeLocation where_;
    std::unique_ptr<LakeClient> client_;
    std::string file_;
};

const FileVersion kFirst{100, 17, "it's \"one\""};
const FileVersion kSecond{100, 18, "two"};

TEST_P(FilePinsTest, ALakeWithoutPinsHasNone) {
    client_->must("CALL ducklake_add_data_files('lake', 't', '" + file_ + "')");
    EXPECT_EQ(found(keys().at(0)), std::nullopt);
    EXPECT_EQ(settle(0), 0);
}

TEST_P(FilePinsTest, APinCountsForTheFilesOfItsCommit) {
    add(kFirst);
    add(kSecond, false);
    const auto first = keys();
    ASSERT_EQ(first.size(), 1);
    EXPECT_EQ(first[0].path, file_);
    EXPECT_EQ(found(first[0]), kFirst);
    // The same file once more, changed: each data file has its own version.
    add(kSecond);
    const auto both = keys();
    ASSERT_EQ(both.size(), 2);
    EXPECT_EQ(found(both[0]), kFirst);
    EXPECT_EQ(found(both[1]), kSecond);
    DataFileKey other = both[1];
    other.row_id_start += 7;
    EXPECT_EQ(found(other), std::nullopt);
    other = both[1];
    other.path += "x";
    EXPECT_EQ(found(other), std::nullopt);
    EXPECT_EQ(client_->value("SELECT count(*) FROM t"), "2");
}

TEST_P(FilePinsTest, PinsOutliveTheRecordOfTheirCommitAndGoWithTheirFile) {
    add(kFirst);
    add(kSecond, false);
    EXPECT_EQ(settle(INT64_MAX / 4), 0);
    client_->must("INSERT INTO t VALUES (2)");
    client_->must("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)");
    ASSERT_EQ(keys().size(), 1);
    EXPECT_EQ(found(keys()[0]), kFirst);
    // Of the commit that was not made, and of the file that never was.
    EXPECT_EQ(settle(0), 3);
    EXPECT_EQ(found(keys()[0]), kFirst);
    EXPECT_EQ(settle(0), 0);
}

TEST_P(FilePinsTest, ManyAreLoadedAtOnce) {
    std::vector<FilePin> pins;
    for (int i = 0; i < 1'500; i++) pins.push_back({file_ + std::to_string(i), {static_cast<uint64_t>(i), i, ""}});
    const Uuid id = Uuid::make();
    ASSERT_TRUE(write_pins(where_, id, pins, soon()).ok());
    EXPECT_TRUE(write_pins(where_, id, {}, soon()).ok());
    EXPECT_EQ(found({file_ + "7", 1, 0}), std::nullopt);  // not committed
}

TEST_P(FilePinsTest, TheFrozenAndTheOutsideSeeALakeAsBefore) {
    add(kFirst);
    const auto again = lake_->client();
    EXPECT_EQ(again->value("SELECT count(*) FROM t"), "1");
    again->must("INSERT INTO t VALUES (5)");
    EXPECT_EQ(again->value("SELECT count(*) FROM ducklake_snapshots('lake')"), "4");
}

TEST_P(FilePinsTest, NamedFilesAreThoseOfAnySnapshot) {
    client_->must("CREATE TABLE big AS SELECT range AS i FROM range(5000)");
    client_->must("DELETE FROM big WHERE i % 2 = 0");
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(lake_->data_path())) {
        if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
    }
    ASSERT_GE(names.size(), 2);
    client_->must("DROP TABLE big");
    client_->must("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)");
    const auto named = NamedFiles::load(where_, soon());
    ASSERT_TRUE(named.ok()) << named.status().to_string();
    for (const std::string &name : names) {
        EXPECT_TRUE(is_ducklake_name(name)) << name;
        EXPECT_TRUE(named->has(name)) << name;  // to be removed by DuckLake
    }
    EXPECT_FALSE(named->has("ducklake-019c0000-0000-7000-8000-000000000000.parquet"));
}

INSTANTIATE_TEST_SUITE_P(Catalogs, FilePinsTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto &info) { return std::string(info.param); });

TEST(NamedFiles, OnlyDuckLakesOwnNames) {
    EXPECT_TRUE(is_ducklake_name("ducklake-019c0000-0000-7000-8000-000000000000.parquet"));
    EXPECT_TRUE(is_ducklake_name("ducklake-019c0000-0000-7000-8000-000000000000-delete.parquet"));
    for (const char *name : {"part-0.parquet", "ducklake-.parquet", "ducklake-019c0000-0000-7000-8000-000000000000",
                             "ducklake-019c0000-0000-7000-8000-000000000000.csv", "",
                             "xducklake-019c0000-0000-7000-8000-000000000000.parquet"}) {
        EXPECT_FALSE(is_ducklake_name(name)) << name;
    }
    EXPECT_EQ(file_name_of("s3://b/p/x"), "x");
    EXPECT_EQ(file_name_of("x"), "x");
}

}  // namespace
}  // namespace roost
