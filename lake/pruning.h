// Which segments of a table a scan with simple predicates has to read: those that DuckLake itself would read, by its
// file statistics and bucket partitions (it looks at no other partition values: files of other partitions differ in
// their statistics). Where its own pruning would lose rows (files older than a bucket partitioning, `x < 1 OR x IS
// NULL`) this keeps them. Pure, thread-safe. Called by routing and by whoever cuts a frozen catalog.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lake/lake_state.h"

namespace roost {

enum class Comparison : uint8_t { eq, ne, lt, le, gt, ge };

struct Predicate {
    enum class Kind : uint8_t { compare, in, is_null, is_not_null, all_of, any_of };

    Kind kind = Kind::all_of;
    uint64_t column_id = 0;  // of a top-level column
    Comparison comparison = Comparison::eq;
    // Of the column's type, as DuckDB's cast to VARCHAR writes them; one of them for compare. Never NULL.
    std::vector<std::string> constants;
    std::vector<Predicate> children;  // of all_of and any_of

    static Predicate compare(uint64_t column_id, Comparison comparison, std::string constant);
    static Predicate in(uint64_t column_id, std::vector<std::string> constants);
    static Predicate between(uint64_t column_id, std::string low, std::string high);
    static Predicate is_null(uint64_t column_id);
    static Predicate is_not_null(uint64_t column_id);
    static Predicate all_of(std::vector<Predicate> children);  // of none: true
    static Predicate any_of(std::vector<Predicate> children);  // of none: false
};

struct PrunedSegments {
    std::vector<uint64_t> data_file_ids;  // ascending
    uint64_t record_count = 0;
    uint64_t file_size_bytes = 0;
};
// REQUIRES: table.data
PrunedSegments prune(const TableState &table, const Predicate &predicate);

// The bucket that DuckLake puts a value into: Iceberg's murmur3 over the value as DuckDB holds it. Nothing where the
// type or the text is not known here.
std::optional<uint32_t> bucket_of(std::string_view type, std::string_view value, uint32_t buckets);

}  // namespace roost
