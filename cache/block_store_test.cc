#include "cache/block_store.h"

#include <gtest/gtest.h>

#include "cache/test_disk.h"

namespace roost::cache {
namespace {

using testing::bytes_of;
using testing::Platter;
using testing::SimulatedDisk;

constexpr uint32_t kBlock = 4096;

struct BlockStoreTest : ::testing::Test {
    void open(uint64_t max_bytes = 64 * kBlock) {
        store.reset();
        BlockStoreOptions options;
        options.block_bytes = kBlock;
        options.max_bytes = max_bytes;
        options.free_floor_bytes = 0;
        auto opened = BlockStore::open(std::make_unique<SimulatedDisk>(platter), options, clock, *log);
        ASSERT_TRUE(opened.ok()) << opened.status().to_string();
        store = std::move(*opened);
    }
    static FileKey key(const std::string &path, uint64_t blocks, const std::string &version = "1") {
        return {path, version, blocks * kBlock};
    }
    bool put(const FileKey &key, uint32_t block, const std::string &tag = "t") {
        const uint64_t at = uint64_t{block} * kBlock;
        return store->put(store->file(key, tag), block,
                          bytes_of(key.path, key.version, at, std::min<uint64_t>(kBlock, key.size_bytes - at)),
                          BlockKind::data);
    }
    // 1: the right bytes, 0: not here, -1: wrong bytes.
    int look(const FileKey &key, uint32_t block, uint32_t offset = 0, size_t length = 0) {
        const auto file = store->file(key, "");
        auto lease = store->lease(file, block, ++statement, BlockKind::data);
        if (!lease) return 0;
        if (length == 0) length = lease.length_bytes();
        std::string bytes(length, '?');
        std::shared_ptr<const BlockStore::Grain> grain;
        if (!store->read(lease, offset, length, bytes.data(), grain).ok()) return 0;
        return bytes == bytes_of(key.path, key.version, uint64_t{block} * kBlock + offset, length) ? 1 : -1;
    }

