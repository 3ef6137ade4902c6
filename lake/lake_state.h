// What roost knows of one lake at one snapshot. Immutable, so threads share it without locks; what a commit leaves
// alone is shared between states. Made by LakeMirror; read by routing, guard, introspection, pruning and frozen
// catalogs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lake/segments.h"

namespace roost {

struct LakeTag {
    std::string key, value;
    friend bool operator==(const LakeTag &, const LakeTag &) = default;
};

struct LakeColumn {
    uint64_t id = 0;
    uint64_t order = 0;
    uint64_t begin_snapshot = 0;
    std::string name;
    std::string type;  // DuckLake's name of it: int32, decimal(18,3), struct, …
    std::optional<std::string> initial_default, default_value, default_value_type, default_value_dialect;
    bool nulls_allowed = true;
    std::vector<LakeTag> tags;
    std::vector<LakeColumn> children;  // of a struct, list or map
    friend bool operator==(const LakeColumn &, const LakeColumn &) = default;
};

struct PartitionField {
    uint64_t key_index = 0;
    uint64_t column_id = 0;
    std::string transform;  // identity, year, month, day, hour, bucket(N)
    friend bool operator==(const PartitionField &, const PartitionField &) = default;
};
struct PartitionSpec {
    uint64_t id = 0;
    std::vector<PartitionField> fields;
    friend bool operator==(const PartitionSpec &, const PartitionSpec &) = default;
};

struct LakeSchema {
    uint64_t id = 0;
    std::string uuid;
    std::string name;
    std::optional<std::string> path;
    bool path_is_relative = true;
    std::string data_path;  // the path, whole
    friend bool operator==(const LakeSchema &, const LakeSchema &) = default;
};

struct LakeView {
    uint64_t id = 0;
    std::string uuid;
    uint64_t schema_id = 0;
    std::string name, dialect, sql;
    std::string column_aliases;  // as DuckLake writes them: "a","b"
    std::vector<LakeTag> tags;
    friend bool operator==(const LakeView &, const LakeView &) = default;
};

struct MacroParameter {
    std::string name, type, default_value, default_value_type;
    friend bool operator==(const MacroParameter &, const MacroParameter &) = default;
};
struct MacroImplementation {
    std::string dialect, sql, type;  // type: scalar or table
    std::vector<MacroParameter> parameters;
    friend bool operator==(const MacroImplementation &, const MacroImplementation &) = default;
};
struct LakeMacro {
    uint64_t id = 0;
    uint64_t schema_id = 0;
    std::string name;
    std::vector<MacroImplementation> implementations;
    friend bool operator==(const LakeMacro &, const LakeMacro &) = default;
};

// What DDL changes of a table.
struct TableDefinition {
    uint64_t id = 0;
    std::string uuid;
    uint64_t begin_snapshot = 0;  // of this name
    uint64_t schema_id = 0;
    std::string schema_name, name;
    std::optional<std::string> path;
    bool path_is_relative = true;
    std::string data_path;  // the path, whole: relative paths of files go on from here
    std::vector<LakeColumn> columns;
    std::vector<LakeTag> tags;
    std::optional<PartitionSpec> partition;
    friend bool operator==(const TableDefinition &, const TableDefinition &) = default;

    // Case-insensitive as DuckDB; top-level columns.
    const LakeColumn *column(std::string_view name) const;
    const LakeColumn *column_by_id(uint64_t column_id) const;
};

// Rows that a small write left in the catalog itself. A table has one such place for each shape that it had.
struct InlinedTable {
    std::string name;
    uint64_t schema_version = 0;
    uint64_t rows = 0;  // visible at the snapshot
    friend bool operator==(const InlinedTable &, const InlinedTable &) = default;
};

struct TableColumnStats {
    uint64_t column_id = 0;
    std::optional<bool> contains_null, contains_nan;
    std::optional<std::string> min, max, extra;
    friend bool operator==(const TableColumnStats &, const TableColumnStats &) = default;
};
// DuckLake keeps these for the newest snapshot alone; they only ever widen.
struct TableStats {
    uint64_t record_count = 0;  // ever inserted
    uint64_t next_row_id = 0;
    uint64_t file_size_bytes = 0;
    std::vector<TableColumnStats> columns;
    friend bool operator==(const TableStats &, const TableStats &) = default;
};

// What DML and compaction change of a table.
struct TableData {
    SegmentList segments;
    std::vector<InlinedTable> inlined;  // those with rows
    std::optional<TableStats> stats;    // none: empty so far, or a state of the past

    uint64_t inlined_rows() const;
    uint64_t live_rows() const { return segments.record_count() - segments.deleted_rows() + inlined_rows(); }
};

struct TableState {
    std::shared_ptr<const TableDefinition> definition;
    std::shared_ptr<const TableData> data;  // null in a state of the past where it was not asked for

    uint64_t id() const { return definition->id; }
    // The whole path of a data or delete file.
    std::string resolve(std::string_view path, bool is_relative) const;
};

// Everything with a name but tables' contents.
struct LakeNames {
    std::vector<LakeSchema> schemas;  // by id
    std::vector<LakeView> views;      // by id
    std::vector<LakeMacro> macros;    // by id
    friend bool operator==(const LakeNames &, const LakeNames &) = default;
};

struct LakeSnapshot {
    uint64_t id = 0;
    int64_t time_us = 0;  // since 1970 UTC
    uint64_t schema_version = 0;
    uint64_t next_catalog_id = 0;
    uint64_t next_file_id = 0;
    friend bool operator==(const LakeSnapshot &, const LakeSnapshot &) = default;
};

class LakeState {
public:
    using Tables = std::vector<std::shared_ptr<const TableState>>;  // by id

    LakeState(LakeSnapshot snapshot, std::string data_path, bool encrypted, std::shared_ptr<const LakeNames> names,
              Tables tables);
    // The names are indexed as in `before`, whose names and definitions are the same.
    LakeState(const LakeState &before, LakeSnapshot snapshot, Tables tables);

    const LakeSnapshot &snapshot() const { return snapshot_; }
    // The newest snapshot of the lake when this was read: another one than snapshot() for a state of the past.
    const LakeSnapshot &known_until() const { return known_until_; }
    void set_known_until(const LakeSnapshot &newest) { known_until_ = newest; }  // before it is shared
    const std::string &data_path() const { return data_path_; }
    bool encrypted() const { return encrypted_; }
    const LakeNames &names() const { return *names_; }
    const std::shared_ptr<const LakeNames> &shared_names() const { return names_; }
    const Tables &tables() const { return tables_; }

    // Case-insensitive as DuckDB; null when there is none. Tables and views share their names.
    std::shared_ptr<const TableState> table(std::string_view schema, std::string_view name) const;
    std::shared_ptr<const TableState> table(uint64_t table_id) const;
    const LakeView *view(std::string_view schema, std::string_view name) const;
    const LakeMacro *macro(std::string_view schema, std::string_view name) const;
    const LakeSchema *schema(std::string_view name) const;
    const LakeSchema *schema(uint64_t schema_id) const;

    size_t memory_bytes() const;

private:
    struct Index;
    LakeSnapshot snapshot_;
    LakeSnapshot known_until_;
    std::string data_path_;
    bool encrypted_;
    std::shared_ptr<const LakeNames> names_;
    Tables tables_;
    std::shared_ptr<const Index> index_;
};

// Everything a state holds as text, one line each, for tests and for a person to compare; of keys only that there are.
std::string describe(const LakeState &state);
std::string describe(const TableState &table);

// ASCII letters in lower case, as DuckDB compares names.
std::string folded(std::string_view name);

}  // namespace roost
