#include <algorithm>

#include "lake/ducklake.h"
#include "lake/lake_loader.h"

// The half of LakeLoader that reads what tables hold: files, their statistics, deletes, rows kept in the catalog.

namespace roost {

namespace {

constexpr std::string_view kInlinedDeletePrefix = "ducklake_inlined_delete_";
// Tables asked in one statement; SQLite takes at most 500.
constexpr size_t kUnionMax = 100;

std::string live(uint64_t snapshot) {
    const std::string id = std::to_string(snapshot);
    return "begin_snapshot <= " + id + " AND (end_snapshot IS NULL OR end_snapshot > " + id + ")";
}

std::string in_tables(const TableFilter &filter) {
    if (!filter) return "";
    std::string list;
    for (const uint64_t id : *filter) list += (list.empty() ? "" : ", ") + std::to_string(id);
    return " AND table_id IN (" + list + ")";
}

std::optional<bool> maybe_boolean(const MetadataRow &row, int column) {
    return row.is_null(column) ? std::nullopt : std::optional<bool>(row.boolean(column));
}
std::optional<std::string_view> maybe_text(const MetadataRow &row, int column) {
    return row.is_null(column) ? std::nullopt : std::optional<std::string_view>(row.text(column));
}

Segment segment_of(const MetadataRow &row) {
    Segment segment;
    segment.data_file_id = row.id(0);
    segment.begin_snapshot = row.id(2);
    segment.file_order = row.maybe_id(3);
    segment.path = row.string(4);
    segment.path_is_relative = row.boolean(5);
    segment.format = row.text(6);
    segment.record_count = row.id(7);
    segment.file_size_bytes = row.id(8);
    segment.footer_size_bytes = row.maybe_id(9);
    segment.row_id_start = row.maybe_id(10);
    segment.partition_id = row.maybe_id(11);
    segment.encryption_key = row.text(12);
    segment.mapping_id = row.maybe_id(13);
    segment.partial_max = row.maybe_id(14);
    return segment;
}

}  // namespace

Status LakeLoader::read_segments(const std::string &where, const TableFilter &filter,
                                 std::optional<uint64_t> first_new_id, std::map<uint64_t, SegmentList> &into) {
    SegmentPacker packer;
    const std::string from_id = first_new_id ? " AND data_file_id >= " + std::to_string(*first_new_id) : "";
    ROOST_RETURN_IF_ERROR(
        select("SELECT data_file_id, table_id, begin_snapshot, file_order, path, path_is_relative, file_format, "
               "record_count, file_size_bytes, footer_size, row_id_start, partition_id, encryption_key, mapping_id, "
               "partial_max FROM ducklake_data_file WHERE " +
                   where + in_tables(filter) + from_id,
               [&](const MetadataRow &row) { packer.add_file(row.id(1), segment_of(row)); }));
    if (packer.file_count() > 0) ROOST_RETURN_IF_ERROR(read_file_details(filter, first_new_id, packer));
    into = packer.take();
    return Status();
}

Status LakeLoader::read_file_details(const TableFilter &filter, std::optional<uint64_t> first_new_id,
                                     SegmentPacker &packer) {
    // Neither table has an index. New files' rows are the last ones, so where rows can be read backwards that ends at
    // the first row of a file that is not new.
    const std::string_view backwards = first_new_id ? reader_.newest_first() : std::string_view();
    std::string tail = in_tables(filter);
    if (!backwards.empty()) {
        tail = backwards;
    } else if (first_new_id) {
        tail += " AND data_file_id >= " + std::to_string(*first_new_id);
    }
    const auto more = [&](uint64_t data_file_id) { return backwards.empty() || data_file_id >= *first_new_id; };
    ROOST_RETURN_IF_ERROR(reader_.select(
        "SELECT data_file_id, column_id, column_size_bytes, value_count, null_count, min_value, max_value, "
        "contains_nan, "
        "extra_stats FROM ducklake_file_column_stats WHERE 1 = 1" +
            tail,
        [&](const MetadataRow &row) {
            if (!more(row.id(0))) return false;
            packer.add_stats(row.id(0), {.column_id = row.id(1),
                                         .value_count = row.maybe_id(3),
                                         .null_count = row.maybe_id(4),
                                         .size_bytes = row.maybe_id(2),
                                         .min = maybe_text(row, 5),
                                         .max = maybe_text(row, 6),
                                         .extra = maybe_text(row, 8),
                                         .contains_nan = maybe_boolean(row, 7)});
            return true;
        },
        limits_));
    return reader_.select(
        "SELECT data_file_id, partition_key_index, partition_value FROM ducklake_file_partition_value WHERE 1 = 1" +
            tail,
        [&](const MetadataRow &row) {
            if (!more(row.id(0))) return false;
            packer.add_partition_value(row.id(0),
                                       {.key_index = static_cast<uint32_t>(row.id(1)), .value = maybe_text(row, 2)});
            return true;
        },
        limits_);
}

Status LakeLoader::read_deletes(uint64_t snapshot, const TableFilter &filter, std::optional<uint64_t> first_new_id,
                                DeletesMap &into) {
    const std::string from_id = first_new_id ? " AND delete_file_id >= " + std::to_string(*first_new_id) : "";
    return select(
        "SELECT delete_file_id, table_id, data_file_id, begin_snapshot, path, path_is_relative, format, delete_count, "
        "file_size_bytes, footer_size, encryption_key, partial_max FROM ducklake_delete_file WHERE " +
            live(snapshot) + in_tables(filter) + from_id + " ORDER BY delete_file_id",
        [&](const MetadataRow &row) {
            into[row.id(1)][row.id(2)].file = {.delete_file_id = row.id(0),
                                               .data_file_id = row.id(2),
                                               .begin_snapshot = row.id(3),
                                               .path = row.string(4),
                                               .path_is_relative = row.boolean(5),
                                               .format = row.string(6),
                                               .delete_count = row.id(7),
                                               .file_size_bytes = row.id(8),
                                               .footer_size_bytes = row.maybe_id(9),
                                               .partial_max = row.maybe_id(11),
                                               .encryption_key = row.string(10)};
        });
}

Status LakeLoader::read_inlined_deletes(uint64_t snapshot, const Known &there, DeletesMap &into) {
    ROOST_ASSIGN_OR_RETURN(const std::vector<std::string> names, reader_.tables_like(kInlinedDeletePrefix, limits_));
    for (const std::string &name : names) {
        uint64_t table_id = 0;
        const std::string digits = name.substr(kInlinedDeletePrefix.size());
        if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) continue;
        table_id = std::stoull(digits);
        if (!there(table_id)) continue;
        ROOST_RETURN_IF_ERROR(
            select("SELECT file_id, count(*) FROM " + quote_identifier(name) +
                       " WHERE begin_snapshot <= " + std::to_string(snapshot) + " GROUP BY file_id",
                   [&](const MetadataRow &row) { into[table_id][row.id(0)].inlined_rows = row.id(1); }));
    }
    return Status();
}

