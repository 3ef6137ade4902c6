// Turns the rows of DuckLake's metadata tables into parts of a LakeState. Every call is inside a read transaction of
// the reader. Not thread-safe; used by LakeMirror alone.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "base/status.h"
#include "lake/call_limits.h"
#include "lake/lake_changes.h"
#include "lake/lake_state.h"
#include "lake/metadata_reader.h"

namespace roost {

// Of which tables; none given: of all.
using TableFilter = std::optional<std::set<uint64_t>>;

class LakeLoader {
public:
    using TableMap = std::map<uint64_t, std::shared_ptr<const TableDefinition>>;
    using DataMap = std::map<uint64_t, std::shared_ptr<const TableData>>;
    struct Definitions {
        std::string data_path;
        bool encrypted = false;
        std::shared_ptr<const LakeNames> names;
        TableMap tables;
    };
    // What is known of the commits after a snapshot.
    struct Since {
        LakeChanges changes;
        // The base is still there as it was, each commit after it is there, and all of them are understood.
        bool complete = false;
    };

    LakeLoader(MetadataReader &reader, const CallLimits &limits) : reader_(reader), limits_(limits) {}

    Result<LakeSnapshot> newest();
    // not_found when it expired or never was.
    Result<LakeSnapshot> snapshot(uint64_t id);
    // The newest one that is not younger. not_found when all are.
    Result<LakeSnapshot> snapshot_at(int64_t time_us);
    Result<Since> since(const LakeSnapshot &base, const LakeSnapshot &newest);

    Result<Definitions> definitions(uint64_t snapshot);
    // Of `tables`, which are those of the snapshot, and `filter`. `newest`: with the statistics of whole tables, which
    // are those of the newest snapshot. A table without contents may be missing.
    Result<DataMap> data(uint64_t snapshot, const TableMap &tables, const TableFilter &filter, bool newest);
    // What the columns of one table were at a snapshot. Children stand in their parents.
    Result<std::vector<LakeColumn>> columns(uint64_t table_id, uint64_t snapshot);

    // The data of `tables` brought forward from `base`, by files that are new since; `changed` are those of them that
    // may have lost something too.
    Result<DataMap> advance(const LakeState &base, uint64_t snapshot, const std::set<uint64_t> &tables,
                            const std::set<uint64_t> &changed);

private:
    using DeletesMap = std::map<uint64_t, std::map<uint64_t, SegmentDeletes>>;  // table, file
    using InlinedMap = std::map<uint64_t, std::vector<InlinedTable>>;
    using StatsMap = std::map<uint64_t, TableStats>;

    Status select(const std::string &sql, const std::function<void(const MetadataRow &)> &row);
    Result<LakeSnapshot> one_snapshot(const std::string &where);
    Status check_version(Definitions &into);
    Status read_tables(uint64_t snapshot, const Definitions &known, std::map<uint64_t, TableDefinition> &into);
    Status read_columns(uint64_t snapshot, const TableFilter &filter, std::map<uint64_t, TableDefinition> &into);
    Status read_partitions(uint64_t snapshot, std::map<uint64_t, TableDefinition> &into);
    Status read_tags(uint64_t snapshot, std::map<uint64_t, std::vector<LakeTag>> &into);
    Status read_views(uint64_t snapshot, LakeNames &into);
    Status read_macros(uint64_t snapshot, LakeNames &into);

    // Files that `where` is true of, packed by table. `first_new_id`: only files from this id on are asked for.
    Status read_segments(const std::string &where, const TableFilter &filter, std::optional<uint64_t> first_new_id,
                         std::map<uint64_t, SegmentList> &into);
    Status read_file_details(const TableFilter &filter, std::optional<uint64_t> first_new_id, SegmentPacker &packer);
    Status read_deletes(uint64_t snapshot, const TableFilter &filter, std::optional<uint64_t> first_new_id,
                        DeletesMap &into);
    // `there`: whether a table is one of the snapshot's; what dropped ones left behind may be half gone.
    using Known = std::function<bool(uint64_t)>;
    Status read_inlined_deletes(uint64_t snapshot, const Known &there, DeletesMap &into);
    Status read_inlined(uint64_t snapshot, const TableFilter &filter, const Known &there, InlinedMap &into);
    Status read_stats(const TableFilter &filter, StatsMap &into);

    MetadataReader &reader_;
    const CallLimits &limits_;
};

// Microseconds since 1970 of "2026-11-30 12:48:29.474095+00"; nothing where it is not one.
std::optional<int64_t> parse_snapshot_time(std::string_view text);

}  // namespace roost
