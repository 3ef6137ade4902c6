// What statements read, by file: against a cache over a made-up store.
#include "engine/statement_reads.h"

#include <gtest/gtest.h>

#include "cache/test_store.h"
#include "engine/object_cache.h"

namespace roost {
namespace {

constexpr uint64_t kBlock = 4096;

class StatementReadsTest : public ::testing::Test {
protected:
    void SetUp() override {
        cache::SegmentCacheOptions options;
        options.blocks.block_bytes = kBlock;
        options.blocks.max_bytes = 256 * kBlock;
        options.blocks.free_floor_bytes = 0;
        options.fetch_threads = 0;
        auto opened =
            cache::SegmentCache::open(std::make_unique<cache::testing::SimulatedDisk>(platter), options, clock, *log);
        ASSERT_TRUE(opened.ok());
        segments = std::move(*opened);
    }
    void read(StatementReads &reads, const std::string &path, uint64_t bytes) {
        const std::string folder = ObjectCache::folder_of(path);
        const auto reader = segments->reader({path, std::string(cache::kImmutable), 10 * kBlock}, folder, store,
                                             reads.stats_of(path, folder));
        std::string buffer(bytes, '?');
        ASSERT_TRUE(reader->read(0, bytes, buffer.data(), {}).ok());
    }

    cache::testing::Platter platter;
    ManualClock clock;
    std::unique_ptr<obs::Log> log = obs::make_null_log();
    std::shared_ptr<cache::testing::FakeStore> store = std::make_shared<cache::testing::FakeStore>();
    std::unique_ptr<cache::SegmentCache> segments;
};

TEST(FolderOf, PartitionsBelongToTheirTable) {
    EXPECT_EQ(ObjectCache::folder_of("s3://b/lake/main/t/f.parquet"), "s3://b/lake/main/t/");
    EXPECT_EQ(ObjectCache::folder_of("s3://b/lake/main/t/a=1/b=x%2Fy/f.parquet"), "s3://b/lake/main/t/");
    EXPECT_EQ(ObjectCache::folder_of("f.parquet"), "");
    EXPECT_EQ(ObjectCache::folder_of("a=1/f.parquet"), "a=1/");
}

TEST_F(StatementReadsTest, BytesAreCountedBySourceTableAndFile) {
    StatementReads first(*segments);
    read(first, "s3://b/t/p=1/a", 2 * kBlock);
    read(first, "s3://b/t/p=2/b", kBlock);
    read(first, "s3://b/u/c", kBlock);
    first.wrote("s3://b/v/");
    const auto units = first.report();
    ASSERT_EQ(units.size(), 3U);
    EXPECT_EQ(units[0].folder, "s3://b/t/");
    EXPECT_EQ(units[0].bytes, (ReadBytes{3 * kBlock, 0, 0, 2}));
    EXPECT_EQ(units[0].files, 2U);
    EXPECT_EQ(units[0].warm_bytes, 3 * kBlock);
    ASSERT_EQ(units[0].segments.size(), 2U);
    EXPECT_EQ(units[0].segments[0], (SegmentRead{"p=1/a", {2 * kBlock, 0, 0, 1}}));
    EXPECT_TRUE(units[2].written);
    EXPECT_FALSE(units[1].written);

    StatementReads second(*segments);
    read(second, "s3://b/t/p=1/a", 2 * kBlock);
    EXPECT_EQ(second.report()[0].bytes, (ReadBytes{0, 0, 2 * kBlock, 0}));
}

TEST_F(StatementReadsTest, WhatIsToldIsBoundedAndTheSumsAreWhole) {
    StatementReads reads(*segments);
    for (int i = 0; i < 5'000; ++i) {
        const std::string folder = "s3://b/t" + std::to_string(i % 100) + "/";
        reads.stats_of(folder + std::to_string(i), folder)->store_bytes = 10;
    }
    reads.wrote("s3://b/t99/");
    const auto units = reads.report();
    ASSERT_EQ(units.size(), kUnitReadsMax);
    EXPECT_TRUE(units[0].written) << "what was written is never left out";
    size_t segments_told = 0;
    for (const UnitRead &unit : units) {
        EXPECT_EQ(unit.files, 50U);
        segments_told += unit.segments.size();
    }
    EXPECT_LE(segments_told, kSegmentReadsMax);
}

}  // namespace
}  // namespace roost
