// The live data files (segments) of one table at one snapshot, packed: about 100 bytes a file with statistics of three
// columns. A list is immutable and shares its blocks with the lists made from it, so a commit copies only the blocks it
// touches. Thread-safe to read. Made by lake_loader, read by pruning, frozen catalogs, routing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roost {

// What DuckLake knows of one column of one file. Texts are as DuckLake stores them.
struct SegmentStats {
    uint64_t column_id = 0;
    std::optional<uint64_t> value_count, null_count, size_bytes;
    std::optional<std::string_view> min, max, extra;
    std::optional<bool> contains_nan;
};

struct PartitionValue {
    uint32_t key_index = 0;
    std::optional<std::string_view> value;
};

// One data file, taken out of its block. The views are valid as long as the list it came from.
struct Segment {
    uint64_t data_file_id = 0;
    uint64_t begin_snapshot = 0;
    uint64_t record_count = 0;
    uint64_t file_size_bytes = 0;
    std::optional<uint64_t> footer_size_bytes, row_id_start, partition_id, mapping_id, partial_max, file_order;
    std::string path;  // as in the catalog; TableState::resolve makes it whole
    bool path_is_relative = true;
    std::string_view format;          // "parquet"
    std::string_view encryption_key;  // base64; a secret: never printed
    std::vector<PartitionValue> partition_values;
    std::vector<SegmentStats> stats;

    const SegmentStats *stats_of(uint64_t column_id) const {
        for (const SegmentStats &each : stats) {
            if (each.column_id == column_id) return &each;
        }
        return nullptr;
    }
};

struct DeleteFile {
    uint64_t delete_file_id = 0;
    uint64_t data_file_id = 0;
    uint64_t begin_snapshot = 0;
    std::string path;
    bool path_is_relative = true;
    std::string format;
    uint64_t delete_count = 0;
    uint64_t file_size_bytes = 0;
    std::optional<uint64_t> footer_size_bytes, partial_max;
    std::string encryption_key;  // base64; a secret: never printed
};

// What was deleted of one data file.
struct SegmentDeletes {
    std::optional<DeleteFile> file;
    uint64_t inlined_rows = 0;  // rows whose deletion is kept in the catalog itself
};

class SegmentBlock {
public:
    static constexpr size_t kMaxSegments = 512;
    // A segment in the form in which blocks hold it.
    struct Packed {
        std::string_view head, partition_values, stats;
        uint32_t partition_value_count = 0;
        uint32_t stats_count = 0;
        uint64_t record_count = 0;
        uint64_t file_size_bytes = 0;
    };
    SegmentBlock() = default;
    // In ascending order of data_file_id, at most kMaxSegments.
    void add(const Packed &segment);
    void add(const Segment &segment);
    void shrink();

    size_t size() const { return offsets_.size(); }
    uint64_t first_id() const { return id(0); }
    uint64_t last_id() const { return id(size() - 1); }
    uint64_t id(size_t index) const;
    // `into` is filled anew; reuse it to spare allocations.
    void get(size_t index, Segment &into, bool with_path = true) const;
    std::optional<size_t> find(uint64_t data_file_id) const;
    uint64_t record_count() const { return record_count_; }
    uint64_t file_size_bytes() const { return file_size_bytes_; }
    size_t memory_bytes() const;

private:
    std::string bytes_;
    std::vector<uint32_t> offsets_;
    uint64_t record_count_ = 0;
    uint64_t file_size_bytes_ = 0;
};

class SegmentList {
public:
    using Deletes = std::vector<std::pair<uint64_t, SegmentDeletes>>;  // ascending by data_file_id

    // The list after a commit: without `ended`, with `added` (ids above all present), with `deletes` instead of what
    // was there when given.
    SegmentList changed(const std::set<uint64_t> &ended, const SegmentList &added, const Deletes *deletes) const;
    // The same segments with these deletes.
    SegmentList with_deletes(const Deletes &deletes) const;

    size_t size() const { return size_; }
    uint64_t record_count() const { return record_count_; }
    uint64_t file_size_bytes() const { return file_size_bytes_; }
    size_t delete_file_count() const { return delete_file_count_; }
    uint64_t delete_file_size_bytes() const { return delete_file_size_bytes_; }
    // Rows deleted from the files present.
    uint64_t deleted_rows() const { return deleted_rows_; }

    // `see(segment, deletes)`: deletes is null when nothing was deleted of it.
    template <class See>
    void for_each(See &&see) const {
        Segment segment;
        for (const Part &part : parts_) {
            size_t next = 0;
            for (size_t i = 0; i < part.block->size(); i++) {
                part.block->get(i, segment);
                see(segment, part.deletes_of(segment.data_file_id, next));
            }
        }
    }
    // The quicker way for who wants statistics alone.
    template <class See>
    void for_each_without_path(See &&see) const {
        Segment segment;
        for (const Part &part : parts_) {
            for (size_t i = 0; i < part.block->size(); i++) {
                part.block->get(i, segment, false);
                see(segment);
            }
        }
    }
    std::optional<Segment> find(uint64_t data_file_id) const;
    const SegmentDeletes *deletes_of(uint64_t data_file_id) const;

    size_t block_count() const { return parts_.size(); }
    const SegmentBlock &block(size_t index) const { return *parts_[index].block; }
    // Whether block `index` is the very same memory as one of `other`.
    bool shares_block(size_t index, const SegmentList &other) const;
    size_t memory_bytes() const;

private:
    struct Part {
        std::shared_ptr<const SegmentBlock> block;
        std::shared_ptr<const Deletes> deletes;  // of this block's segments; null: none

        const SegmentDeletes *deletes_of(uint64_t id, size_t &next) const;
    };
    friend class SegmentPacker;
    void append(std::shared_ptr<SegmentBlock> block);
    void set_deletes(const Deletes &deletes);
    void count();

    std::vector<Part> parts_;
    size_t size_ = 0;
    uint64_t record_count_ = 0;
    uint64_t file_size_bytes_ = 0;
    size_t delete_file_count_ = 0;
    uint64_t delete_file_size_bytes_ = 0;
    uint64_t deleted_rows_ = 0;
};

// Makes lists from the catalog's rows, which come in any order: first all files, then their statistics and partition
// values. Takes about 250 bytes a file until take(). Not thread-safe.
class SegmentPacker {
public:
    SegmentPacker();
    ~SegmentPacker();
    SegmentPacker(const SegmentPacker &) = delete;
    SegmentPacker &operator=(const SegmentPacker &) = delete;

    // Without statistics and partition values.
    void add_file(uint64_t table_id, const Segment &segment);
    // Of a file that was not added: ignored.
    void add_stats(uint64_t data_file_id, const SegmentStats &stats);
    void add_partition_value(uint64_t data_file_id, const PartitionValue &value);
    size_t file_count() const;
    // By table. Leaves nothing behind.
    std::map<uint64_t, SegmentList> take();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace roost
