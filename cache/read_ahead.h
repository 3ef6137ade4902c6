// What a reader will want next: pure. Follows, in this order: ranges that the caller said it will read; the column
// chunks of a Parquet file whose layout is known (the columns read so far, in the next row groups that fit the window
// whole, once two row groups have been read in order, by however many threads); else bytes behind the last read, in a
// window that doubles while reads follow each other. One object a reader; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace roost::cache {

struct ByteRange {
    uint64_t offset = 0, length = 0;
    uint64_t end() const { return offset + length; }
    bool operator==(const ByteRange &) const = default;
};

// Where things are in a Parquet file (parquet_layout.h reads it from a footer).
struct FileLayout {
    struct Chunk {
        size_t row_group = 0, column = 0;
        bool operator==(const Chunk &) const = default;
    };
    struct Start {
        uint64_t offset = 0;
        Chunk chunk;
    };
    std::vector<std::vector<ByteRange>> row_groups;  // column chunks, dictionary page included
    std::vector<ByteRange> index_regions;            // page indexes and bloom filters, footer
    std::vector<Start> starts;                       // of all chunks, by offset

    // To be called once all is entered: reads look places up.
    void sort();
    // The chunk that holds this byte; none between chunks. Of chunks that overlap, which no writer makes, it may find
    // none.
    std::optional<Chunk> chunk_at(uint64_t offset) const;
    // One index region holds all of it.
    bool is_index(const ByteRange &range) const;
};

class ReadAhead {
public:
    ReadAhead(uint64_t file_bytes, uint64_t window_max_bytes)
        : file_bytes_(file_bytes), window_max_bytes_(window_max_bytes) {}

    void expect(std::vector<ByteRange> ranges);
    void learn(std::shared_ptr<const FileLayout> layout) { layout_ = std::move(layout); }
    const FileLayout *layout() const { return layout_.get(); }
    std::shared_ptr<const FileLayout> shared_layout() const { return layout_; }
    // After this read: ranges to fetch, in order of need, at most the window. A range is named once.
    std::vector<ByteRange> after(uint64_t offset, uint64_t length);

private:
    std::vector<ByteRange> after_expected(uint64_t offset, uint64_t length);
    std::vector<ByteRange> after_chunk(uint64_t offset, uint64_t length);
    std::vector<ByteRange> next_row_groups();
    std::vector<ByteRange> after_sequential(uint64_t offset, uint64_t length);

    const uint64_t file_bytes_, window_max_bytes_;
    std::vector<ByteRange> expected_;
    size_t expected_done_ = 0;  // ranges before it have been named
    size_t expected_read_ = 0;  // ranges before it have been read
    std::shared_ptr<const FileLayout> layout_;
    std::optional<size_t> row_group_;  // of the latest read
    size_t in_order_ = 0;              // row groups that followed each other
    size_t named_row_group_ = 0;       // row groups up to here have been named
    std::vector<bool> columns_;        // read so far
    uint64_t next_offset_ = 0;         // where the last read ended
    uint64_t window_bytes_ = 0;
    uint64_t named_to_ = 0;
    uint32_t follows_ = 0;
};

}  // namespace roost::cache
