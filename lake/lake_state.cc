#include "lake/lake_state.h"

#include <algorithm>
#include <concepts>
#include <unordered_map>

namespace roost {

namespace {

using Names = std::unordered_map<std::string, size_t>;

// No name holds a zero byte.
std::string key_of(std::string_view schema, std::string_view name) {
    std::string key = folded(schema);
    key.push_back('\0');
    return key.append(folded(name));
}

class Lines {
public:
    explicit Lines(std::string &out) : out_(out) {}
    Lines &line(std::string_view what) {
        if (!out_.empty()) out_.push_back('\n');
        out_.append(what);
        return *this;
    }
    template <class Text>
        requires std::convertible_to<const Text &, std::string_view>
    Lines &operator()(std::string_view name, const Text &text) {
        const std::string_view value = text;
        out_.append(" ").append(name).append("=").append(value);
        return *this;
    }
    template <std::integral Number>
    Lines &operator()(std::string_view name, Number value) {
        return (*this)(name, std::to_string(value));
    }
    Lines &operator()(std::string_view name, const std::optional<uint64_t> &value) {
        return value ? (*this)(name, *value) : *this;
    }
    Lines &operator()(std::string_view name, const std::optional<bool> &value) {
        return value ? (*this)(name, *value ? "true" : "false") : *this;
    }
    template <class Text>
    Lines &maybe(std::string_view name, const std::optional<Text> &value) {
        return value ? (*this)(name, "'" + std::string(*value) + "'") : *this;
    }
    Lines &operator()(const std::vector<LakeTag> &tags) {
        for (const LakeTag &tag : tags) (*this)("tag." + tag.key, tag.value);
        return *this;
    }

private:
    std::string &out_;
};

void describe_column(const LakeColumn &column, const std::string &indent, Lines &out) {
    out.line(indent + "column")("id", column.id)("order", column.order)("begin", column.begin_snapshot)(
           "name", column.name)("type", column.type)("nulls", column.nulls_allowed ? "yes" : "no")
        .maybe("initial", column.initial_default)
        .maybe("default", column.default_value)
        .maybe("default_type", column.default_value_type)
        .maybe("dialect", column.default_value_dialect)(column.tags);
    for (const LakeColumn &child : column.children) describe_column(child, indent + "  ", out);
}

void describe_segment(const Segment &segment, const SegmentDeletes *deletes, Lines &out) {
    out.line("  segment")("id", segment.data_file_id)("begin", segment.begin_snapshot)("rows", segment.record_count)(
        "bytes", segment.file_size_bytes)("footer", segment.footer_size_bytes)("row_id", segment.row_id_start)(
        "partition", segment.partition_id)("mapping", segment.mapping_id)("partial_max", segment.partial_max)(
        "order", segment.file_order)("path", segment.path)("relative", segment.path_is_relative ? "yes" : "no")(
        "format", segment.format)("key", segment.encryption_key.empty() ? "none" : "set");
    for (const PartitionValue &value : segment.partition_values) {
        out.maybe("p" + std::to_string(value.key_index),
                  value.value ? value.value : std::optional<std::string_view>("NULL"));
    }
    for (const SegmentStats &stats : segment.stats) {
        out.line("    stats")("column", stats.column_id)("values", stats.value_count)("nulls", stats.null_count)(
               "bytes", stats.size_bytes)
            .maybe("min", stats.min)
            .maybe("max", stats.max)
            .maybe("extra", stats.extra)("nan", stats.contains_nan);
    }
    if (deletes == nullptr) return;
    out.line("    deletes")("inlined", deletes->inlined_rows);
    if (!deletes->file) return;
    const DeleteFile &file = *deletes->file;
    out("id", file.delete_file_id)("begin", file.begin_snapshot)("path", file.path)(
        "relative", file.path_is_relative ? "yes" : "no")("format", file.format)("rows", file.delete_count)(
        "bytes", file.file_size_bytes)("footer", file.footer_size_bytes)("partial_max", file.partial_max)(
        "key", file.encryption_key.empty() ? "none" : "set");
}

size_t column_bytes(const LakeColumn &column) {
    size_t bytes = sizeof(LakeColumn) + column.name.capacity() + column.type.capacity();
    for (const LakeColumn &child : column.children) bytes += column_bytes(child);
    return bytes;
}

}  // namespace

std::string folded(std::string_view name) {
    std::string lower(name);
    for (char &c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lower;
}

const LakeColumn *TableDefinition::column(std::string_view wanted) const {
    const std::string lower = folded(wanted);
    for (const LakeColumn &each : columns) {
        if (folded(each.name) == lower) return &each;
    }
    return nullptr;
}

const LakeColumn *TableDefinition::column_by_id(uint64_t column_id) const {
    for (const LakeColumn &each : columns) {
        if (each.id == column_id) return &each;
    }
    return nullptr;
}

uint64_t TableData::inlined_rows() const {
    uint64_t rows = 0;
    for (const InlinedTable &each : inlined) rows += each.rows;
    return rows;
}

std::string TableState::resolve(std::string_view path, bool is_relative) const {
    return is_relative ? definition->data_path + std::string(path) : std::string(path);
}

struct LakeState::Index {
    Names tables, views, macros, schemas;
};

LakeState::LakeState(LakeSnapshot snapshot, std::string data_path, bool encrypted,
                     std::shared_ptr<const LakeNames> names, Tables tables)
    : snapshot_(snapshot),
      known_until_(snapshot),
      data_path_(std::move(data_path)),
      encrypted_(encrypted),
      names_(std::move(names)),
      tables_(std::move(tables)) {
    auto index = std::make_shared<Index>();
    for (size_t i = 0; i < tables_.size(); i++) {
        index->tables[key_of(tables_[i]->definition->schema_name, tables_[i]->definition->name)] = i;
    }
    std::unordered_map<uint64_t, std::string> schema_names;
    for (size_t i = 0; i < names_->schemas.size(); i++) {
        index->schemas[folded(names_->schemas[i].name)] = i;
        schema_names[names_->schemas[i].id] = names_->schemas[i].name;
    }
    for (size_t i = 0; i < names_->views.size(); i++) {
        index->views[key_of(schema_names[names_->views[i].schema_id], names_->views[i].name)] = i;
    }
    for (size_t i = 0; i < names_->macros.size(); i++) {
        index->macros[key_of(schema_names[names_->macros[i].schema_id], names_->macros[i].name)] = i;
    }
    index_ = std::move(index);
}

LakeState::LakeState(const LakeState &before, LakeSnapshot snapshot, Tables tables)
    : snapshot_(snapshot),
      known_until_(snapshot),
      data_path_(before.data_path_),
      encrypted_(before.encrypted_),
      names_(before.names_),
      tables_(std::move(tables)),
      index_(before.index_) {}

std::shared_ptr<const TableState> LakeState::table(std::string_view schema, std::string_view name) const {
    const auto found = index_->tables.find(key_of(schema, name));
    return found == index_->tables.end() ? nullptr : tables_[found->second];
}

std::shared_ptr<const TableState> LakeState::table(uint64_t table_id) const {
    const auto found = std::lower_bound(tables_.begin(), tables_.end(), table_id,
                                        [](const auto &each, uint64_t id) { return each->id() < id; });
    return found == tables_.end() || (*found)->id() != table_id ? nullptr : *found;
}

const LakeView *LakeState::view(std::string_view schema, std::string_view name) const {
    const auto found = index_->views.find(key_of(schema, name));
    return found == index_->views.end() ? nullptr : &names_->views[found->second];
}

const LakeMacro *LakeState::macro(std::string_view schema, std::string_view name) const {
    const auto found = index_->macros.find(key_of(schema, name));
    return found == index_->macros.end() ? nullptr : &names_->macros[found->second];
}

const LakeSchema *LakeState::schema(std::string_view name) const {
    const auto found = index_->schemas.find(folded(name));
    return found == index_->schemas.end() ? nullptr : &names_->schemas[found->second];
}

const LakeSchema *LakeState::schema(uint64_t schema_id) const {
    for (const LakeSchema &each : names_->schemas) {
        if (each.id == schema_id) return &each;
    }
    return nullptr;
}

size_t LakeState::memory_bytes() const {
    size_t bytes = sizeof(LakeState) + tables_.capacity() * sizeof(tables_[0]);
    for (const auto &table : tables_) {
        bytes += sizeof(TableState) + sizeof(TableDefinition) + sizeof(TableData) + 64;
        if (table->data) bytes += table->data->segments.memory_bytes();
        for (const LakeColumn &column : table->definition->columns) bytes += column_bytes(column);
    }
    for (const LakeView &view : names_->views) bytes += sizeof(LakeView) + view.sql.capacity();
    for (const LakeMacro &macro : names_->macros) bytes += sizeof(LakeMacro) + macro.name.capacity();
    return bytes;
}

std::string describe(const TableState &table) {
    std::string text;
    Lines out(text);
    const TableDefinition &definition = *table.definition;
    out.line("table")("id", definition.id)("uuid", definition.uuid)("begin", definition.begin_snapshot)(
        "schema", definition.schema_id)("name", definition.schema_name + "." + definition.name)(
        "path", definition.data_path)(definition.tags);
    for (const LakeColumn &column : definition.columns) describe_column(column, "  ", out);
    if (definition.partition) {
        out.line("  partition")("id", definition.partition->id);
        for (const PartitionField &field : definition.partition->fields) {
            out(std::to_string(field.key_index), std::to_string(field.column_id) + ":" + field.transform);
        }
    }
    if (!table.data) return text;
    for (const InlinedTable &each : table.data->inlined) {
        out.line("  inlined")("name", each.name)("version", each.schema_version)("rows", each.rows);
    }
    if (table.data->stats) {
        const TableStats &stats = *table.data->stats;
        out.line("  stats")("rows", stats.record_count)("next", stats.next_row_id)("bytes", stats.file_size_bytes);
        for (const TableColumnStats &column : stats.columns) {
            out.line("    stats")("column", column.column_id)("null", column.contains_null)("nan", column.contains_nan)
                .maybe("min", column.min)
                .maybe("max", column.max)
                .maybe("extra", column.extra);
        }
    }
    const SegmentList &segments = table.data->segments;
    out.line("  files")("count", segments.size())("rows", segments.record_count())("bytes", segments.file_size_bytes())(
        "deletes", segments.delete_file_count())("delete_bytes", segments.delete_file_size_bytes())(
        "deleted", segments.deleted_rows());
    segments.for_each(
        [&](const Segment &segment, const SegmentDeletes *deletes) { describe_segment(segment, deletes, out); });
    return text;
}

std::string describe(const LakeState &state) {
    std::string text;
    Lines out(text);
    const LakeSnapshot &snapshot = state.snapshot();
    out.line("lake")("snapshot", snapshot.id)("time", static_cast<uint64_t>(snapshot.time_us))(
        "schema_version", snapshot.schema_version)("next_catalog_id", snapshot.next_catalog_id)(
        "next_file_id", snapshot.next_file_id)("path", state.data_path())("encrypted",
                                                                          state.encrypted() ? "yes" : "no");
    for (const LakeSchema &schema : state.names().schemas) {
        out.line("schema")("id", schema.id)("uuid", schema.uuid)("name", schema.name)("path", schema.data_path);
    }
    for (const LakeView &view : state.names().views) {
        out.line("view")("id", view.id)("uuid", view.uuid)("schema", view.schema_id)("name", view.name)(
            "aliases", view.column_aliases)("sql", view.sql)(view.tags);
    }
    for (const LakeMacro &macro : state.names().macros) {
        out.line("macro")("id", macro.id)("schema", macro.schema_id)("name", macro.name);
        for (const MacroImplementation &each : macro.implementations) {
            out.line("  implementation")("type", each.type)("sql", each.sql);
            for (const MacroParameter &parameter : each.parameters) {
                out(parameter.name,
                    parameter.type + ":" + parameter.default_value + ":" + parameter.default_value_type);
            }
        }
    }
    for (const auto &table : state.tables()) text.append("\n").append(describe(*table));
    return text;
}

}  // namespace roost
