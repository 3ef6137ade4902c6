#include "cache/read_ahead.h"

#include <algorithm>

namespace roost::cache {
namespace {

constexpr uint64_t kFirstWindowBytes = 1 << 20;
constexpr uint64_t kFirstChunksBytes = 4 << 20;
// Threads that share a reader take turns: one of them may still be so many row groups behind the foremost.
constexpr size_t kBehindMax = 8;

}  // namespace

void FileLayout::sort() {
    starts.clear();
    for (size_t i = 0; i < row_groups.size(); ++i) {
        for (size_t column = 0; column < row_groups[i].size(); ++column) {
            if (row_groups[i][column].length > 0) starts.push_back({row_groups[i][column].offset, {i, column}});
        }
    }
    std::ranges::stable_sort(starts, {}, &Start::offset);
    std::ranges::sort(index_regions, {}, &ByteRange::offset);
}

std::optional<FileLayout::Chunk> FileLayout::chunk_at(uint64_t offset) const {
    const auto after = std::ranges::upper_bound(starts, offset, {}, &Start::offset);
    if (after == starts.begin()) return std::nullopt;
    const Chunk chunk = std::prev(after)->chunk;
    if (offset >= row_groups[chunk.row_group][chunk.column].end()) return std::nullopt;
    return chunk;
}

bool FileLayout::is_index(const ByteRange &range) const {
    const auto after = std::ranges::upper_bound(index_regions, range.offset, {}, &ByteRange::offset);
    return after != index_regions.begin() && range.end() <= std::prev(after)->end();
}

void ReadAhead::expect(std::vector<ByteRange> ranges) {
    std::erase_if(ranges, [this](const ByteRange &range) {
        return range.length == 0 || range.offset >= file_bytes_ || range.length > file_bytes_ - range.offset;
    });
    expected_ = std::move(ranges);
    expected_done_ = expected_read_ = 0;
}

std::vector<ByteRange> ReadAhead::after(uint64_t offset, uint64_t length) {
    if (window_max_bytes_ == 0 || length == 0) return {};
    if (!expected_.empty()) return after_expected(offset, length);
    if (layout_ && !layout_->row_groups.empty()) return after_chunk(offset, length);
    return after_sequential(offset, length);
}

std::vector<ByteRange> ReadAhead::after_expected(uint64_t offset, uint64_t length) {
    for (size_t i = expected_read_; i < expected_.size(); ++i) {
        if (offset < expected_[i].end() && expected_[i].offset < offset + length) expected_read_ = i + 1;
    }
    expected_done_ = std::max(expected_done_, expected_read_);
    uint64_t window = 0;
    for (size_t i = expected_read_; i < expected_done_; ++i) window += expected_[i].length;
    std::vector<ByteRange> ranges;
    while (expected_done_ < expected_.size() && window + expected_[expected_done_].length <= window_max_bytes_) {
        window += expected_[expected_done_].length;
        ranges.push_back(expected_[expected_done_++]);
    }
    return ranges;
}

std::vector<ByteRange> ReadAhead::after_chunk(uint64_t offset, uint64_t length) {
    const auto chunk = layout_->chunk_at(offset);
    if (!chunk) return {};
    // One read may take many columns, up to the whole row group.
    const auto &read = layout_->row_groups[chunk->row_group];
    if (columns_.size() < read.size()) columns_.resize(read.size());
    for (size_t column = 0; column < read.size(); ++column) {
        if (read[column].offset < offset + length && read[column].end() > offset) columns_[column] = true;
    }
    if (row_group_ && chunk->row_group <= *row_group_ && chunk->row_group + kBehindMax >= *row_group_) return {};
    in_order_ = row_group_ && chunk->row_group == *row_group_ + 1 ? in_order_ + 1 : 0;
    row_group_ = chunk->row_group;
    if (in_order_ > 0) return next_row_groups();
    named_row_group_ = chunk->row_group;
    return {};
}

// Once a row group: further reads of it change nothing.
std::vector<ByteRange> ReadAhead::next_row_groups() {
    named_row_group_ = std::max(named_row_group_, *row_group_);
    // A scan of a few row groups, as where statistics leave out the rest, should not fetch what it will not read.
    const uint64_t window_max = std::min(window_max_bytes_, kFirstChunksBytes << std::min<size_t>(in_order_, 16));
    std::vector<ByteRange> ranges;
    uint64_t window = 0;
    for (size_t i = *row_group_ + 1; i < layout_->row_groups.size(); ++i) {
        const auto &chunks = layout_->row_groups[i];
        const size_t columns = std::min(columns_.size(), chunks.size());
        for (size_t column = 0; column < columns; ++column) {
            if (columns_[column]) window += chunks[column].length;
        }
        // In whole: a part of what will be read at once would only cut that read into more requests.
        if (window > window_max) break;
        if (i <= named_row_group_) continue;
        for (size_t column = 0; column < columns; ++column) {
            if (columns_[column]) ranges.push_back(chunks[column]);
        }
        named_row_group_ = i;
    }
    return ranges;
}

std::vector<ByteRange> ReadAhead::after_sequential(uint64_t offset, uint64_t length) {
    const bool follows = offset == next_offset_ && offset > 0;
    next_offset_ = offset + length;
    if (!follows) {
        follows_ = 0;
        window_bytes_ = 0;
        named_to_ = next_offset_;
        return {};
    }
    if (++follows_ < 2) return {};
    window_bytes_ = std::min(window_max_bytes_, std::max(kFirstWindowBytes, 2 * window_bytes_));
    named_to_ = std::max(named_to_, next_offset_);
    const uint64_t to = std::min(file_bytes_, next_offset_ + window_bytes_);
    // Not a sliver at each read: when half of the window is used up.
    if (to <= named_to_ || (named_to_ - next_offset_ > window_bytes_ / 2 && to < file_bytes_)) return {};
    const ByteRange range{named_to_, to - named_to_};
    named_to_ = to;
    return {range};
}

}  // namespace roost::cache
