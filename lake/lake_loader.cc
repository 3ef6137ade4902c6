#include "lake/lake_loader.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace roost {

namespace {

constexpr std::string_view kVersion = "1.0";

std::string live(std::string_view table, uint64_t snapshot) {
    const std::string id = std::to_string(snapshot);
    const std::string prefix = table.empty() ? "" : std::string(table) + ".";
    return "(" + prefix + "begin_snapshot <= " + id + " AND (" + prefix + "end_snapshot IS NULL OR " + prefix +
           "end_snapshot > " + id + "))";
}

// Adds children to their parents, however deep; columns come in the order in which a parent's children stand.
void build_tree(std::vector<std::pair<std::optional<uint64_t>, LakeColumn>> rows, TableDefinition &into) {
    std::map<uint64_t, std::vector<LakeColumn>> children;
    for (auto &[parent, column] : rows) {
        if (parent) children[*parent].push_back(std::move(column));
    }
    const std::function<void(LakeColumn &)> adopt = [&](LakeColumn &column) {
        const auto mine = children.find(column.id);
        if (mine == children.end()) return;
        column.children = std::move(mine->second);
        children.erase(mine);
        for (LakeColumn &child : column.children) adopt(child);
    };
    for (auto &[parent, column] : rows) {
        if (parent) continue;
        adopt(column);
        into.columns.push_back(std::move(column));
    }
}

std::string whole_path(const std::optional<std::string> &path, bool is_relative, const std::string &base) {
    if (!path) return base;
    return is_relative ? base + *path : *path;
}

}  // namespace

std::optional<int64_t> parse_snapshot_time(std::string_view text) {
    // The last number of each field ends where the next character is none.
    size_t at = 0;
    const auto number = [&](char before, int64_t &value) {
        if (before != 0) {
            if (at >= text.size() || text[at] != before) return false;
            at++;
        }
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
        at = static_cast<size_t>(end - text.data());
        return error == std::errc();
    };
    int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    if (!number(0, year) || !number('-', month) || !number('-', day)) return std::nullopt;
    if (at < text.size() && text[at] == 'T') {
        if (!number('T', hour)) return std::nullopt;
    } else if (!number(' ', hour)) {
        return std::nullopt;
    }
    if (!number(':', minute) || !number(':', second)) return std::nullopt;
    int64_t micros = 0;
    if (at < text.size() && text[at] == '.') {
        int64_t unit = 100'000;
        for (at++; at < text.size() && text[at] >= '0' && text[at] <= '9'; at++, unit /= 10) {
            micros += (text[at] - '0') * unit;
        }
    }
    int64_t offset_s = 0;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
        const bool west = text[at] == '-';
        int64_t hours = 0, minutes = 0, seconds = 0;
        at++;
        if (!number(0, hours)) return std::nullopt;
        if (at < text.size() && !number(':', minutes)) return std::nullopt;
        if (at < text.size() && !number(':', seconds)) return std::nullopt;
        offset_s = (hours * 3600 + minutes * 60 + seconds) * (west ? -1 : 1);
    }
    const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok()) return std::nullopt;
    const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    return (days * 86'400 + hour * 3600 + minute * 60 + second - offset_s) * 1'000'000 + micros;
}

Status LakeLoader::select(const std::string &sql, const std::function<void(const MetadataRow &)> &row) {
    return reader_.select(
        sql,
        [&](const MetadataRow &each) {
            row(each);
            return true;
        },
        limits_);
}

Result<LakeSnapshot> LakeLoader::one_snapshot(const std::string &where) {
    std::optional<LakeSnapshot> found;
    ROOST_RETURN_IF_ERROR(select(
        "SELECT snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot " +
            where,
        [&](const MetadataRow &row) {
            found = {.id = row.id(0),
                     .time_us = parse_snapshot_time(row.text(1)).value_or(0),
                     .schema_version = row.id(2),
                     .next_catalog_id = row.id(3),
                     .next_file_id = row.id(4)};
        }));
    if (!found) return Status(Code::not_found, "the lake has no such snapshot");
    return *found;
}

Result<LakeSnapshot> LakeLoader::newest() {
    auto found = one_snapshot("WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)");
    if (found.status().code() == Code::not_found) return Status(Code::io_error, "the lake's catalog has no snapshot");
    return found;
}

