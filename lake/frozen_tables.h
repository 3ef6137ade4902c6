// DuckLake's metadata tables (version 1.0) in a DuckDB file, and their rows. Not thread-safe; used by
// FrozenCatalogWriter alone. Methods throw DuckDB's exceptions.
#pragma once

#include <memory>
#include <string>

#include "duckdb.hpp"
#include "lake/frozen_catalog.h"

namespace roost {

// The name under which the file is attached while it is written.
inline constexpr const char *kFrozenDatabase = "frozen";

// Statements that make the tables.
std::string frozen_schema_sql();

class FrozenRows {
public:
    FrozenRows(duckdb::Connection &connection, const LakeState &state);

    // Everything that is not of one table: settings, the snapshot, schemas, views, macros.
    void lake();
    void definition(const TableState &table, bool with_columns);
    // The segments of `table` that were asked for; each one's pieces of it. False when the limits are over.
    bool segments(const TableState &table, const FrozenTable &asked, const CallLimits &limits);
    void stats(const TableState &table, const FrozenTable &asked);

    struct Segments {
        uint64_t count = 0, record_count = 0, file_size_bytes = 0;
        bool all_partitioned = true;  // each by the table's present partitioning
        std::set<uint64_t> mapping_ids;
        std::vector<uint64_t> with_inlined_deletes;
    };
    const Segments &written() const { return written_; }
    void close();

private:
    void column(uint64_t table_id, const LakeColumn &column, std::optional<uint64_t> parent);
    void partition(const TableDefinition &table);
    void segment(const TableState &table, const Segment &segment, const SegmentDeletes *deletes);
    duckdb::Appender &into(const char *table);

    duckdb::Connection &connection_;
    const LakeState &state_;
    std::map<std::string, std::unique_ptr<duckdb::Appender>> appenders_;
    Segments written_;
};

}  // namespace roost
