#include "cache/segment_cache.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "cache/test_store.h"

namespace roost::cache {
namespace {

using testing::bytes_of;
using testing::FakeStore;
using testing::Platter;
using testing::SimulatedDisk;

constexpr uint32_t kBlock = 4096;

struct SegmentCacheTest : ::testing::Test {
    void open(uint64_t blocks = 256, uint32_t threads = 0) {
        cache.reset();
        SegmentCacheOptions options;
        options.blocks.block_bytes = kBlock;
        options.blocks.max_bytes = blocks * kBlock;
        options.blocks.free_floor_bytes = 0;
        options.fetch_max_bytes = 8 * kBlock;
        options.read_ahead_max_bytes = 16 * kBlock;
        options.recent_max_bytes = 32 * kBlock;
        options.fetch_threads = threads;
        auto opened = SegmentCache::open(std::make_unique<SimulatedDisk>(platter), options, clock, *log);
        ASSERT_TRUE(opened.ok());
        cache = std::move(*opened);
    }
    void SetUp() override { open(); }
    std::unique_ptr<CacheReader> reader(const FileKey &key, std::shared_ptr<ReadStats> stats = nullptr) {
        return cache->reader(key, "t", store, std::move(stats));
    }
    // The status, after a look at the bytes.
    Status read(CacheReader &reader, uint64_t offset, size_t length, const Patience &patience = {}) {
        std::string bytes(length, '?');
        const Status status = reader.read(offset, length, bytes.data(), patience);
        if (status.ok()) EXPECT_EQ(bytes, bytes_of(reader.key().path, reader.key().version, offset, length));
        return status;
    }