Result<LakeSnapshot> LakeLoader::snapshot(uint64_t id) {
    return one_snapshot("WHERE snapshot_id = " + std::to_string(id));
}

Result<LakeSnapshot> LakeLoader::snapshot_at(int64_t time_us) {
    std::optional<std::pair<int64_t, uint64_t>> best;
    ROOST_RETURN_IF_ERROR(
        select("SELECT snapshot_id, snapshot_time FROM ducklake_snapshot", [&](const MetadataRow &row) {
            const auto time = parse_snapshot_time(row.text(1));
            if (!time || *time > time_us) return;
            const std::pair here(*time, row.id(0));
            if (!best || *best < here) best = here;
        }));
    if (!best) return Status(Code::not_found, "the lake has no snapshot that old");
    return snapshot(best->second);
}

Result<LakeLoader::Since> LakeLoader::since(const LakeSnapshot &base, const LakeSnapshot &newest) {
    Since since;
    auto there = snapshot(base.id);
    if (!there.ok() && there.status().code() != Code::not_found) return there.status();
    if (!there.ok() || !(*there == base)) return since;
    // Each commit has the next number: a gap is a snapshot that expired, and with it what it had changed.
    uint64_t expected = base.id + 1;
    bool understood = true;
    ROOST_RETURN_IF_ERROR(select(
        "SELECT s.snapshot_id, c.changes_made FROM ducklake_snapshot s LEFT JOIN ducklake_snapshot_changes c ON "
        "c.snapshot_id = s.snapshot_id WHERE s.snapshot_id > " +
            std::to_string(base.id) + " AND s.snapshot_id <= " + std::to_string(newest.id) + " ORDER BY s.snapshot_id",
        [&](const MetadataRow &row) {
            understood = understood && row.id(0) == expected && since.changes.add(row.text(1));
            expected++;
        }));
    since.complete = understood && expected == newest.id + 1;
    return since;
}

Status LakeLoader::check_version(Definitions &into) {
    std::string version;
    ROOST_RETURN_IF_ERROR(
        select("SELECT \"key\", \"value\" FROM ducklake_metadata WHERE scope IS NULL", [&](const MetadataRow &row) {
            if (row.text(0) == "version") version = row.string(1);
            if (row.text(0) == "data_path") into.data_path = row.string(1);
            if (row.text(0) == "encrypted") into.encrypted = row.text(1) == "true";
        }));
    if (version != kVersion) {
        return Status(Code::unimplemented,
                      "the lake's metadata has version '" + version + "'; roost reads version " + std::string(kVersion))
            .with_hint("ATTACH it once with AUTOMATIC_MIGRATION");
    }
    if (!into.data_path.empty() && into.data_path.back() != '/') into.data_path.push_back('/');
    return Status();
}

Result<LakeLoader::Definitions> LakeLoader::definitions(uint64_t snapshot) {
    Definitions result;
    ROOST_RETURN_IF_ERROR(check_version(result));
    auto names = std::make_shared<LakeNames>();
    result.names = names;
    std::map<uint64_t, TableDefinition> tables;
    std::map<uint64_t, std::vector<LakeTag>> tags;
    ROOST_RETURN_IF_ERROR(read_tags(snapshot, tags));
    ROOST_RETURN_IF_ERROR(
        select("SELECT schema_id, schema_uuid, schema_name, path, path_is_relative FROM "
               "ducklake_schema WHERE " +
                   live("", snapshot) + " ORDER BY schema_id",
               [&](const MetadataRow &row) {
                   LakeSchema schema{.id = row.id(0),
                                     .uuid = row.string(1),
                                     .name = row.string(2),
                                     .path = row.maybe_string(3),
                                     .path_is_relative = row.boolean(4),
                                     .data_path = {}};
                   schema.data_path = whole_path(schema.path, schema.path_is_relative, result.data_path);
                   names->schemas.push_back(std::move(schema));
               }));
    ROOST_RETURN_IF_ERROR(read_tables(snapshot, result, tables));
    ROOST_RETURN_IF_ERROR(read_columns(snapshot, std::nullopt, tables));
    ROOST_RETURN_IF_ERROR(read_partitions(snapshot, tables));
    ROOST_RETURN_IF_ERROR(read_views(snapshot, *names));
    ROOST_RETURN_IF_ERROR(read_macros(snapshot, *names));
    const auto tags_of = [&](uint64_t id) {
        const auto found = tags.find(id);
        return found == tags.end() ? std::vector<LakeTag>() : found->second;
    };
    for (LakeView &view : names->views) view.tags = tags_of(view.id);
    for (auto &[id, table] : tables) {
        table.tags = tags_of(id);
        result.tables.emplace(id, std::make_shared<TableDefinition>(std::move(table)));
    }
    return result;
}