    Platter platter;
    ManualClock clock;
    std::unique_ptr<obs::Log> log = obs::make_null_log();
    std::unique_ptr<BlockStore> store;
    uint64_t statement = 0;
};

TEST_F(BlockStoreTest, what_is_put_is_read_back_whole_and_in_parts) {
    open();
    const FileKey a{"a", "1", 2 * kBlock + 100};
    EXPECT_EQ(look(a, 0), 0);
    for (uint32_t block = 0; block < 3; ++block) EXPECT_TRUE(put(a, block));
    for (uint32_t block = 0; block < 3; ++block) EXPECT_EQ(look(a, block), 1);
    EXPECT_EQ(look(a, 0, 511, 2), 1);
    EXPECT_EQ(look(a, 1, 0, 512), 1);
    EXPECT_EQ(look(a, 1, 4095, 1), 1);
    EXPECT_EQ(look(a, 2, 99, 1), 1);
    EXPECT_EQ(store->warm_bytes(), a.size_bytes);
    EXPECT_FALSE(store->lease(store->file(a, ""), 3, 1, BlockKind::data));
}

TEST_F(BlockStoreTest, a_block_of_the_wrong_length_is_refused) {
    open();
    const FileKey a{"a", "1", kBlock + 100};
    EXPECT_FALSE(store->put(store->file(a, "t"), 0, "short", BlockKind::data));
    EXPECT_FALSE(store->put(store->file(a, "t"), 1, std::string(kBlock, 'x'), BlockKind::data));
    EXPECT_FALSE(store->put(store->file(a, "t"), 2, "", BlockKind::data));
}

TEST_F(BlockStoreTest, versions_and_sizes_of_one_path_are_different_files) {
    open();
    const FileKey one = key("a", 2, "1"), two = key("a", 2, "2"), longer = key("a", 3, "1");
    EXPECT_TRUE(put(one, 0));
    EXPECT_EQ(look(two, 0), 0);
    EXPECT_EQ(look(longer, 0), 0);
    EXPECT_TRUE(put(two, 0));
    EXPECT_EQ(look(one, 0), 1);
    EXPECT_EQ(look(two, 0), 1);
}

TEST_F(BlockStoreTest, blocks_survive_a_restart_with_identity_tags_and_pins) {
    open();
    const FileKey a = key("a", 3), b = key("b", 1);
    for (uint32_t block = 0; block < 3; ++block) put(a, block, "table a");
    put(b, 0, "table b");
    EXPECT_EQ(store->pin("b", true), 1U);
    const auto before = store->state();
    open();
    EXPECT_EQ(store->state().identity, before.identity);
    EXPECT_EQ(store->state().generation, before.generation + 1);
    for (uint32_t block = 0; block < 3; ++block) EXPECT_EQ(look(a, block), 1);
    const auto files = store->files(10, "table b");
    ASSERT_EQ(files.size(), 1U);
    EXPECT_EQ(files[0].key, b);
    EXPECT_TRUE(files[0].pinned);
    EXPECT_EQ(store->counters().restored_blocks, 4U);
}

TEST_F(BlockStoreTest, an_empty_directory_gets_another_identity) {
    open();
    const auto before = store->state().identity;
    store.reset();
    platter.remove_directory();
    open();
    EXPECT_NE(store->state().identity, before);
    EXPECT_EQ(store->state().generation, 1U);
}

TEST_F(BlockStoreTest, a_second_process_is_refused) {
    open();
    BlockStoreOptions options;
    const auto second = BlockStore::open(std::make_unique<SimulatedDisk>(platter), options, clock, *log);
    EXPECT_EQ(second.status().code(), Code::failed_precondition);
}

TEST_F(BlockStoreTest, another_block_size_starts_empty_under_the_same_identity) {
    open();
    put(key("a", 1), 0);
    const auto identity = store->state().identity;
    store.reset();
    BlockStoreOptions options;
    options.block_bytes = 8192;
    options.max_bytes = 1 << 20;
    auto opened = BlockStore::open(std::make_unique<SimulatedDisk>(platter), options, clock, *log);
    EXPECT_EQ((*opened)->state().identity, identity);
    EXPECT_EQ((*opened)->warm_bytes(), 0U);
}

TEST_F(BlockStoreTest, the_disk_is_bounded_and_small_blocks_cost_what_they_hold) {
    open(16 * kBlock);
    for (int i = 0; i < 200; ++i) {
        put({"f" + std::to_string(i), "1", 1 + static_cast<uint64_t>(i) * 37 % (3 * kBlock)}, 0);
        EXPECT_LE(store->warm_bytes(), 16U * kBlock);
    }
    EXPECT_GT(store->counters().evicted_blocks, 100U);
    open(16 * kBlock);
    EXPECT_LE(store->warm_bytes(), 16U * kBlock);
    EXPECT_GT(store->warm_blocks(), 10U);
}

TEST_F(BlockStoreTest, a_smaller_cache_after_a_restart_shrinks_to_it) {
    open(32 * kBlock);
    for (uint32_t block = 0; block < 32; ++block) put(key("a", 32), block);
    open(8 * kBlock);
    EXPECT_LE(store->warm_bytes(), 8U * kBlock);
    EXPECT_GE(store->warm_bytes(), 7U * kBlock);
}

TEST_F(BlockStoreTest, a_segment_larger_than_the_cache_evicts_nothing) {
    open(16 * kBlock);
    const FileKey small = key("small", 10), huge = key("huge", 100);
    for (uint32_t block = 0; block < 10; ++block) put(small, block);
    int kept = 0;
    for (uint32_t block = 0; block < 100; ++block) kept += put(huge, block);
    EXPECT_EQ(kept, 6);  // the room that nobody had
    EXPECT_EQ(store->counters().evicted_blocks, 0U);
    for (uint32_t block = 0; block < 10; ++block) EXPECT_EQ(look(small, block), 1);
}

TEST_F(BlockStoreTest, pinned_files_stay_and_take_at_most_half) {
    open(16 * kBlock);
    const FileKey pinned = key("pinned", 12), others = key("others", 16);
    put(pinned, 0);
    store->pin("pinned", true);
    for (uint32_t block = 1; block < 12; ++block) put(pinned, block);
    for (int round = 0; round < 4; ++round) {
        for (uint32_t block = 0; block < 16; ++block) {
            put(others, block);
            look(others, block);
        }
    }
    int held = 0;
    for (uint32_t block = 0; block < 12; ++block) held += look(pinned, block);
    EXPECT_GE(held, 8);
    EXPECT_GT(store->files(10, "t").size(), 1U);
    store->pin("pinned", false);
    EXPECT_EQ(store->evict_file("pinned"), static_cast<uint64_t>(held) * kBlock);
    for (uint32_t block = 0; block < 12; ++block) EXPECT_EQ(look(pinned, block), 0);
}

TEST_F(BlockStoreTest, eviction_by_hand_holds_after_a_restart_and_gives_the_room_back) {
    open();
    for (uint32_t block = 0; block < 8; ++block) put(key("a", 8), block, "x");
    put(key("b", 1), 0, "y");
    EXPECT_EQ(store->evict_unit("x"), 8U * kBlock);
    EXPECT_LT(platter.bytes(), 4U * kBlock);
    open();
    EXPECT_EQ(store->warm_blocks(), 1U);
    EXPECT_EQ(look(key("b", 1), 0), 1);
}

TEST_F(BlockStoreTest, a_damaged_block_is_a_miss_and_only_its_part_is_looked_at) {
    open();
    const FileKey a = key("a", 1);
    put(a, 0);
    platter.flip_byte("blocks.0", 1000);
    EXPECT_EQ(look(a, 0, 0, 512), 1);
    EXPECT_EQ(look(a, 0, 600, 10), 0);
    EXPECT_EQ(look(a, 0), 0);
    EXPECT_EQ(store->counters().corrupt_blocks, 1U);
    EXPECT_EQ(store->state().mode, DiskMode::ok);
    EXPECT_TRUE(put(a, 0));
    EXPECT_EQ(look(a, 0), 1);
}

TEST_F(BlockStoreTest, what_came_from_the_disk_is_checked_each_time_and_what_is_in_memory_once) {
    open();
    const FileKey a = key("a", 1);
    put(a, 0);
    platter.keep_in_memory(true);
    EXPECT_EQ(look(a, 0), 1) << "as it was written";
    open();
    platter.flip_byte("blocks.0", 1000);
    EXPECT_EQ(look(a, 0, 600, 10), 0) << "what an earlier process checked counts for nothing";
    put(a, 0);
    open();
    EXPECT_EQ(look(a, 0, 600, 10), 1);
    EXPECT_EQ(look(a, 0, 600, 10), 1);
    EXPECT_EQ(look(a, 0), 1) << "the other eighths are checked now";
    platter.keep_in_memory(false);
    platter.flip_byte("blocks.0", 1000);
    EXPECT_EQ(look(a, 0, 600, 10), 0) << "it was read anew";
}

TEST_F(BlockStoreTest, a_leased_block_is_not_overwritten) {
    open(4 * kBlock);
    const FileKey a = key("a", 1);
    put(a, 0);
    const auto file = store->file(a, "");
    auto lease = store->lease(file, 0, 1, BlockKind::data);
    ASSERT_TRUE(lease);
    store->evict_file("a");
    for (uint32_t block = 0; block < 4; ++block) put(key("b", 4), block);
    std::string bytes(kBlock, '?');
    std::shared_ptr<const BlockStore::Grain> grain;
    EXPECT_TRUE(store->read(lease, 0, kBlock, bytes.data(), grain).ok());
    EXPECT_EQ(bytes, bytes_of("a", "1", 0, kBlock));
    EXPECT_EQ(look(a, 0), 0);
}

TEST_F(BlockStoreTest, without_holes_the_bound_still_holds) {
    platter.can_punch(false);
    open(8 * kBlock);
    for (int i = 0; i < 100; ++i) {
        put(key("f" + std::to_string(i), 1), 0);
        if (i % 10 == 9) store->evict_file("f" + std::to_string(i));
    }
    EXPECT_LE(platter.bytes(), 8U * kBlock + 100 * kRecordBytes + 100 * 1024);
    EXPECT_GE(store->warm_blocks(), 7U);
}

// ---- the disk's faults

TEST_F(BlockStoreTest, a_full_disk_stops_writing_goes_on_reading_and_comes_back) {
    open();
    put(key("a", 2), 0);
    platter.fail_writes(Status(Code::resource_exhausted, "no space"));
    EXPECT_FALSE(put(key("a", 2), 1));
    EXPECT_EQ(store->state().mode, DiskMode::full);
    EXPECT_EQ(look(key("a", 2), 0), 1);
    platter.heal();
    store->tick();
    EXPECT_EQ(store->state().mode, DiskMode::full) << "before the probe is due";
    clock.advance_us(1'000'000);
    store->tick();
    EXPECT_EQ(store->state().mode, DiskMode::ok);
    EXPECT_TRUE(put(key("a", 2), 1));
}

TEST_F(BlockStoreTest, a_disk_that_stays_broken_is_probed_less_and_less_often) {
    open();
    platter.fail_writes(Status(Code::io_error, "EIO"));
    EXPECT_FALSE(put(key("a", 2), 1));
    EXPECT_EQ(store->state().mode, DiskMode::bypass);
    const uint64_t writes = platter.writes();
    for (int second = 0; second < 600; ++second) {
        store->tick();
        clock.advance_us(1'000'000);
    }
    EXPECT_LT(platter.writes() - writes, 20U);
    platter.heal();
    clock.advance_us(60'000'000);
    store->tick();
    EXPECT_EQ(store->state().mode, DiskMode::ok);
}

TEST_F(BlockStoreTest, read_errors_are_misses_then_a_bypass_and_what_was_here_is_still_here) {
    open();
    for (uint32_t block = 0; block < 8; ++block) put(key("a", 8), block);
    platter.fail_reads(Status(Code::io_error, "EIO"));
    for (uint32_t block = 0; block < 8; ++block) EXPECT_EQ(look(key("a", 8), block), 0);
    EXPECT_EQ(store->state().mode, DiskMode::bypass);
    platter.heal();
    clock.advance_us(1'000'000);
    store->tick();
    EXPECT_EQ(look(key("a", 8), 0), 0) << "given up at the first error";
    EXPECT_EQ(look(key("a", 8), 7), 1);
}

TEST_F(BlockStoreTest, a_removed_directory_is_made_anew_with_another_identity) {
    open();
    put(key("a", 8), 0);
    const auto identity = store->state().identity;
    platter.remove_directory();
    platter.fail_writes(Status(Code::io_error, "stale"));
    EXPECT_FALSE(put(key("a", 8), 1));
    platter.heal();
    clock.advance_us(1'000'000);
    store->tick();
    EXPECT_EQ(store->state().mode, DiskMode::ok);
    EXPECT_NE(store->state().identity, identity);
    EXPECT_EQ(look(key("a", 8), 0), 0);
    EXPECT_TRUE(put(key("a", 8), 0));
    EXPECT_EQ(look(key("a", 8), 0), 1);
}

TEST_F(BlockStoreTest, a_removed_directory_is_noticed_though_its_open_files_work) {
    open();
    put(key("a", 8), 0);
    const auto identity = store->state().identity;
    platter.remove_directory();
    store->tick();
    EXPECT_EQ(store->state().mode, DiskMode::bypass);
    clock.advance_us(1'000'000);
    store->tick();
    EXPECT_EQ(store->state().mode, DiskMode::ok);
    EXPECT_NE(store->state().identity, identity);
    EXPECT_EQ(look(key("a", 8), 0), 0);
}

TEST_F(BlockStoreTest, a_directory_that_can_not_be_had_at_the_start_is_a_bypass_until_it_can) {
    platter.fail_mount(Status(Code::io_error, "read-only"));
    open();
    EXPECT_EQ(store->state().mode, DiskMode::bypass);
    EXPECT_FALSE(put(key("a", 1), 0));
    EXPECT_EQ(look(key("a", 1), 0), 0);
    platter.heal();
    clock.advance_us(1'000'000);
    store->tick();
    EXPECT_EQ(store->state().mode, DiskMode::ok);
    EXPECT_TRUE(put(key("a", 1), 0));
}

TEST_F(BlockStoreTest, the_free_space_floor_shrinks_the_cache_and_lets_it_grow_again) {
    platter.set_size(100 * kBlock);
    BlockStoreOptions options;
    options.block_bytes = kBlock;
    options.max_bytes = 90 * kBlock;
    options.free_floor_bytes = 60 * kBlock;
    auto opened = BlockStore::open(std::make_unique<SimulatedDisk>(platter), options, clock, *log);
    store = std::move(*opened);
    for (uint32_t block = 0; block < 80; ++block) put(key("a", 80), block);
    store->tick();
    EXPECT_LE(platter.bytes(), 40U * kBlock);
    EXPECT_GE(store->warm_blocks(), 30U);
    platter.set_size(200 * kBlock);
    store->tick();
    for (uint32_t block = 0; block < 80; ++block) put(key("a", 80), block);
    EXPECT_EQ(store->warm_blocks(), 80U);
}

// ---- changes

TEST_F(BlockStoreTest, changes_name_units_as_they_are_now_and_once) {
    open();
    put(key("a", 8), 0, "x");
    put(key("a", 8), 1, "x");
    put(key("b", 8), 0, "y");
    auto changes = store->take_changes(10);
    ASSERT_EQ(changes.units.size(), 2U);
    EXPECT_EQ(changes.units[0].tag, "x");
    EXPECT_EQ(changes.units[0].warm_bytes, 2U * kBlock);
    EXPECT_TRUE(store->take_changes(10).units.empty());
    store->evict_unit("x");
    changes = store->take_changes(10);
    ASSERT_EQ(changes.units.size(), 1U);
    EXPECT_EQ(changes.units[0].warm_bytes, 0U);
    EXPECT_EQ(changes.units[0].evicted_bytes, 2U * kBlock);
    for (int i = 0; i < 5; ++i) put(key("c" + std::to_string(i), 1), 0, "unit " + std::to_string(i));
    EXPECT_TRUE(store->take_changes(3).all);
    EXPECT_EQ(store->units().size(), 6U);
}

TEST_F(BlockStoreTest, a_file_moves_to_another_unit_with_its_bytes) {
    open();
    put(key("a", 8), 0, "x");
    (void)store->file(key("a", 8), "y");
    const auto units = store->units();
    ASSERT_EQ(units.size(), 1U);
    EXPECT_EQ(units[0].tag, "y");
    EXPECT_EQ(units[0].warm_bytes, kBlock);
}

TEST_F(BlockStoreTest, many_files_come_and_go_without_the_log_growing_for_ever) {
    open(8 * kBlock);
    for (int i = 0; i < 20'000; ++i) put(key("file " + std::to_string(i), 1), 0);
    EXPECT_LT(platter.size_of("files.a") + platter.size_of("files.b"), 3U << 20);
    const uint64_t blocks = store->warm_blocks();
    open(8 * kBlock);
    EXPECT_EQ(store->warm_blocks(), blocks);
}

// ---- staged blocks

TEST_F(BlockStoreTest, a_staged_block_is_in_no_file_until_it_is_committed) {
    open();
    const FileKey a = key("a", 2);
    auto first = store->stage(bytes_of("a", "1", 0, kBlock));
    auto second = store->stage(bytes_of("a", "1", kBlock, kBlock));
    ASSERT_TRUE(first && second);
    EXPECT_EQ(look(a, 0), 0);
    EXPECT_TRUE(store->commit(store->file(a, "t"), 0, *first, BlockKind::data));
    store->discard({*second});
    EXPECT_EQ(look(a, 0), 1);
    EXPECT_EQ(look(a, 1), 0);
    open();
    EXPECT_EQ(store->warm_blocks(), 1U);
    EXPECT_EQ(look(a, 0), 1);
}

TEST_F(BlockStoreTest, what_is_staged_is_at_most_a_quarter) {
    open(16 * kBlock);
    std::vector<BlockStore::Staged> staged;
    while (auto one = store->stage(std::string(kBlock, 'x'))) staged.push_back(*one);
    EXPECT_EQ(staged.size(), 4U);
    store->discard(staged);
    EXPECT_TRUE(store->stage(std::string(kBlock, 'x')));
}

}  // namespace
}  // namespace roost::cache