    Platter platter;
    ManualClock clock;
    std::unique_ptr<obs::Log> log = obs::make_null_log();
    std::shared_ptr<FakeStore> store = std::make_shared<FakeStore>();
    std::unique_ptr<SegmentCache> cache;
    const FileKey file{"s3://b/a.parquet", std::string(kImmutable), 40 * kBlock + 123};
};

TEST_F(SegmentCacheTest, a_second_read_and_a_read_after_a_restart_ask_nothing_of_the_store) {
    auto stats = cache->make_stats();
    EXPECT_TRUE(read(*reader(file, stats), 100, 3 * kBlock).ok());
    EXPECT_EQ(store->fetches(), 1U) << "adjacent blocks are one request";
    EXPECT_EQ(stats->store_bytes, 4U * kBlock);
    EXPECT_EQ(stats->misses, 4U);
    auto again = cache->make_stats();
    EXPECT_TRUE(read(*reader(file, again), 0, 4 * kBlock).ok());
    EXPECT_EQ(again->store_bytes, 0U);
    EXPECT_EQ(again->cache_bytes, 4U * kBlock);
    EXPECT_EQ(again->hits, 4U);
    const auto gauges = cache->gauges();
    EXPECT_EQ(gauges.store_bytes, 4U * kBlock);
    EXPECT_EQ(gauges.hits, 4U);
    EXPECT_EQ(gauges.misses, 4U);
    EXPECT_EQ(gauges.warm_bytes, 4U * kBlock);
    EXPECT_EQ(gauges.fetches_in_flight, 0U);
    open();
    EXPECT_TRUE(read(*reader(file), 0, 4 * kBlock).ok());
    EXPECT_EQ(store->fetches(), 1U);
}

TEST_F(SegmentCacheTest, only_what_is_missing_is_fetched_in_bounded_requests) {
    auto r = reader(file);
    EXPECT_TRUE(read(*r, 5 * kBlock, kBlock).ok());
    EXPECT_TRUE(read(*r, 0, file.size_bytes).ok());
    EXPECT_EQ(store->most_asked(), 1U);
    for (const auto &[offset, length] : store->ranges()) EXPECT_LE(length, 8U * kBlock);
    EXPECT_EQ(store->bytes(), file.size_bytes);
}

TEST_F(SegmentCacheTest, edges) {
    auto r = reader(file);
    EXPECT_TRUE(read(*r, 0, 0).ok());
    EXPECT_TRUE(read(*r, file.size_bytes, 0).ok());
    EXPECT_TRUE(read(*r, file.size_bytes - 1, 1).ok());
    EXPECT_EQ(read(*r, file.size_bytes, 1).code(), Code::invalid_argument);
    EXPECT_EQ(read(*r, UINT64_MAX, 2).code(), Code::invalid_argument);
    EXPECT_TRUE(read(*reader({"empty", "1", 0}), 0, 0).ok());
    const FileKey long_name{std::string(kNameMaxBytes + 1, 'x'), "1", kBlock};
    EXPECT_TRUE(read(*reader(long_name), 10, 100).ok()) << "not cached, but read";
}

TEST_F(SegmentCacheTest, versions_never_mix) {
    for (int round = 0; round < 3; ++round) {
        for (const char *version : {"1", "2"}) {
            FileKey key = file;
            key.version = version;
            EXPECT_TRUE(read(*reader(key), 17, 2 * kBlock).ok());
        }
    }
    EXPECT_EQ(store->fetches(), 2U);
}

TEST_F(SegmentCacheTest, sixteen_cold_readers_fetch_each_block_once) {
    open(256, 4);
    store->close_gate();
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) {
        threads.emplace_back([&] { EXPECT_TRUE(read(*reader(file), 0, file.size_bytes).ok()); });
    }
    store->await_fetches(1);
    store->open_gate();
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(store->most_asked(), 1U);
    EXPECT_EQ(store->bytes(), file.size_bytes);
    EXPECT_EQ(cache->fetches_in_flight(), 0U);
}

TEST_F(SegmentCacheTest, a_cancelled_leader_hands_over_to_its_followers) {
    store->close_gate();
    auto cancel = std::make_shared<CancelFlag>();
    Status leader_status;
    std::thread leader([&] {
        Patience patience;
        patience.cancellation = cancel;
        leader_status = read(*reader(file), 0, kBlock, patience);
    });
    store->await_fetches(1);
    std::vector<std::thread> followers;
    for (int i = 0; i < 4; ++i) {
        followers.emplace_back([&] { EXPECT_TRUE(read(*reader(file), 0, kBlock).ok()); });
    }
    while (cache->totals().joined < 4) std::this_thread::yield();
    cancel->cancel();
    leader.join();
    EXPECT_EQ(leader_status.code(), Code::cancelled);
    store->await_fetches(2);
    store->open_gate();
    for (std::thread &thread : followers) thread.join();
    EXPECT_EQ(store->fetches(), 2U) << "one follower took over, the others went on waiting";
}

TEST_F(SegmentCacheTest, an_error_of_the_store_reaches_all_who_wait_and_is_not_kept) {
    store->close_gate();
    store->fail([](uint64_t) { return Status(Code::unavailable, "503"); });
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { EXPECT_EQ(read(*reader(file), 0, kBlock).code(), Code::unavailable); });
    }
    while (cache->totals().joined < 3) std::this_thread::yield();
    store->open_gate();
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(store->fetches(), 1U);
    store->fail(nullptr);
    EXPECT_TRUE(read(*reader(file), 0, kBlock).ok());
}

TEST_F(SegmentCacheTest, a_waiting_reader_has_a_deadline_and_a_wish_of_its_own) {
    store->close_gate();
    std::thread leader([&] { EXPECT_TRUE(read(*reader(file), 0, kBlock).ok()); });
    store->await_fetches(1);
    Patience none;
    none.deadline_us = clock.monotonic_us();
    EXPECT_EQ(read(*reader(file), 0, kBlock, none).code(), Code::timeout);
    auto cancel = std::make_shared<CancelFlag>();
    Patience patience;
    patience.cancellation = cancel;
    std::thread follower([&] { EXPECT_EQ(read(*reader(file), 0, kBlock, patience).code(), Code::cancelled); });
    while (cache->totals().joined < 1) std::this_thread::yield();
    cancel->cancel();
    follower.join();
    store->open_gate();
    leader.join();
}

TEST_F(SegmentCacheTest, an_error_in_one_of_several_requests_leaves_nobody_waiting) {
    store->fail([](uint64_t request) { return request == 2 ? Status(Code::not_found, "gone") : Status(); });
    EXPECT_EQ(read(*reader(file), 0, file.size_bytes).code(), Code::not_found);
    EXPECT_EQ(cache->fetches_in_flight(), 0U);
    EXPECT_TRUE(read(*reader(file), 0, file.size_bytes).ok());
}

