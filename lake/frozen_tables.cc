#include "lake/frozen_tables.h"

#include <algorithm>

#include "lake/bounds.h"

namespace roost {

namespace {

using duckdb::Value;

// As DuckLake makes them, without the primary keys: nobody writes here.
constexpr std::string_view kTables[] = {
    "ducklake_metadata(key VARCHAR, value VARCHAR, scope VARCHAR, scope_id BIGINT)",
    "ducklake_snapshot(snapshot_id BIGINT, snapshot_time TIMESTAMPTZ, schema_version BIGINT, next_catalog_id BIGINT, "
    "next_file_id BIGINT)",
    "ducklake_snapshot_changes(snapshot_id BIGINT, changes_made VARCHAR, author VARCHAR, commit_message VARCHAR, "
    "commit_extra_info VARCHAR)",
    "ducklake_schema(schema_id BIGINT, schema_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_name "
    "VARCHAR, path VARCHAR, path_is_relative BOOLEAN)",
    "ducklake_table(table_id BIGINT, table_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, "
    "table_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN)",
    "ducklake_view(view_id BIGINT, view_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, "
    "view_name VARCHAR, dialect VARCHAR, sql VARCHAR, column_aliases VARCHAR)",
    "ducklake_tag(object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR, value VARCHAR)",
    "ducklake_column_tag(table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR, "
    "value VARCHAR)",
    "ducklake_data_file(data_file_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, file_order "
    "BIGINT, path VARCHAR, path_is_relative BOOLEAN, file_format VARCHAR, record_count BIGINT, file_size_bytes BIGINT, "
    "footer_size BIGINT, row_id_start BIGINT, partition_id BIGINT, encryption_key VARCHAR, mapping_id BIGINT, "
    "partial_max BIGINT)",
    "ducklake_file_column_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, column_size_bytes BIGINT, "
    "value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BOOLEAN, extra_stats "
    "VARCHAR)",
    "ducklake_file_variant_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR, "
    "shredded_type VARCHAR, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, "
    "max_value VARCHAR, contains_nan BOOLEAN, extra_stats VARCHAR)",
    "ducklake_delete_file(delete_file_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, "
    "data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, format VARCHAR, delete_count BIGINT, file_size_bytes "
    "BIGINT, footer_size BIGINT, encryption_key VARCHAR, partial_max BIGINT)",
    "ducklake_column(column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT, column_order "
    "BIGINT, "
    "column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR, default_value VARCHAR, nulls_allowed BOOLEAN, "
    "parent_column BIGINT, default_value_type VARCHAR, default_value_dialect VARCHAR)",
    "ducklake_table_stats(table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT)",
    "ducklake_table_column_stats(table_id BIGINT, column_id BIGINT, contains_null BOOLEAN, contains_nan BOOLEAN, "
    "min_value VARCHAR, max_value VARCHAR, extra_stats VARCHAR)",
    "ducklake_partition_info(partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT)",
    "ducklake_partition_column(partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT, "
    "transform VARCHAR)",
    "ducklake_file_partition_value(data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value "
    "VARCHAR)",
    "ducklake_files_scheduled_for_deletion(data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, schedule_start "
    "TIMESTAMPTZ)",
    "ducklake_inlined_data_tables(table_id BIGINT, table_name VARCHAR, schema_version BIGINT)",
    "ducklake_column_mapping(mapping_id BIGINT, table_id BIGINT, type VARCHAR)",
    "ducklake_name_mapping(mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT, "
    "parent_column BIGINT, is_partition BOOLEAN)",
    "ducklake_schema_versions(begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT)",
    "ducklake_macro(schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT)",
    "ducklake_macro_impl(macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, sql VARCHAR, type VARCHAR)",
    "ducklake_macro_parameters(macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR, "
    "parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR)",
    "ducklake_sort_info(sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT)",
    "ducklake_sort_expression(sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR, dialect "
    "VARCHAR, sort_direction VARCHAR, null_order VARCHAR)",
};

// Rows between two looks at the limits.
constexpr uint64_t kLimitsEvery = 1'000;

struct Null {};

void put(duckdb::Appender &appender, Null) { appender.Append(nullptr); }
void put(duckdb::Appender &appender, uint64_t value) { appender.Append(static_cast<int64_t>(value)); }
void put(duckdb::Appender &appender, bool value) { appender.Append(value); }
void put(duckdb::Appender &appender, std::string_view value) {
    appender.Append(duckdb::string_t(value.data(), static_cast<uint32_t>(value.size())));
}
void put(duckdb::Appender &appender, const std::string &value) { put(appender, std::string_view(value)); }
void put(duckdb::Appender &appender, const char *value) { put(appender, std::string_view(value)); }
void put(duckdb::Appender &appender, const Value &value) { appender.Append(value); }
template <class T>
void put(duckdb::Appender &appender, const std::optional<T> &value) {
    value ? put(appender, *value) : put(appender, Null());
}

template <class... Cells>
void row(duckdb::Appender &appender, const Cells &...cells) {
    appender.BeginRow();
    (put(appender, cells), ...);
    appender.EndRow();
}

std::optional<std::string_view> unless_empty(std::string_view text) {
    return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace

std::string frozen_schema_sql() {
    std::string sql;
    for (const std::string_view table : kTables) {
        sql.append("CREATE TABLE ").append(kFrozenDatabase).append(".").append(table).append(";");
    }
    return sql;
}

FrozenRows::FrozenRows(duckdb::Connection &connection, const LakeState &state)
    : connection_(connection), state_(state) {}

duckdb::Appender &FrozenRows::into(const char *table) {
    auto &appender = appenders_[table];
    if (!appender) appender = std::make_unique<duckdb::Appender>(connection_, kFrozenDatabase, "main", table);
    return *appender;
}

void FrozenRows::close() {
    for (auto &[table, appender] : appenders_) appender->Close();
    appenders_.clear();
}

void FrozenRows::lake() {
    const LakeSnapshot &snapshot = state_.snapshot();
    for (const auto &[key, value] : {std::pair<const char *, std::string>{"version", "1.0"},
                                     {"created_by", "roost"},
                                     {"data_path", state_.data_path()},
                                     {"encrypted", state_.encrypted() ? "true" : "false"}}) {
        row(into("ducklake_metadata"), key, value, Null(), Null());
    }
    row(into("ducklake_snapshot"), snapshot.id, Value::TIMESTAMPTZ(duckdb::timestamp_tz_t(snapshot.time_us)),
        snapshot.schema_version, snapshot.next_catalog_id, snapshot.next_file_id);
    row(into("ducklake_snapshot_changes"), snapshot.id, Null(), Null(), Null(), Null());
    // Rows in the catalog are read in the shape of the table as it was at an older snapshot. What is not needed there
    // is there from this snapshot on alone.
    const uint64_t since = snapshot.id;
    for (const LakeSchema &schema : state_.names().schemas) {
        row(into("ducklake_schema"), schema.id, Value::UUID(schema.uuid), uint64_t{0}, Null(), schema.name, schema.path,
            schema.path_is_relative);
    }
    for (const LakeView &view : state_.names().views) {
        row(into("ducklake_view"), view.id, Value::UUID(view.uuid), since, Null(), view.schema_id, view.name,
            view.dialect, view.sql, view.column_aliases);
        for (const LakeTag &tag : view.tags) row(into("ducklake_tag"), view.id, since, Null(), tag.key, tag.value);
    }
    for (const LakeMacro &macro : state_.names().macros) {
        row(into("ducklake_macro"), macro.schema_id, macro.id, macro.name, since, Null());
        uint64_t implementation = 0;
        for (const MacroImplementation &each : macro.implementations) {
            row(into("ducklake_macro_impl"), macro.id, implementation, each.dialect, each.sql, each.type);
            uint64_t at = 0;
            for (const MacroParameter &parameter : each.parameters) {
                row(into("ducklake_macro_parameters"), macro.id, implementation, at++, parameter.name, parameter.type,
                    parameter.default_value, parameter.default_value_type);
            }
            implementation++;
        }
    }
}

void FrozenRows::column(uint64_t table_id, const LakeColumn &column, std::optional<uint64_t> parent) {
    row(into("ducklake_column"), column.id, state_.snapshot().id, Null(), table_id, column.order, column.name,
        column.type, column.initial_default, column.default_value, column.nulls_allowed, parent,
        column.default_value_type, column.default_value_dialect);
    for (const LakeColumn &child : column.children) this->column(table_id, child, column.id);
}

void FrozenRows::definition(const TableState &table, bool with_columns) {
    const TableDefinition &definition = *table.definition;
    const uint64_t since = state_.snapshot().id;
    for (const LakeTag &tag : definition.tags) {
        row(into("ducklake_tag"), definition.id, since, Null(), tag.key, tag.value);
    }
    for (const LakeColumn &each : definition.columns) {
        for (const LakeTag &tag : each.tags) {
            row(into("ducklake_column_tag"), definition.id, each.id, since, Null(), tag.key, tag.value);
        }
    }
    if (!with_columns) return;
    // Whole or not at all: a column of today alone, at a snapshot where its parent was another row, fails the whole
    // load of that snapshot, which reading another table's rows in the catalog may need.
    row(into("ducklake_table"), definition.id, Value::UUID(definition.uuid), since, Null(), definition.schema_id,
        definition.name, definition.path, definition.path_is_relative);
    for (const LakeColumn &each : definition.columns) column(definition.id, each, std::nullopt);
}

void FrozenRows::partition(const TableDefinition &table) {
    if (!table.partition) return;
    // DuckLake takes files without a bucket for files of no bucket: rather no bucket pruning than lost rows.
    for (const PartitionField &field : table.partition->fields) {
        if (field.transform.starts_with("bucket") && !written_.all_partitioned) return;
    }
    const uint64_t since = state_.snapshot().id;
    row(into("ducklake_partition_info"), table.partition->id, table.id, since, Null());
    for (const PartitionField &field : table.partition->fields) {
        row(into("ducklake_partition_column"), table.partition->id, table.id, field.key_index, field.column_id,
            field.transform);
    }
}

bool FrozenRows::segments(const TableState &table, const FrozenTable &asked, const CallLimits &limits) {
    written_ = {};
    bool in_time = true;
    if (!asked.data_file_ids) {
        table.data->segments.for_each([&](const Segment &each, const SegmentDeletes *deletes) {
            in_time = in_time && (written_.count % kLimitsEvery != 0 || !limits.over());
            if (in_time) segment(table, each, deletes);
        });
    } else {
        for (const uint64_t id : *asked.data_file_ids) {
            const auto found = table.data->segments.find(id);
            if (!found) continue;
            if (limits.over()) return false;
            segment(table, *found, table.data->segments.deletes_of(id));
        }
    }
    partition(*table.definition);
    return in_time;
}

void FrozenRows::segment(const TableState &table, const Segment &each, const SegmentDeletes *deletes) {
    const uint64_t table_id = table.id();
    row(into("ducklake_data_file"), each.data_file_id, table_id, each.begin_snapshot, Null(), each.file_order,
        each.path, each.path_is_relative, each.format, each.record_count, each.file_size_bytes, each.footer_size_bytes,
        each.row_id_start, each.partition_id, unless_empty(each.encryption_key), each.mapping_id, each.partial_max);
    for (const SegmentStats &stats : each.stats) {
        row(into("ducklake_file_column_stats"), each.data_file_id, table_id, stats.column_id, stats.size_bytes,
            stats.value_count, stats.null_count, stats.min, stats.max, stats.contains_nan, stats.extra);
    }
    for (const PartitionValue &value : each.partition_values) {
        row(into("ducklake_file_partition_value"), each.data_file_id, table_id, static_cast<uint64_t>(value.key_index),
            value.value);
    }
    if (deletes != nullptr && deletes->file) {
        const DeleteFile &file = *deletes->file;
        row(into("ducklake_delete_file"), file.delete_file_id, table_id, file.begin_snapshot, Null(), file.data_file_id,
            file.path, file.path_is_relative, file.format, file.delete_count, file.file_size_bytes,
            file.footer_size_bytes, unless_empty(file.encryption_key), file.partial_max);
    }
    if (deletes != nullptr && deletes->inlined_rows > 0) written_.with_inlined_deletes.push_back(each.data_file_id);
    if (each.mapping_id) written_.mapping_ids.insert(*each.mapping_id);
    const auto &partition = table.definition->partition;
    if (partition && each.partition_id != partition->id) written_.all_partitioned = false;
    written_.count++;
    written_.record_count += each.record_count;
    written_.file_size_bytes += each.file_size_bytes;
}

void FrozenRows::stats(const TableState &table, const FrozenTable &asked) {
    if (!table.data->stats) return;
    const TableStats &stats = *table.data->stats;
    // DuckLake answers min and max from these when as many rows are there as were ever inserted. Of a part of a table
    // the bounds hold still, but need not be met: the count has to differ.
    const bool whole = !asked.data_file_ids && asked.inlined_rows;
    const uint64_t records = whole ? stats.record_count : written_.record_count + table.data->inlined_rows() + 1;
    row(into("ducklake_table_stats"), table.id(), records, stats.next_row_id,
        whole ? stats.file_size_bytes : written_.file_size_bytes);
    for (const TableColumnStats &told : stats.columns) {
        const TableColumnStats column = held_stats(table, told);
        row(into("ducklake_table_column_stats"), table.id(), column.column_id, column.contains_null,
            column.contains_nan, column.min, column.max, column.extra);
    }
}

}  // namespace roost
