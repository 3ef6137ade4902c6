#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "meta/sqlite_db.h"
#include "meta/sqlite_store.h"

namespace roost::meta {
namespace {

class AuditStore : public ::testing::Test {
protected:
    void SetUp() override {
        dir_ = std::filesystem::temp_directory_path() / ("audit" + std::to_string(::getpid()));
        std::filesystem::create_directories(dir_);
        path_ = dir_ / "meta.sqlite";
        auto store = SqliteStore::open(path_);
        ASSERT_TRUE(store.ok()) << store.status().to_string();
        store_ = std::move(*store);
    }
    void TearDown() override {
        store_.reset();
        std::filesystem::remove_all(dir_);
    }
    static AuditRecord record(int64_t at_us, const std::string &rule, const std::string &user = "ann") {
        AuditRecord record;
        record.at_us = at_us;
        record.event = "statement_refused";
        record.front = "pg";
        record.peer = "192.0.2.7:4711";
        record.user = Uuid::make();
        record.user_name = user;
        record.workspace = "main";
        record.session = Uuid::make();
        record.shape = 0xFEDCBA9876543210ULL;
        record.rule = rule;
        record.sqlstate = "42501";
        record.position = 8;
        record.message = "no";
        record.sql = "SELECT getenv('x')";
        return record;
    }
    size_t found(const AuditFilter &filter) {
        const auto page = store_->list_audit(filter);
        EXPECT_TRUE(page.ok()) << page.status().to_string();
        return page.ok() ? page->items.size() : 0;
    }

    std::filesystem::path dir_;
    std::string path_;
    std::unique_ptr<SqliteStore> store_;
};

TEST_F(AuditStore, records_come_back_whole_newest_first_page_by_page) {
    std::vector<AuditRecord> records;
    for (int i = 1; i <= 5; i++) records.push_back(record(i * 100, "function:f" + std::to_string(i)));
    ASSERT_TRUE(store_->append_audit(records).ok());
    auto page = store_->list_audit({.limit = 3});
    ASSERT_TRUE(page.ok());
    ASSERT_EQ(page->items.size(), 3u);
    EXPECT_TRUE(page->has_more);
    const AuditRecord &first = page->items[0], &sent = records[4];
    EXPECT_EQ(first.rule, "function:f5");
    EXPECT_EQ(first.at_us, 500);
    EXPECT_EQ(first.user, sent.user);
    EXPECT_EQ(first.session, sent.session);
    EXPECT_TRUE(first.statement.is_nil());
    EXPECT_EQ(first.shape, sent.shape);
    EXPECT_EQ(first.peer, sent.peer);
    EXPECT_EQ(first.position, 8u);
    EXPECT_EQ(first.sql, sent.sql);
    page = store_->list_audit({.before = page->items.back().sequence, .limit = 3});
    ASSERT_TRUE(page.ok());
    ASSERT_EQ(page->items.size(), 2u);
    EXPECT_FALSE(page->has_more);
    EXPECT_EQ(page->items[1].rule, "function:f1");
}

TEST_F(AuditStore, filters) {
    ASSERT_TRUE(
        store_->append_audit({record(1, "function:a"), record(2, "function:b", "bob"), record(3, "path")}).ok());
    EXPECT_EQ(found({}), 3u);
    EXPECT_EQ(found({.rule = "function"}), 2u);
    EXPECT_EQ(found({.rule = "function:b"}), 1u);
    EXPECT_EQ(found({.rule = "path"}), 1u);
    EXPECT_EQ(found({.user_name = "bob"}), 1u);
    EXPECT_EQ(found({.event = "login_failed"}), 0u);
    EXPECT_EQ(found({.since_us = 2, .until_us = 3}), 1u);
}

TEST_F(AuditStore, it_is_append_only_and_loses_what_is_old) {
    std::vector<AuditRecord> records;
    for (int i = 1; i <= 2'500; i++) records.push_back(record(i, "path"));
    ASSERT_TRUE(store_->append_audit(records).ok());
    {
        auto db = Db::open(path_, Db::Mode::write, 5'000);
        ASSERT_TRUE(db.ok());
        const Status changed = (*db)->execute("UPDATE audit SET rule = 'nothing' WHERE seq = 1");
        EXPECT_FALSE(changed.ok());
        EXPECT_NE(changed.message().find("append-only"), std::string::npos) << changed.message();
    }
    ASSERT_TRUE(store_->prune_audit(2'000, 1'000'000).ok());
    EXPECT_EQ(found({.limit = 1'000}), 501u);
    ASSERT_TRUE(store_->prune_audit(0, 100).ok());
    const auto left = store_->list_audit({.limit = 1'000});
    ASSERT_TRUE(left.ok());
    ASSERT_EQ(left->items.size(), 100u);
    EXPECT_EQ(left->items[0].at_us, 2'500);
    // What is gone gives its number to nobody.
    ASSERT_TRUE(store_->prune_audit(9'999, 0).ok());
    ASSERT_TRUE(store_->append_audit({record(1, "path")}).ok());
    EXPECT_EQ(store_->list_audit({})->items[0].sequence, 2'501u);
}

}  // namespace
}  // namespace roost::meta