Status LakeLoader::read_tags(uint64_t snapshot, std::map<uint64_t, std::vector<LakeTag>> &into) {
    return select(
        "SELECT object_id, \"key\", \"value\" FROM ducklake_tag WHERE \"value\" IS NOT NULL AND " + live("", snapshot) +
            " ORDER BY object_id, \"key\"",
        [&](const MetadataRow &row) { into[row.id(0)].push_back({.key = row.string(1), .value = row.string(2)}); });
}

Status LakeLoader::read_tables(uint64_t snapshot, const Definitions &known, std::map<uint64_t, TableDefinition> &into) {
    std::map<uint64_t, const LakeSchema *> schemas;
    for (const LakeSchema &schema : known.names->schemas) schemas[schema.id] = &schema;
    Status broken;
    ROOST_RETURN_IF_ERROR(
        select("SELECT table_id, table_uuid, begin_snapshot, schema_id, table_name, path, path_is_relative FROM "
               "ducklake_table "
               "WHERE " +
                   live("", snapshot),
               [&](const MetadataRow &row) {
                   const auto schema = schemas.find(row.id(3));
                   if (schema == schemas.end()) {
                       broken = Status(Code::data_loss, "the lake's catalog has a table in a schema that is not there");
                       return;
                   }
                   TableDefinition &table = into[row.id(0)];
                   table.id = row.id(0);
                   table.uuid = row.string(1);
                   table.begin_snapshot = row.id(2);
                   table.schema_id = row.id(3);
                   table.schema_name = schema->second->name;
                   table.name = row.string(4);
                   table.path = row.maybe_string(5);
                   table.path_is_relative = row.boolean(6);
                   table.data_path = whole_path(table.path, table.path_is_relative, schema->second->data_path);
               }));
    return broken;
}

Result<std::vector<LakeColumn>> LakeLoader::columns(uint64_t table_id, uint64_t snapshot) {
    std::map<uint64_t, TableDefinition> tables;
    tables[table_id].id = table_id;
    ROOST_RETURN_IF_ERROR(read_columns(snapshot, std::set<uint64_t>{table_id}, tables));
    return std::move(tables[table_id].columns);
}

Status LakeLoader::read_columns(uint64_t snapshot, const TableFilter &filter,
                                std::map<uint64_t, TableDefinition> &into) {
    const std::string of_tables =
        filter && filter->size() == 1 ? " AND table_id = " + std::to_string(*filter->begin()) : "";
    std::map<std::pair<uint64_t, uint64_t>, std::vector<LakeTag>> tags;
    ROOST_RETURN_IF_ERROR(select(
        "SELECT table_id, column_id, \"key\", \"value\" FROM ducklake_column_tag WHERE \"value\" IS NOT NULL AND " +
            live("", snapshot) + " ORDER BY table_id, column_id, \"key\"",
        [&](const MetadataRow &row) {
            tags[{row.id(0), row.id(1)}].push_back({.key = row.string(2), .value = row.string(3)});
        }));
    std::vector<std::pair<std::optional<uint64_t>, LakeColumn>> rows;
    uint64_t table_id = 0;
    const auto finish = [&] {
        const auto table = into.find(table_id);
        if (table != into.end()) build_tree(std::move(rows), table->second);
        rows.clear();
    };
    ROOST_RETURN_IF_ERROR(select(
        "SELECT table_id, column_id, column_order, begin_snapshot, column_name, column_type, initial_default, "
        "default_value, nulls_allowed, parent_column, default_value_type, default_value_dialect FROM ducklake_column "
        "WHERE " +
            live("", snapshot) + " ORDER BY table_id, column_order, column_id",
        [&](const MetadataRow &row) {
            if (row.id(0) != table_id) finish();
            table_id = row.id(0);
            LakeColumn column{.id = row.id(1),
                              .order = row.id(2),
                              .begin_snapshot = row.id(3),
                              .name = row.string(4),
                              .type = row.string(5),
                              .initial_default = row.maybe_string(6),
                              .default_value = row.maybe_string(7),
                              .default_value_type = row.maybe_string(10),
                              .default_value_dialect = row.maybe_string(11),
                              .nulls_allowed = row.boolean(8),
                              .tags = {},
                              .children = {}};
            const auto found = tags.find({table_id, column.id});
            if (found != tags.end()) column.tags = found->second;
            rows.emplace_back(row.maybe_id(9), std::move(column));
        }));
    finish();
    return Status();
}