TEST_F(SegmentCacheTest, with_a_broken_disk_reads_go_on_and_small_reads_do_not_multiply) {
    platter.fail_writes(Status(Code::io_error, "EIO"));
    platter.fail_reads(Status(Code::io_error, "EIO"));
    auto r = reader(file);
    for (uint64_t at = 0; at + 256 <= file.size_bytes; at += 256) EXPECT_TRUE(read(*r, at, 256).ok());
    EXPECT_EQ(cache->blocks().state().mode, DiskMode::bypass);
    EXPECT_EQ(store->most_asked(), 1U);
    platter.heal();
    clock.advance_us(2'000'000);
    EXPECT_TRUE(read(*r, 0, 4 * kBlock).ok());
    EXPECT_EQ(cache->blocks().state().mode, DiskMode::ok);
    EXPECT_GE(cache->blocks().warm_blocks(), 4U);
}

TEST_F(SegmentCacheTest, a_damaged_block_is_fetched_again) {
    EXPECT_TRUE(read(*reader(file), 0, kBlock).ok());
    platter.flip_byte("blocks.0", 77);
    EXPECT_TRUE(read(*reader(file), 0, kBlock).ok());
    EXPECT_EQ(store->fetches(), 2U);
    EXPECT_TRUE(read(*reader(file), 0, kBlock).ok());
    EXPECT_EQ(store->fetches(), 2U);
}

TEST_F(SegmentCacheTest, bytes_of_a_peer_are_counted_as_such) {
    store->source = Source::peer;
    auto stats = cache->make_stats();
    EXPECT_TRUE(read(*reader(file, stats), 0, kBlock).ok());
    EXPECT_EQ(stats->peer_bytes, kBlock);
    EXPECT_EQ(stats->store_bytes, 0U);
}

TEST_F(SegmentCacheTest, warm_fetches_what_is_missing_and_copies_nothing) {
    auto r = reader(file);
    EXPECT_TRUE(r->warm(kBlock, 10 * kBlock, {}).ok());
    EXPECT_TRUE(r->warm(0, file.size_bytes, {}).ok());
    EXPECT_EQ(store->bytes(), file.size_bytes);
    EXPECT_EQ(cache->blocks().warm_bytes(), file.size_bytes);
    EXPECT_EQ(r->warm(1, file.size_bytes, {}).code(), Code::invalid_argument);
}

TEST_F(SegmentCacheTest, expected_ranges_are_fetched_ahead_once) {
    open(256, 2);
    auto r = reader(file);
    r->expect({{0, kBlock}, {10 * kBlock, 2 * kBlock}, {20 * kBlock, kBlock}});
    EXPECT_TRUE(read(*r, 0, kBlock).ok());
    store->await_fetches(3);
    while (cache->fetches_in_flight() > 0) std::this_thread::yield();
    EXPECT_TRUE(read(*r, 10 * kBlock, 2 * kBlock).ok());
    EXPECT_TRUE(read(*r, 20 * kBlock, kBlock).ok());
    EXPECT_EQ(store->fetches(), 3U);
    EXPECT_EQ(cache->totals().ahead_bytes, 3U * kBlock);
}

