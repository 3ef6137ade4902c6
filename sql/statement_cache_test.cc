#include "sql/statement_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace roost::sql {
namespace {

TEST(StatementCache, the_same_text_is_parsed_once) {
    StatementCache cache;
    const auto first = cache.parse("SELECT 1; SELECT 2");
    const auto second = cache.parse("SELECT 1; SELECT 2");
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->get(), second->get());
    EXPECT_EQ((*first)->statements.size(), 2u);
    EXPECT_EQ((*first)->fingerprints[0], fingerprint("SELECT 3"));
    EXPECT_EQ(cache.counts().hits, 1u);
    EXPECT_EQ(cache.counts().misses, 1u);
}

TEST(StatementCache, errors_and_long_texts_are_not_kept) {
    StatementCache cache(StatementCacheLimits{1 << 20, 20}, {});
    EXPECT_FALSE(cache.parse("SELEC 1").ok());
    EXPECT_TRUE(cache.parse("SELECT 1234567890123456789").ok());
    EXPECT_EQ(cache.counts().entries, 0u);
}

TEST(StatementCache, the_least_recently_used_goes_first) {
    StatementCache cache(StatementCacheLimits{3 * 2400, 100}, {});
    ASSERT_TRUE(cache.parse("SELECT 1").ok());
    ASSERT_TRUE(cache.parse("SELECT 2").ok());
    ASSERT_TRUE(cache.parse("SELECT 3").ok());
    ASSERT_TRUE(cache.parse("SELECT 1").ok());
    ASSERT_TRUE(cache.parse("SELECT 4").ok());
    EXPECT_EQ(cache.counts().entries, 3u);
    const uint64_t hits = cache.counts().hits;
    ASSERT_TRUE(cache.parse("SELECT 1").ok());
    EXPECT_EQ(cache.counts().hits, hits + 1);
    ASSERT_TRUE(cache.parse("SELECT 2").ok());
    EXPECT_EQ(cache.counts().hits, hits + 1);
    EXPECT_LE(cache.counts().bytes, 3u * 2400u);
}

TEST(StatementCache, an_entry_outlives_its_eviction) {
    StatementCache cache(StatementCacheLimits{2400, 100}, {});
    const auto kept = cache.parse("SELECT a FROM t");
    ASSERT_TRUE(cache.parse("SELECT b FROM t").ok());
    GuardPolicy policy;
    EXPECT_TRUE(check((*kept)->statements[0], Context::oneshot, policy).ok());
}

TEST(StatementCache, threads_share_it) {
    StatementCache cache(StatementCacheLimits{20'000, 100}, {});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&cache, t] {
            GuardPolicy policy;
            for (int i = 0; i < 500; ++i) {
                const auto parsed = cache.parse("SELECT a FROM t WHERE b = " + std::to_string((i * (t + 1)) % 20));
                ASSERT_TRUE(parsed.ok());
                EXPECT_TRUE(check((*parsed)->statements[0], Context::session, policy).ok());
            }
        });
    }
    for (auto &thread : threads) thread.join();
    EXPECT_LE(cache.counts().bytes, 20'000u);
}

}  // namespace
}  // namespace roost::sql
