#include "cache/parquet_layout.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/random.h"

namespace roost::cache {
namespace {

// The last bytes of real files: DuckDB's with three row groups of three columns, and Arrow's with a page index.
std::string corpus(const char *name) {
    std::ifstream in(std::string("cache/corpus/parquet_layout/") + name, std::ios::binary);
    EXPECT_TRUE(in) << "run from the root of the repository";
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ParquetLayoutTest, column_chunks_begin_with_their_dictionary_and_are_as_long_as_they_are_stored) {
    const std::string end = corpus("three_row_groups");
    constexpr uint64_t kFileBytes = 2500576;
    const auto where = parquet_metadata_range(std::string_view(end).substr(end.size() - 8), kFileBytes);
    ASSERT_TRUE(where);
    EXPECT_EQ(where->length, 880U);
    EXPECT_EQ(where->end(), kFileBytes - 8);
    const auto layout = parse_parquet_layout(std::string_view(end).substr(0, 880), kFileBytes);
    ASSERT_TRUE(layout);
    ASSERT_EQ(layout->row_groups.size(), 3U);
    EXPECT_EQ(layout->row_groups[0], (std::vector<ByteRange>{{4, 402414}, {402418, 432666}, {835084, 1934}}));
    EXPECT_EQ(layout->row_groups[2][2], (ByteRange{2497618, 1929}));
    EXPECT_EQ(layout->index_regions, (std::vector<ByteRange>{{2499547, 47}, {2499594, 47}, {2499641, 47}}));
}

TEST(ParquetLayoutTest, page_indexes_are_index_regions) {
    const std::string end = corpus("page_index");
    const auto layout = parse_parquet_layout(std::string_view(end).substr(0, end.size() - 8), 11515);
    ASSERT_TRUE(layout);
    ASSERT_EQ(layout->row_groups.size(), 2U);
    EXPECT_EQ(layout->row_groups[1], (std::vector<ByteRange>{{5274, 2633}, {7907, 2641}}));
    EXPECT_EQ(layout->index_regions.size(), 8U);
    for (const ByteRange &region : layout->index_regions) EXPECT_GE(region.offset, 7907U + 2641U);
}

TEST(ParquetLayoutTest, other_files_have_no_metadata) {
    EXPECT_FALSE(parquet_metadata_range("xxxxPARE", 1000));
    EXPECT_FALSE(parquet_metadata_range("xxxxPAR1", 1000)) << "longer than the file";
    EXPECT_FALSE(parquet_metadata_range("PAR1", 1000));
    using namespace std::string_literals;
    EXPECT_FALSE(parquet_metadata_range("\x01\0\0\0PAR1"s, 8));
}

TEST(ParquetLayoutTest, places_outside_of_the_file_are_not_believed) {
    const std::string end = corpus("three_row_groups");
    EXPECT_FALSE(parse_parquet_layout(std::string_view(end).substr(0, 880), 2'400'000));
}

TEST(ParquetLayoutTest, damaged_metadata_is_refused_or_stays_inside_the_file) {
    constexpr uint64_t kFileBytes = 2500576;
    const std::string end = corpus("three_row_groups");
    for (size_t length = 0; length < 880; ++length) {
        EXPECT_FALSE(parse_parquet_layout(std::string_view(end).substr(0, length), kFileBytes)) << length;
    }
    SeededRandom random(3);
    for (int i = 0; i < 20'000; ++i) {
        std::string bytes = end.substr(0, 880);
        for (uint64_t flips = 1 + random.below(4); flips > 0; --flips)
            bytes[random.below(bytes.size())] = static_cast<char>(random.next());
        const auto layout = parse_parquet_layout(bytes, kFileBytes);
        if (!layout) continue;
        for (const auto &row_group : layout->row_groups) {
            for (const ByteRange &chunk : row_group) ASSERT_LE(chunk.end(), kFileBytes);
        }
    }
}

}  // namespace
}  // namespace roost::cache
