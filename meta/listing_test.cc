// The history's filters, orders and cursors, against a plain model of what each should give.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

#include "meta/sqlite_store.h"

namespace roost::meta {
namespace {

const std::vector<std::string> kKinds = {"select", "insert", "create_table"};
const std::vector<std::string> kOrigins = {"interactive", "session"};
const std::vector<std::string> kTexts = {"SELECT a_b FROM t", "select 100% sure", "INSERT INTO aXb",
                                         "SELECT 'back\\slash'", "select _"};

class ListingTest : public testing::Test {
protected:
    ListingTest() {
        std::string pattern = testing::TempDir() + "roost_listing_XXXXXX";
        dir_ = mkdtemp(pattern.data());
        auto opened = SqliteStore::open(dir_ + "/meta.sqlite");
        EXPECT_TRUE(opened.ok()) << opened.status().to_string();
        store_ = std::move(opened).value();
    }
    ~ListingTest() override {
        store_.reset();
        std::filesystem::remove_all(dir_);
    }

    StatementRecord &add(StatementRecord record) {
        if (record.id.is_nil()) record.id = Uuid::make();
        store_->record_statement(record, {});
        records_.push_back(std::move(record));
        return records_.back();
    }

    // `count` records of few start times, durations and texts, so that ties and matches are common.
    void add_random(std::mt19937_64 &random, int count) {
        for (int i = 0; i < count; ++i) {
            StatementRecord record;
            record.workspace = Uuid::from_name("w" + std::to_string(random() % 2));
            if (random() % 2 == 0) record.session = Uuid::from_name("s" + std::to_string(random() % 3));
            record.user = Uuid::from_name("u" + std::to_string(random() % 2));
            if (random() % 4 != 0) record.node = Uuid::from_name("n");
            record.kind = kKinds[random() % kKinds.size()];
            record.origin = kOrigins[random() % kOrigins.size()];
            record.sql = kTexts[random() % kTexts.size()];
            record.status = static_cast<StatementStatus>(random() % 5);
            record.started_us = static_cast<int64_t>(1 + random() % 40) * 1'000'000;
            if (record.status >= StatementStatus::done) {
                record.finished_us = record.started_us + static_cast<int64_t>(random() % 8) * 500'000;
            }
            add(std::move(record));
        }
        ASSERT_TRUE(store_->flush().ok());
    }

    std::vector<Uuid> pages(StatementFilter filter, const std::function<void()> &between = {}) {
        std::vector<Uuid> ids;
        for (int i = 0; i < 10'000; ++i) {
            const auto page = store_->list_statements(filter);
            EXPECT_TRUE(page.ok()) << page.status().to_string();
            if (!page.ok()) return ids;
            EXPECT_LE(page->items.size(), filter.limit);
            EXPECT_TRUE(page->has_more ? !page->items.empty() && !page->cursor.empty() : page->cursor.empty());
            for (const auto &item : page->items) ids.push_back(item.id);
            if (!page->has_more) return ids;
            filter.cursor = page->cursor;
            if (between) between();
        }
        ADD_FAILURE() << "a listing without an end";
        return ids;
    }

