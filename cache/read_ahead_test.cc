#include "cache/read_ahead.h"

#include <gtest/gtest.h>

namespace roost::cache {
namespace {

using Ranges = std::vector<ByteRange>;

constexpr uint64_t kMiB = 1 << 20;

// 5 row groups of 4 columns of 1 MiB.
std::shared_ptr<FileLayout> layout() {
    auto layout = std::make_shared<FileLayout>();
    for (uint64_t group = 0; group < 5; ++group) {
        layout->row_groups.emplace_back();
        for (uint64_t column = 0; column < 4; ++column) {
            layout->row_groups.back().push_back({4 + (group * 4 + column) * kMiB, kMiB});
        }
    }
    layout->sort();
    return layout;
}
uint64_t at(uint64_t group, uint64_t column) { return 4 + (group * 4 + column) * kMiB; }

TEST(FileLayoutTest, finds_the_chunk_of_each_byte_and_nothing_between_them) {
    FileLayout layout;
    // As some writers leave them: chunks not in order, a hole between two, one of no bytes.
    layout.row_groups = {{{300, 100}, {4, 96}}, {{100, 0}, {100, 50}}};
    layout.sort();
    using Chunk = FileLayout::Chunk;
    EXPECT_EQ(layout.chunk_at(3), std::nullopt);
    EXPECT_EQ(layout.chunk_at(4), (Chunk{0, 1}));
    EXPECT_EQ(layout.chunk_at(99), (Chunk{0, 1}));
    EXPECT_EQ(layout.chunk_at(100), (Chunk{1, 1}));
    EXPECT_EQ(layout.chunk_at(149), (Chunk{1, 1}));
    EXPECT_EQ(layout.chunk_at(150), std::nullopt);
    EXPECT_EQ(layout.chunk_at(399), (Chunk{0, 0}));
    EXPECT_EQ(layout.chunk_at(400), std::nullopt);
    EXPECT_EQ(FileLayout().chunk_at(0), std::nullopt);
}

TEST(FileLayoutTest, a_read_is_of_an_index_when_one_region_holds_all_of_it) {
    FileLayout layout;
    layout.index_regions = {{500, 100}, {200, 50}};
    layout.sort();
    EXPECT_TRUE(layout.is_index({200, 50}));
    EXPECT_TRUE(layout.is_index({540, 1}));
    EXPECT_FALSE(layout.is_index({199, 2}));
    EXPECT_FALSE(layout.is_index({240, 11}));
    EXPECT_FALSE(layout.is_index({10, 5}));
    EXPECT_FALSE(layout.is_index({700, 5}));
}

TEST(ReadAheadTest, nothing_is_read_ahead_of_random_reads) {
    ReadAhead ahead(100 * kMiB, 8 * kMiB);
    for (const uint64_t offset : {50, 3, 99, 20, 70}) EXPECT_TRUE(ahead.after(offset * kMiB, kMiB).empty());
}

TEST(ReadAheadTest, reads_that_follow_each_other_open_a_window_that_ends_with_the_file) {
    ReadAhead ahead(20 * kMiB, 4 * kMiB);
    uint64_t named_to = 0;
    for (uint64_t offset = 0; offset < 20 * kMiB; offset += kMiB / 4) {
        for (const ByteRange &range : ahead.after(offset, kMiB / 4)) {
            EXPECT_GE(range.offset, named_to) << "named twice";
            EXPECT_LE(range.end(), offset + kMiB / 4 + 4 * kMiB);
            named_to = range.end();
        }
    }
    EXPECT_EQ(named_to, 20 * kMiB);
}

TEST(ReadAheadTest, expected_ranges_are_named_in_order_within_the_window_and_once) {
    ReadAhead ahead(100 * kMiB, 4 * kMiB);
    ahead.expect(
        {{0, kMiB}, {10 * kMiB, 2 * kMiB}, {20 * kMiB, 2 * kMiB}, {30 * kMiB, 2 * kMiB}, {99 * kMiB, 2 * kMiB}});
    EXPECT_EQ(ahead.after(0, kMiB), (Ranges{{10 * kMiB, 2 * kMiB}, {20 * kMiB, 2 * kMiB}}));
    EXPECT_EQ(ahead.after(0, kMiB), Ranges());
    EXPECT_EQ(ahead.after(10 * kMiB, 2 * kMiB), (Ranges{{30 * kMiB, 2 * kMiB}}));
    EXPECT_EQ(ahead.after(30 * kMiB, 2 * kMiB), Ranges()) << "a range past the end is dropped";
}

TEST(ReadAheadTest, columns_that_are_read_are_followed_into_the_next_row_groups) {
    ReadAhead ahead(100 * kMiB, 4 * kMiB);
    ahead.learn(layout());
    EXPECT_EQ(ahead.after(at(0, 1), kMiB), Ranges());
    EXPECT_EQ(ahead.after(at(0, 3), kMiB), Ranges());
    // The second row group in order: the third and fourth, columns 1 and 3.
    EXPECT_EQ(ahead.after(at(1, 1), kMiB),
              (Ranges{{at(2, 1), kMiB}, {at(2, 3), kMiB}, {at(3, 1), kMiB}, {at(3, 3), kMiB}}));
    EXPECT_EQ(ahead.after(at(1, 3), kMiB), Ranges());
    EXPECT_EQ(ahead.after(at(2, 1), kMiB), (Ranges{{at(4, 1), kMiB}, {at(4, 3), kMiB}}));
}

TEST(ReadAheadTest, a_read_of_a_whole_row_group_is_followed_by_whole_ones) {
    ReadAhead ahead(100 * kMiB, 10 * kMiB);
    ahead.learn(layout());
    EXPECT_EQ(ahead.after(at(0, 0), 4 * kMiB), Ranges());
    const auto ranges = ahead.after(at(1, 0), 4 * kMiB);
    ASSERT_EQ(ranges.size(), 8U) << "the third and the fourth, but not a part of the fifth";
    EXPECT_EQ(ranges.front(), (ByteRange{at(2, 0), kMiB}));
    EXPECT_EQ(ranges.back(), (ByteRange{at(3, 3), kMiB}));
    EXPECT_EQ(ahead.after(at(2, 0), 4 * kMiB).size(), 4U);
}

TEST(ReadAheadTest, threads_that_share_a_reader_are_in_order_together) {
    ReadAhead ahead(100 * kMiB, 4 * kMiB);
    ahead.learn(layout());
    EXPECT_EQ(ahead.after(at(0, 1), kMiB), Ranges());
    EXPECT_EQ(ahead.after(at(1, 1), kMiB).size(), 3U);
    // The first thread goes on where it was, the second is ahead.
    EXPECT_EQ(ahead.after(at(0, 1) + kMiB / 2, kMiB / 4), Ranges());
    EXPECT_EQ(ahead.after(at(2, 1), kMiB), Ranges()) << "named already";
    EXPECT_EQ(ahead.after(at(3, 1), kMiB), Ranges());
}

TEST(ReadAheadTest, row_groups_that_are_skipped_are_not_read_ahead) {
    ReadAhead ahead(100 * kMiB, 8 * kMiB);
    ahead.learn(layout());
    EXPECT_EQ(ahead.after(at(0, 0), kMiB), Ranges());
    EXPECT_EQ(ahead.after(at(2, 0), kMiB), Ranges());
    EXPECT_EQ(ahead.after(at(4, 0), kMiB), Ranges());
}

TEST(ReadAheadTest, without_a_window_there_is_none) {
    ReadAhead ahead(100 * kMiB, 0);
    ahead.expect({{0, kMiB}, {kMiB, kMiB}});
    EXPECT_TRUE(ahead.after(0, kMiB).empty());
}

}  // namespace
}  // namespace roost::cache
