// What is said of caches: whole when it comes out again, and refused past its limits. (messages_fuzz.cc takes the
// rest.)
#include "cluster/messages.h"

#include <gtest/gtest.h>

namespace roost::cluster {
namespace {

Completion with_reads() {
    Completion completion;
    completion.reads = {{"s3://b/lake/main/t/", {1, 2, 3, 4}, 2, 77, true, {{"a.parquet", {5, 6, 7, 8}}}},
                        {"s3://b/u/", {}, 0, 0, false, {}}};
    completion.committed_snapshot = 42;
    completion.memory = {1, 2, "auto", "s", "plan", true, 3, {{4, 5}, {6, 0}}};
    completion.first_page = "[]";
    return completion;
}

TEST(Messages, CompletionsCarryWhatWasRead) {
    const auto decoded = decode_completion(encode(with_reads()));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(decoded->reads, with_reads().reads);
    EXPECT_EQ(decoded->memory, with_reads().memory);
    EXPECT_EQ(decoded->committed_snapshot, 42);
    EXPECT_EQ(decoded->first_page, "[]");
    EXPECT_EQ(decoded->read_bytes(), (ReadBytes{1, 2, 3, 4}));
}

TEST(Messages, HeartbeatsCarryWhatIsWarm) {
    Heartbeat beat;
    beat.memory = {"auto", 1, 2, 3, 1, 4, 5, 6, 7, {{"etl", 1, 2, 3}, {"", 0, 0, 0}}};
    beat.cache.on = true;
    beat.cache.all = true;
    beat.cache.folders = {{"s3://b/lake/main/t/", 5, 1}, {"s3://b/lake/main/u/", 0, 0}};
    beat.cache.gauges.store_bytes = 9;
    beat.cache.gauges.disk_mode = 2;
    const auto decoded = decode_heartbeat(encode(beat));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(decoded->memory, beat.memory);
    EXPECT_TRUE(decoded->cache.on && decoded->cache.all);
    EXPECT_EQ(decoded->cache.folders, beat.cache.folders);
    EXPECT_EQ(decoded->cache.gauges.store_bytes, 9);
    EXPECT_EQ(decoded->cache.gauges.disk_mode, 2);
    EXPECT_TRUE(decode_heartbeat(encode(Heartbeat())).ok());
}

TEST(Messages, CacheWorkComesOutWhole) {
    const CacheWork work{CacheWork::Action::pin, "lake", "s3://b/t/", {{"s3://b/t/a.parquet", 10}}};
    const auto decoded = decode_cache_work(encode(work));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->action, CacheWork::Action::pin);
    EXPECT_EQ(decoded->folder, work.folder);
    ASSERT_EQ(decoded->files.size(), 1);
    EXPECT_EQ(decoded->files[0].path, work.files[0].path);
    EXPECT_EQ(decoded->files[0].size_bytes, 10);
}

TEST(Messages, MoreThanTheLimitsIsRefused) {
    Completion completion = with_reads();
    completion.reads.resize(kUnitReadsMax + 1);
    EXPECT_FALSE(decode_completion(encode(completion)).ok());
    completion = with_reads();
    completion.reads[0].segments.resize(kSegmentReadsMax);
    completion.reads[1].segments.resize(1);
    EXPECT_FALSE(decode_completion(encode(completion)).ok()) << "of all units together";
    completion = with_reads();
    completion.reads[0].folder.assign(kFolderMaxBytes + 1, 'x');
    EXPECT_FALSE(decode_completion(encode(completion)).ok());

    completion = with_reads();
    completion.memory.elastic.resize(kElasticStepsMax + 1);
    EXPECT_FALSE(decode_completion(encode(completion)).ok());

    Heartbeat beat;
    beat.memory.groups.resize(kGroupsMax + 1);
    EXPECT_FALSE(decode_heartbeat(encode(beat)).ok());
    beat = {};
    beat.cache.on = true;
    beat.cache.folders.resize(kWarmFoldersMax + 1);
    EXPECT_FALSE(decode_heartbeat(encode(beat)).ok());
    beat.cache.folders = {{std::string(kFolderMaxBytes + 1, 'x'), 1, 1}};
    EXPECT_FALSE(decode_heartbeat(encode(beat)).ok());

    CacheWork work;
    work.files.resize(kCacheFilesMax + 1);
    EXPECT_FALSE(decode_cache_work(encode(work)).ok());
}

}  // namespace
}  // namespace roost::cluster