Status LakeLoader::read_inlined(uint64_t snapshot, const TableFilter &filter, const Known &there, InlinedMap &into) {
    std::vector<std::pair<uint64_t, InlinedTable>> tables;
    ROOST_RETURN_IF_ERROR(select(
        "SELECT table_id, table_name, schema_version FROM ducklake_inlined_data_tables WHERE "
        "1 = 1" +
            in_tables(filter) + " ORDER BY table_id, schema_version",
        [&](const MetadataRow &row) {
            if (!there(row.id(0))) return;
            tables.emplace_back(row.id(0), InlinedTable{.name = row.string(1), .schema_version = row.id(2), .rows = 0});
        }));
    for (size_t from = 0; from < tables.size(); from += kUnionMax) {
        std::string sql;
        for (size_t i = from; i < std::min(tables.size(), from + kUnionMax); i++) {
            sql += (sql.empty() ? "SELECT " : " UNION ALL SELECT ") + std::to_string(i) + ", count(*) FROM " +
                   quote_identifier(tables[i].second.name) + " WHERE " + live(snapshot);
        }
        ROOST_RETURN_IF_ERROR(select(sql, [&](const MetadataRow &row) { tables[row.id(0)].second.rows = row.id(1); }));
    }
    // Empty ones of an older shape DuckLake drops at times, of any table and without a word in its changes.
    for (auto &[table_id, table] : tables) {
        if (table.rows > 0) into[table_id].push_back(std::move(table));
    }
    return Status();
}

Status LakeLoader::read_stats(const TableFilter &filter, StatsMap &into) {
    ROOST_RETURN_IF_ERROR(select(
        "SELECT table_id, record_count, next_row_id, file_size_bytes FROM ducklake_table_stats "
        "WHERE record_count IS NOT NULL AND file_size_bytes IS NOT NULL" +
            in_tables(filter),
        [&](const MetadataRow &row) {
            into[row.id(0)] = {
                .record_count = row.id(1), .next_row_id = row.id(2), .file_size_bytes = row.id(3), .columns = {}};
        }));
    return select(
        "SELECT table_id, column_id, contains_null, contains_nan, min_value, max_value, extra_stats FROM "
        "ducklake_table_column_stats WHERE 1 = 1" +
            in_tables(filter) + " ORDER BY table_id, column_id",
        [&](const MetadataRow &row) {
            const auto table = into.find(row.id(0));
            if (table == into.end()) return;
            table->second.columns.push_back({.column_id = row.id(1),
                                             .contains_null = maybe_boolean(row, 2),
                                             .contains_nan = maybe_boolean(row, 3),
                                             .min = row.maybe_string(4),
                                             .max = row.maybe_string(5),
                                             .extra = row.maybe_string(6)});
        });
}