Status LakeLoader::read_partitions(uint64_t snapshot, std::map<uint64_t, TableDefinition> &into) {
    return select(
        "SELECT i.partition_id, i.table_id, c.partition_key_index, c.column_id, c.transform FROM "
        "ducklake_partition_info i "
        "JOIN ducklake_partition_column c ON c.partition_id = i.partition_id AND c.table_id = i.table_id WHERE " +
            live("i", snapshot) + " ORDER BY i.table_id, i.partition_id, c.partition_key_index",
        [&](const MetadataRow &row) {
            const auto table = into.find(row.id(1));
            if (table == into.end()) return;
            auto &spec = table->second.partition;
            if (!spec) spec.emplace();
            spec->id = row.id(0);
            spec->fields.push_back({.key_index = row.id(2), .column_id = row.id(3), .transform = row.string(4)});
        });
}

Status LakeLoader::read_views(uint64_t snapshot, LakeNames &into) {
    return select(
        "SELECT view_id, view_uuid, schema_id, view_name, dialect, \"sql\", column_aliases FROM ducklake_view "
        "WHERE " +
            live("", snapshot) + " ORDER BY view_id",
        [&](const MetadataRow &row) {
            into.views.push_back({.id = row.id(0),
                                  .uuid = row.string(1),
                                  .schema_id = row.id(2),
                                  .name = row.string(3),
                                  .dialect = row.string(4),
                                  .sql = row.string(5),
                                  .column_aliases = row.string(6),
                                  .tags = {}});
        });
}

Status LakeLoader::read_macros(uint64_t snapshot, LakeNames &into) {
    ROOST_RETURN_IF_ERROR(select(
        "SELECT macro_id, schema_id, macro_name FROM ducklake_macro WHERE " + live("", snapshot) + " ORDER BY macro_id",
        [&](const MetadataRow &row) {
            into.macros.push_back(
                {.id = row.id(0), .schema_id = row.id(1), .name = row.string(2), .implementations = {}});
        }));
    if (into.macros.empty()) return Status();
    const auto find = [&](uint64_t id) -> LakeMacro * {
        const auto found = std::lower_bound(into.macros.begin(), into.macros.end(), id,
                                            [](const LakeMacro &macro, uint64_t wanted) { return macro.id < wanted; });
        return found == into.macros.end() || found->id != id ? nullptr : &*found;
    };
    ROOST_RETURN_IF_ERROR(
        select("SELECT macro_id, dialect, \"sql\", \"type\" FROM ducklake_macro_impl ORDER BY macro_id, impl_id",
               [&](const MetadataRow &row) {
                   LakeMacro *macro = find(row.id(0));
                   if (macro == nullptr) return;
                   macro->implementations.push_back(
                       {.dialect = row.string(1), .sql = row.string(2), .type = row.string(3), .parameters = {}});
               }));
    return select(
        "SELECT macro_id, impl_id, parameter_name, parameter_type, default_value, default_value_type FROM "
        "ducklake_macro_parameters ORDER BY macro_id, impl_id, column_id",
        [&](const MetadataRow &row) {
            LakeMacro *macro = find(row.id(0));
            if (macro == nullptr || row.id(1) >= macro->implementations.size()) return;
            macro->implementations[row.id(1)].parameters.push_back({.name = row.string(2),
                                                                    .type = row.string(3),
                                                                    .default_value = row.string(4),
                                                                    .default_value_type = row.string(5)});
        });
}

}  // namespace roost