TEST_F(SegmentCacheTest, the_columns_of_a_parquet_file_are_followed_once_its_footer_was_read) {
    open(256, 2);
    std::ifstream in("cache/corpus/parquet_layout/three_row_groups", std::ios::binary);
    const std::string footer{std::istreambuf_iterator<char>(in), {}};
    const FileKey parquet{"p", "1", 2500576};
    store->overlay(parquet.size_bytes - footer.size(), footer);
    std::string bytes(500'000, '?');
    auto r = reader(parquet);
    const auto get = [&](uint64_t offset, size_t length) { return r->read(offset, length, bytes.data(), {}).ok(); };
    EXPECT_TRUE(get(parquet.size_bytes - 8, 8));
    EXPECT_TRUE(get(parquet.size_bytes - footer.size(), 880));
    // Column 2 of the first row group and of the second: that of the third comes by itself, through another reader too.
    r = reader(parquet);
    EXPECT_TRUE(get(835084, 1934));
    const uint64_t before = cache->totals().ahead_bytes;
    EXPECT_TRUE(get(1670182, 1934));
    while (cache->fetches_in_flight() > 0) std::this_thread::yield();
    EXPECT_GT(cache->totals().ahead_bytes, before);
    const uint64_t fetches = store->fetches();
    EXPECT_TRUE(get(2497618, 1929));
    EXPECT_EQ(store->fetches(), fetches);
}

TEST_F(SegmentCacheTest, two_threads_of_a_statement_that_take_row_groups_in_turn_are_read_ahead_of) {
    open(256, 2);
    std::ifstream in("cache/corpus/parquet_layout/three_row_groups", std::ios::binary);
    const std::string footer{std::istreambuf_iterator<char>(in), {}};
    const FileKey parquet{"p", "1", 2500576};
    store->overlay(parquet.size_bytes - footer.size(), footer);
    std::string bytes(2000, '?');
    const auto statement = cache->make_stats();
    const auto get = [&](CacheReader &r, uint64_t offset, size_t length) {
        return r.read(offset, length, bytes.data(), {}).ok();
    };
    const auto first = cache->reader(parquet, "t", store, statement),
               second = cache->reader(parquet, "t", store, statement);
    EXPECT_TRUE(get(*first, parquet.size_bytes - 8, 8));
    EXPECT_TRUE(get(*first, parquet.size_bytes - footer.size(), 880));
    EXPECT_TRUE(get(*first, 835084, 1934));
    EXPECT_EQ(cache->totals().ahead_bytes, 0U);
    EXPECT_TRUE(get(*second, 1670182, 1934));
    while (cache->fetches_in_flight() > 0) std::this_thread::yield();
    EXPECT_GT(cache->totals().ahead_bytes, 0U);
    const uint64_t fetches = store->fetches();
    EXPECT_TRUE(get(*first, 2497618, 1929));
    EXPECT_EQ(store->fetches(), fetches);
}

TEST_F(SegmentCacheTest, what_is_said_to_come_soon_is_fetched_beside) {
    open(256, 2);
    const auto r = reader(file);
    EXPECT_FALSE(r->all_here());
    r->fetch_soon({{0, file.size_bytes}, {file.size_bytes - 1, 5}, {0, 0}}, {});
    while (cache->fetches_in_flight() > 0) std::this_thread::yield();
    const uint64_t fetches = store->fetches();
    EXPECT_TRUE(read(*r, 0, file.size_bytes).ok());
    EXPECT_EQ(store->fetches(), fetches);
    EXPECT_TRUE(r->all_here());
    EXPECT_EQ(cache->totals().ahead_bytes, file.size_bytes);
    cache->blocks().evict_file(file.path);
    EXPECT_FALSE(r->all_here());
}

// ---- writes

TEST_F(SegmentCacheTest, what_is_written_is_warm_once_it_is_closed) {
    auto writer = cache->writer();
    const std::string bytes = bytes_of(file.path, file.version, 0, file.size_bytes);
    for (uint64_t at = 0; at < bytes.size(); at += 5000) writer->append(at, std::string_view(bytes).substr(at, 5000));
    EXPECT_EQ(cache->blocks().warm_bytes(), 0U);
    EXPECT_EQ(writer->commit(file, "t"), file.size_bytes);
    writer.reset();
    EXPECT_TRUE(read(*reader(file), 0, file.size_bytes).ok());
    EXPECT_EQ(store->fetches(), 0U);
    open();
    EXPECT_TRUE(read(*reader(file), 0, file.size_bytes).ok());
    EXPECT_EQ(store->fetches(), 0U);
}

TEST_F(SegmentCacheTest, what_is_abandoned_or_written_out_of_order_is_dropped) {
    const std::string bytes = bytes_of(file.path, file.version, 0, file.size_bytes);
    auto writer = cache->writer();
    writer->append(0, std::string_view(bytes).substr(0, 10 * kBlock));
    writer.reset();
    writer = cache->writer();
    writer->append(0, std::string_view(bytes).substr(0, 2 * kBlock));
    writer->append(kBlock, std::string_view(bytes).substr(kBlock));
    EXPECT_EQ(writer->commit(file, "t"), 0U);
    writer = cache->writer();
    writer->append(0, std::string_view(bytes).substr(0, 2 * kBlock));
    EXPECT_EQ(writer->commit(file, "t"), 0U) << "the size is another";
    EXPECT_EQ(cache->blocks().warm_bytes(), 0U);
    EXPECT_TRUE(read(*reader(file), 0, file.size_bytes).ok());
}

TEST_F(SegmentCacheTest, a_write_that_the_disk_can_not_take_costs_nothing_but_warmth) {
    auto writer = cache->writer();
    const std::string bytes = bytes_of(file.path, file.version, 0, file.size_bytes);
    writer->append(0, std::string_view(bytes).substr(0, 8 * kBlock));
    platter.fail_writes(Status(Code::resource_exhausted, "no space"));
    writer->append(8 * kBlock, std::string_view(bytes).substr(8 * kBlock));
    EXPECT_EQ(writer->commit(file, "t"), 0U);
    EXPECT_TRUE(read(*reader(file), 0, file.size_bytes).ok());
}

// ---- everything at once, by seed

// Reads, writes, evictions and faults of store and disk from several threads: an answer is right or an error of the
// store, and nothing hangs.
void mixed_load(Platter &platter, SegmentCache &cache, FakeStore &store_faults, const std::shared_ptr<Store> &store,
                uint64_t seed, std::atomic<uint64_t> &wrong) {
    SeededRandom random(seed);
    for (int step = 0; step < 150; ++step) {
        const uint64_t what = random.below(100);
        const std::string path = "f" + std::to_string(random.below(6)), version = std::to_string(random.below(2));
        const FileKey key{path, version, (3 + std::hash<std::string>()(path) % 40) * 1000};
        if (what < 90) {
            const uint64_t offset = random.below(key.size_bytes), length = random.below(key.size_bytes - offset + 1);
            std::string bytes(length, '?');
            auto reader = cache.reader(key, path, store, nullptr);
            const Status status = reader->read(offset, length, bytes.data(), {});
            if (status.ok() && bytes != bytes_of(path, version, offset, length)) ++wrong;
            if (!status.ok() && status.code() != Code::unavailable) ++wrong;
        } else if (what < 93) {
            auto writer = cache.writer();
            writer->append(0, bytes_of(path, version, 0, key.size_bytes));
            if (random.chance(0.7)) (void)writer->commit(key, path);
        } else if (what < 95) {
            (void)cache.blocks().evict_file(path);
        } else if (what < 96) {
            (void)cache.blocks().pin(path, random.chance(0.5));
        } else if (what < 97) {
            random.chance(0.5)
                ? platter.fail_writes(Status(random.chance(0.5) ? Code::io_error : Code::resource_exhausted, "x"))
                : platter.fail_reads(Status(Code::io_error, "EIO"));
        } else if (what < 98) {
            if (random.chance(0.3)) platter.remove_directory();
        } else {
            platter.heal();
            cache.tick();
        }
        if (random.chance(0.02)) {
            const bool failing = random.chance(0.5);
            store_faults.fail(
                [failing](uint64_t n) { return failing && n % 3 == 0 ? Status(Code::unavailable, "503") : Status(); });
        }
    }
}

TEST_F(SegmentCacheTest, mixed_load_with_faults_gives_right_bytes_or_an_error_of_the_store) {
    SystemClock system;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        cache.reset();
        SegmentCacheOptions options;
        options.blocks.block_bytes = kBlock;
        options.blocks.max_bytes = 24 * kBlock;
        options.blocks.free_floor_bytes = 0;
        options.fetch_max_bytes = 4 * kBlock;
        options.recent_max_bytes = 8 * kBlock;
        options.fetch_threads = 2;
        auto opened = SegmentCache::open(std::make_unique<SimulatedDisk>(platter), options, system, *log);
        ASSERT_TRUE(opened.ok());
        cache = std::move(*opened);
        std::atomic<uint64_t> wrong{0};
        std::vector<std::thread> threads;
        for (uint64_t thread = 0; thread < 4; ++thread) {
            threads.emplace_back(
                [&, thread] { mixed_load(platter, *cache, *store, store, seed * 100 + thread, wrong); });
        }
        for (std::thread &thread : threads) thread.join();
        EXPECT_EQ(wrong, 0U) << "seed " << seed;
        platter.heal();
    }
}

}  // namespace
}  // namespace roost::cache