Result<LakeLoader::DataMap> LakeLoader::data(uint64_t snapshot, const TableMap &tables, const TableFilter &filter,
                                             bool newest) {
    DataMap result;
    if (filter && filter->empty()) return result;
    const Known there = [&](uint64_t id) { return tables.contains(id) && (!filter || filter->contains(id)); };
    std::map<uint64_t, SegmentList> segments;
    DeletesMap deletes;
    InlinedMap inlined;
    StatsMap stats;
    ROOST_RETURN_IF_ERROR(read_segments(live(snapshot), filter, std::nullopt, segments));
    ROOST_RETURN_IF_ERROR(read_deletes(snapshot, filter, std::nullopt, deletes));
    ROOST_RETURN_IF_ERROR(read_inlined_deletes(snapshot, there, deletes));
    ROOST_RETURN_IF_ERROR(read_inlined(snapshot, filter, there, inlined));
    if (newest) ROOST_RETURN_IF_ERROR(read_stats(filter, stats));
    std::map<uint64_t, std::shared_ptr<TableData>> made;
    const auto of = [&](uint64_t id) -> TableData & {
        auto &data = made[id];
        if (!data) data = std::make_shared<TableData>();
        return *data;
    };
    for (auto &[id, list] : segments) of(id).segments = std::move(list);
    for (auto &[id, each] : deletes) {
        TableData &data = of(id);
        data.segments = data.segments.with_deletes(SegmentList::Deletes(each.begin(), each.end()));
    }
    for (auto &[id, each] : inlined) of(id).inlined = std::move(each);
    for (auto &[id, each] : stats) of(id).stats = std::move(each);
    for (auto &[id, data] : made) result.emplace(id, std::move(data));
    return result;
}

Result<LakeLoader::DataMap> LakeLoader::advance(const LakeState &base, uint64_t snapshot,
                                                const std::set<uint64_t> &tables, const std::set<uint64_t> &changed) {
    DataMap result;
    if (tables.empty()) return result;
    std::map<uint64_t, SegmentList> added;
    std::map<uint64_t, std::set<uint64_t>> ended;
    DeletesMap deletes;
    InlinedMap inlined;
    StatsMap stats;
    ROOST_RETURN_IF_ERROR(read_segments(live(snapshot), tables, base.snapshot().next_file_id, added));
    ROOST_RETURN_IF_ERROR(read_stats(tables, stats));
    // A transaction may delete some of what it inserted, and says only that it inserted.
    DeletesMap of_added;
    const Known grown = [&](uint64_t id) { return added.contains(id) && !changed.contains(id); };
    ROOST_RETURN_IF_ERROR(read_deletes(snapshot, tables, base.snapshot().next_file_id, of_added));
    ROOST_RETURN_IF_ERROR(read_inlined_deletes(snapshot, grown, of_added));
    if (!changed.empty()) {
        ROOST_RETURN_IF_ERROR(select("SELECT table_id, data_file_id FROM ducklake_data_file WHERE end_snapshot > " +
                                         std::to_string(base.snapshot().id) +
                                         " AND end_snapshot <= " + std::to_string(snapshot) + in_tables(changed),
                                     [&](const MetadataRow &row) { ended[row.id(0)].insert(row.id(1)); }));
        ROOST_RETURN_IF_ERROR(read_deletes(snapshot, changed, std::nullopt, deletes));
        const Known there = [&](uint64_t id) { return changed.contains(id); };
        ROOST_RETURN_IF_ERROR(read_inlined_deletes(snapshot, there, deletes));
        ROOST_RETURN_IF_ERROR(read_inlined(snapshot, changed, there, inlined));
    }
    for (const uint64_t id : tables) {
        const auto table = base.table(id);
        if (!table) return Status(Code::internal, "a table that was not there was to be brought forward");
        auto data = std::make_shared<TableData>(*table->data);
        const bool all = changed.contains(id);
        const SegmentList::Deletes mine(deletes[id].begin(), deletes[id].end());
        SegmentList &fresh = added[id];
        fresh = fresh.with_deletes(SegmentList::Deletes(of_added[id].begin(), of_added[id].end()));
        data->segments = table->data->segments.changed(ended[id], fresh, all ? &mine : nullptr);
        if (all) data->inlined = std::move(inlined[id]);
        const auto known = stats.find(id);
        data->stats.reset();
        if (known != stats.end()) data->stats = std::move(known->second);
        result.emplace(id, std::move(data));
    }
    return result;
}

}  // namespace roost