    std::string dir_;
    std::unique_ptr<SqliteStore> store_;
    std::deque<StatementRecord> records_;
};

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
}

bool one_of(const auto &wanted, const auto &value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool matches(const StatementFilter &filter, const StatementRecord &record) {
    const auto same = [](const std::optional<Uuid> &wanted, const Uuid &id) { return !wanted || *wanted == id; };
    // What still runs began long ago: it is slower than any of the limits here.
    const bool slow = record.finished_us == 0 || record.finished_us - record.started_us > filter.slower_than_ms * 1000;
    return same(filter.workspace, record.workspace) && same(filter.session, record.session) &&
           same(filter.user, record.user) && same(filter.node, record.node) && one_of(filter.statuses, record.status) &&
           one_of(filter.kinds, record.kind) && (filter.origin.empty() || filter.origin == record.origin) &&
           lower(record.sql).find(lower(filter.text)) != std::string::npos &&
           (filter.since_us == 0 || record.started_us >= filter.since_us) &&
           (filter.until_us == 0 || record.started_us < filter.until_us) && (filter.slower_than_ms == 0 || slow);
}

std::vector<Uuid> expected(const std::deque<StatementRecord> &records, const StatementFilter &filter) {
    std::vector<std::pair<int64_t, Uuid>> keys;
    for (const auto &record : records) {
        if (!matches(filter, record)) continue;
        const int64_t duration_us = record.finished_us == 0 ? -1 : record.finished_us - record.started_us;
        keys.emplace_back(filter.by_duration ? duration_us : record.started_us, record.id);
    }
    std::sort(keys.begin(), keys.end());
    if (!filter.ascending) std::reverse(keys.begin(), keys.end());
    std::vector<Uuid> ids;
    for (const auto &[key, id] : keys) ids.push_back(id);
    return ids;
}

TEST_F(ListingTest, random_filters_orders_and_page_sizes_give_what_the_model_gives) {
    const uint64_t seed = std::random_device()();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    add_random(random, 400);
    size_t found = 0;
    for (int round = 0; round < 400; ++round) {
        const auto chance = [&random](uint64_t one_in) { return random() % one_in == 0; };
        StatementFilter filter;
        if (chance(3)) filter.workspace = Uuid::from_name("w" + std::to_string(random() % 3));
        if (chance(4)) filter.session = chance(3) ? Uuid() : Uuid::from_name("s" + std::to_string(random() % 3));
        if (chance(4)) filter.user = Uuid::from_name("u0");
        if (chance(6)) filter.node = chance(2) ? Uuid() : Uuid::from_name("n");
        for (uint64_t i = random() % 3; chance(2) && i > 0; --i)
            filter.statuses.push_back(static_cast<StatementStatus>(random() % 5));
        for (uint64_t i = random() % 3; chance(3) && i > 0; --i)
            filter.kinds.push_back(kKinds[random() % kKinds.size()]);
        if (chance(4)) filter.origin = kOrigins[random() % kOrigins.size()];
        if (chance(3))
            filter.text = std::vector<std::string>{"a_b", "%", "SELECT", "\\", "_", "x", "' OR 1"}[random() % 7];
        if (chance(4)) filter.since_us = static_cast<int64_t>(random() % 40) * 1'000'000;
        if (chance(4)) filter.until_us = static_cast<int64_t>(random() % 40) * 1'000'000;
        if (chance(4)) filter.slower_than_ms = static_cast<int64_t>(random() % 8) * 500;
        filter.by_duration = chance(2);
        filter.ascending = chance(2);
        filter.limit = static_cast<uint32_t>(1 + random() % 120);
        const auto wanted = expected(records_, filter);
        ASSERT_EQ(pages(filter), wanted) << "round " << round;
        found += wanted.size();
    }
    EXPECT_GT(found, 1'000U);
}

TEST_F(ListingTest, pages_stay_put_while_newer_statements_come_in) {
    const uint64_t seed = std::random_device()();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    add_random(random, 100);
    StatementFilter filter;
    filter.limit = 7;
    const auto before = expected(records_, filter);
    const auto listed = pages(filter, [this] {
        StatementRecord newer;
        newer.started_us = 1'000'000'000;
        add(newer);
        ASSERT_TRUE(store_->flush().ok());
    });
    EXPECT_EQ(listed, before);
}

TEST_F(ListingTest, text_is_a_substring_in_either_case_with_wildcards_literal) {
    for (const auto &text : kTexts) {
        StatementRecord record;
        record.started_us = 1;
        record.sql = text;
        add(record);
    }
    ASSERT_TRUE(store_->flush().ok());
    const auto count = [this](const std::string &text) {
        StatementFilter filter;
        filter.text = text;
        return pages(filter).size();
    };
    EXPECT_EQ(count("a_b"), 1U);
    EXPECT_EQ(count("%"), 1U);
    EXPECT_EQ(count("_"), 2U);
    EXPECT_EQ(count("\\"), 1U);
    EXPECT_EQ(count("back\\SLASH"), 1U);
    EXPECT_EQ(count("select"), 4U);
    EXPECT_EQ(count("nothing"), 0U);
}

TEST_F(ListingTest, bad_cursors_and_filters_are_refused) {
    for (int i = 0; i < 5; ++i) {
        StatementRecord record;
        record.started_us = i + 1;
        add(record);
    }
    ASSERT_TRUE(store_->flush().ok());
    StatementFilter filter;
    filter.limit = 2;
    const std::string cursor = store_->list_statements(filter)->cursor;
    for (const std::string &bad : {std::string("x"), cursor + "00", cursor.substr(2), "zz" + cursor.substr(2),
                                   std::string(cursor.size(), '0'), std::string(100'000, 'a')}) {
        filter.cursor = bad;
        const auto page = store_->list_statements(filter);
        EXPECT_EQ(page.status().code(), Code::invalid_argument) << bad.substr(0, 60);
        EXPECT_EQ(page.status().name(), "invalid_cursor");
    }
    filter.cursor = cursor;
    EXPECT_TRUE(store_->list_statements(filter).ok());
    filter.ascending = true;
    EXPECT_EQ(store_->list_statements(filter).status().name(), "invalid_cursor") << "of a listing in the other order";
    StatementFilter long_text;
    long_text.text = std::string(20'000, 'x');
    EXPECT_EQ(store_->list_statements(long_text).status().code(), Code::invalid_argument);
    StatementFilter many;
    many.kinds.assign(1'000, "select");
    EXPECT_EQ(store_->list_statements(many).status().code(), Code::invalid_argument);
}

TEST_F(ListingTest, limits_are_kept_within_one_and_a_thousand) {
    for (int i = 0; i < 1'200; ++i) {
        StatementRecord record;
        record.started_us = i + 1;
        add(record);
    }
    ASSERT_TRUE(store_->flush().ok());
    StatementFilter filter;
    EXPECT_EQ(store_->list_statements(filter)->items.size(), 100U);
    filter.limit = 0;
    EXPECT_EQ(store_->list_statements(filter)->items.size(), 1U);
    filter.limit = UINT32_MAX;
    const auto page = store_->list_statements(filter);
    EXPECT_EQ(page->items.size(), 1'000U);
    EXPECT_TRUE(page->has_more);
    filter.cursor = page->cursor;
    EXPECT_EQ(store_->list_statements(filter)->items.size(), 200U);
}

TEST_F(ListingTest, a_page_of_long_texts_is_cut_by_bytes_and_the_next_goes_on) {
    store_.reset();
    SqliteStoreOptions options;
    options.page_max_bytes = 1 << 20;
    store_ = std::move(SqliteStore::open(dir_ + "/long.sqlite", options)).value();
    for (int i = 0; i < 20; ++i) {
        StatementRecord record;
        record.started_us = i + 1;
        record.sql = std::string(300'000, 'x');
        add(record);
    }
    ASSERT_TRUE(store_->flush().ok());
    const auto page = store_->list_statements({});
    EXPECT_EQ(page->items.size(), 4U);
    EXPECT_TRUE(page->has_more);
    EXPECT_EQ(pages({}), expected(records_, {}));
}

TEST_F(ListingTest, a_search_that_takes_too_long_ends_with_what_to_do) {
    store_.reset();
    SqliteStoreOptions options;
    options.list_timeout_ms = -1;
    store_ = std::move(SqliteStore::open(dir_ + "/slow.sqlite", options)).value();
    for (int i = 0; i < 3'000; ++i) {
        StatementRecord record;
        record.started_us = i + 1;
        record.sql = std::string(50, 'x');
        add(record);
    }
    ASSERT_TRUE(store_->flush().ok());
    StatementFilter filter;
    filter.text = "not there";
    const auto page = store_->list_statements(filter);
    ASSERT_EQ(page.status().code(), Code::timeout);
    EXPECT_NE(page.status().error().hint.find("since"), std::string::npos);
}

}  // namespace
}  // namespace roost::meta
