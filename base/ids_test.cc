#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <unordered_set>
#include <vector>

namespace roost {
namespace {

TEST(Uuid, made_ids_are_version_7_and_round_trip_through_text) {
    for (int i = 0; i < 1000; ++i) {
        const Uuid id = Uuid::make();
        EXPECT_EQ(id.bytes[6] >> 4, 7);
        EXPECT_EQ(id.bytes[8] >> 6, 2);
        const std::string text = id.to_string();
        ASSERT_EQ(text.size(), 36U);
        const auto parsed = Uuid::parse(text);
        ASSERT_TRUE(parsed.has_value());
        EXPECT_EQ(*parsed, id);
    }
}

TEST(Uuid, made_ids_are_distinct_across_threads) {
    std::vector<std::vector<Uuid>> made(4);
    std::vector<std::thread> threads;
    for (auto &ids : made) {
        threads.emplace_back([&ids] {
            for (int i = 0; i < 5000; ++i) ids.push_back(Uuid::make());
        });
    }
    for (auto &thread : threads) thread.join();
    std::unordered_set<Uuid> all;
    for (const auto &ids : made) all.insert(ids.begin(), ids.end());
    EXPECT_EQ(all.size(), 20000U);
}

TEST(Uuid, ids_sort_by_the_millisecond_they_were_made_in) {
    const Uuid first = Uuid::make();
    Uuid later = Uuid::make();
    // The clock may not have moved; give the id the next millisecond by hand.
    for (int i = 5; i >= 0 && ++later.bytes[static_cast<size_t>(i)] == 0; --i) {
    }
    EXPECT_LT(first, later);
}

TEST(Uuid, parse_takes_either_case_and_nothing_else) {
    const std::string text = "0190a5c7-8ABC-7def-8123-456789abcDEF";
    const auto id = Uuid::parse(text);
    ASSERT_TRUE(id.has_value());
    EXPECT_EQ(id->to_string(), "0190a5c7-8abc-7def-8123-456789abcdef");
    for (const std::string bad : {"", "0190a5c7-8abc-7def-8123-456789abcde", "0190a5c7-8abc-7def-8123-456789abcdeff",
                                  "0190a5c7x8abc-7def-8123-456789abcdef", "0190a5c7-8abc-7def-8123-456789abcdeg",
                                  "{190a5c7-8abc-7def-8123-456789abcdef", "0190a5c78abc7def8123456789abcdef",
                                  "0190a5c7-8abc-7def-81234-56789abcdef", "------------------------------------",
                                  "0190a5c7-8abc-7def-8123-4567 9abcdef"}) {
        EXPECT_FALSE(Uuid::parse(bad).has_value()) << bad;
    }
    EXPECT_FALSE(Uuid::parse(std::string(36, '\0')).has_value());
}

TEST(Uuid, parse_refuses_each_single_byte_change_that_is_not_hex) {
    const std::string good = Uuid::make().to_string();
    for (size_t i = 0; i < good.size(); ++i) {
        for (const char c : {'g', '-', ' ', '\xff', '\0', '/', ':', '@', '`'}) {
            std::string text = good;
            if (text[i] == c) continue;
            text[i] = c;
            EXPECT_FALSE(Uuid::parse(text).has_value()) << i << " " << static_cast<int>(c);
        }
    }
}

TEST(Uuid, from_name_is_stable_and_differs_by_name) {
    EXPECT_EQ(Uuid::from_name("main"), Uuid::from_name("main"));
    EXPECT_NE(Uuid::from_name("main"), Uuid::from_name("Main"));
    // Written down in catalogs and histories: it may never change.
    EXPECT_EQ(Uuid::from_name("main").to_string(), "0d6e4079-e367-83eb-937c-00722f5891d2");
}

TEST(Uuid, nil_is_the_default) {
    EXPECT_TRUE(Uuid().is_nil());
    EXPECT_FALSE(Uuid::make().is_nil());
    EXPECT_EQ(Uuid().to_string(), "00000000-0000-0000-0000-000000000000");
}

TEST(Uuid, hash_spreads_ids_made_together) {
    std::set<size_t> buckets;
    for (int i = 0; i < 10'000; ++i) buckets.insert(std::hash<Uuid>()(Uuid::make()) % 16'384);
    // Of 10,000 in 16,384 buckets, chance alone fills 7,484.
    EXPECT_GT(buckets.size(), 7'000U);
}

TEST(Random, bytes_and_hex_have_the_size_asked_for) {
    EXPECT_EQ(random_bytes(0).size(), 0U);
    EXPECT_EQ(random_bytes(33).size(), 33U);
    EXPECT_EQ(random_hex(16).size(), 32U);
    EXPECT_NE(random_bytes(16), random_bytes(16));
    EXPECT_EQ(to_hex(std::string_view("\x00\x7f\x80\xff", 4)), "007f80ff");
}

}  // namespace
}  // namespace roost
