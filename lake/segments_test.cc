#include "lake/segments.h"

#include <gtest/gtest.h>

namespace roost {
namespace {

Segment segment_of(uint64_t id) {
    Segment segment;
    segment.data_file_id = id;
    segment.begin_snapshot = id / 3;
    segment.record_count = 100'000 + id;
    segment.file_size_bytes = 3'000'000 + id;
    segment.footer_size_bytes = 900;
    segment.row_id_start = id * 100'000;
    char name[80];
    snprintf(name, sizeof name, "ducklake-%08x-0123-7abc-8def-0123456789ab.parquet", static_cast<unsigned>(id));
    segment.path = name;
    segment.format = "parquet";
    return segment;
}

SegmentStats stats_of(uint64_t column, std::string_view min, std::string_view max) {
    return {.column_id = column,
            .value_count = 100'000,
            .null_count = 3,
            .size_bytes = 400'000,
            .min = min,
            .max = max,
            .extra = {},
            .contains_nan = {}};
}

SegmentList list_of(uint64_t from, uint64_t count) {
    SegmentPacker packer;
    for (uint64_t id = from; id < from + count; id++) packer.add_file(7, segment_of(id));
    for (uint64_t id = from; id < from + count; id++) {
        packer.add_stats(id, stats_of(1, "1000000", "1099999"));
        packer.add_stats(id, stats_of(2, "name000000001", "name000099999"));
        packer.add_stats(id, stats_of(3, "2026-01-01 00:00:00", "2026-01-02 00:00:00"));
    }
    return std::move(packer.take()[7]);
}

std::vector<uint64_t> ids(const SegmentList &list) {
    std::vector<uint64_t> out;
    list.for_each([&](const Segment &segment, const SegmentDeletes *) { out.push_back(segment.data_file_id); });
    return out;
}

TEST(Segments, ComeOutAsTheyWentIn) {
    SegmentPacker packer;
    Segment odd;
    odd.data_file_id = UINT64_MAX - 1;
    odd.record_count = 1;
    odd.path = "s3://bucket/it's/DUCKLAKE-0123.parquet";
    odd.path_is_relative = false;
    odd.format = "lance";
    odd.encryption_key = "a2V5";
    odd.partial_max = 0;
    odd.mapping_id = 9;
    packer.add_file(1, odd);
    Segment plain = segment_of(5);
    plain.path = "region=eu/" + plain.path;
    packer.add_file(1, plain);
    packer.add_stats(5, stats_of(2, "", "z"));
    packer.add_stats(5, {.column_id = 1,
                         .value_count = 0,
                         .null_count = {},
                         .size_bytes = {},
                         .min = {},
                         .max = {},
                         .extra = "{}",
                         .contains_nan = true});
    packer.add_stats(4, stats_of(1, "of", "nobody"));
    packer.add_partition_value(5, {.key_index = 1, .value = std::nullopt});
    packer.add_partition_value(5, {.key_index = 0, .value = "eu"});
    const SegmentList list = std::move(packer.take()[1]);

    ASSERT_EQ(ids(list), (std::vector<uint64_t>{5, UINT64_MAX - 1}));
    const Segment first = *list.find(5), last = *list.find(UINT64_MAX - 1);
    EXPECT_EQ(first.path, plain.path);
    EXPECT_EQ(first.row_id_start, 500'000u);
    EXPECT_EQ(first.partition_values[0].value, "eu");
    EXPECT_EQ(first.partition_values[1].value, std::nullopt);
    ASSERT_EQ(first.stats.size(), 2u);
    EXPECT_EQ(first.stats[0].value_count, 0u);
    EXPECT_EQ(first.stats[0].contains_nan, true);
    EXPECT_EQ(first.stats[0].extra, "{}");
    EXPECT_EQ(first.stats[0].null_count, std::nullopt);
    EXPECT_EQ(first.stats_of(2)->min, "");
    EXPECT_EQ(first.stats_of(2)->max, "z");
    EXPECT_EQ(first.stats_of(3), nullptr);
    EXPECT_EQ(last.path, odd.path);
    EXPECT_FALSE(last.path_is_relative);
    EXPECT_EQ(last.format, "lance");
    EXPECT_EQ(last.encryption_key, "a2V5");
    EXPECT_EQ(last.partial_max, 0u);
    EXPECT_EQ(last.mapping_id, 9u);
    EXPECT_EQ(last.footer_size_bytes, std::nullopt);
    EXPECT_TRUE(last.stats.empty());
    EXPECT_EQ(list.find(6), std::nullopt);
}

TEST(Segments, OneNewFileCopiesOneBlock) {
    const SegmentList before = list_of(0, 5'000);
    const SegmentList after = before.changed({}, list_of(9'000, 1), nullptr);
    EXPECT_EQ(after.size(), 5'001u);
    size_t shared = 0;
    for (size_t i = 0; i < after.block_count(); i++) shared += after.shares_block(i, before);
    EXPECT_EQ(shared + 1, after.block_count());
    EXPECT_EQ(after.find(9'000)->record_count, 109'000u);
}

TEST(Segments, EndedFilesGoAndDeletesFollowTheirFiles) {
    const SegmentList before = list_of(0, 2'000);
    const auto delete_of = [](uint64_t id) {
        SegmentDeletes deletes;
        deletes.file.emplace();
        deletes.file->data_file_id = id;
        deletes.file->delete_count = 10;
        deletes.file->file_size_bytes = 100;
        return std::pair(id, deletes);
    };
    const SegmentList::Deletes deletes{delete_of(3), delete_of(600), delete_of(5'000)};
    const SegmentList some = before.changed({0, 600, 1'999}, list_of(3'000, 600), &deletes);
    EXPECT_EQ(some.size(), 2'597u);
    EXPECT_EQ(ids(some).front(), 1u);
    EXPECT_EQ(some.find(600), std::nullopt);
    // Those of files that are not there are nobody's.
    EXPECT_EQ(some.delete_file_count(), 1u);
    EXPECT_EQ(some.deleted_rows(), 10u);
    EXPECT_EQ(some.deletes_of(3)->file->delete_count, 10u);
    const SegmentList kept = some.changed({}, list_of(9'000, 1), nullptr);
    EXPECT_EQ(kept.deletes_of(3)->file->delete_count, 10u);
    EXPECT_EQ(before.changed(std::set<uint64_t>{1}, SegmentList(), nullptr).size(), 1'999u);
    SegmentList none = list_of(0, 3);
    EXPECT_EQ(none.changed({0, 1, 2}, SegmentList(), nullptr).size(), 0u);
}

TEST(Segments, ManySmallCommitsLeaveFullBlocks) {
    SegmentList list;
    for (uint64_t i = 0; i < 1'500; i++) list = list.changed({}, list_of(i, 1), nullptr);
    EXPECT_EQ(list.size(), 1'500u);
    EXPECT_EQ(list.block_count(), 3u);
}

TEST(Segments, TakeLessThanThreeHundredBytesAFile) {
    const SegmentList list = list_of(0, 20'000);
    const double bytes = static_cast<double>(list.memory_bytes()) / static_cast<double>(list.size());
    EXPECT_LT(bytes, 300.0);
    EXPECT_GT(bytes, 50.0);
}

}  // namespace
}  // namespace roost
