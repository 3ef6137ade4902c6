#include "lake/frozen_catalog.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>

#include "duckdb.hpp"
#include "lake/ducklake.h"
#include "lake/frozen_tables.h"
#include "lake/lake_loader.h"
#include "lake/postgres_connection.h"

namespace roost {

namespace {

// DuckDB's, for a file of some megabytes.
constexpr const char *kMemoryLimit = "256MB";
// Most of its thirty tables hold next to nothing, and each takes a block.
constexpr const char *kFileOptions = " (BLOCK_SIZE 16384)";

std::string join(const auto &ids) {
    std::string list;
    for (const uint64_t id : ids) list += (list.empty() ? "" : ", ") + std::to_string(id);
    return list;
}

// Removes the file unless it has been put in place.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string &target) {
        static std::atomic<uint64_t> count{0};
        path_ = target + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(++count);
    }
    ~TemporaryFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
        std::filesystem::remove(path_ + ".wal", ignored);
    }
    TemporaryFile(const TemporaryFile &) = delete;
    TemporaryFile &operator=(const TemporaryFile &) = delete;
    const std::string &path() const { return path_; }
    Status put_in_place(const std::string &target) const {
        std::error_code error;
        std::filesystem::rename(path_, target, error);
        return error ? Status(Code::io_error, "a frozen catalog can't be put in place: " + error.message()) : Status();
    }

private:
    std::string path_;
};

struct SqlType {
    std::string_view lake, sql;
};
constexpr SqlType kSqlTypes[] = {
    {"boolean", "BOOLEAN"},
    {"int8", "TINYINT"},
    {"int16", "SMALLINT"},
    {"int32", "INTEGER"},
    {"int64", "BIGINT"},
    {"int128", "HUGEINT"},
    {"uint8", "UTINYINT"},
    {"uint16", "USMALLINT"},
    {"uint32", "UINTEGER"},
    {"uint64", "UBIGINT"},
    {"uint128", "UHUGEINT"},
    {"float32", "FLOAT"},
    {"float64", "DOUBLE"},
    {"time", "TIME"},
    {"time_ns", "TIME_NS"},
    {"date", "DATE"},
    {"timestamp", "TIMESTAMP"},
    {"timestamp_us", "TIMESTAMP"},
    {"timestamp_ms", "TIMESTAMP_MS"},
    {"timestamp_ns", "TIMESTAMP_NS"},
    {"timestamp_s", "TIMESTAMP_S"},
    {"timestamptz", "TIMESTAMP WITH TIME ZONE"},
    {"timetz", "TIME WITH TIME ZONE"},
    {"interval", "INTERVAL"},
    {"varchar", "VARCHAR"},
    {"blob", "BLOB"},
    {"uuid", "UUID"},
    {"json", "JSON"},
};

}  // namespace

std::optional<std::string> sql_type(const LakeColumn &column) {
    const std::string type = folded(column.type);
    if (type.starts_with("decimal(")) return type;
    if (type == "list" && column.children.size() == 1) {
        const auto child = sql_type(column.children[0]);
        return child ? std::optional(*child + "[]") : std::nullopt;
    }
    if (type == "map" && column.children.size() == 2) {
        const auto key = sql_type(column.children[0]), value = sql_type(column.children[1]);
        return key && value ? std::optional("MAP(" + *key + ", " + *value + ")") : std::nullopt;
    }
    if (type == "struct" && !column.children.empty()) {
        std::string fields;
        for (const LakeColumn &child : column.children) {
            const auto field = sql_type(child);
            if (!field) return std::nullopt;
            fields += (fields.empty() ? "" : ", ") + quote_identifier(child.name) + " " + *field;
        }
        return "STRUCT(" + fields + ")";
    }
    for (const SqlType &known : kSqlTypes) {
        if (known.lake == type) return std::string(known.sql);
    }
    return std::nullopt;
}

struct FrozenCatalogWriter::Impl {
    explicit Impl(Options wanted) : options(std::move(wanted)), reader(make_metadata_reader(options.address)) {}

    // The columns that a table had, from a snapshot on.
    struct Shape {
        uint64_t begin_snapshot = 0;
        std::vector<LakeColumn> columns;
    };
    // What is not in the mirror and has to be read from the catalog.
    struct Missing {
        std::set<uint64_t> mapping_ids;
        std::map<uint64_t, std::vector<uint64_t>> inlined_deletes;  // table, files
        std::vector<std::shared_ptr<const TableState>> inlined;     // tables with rows in the catalog
        bool any() const { return !mapping_ids.empty() || !inlined_deletes.empty() || !inlined.empty(); }
    };

    void run(const std::string &sql) {
        const auto result = connection->Query(sql);
        if (result->HasError()) result->ThrowError();
    }
    Status write_rows(const LakeState &state, const std::vector<FrozenTable> &tables, const CallLimits &limits,
                      FrozenStats &stats);
    Status add_missing(const LakeState &state, const Missing &missing, const CallLimits &limits, FrozenStats &stats);
    Status copy(const std::string &table, const std::string &columns, const std::string &where,
                const CallLimits &limits);
    Status add_history(const std::set<uint64_t> &tables, uint64_t snapshot, const CallLimits &limits);
    Status add_inlined_deletes(uint64_t table_id, const std::vector<uint64_t> &files, uint64_t snapshot,
                               const CallLimits &limits);
    Result<Shape> shape(const TableDefinition &table, uint64_t schema_version, const CallLimits &limits);
    void add_inlined(uint64_t table_id, const InlinedTable &inlined, const Shape &shape, uint64_t snapshot);
    Status still_there(const LakeState &state, const Missing &missing, const CallLimits &limits);
    void attach_source();
    // A message of DuckDB's, without what it may quote of the connection string.
    Status failed(const std::exception &error, const CallLimits &limits) const;

    Options options;
    std::unique_ptr<MetadataReader> reader;
    std::unique_ptr<duckdb::DuckDB> database;
    std::unique_ptr<duckdb::Connection> connection;
    bool scanner_loaded = false;
};

FrozenCatalogWriter::FrozenCatalogWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FrozenCatalogWriter::~FrozenCatalogWriter() = default;

Result<std::unique_ptr<FrozenCatalogWriter>> FrozenCatalogWriter::open(Options options) {
    auto impl = std::make_unique<Impl>(std::move(options));
    try {
        duckdb::DBConfig config;
        config.SetOptionByName("threads", duckdb::Value::BIGINT(1));
        config.SetOptionByName("memory_limit", duckdb::Value(kMemoryLimit));
        config.SetOptionByName("allow_unsigned_extensions", duckdb::Value::BOOLEAN(true));
        config.SetOptionByName("autoload_known_extensions", duckdb::Value::BOOLEAN(false));
        config.SetOptionByName("autoinstall_known_extensions", duckdb::Value::BOOLEAN(false));
        impl->database = std::make_unique<duckdb::DuckDB>(nullptr, &config);
        impl->connection = std::make_unique<duckdb::Connection>(*impl->database);
    } catch (const std::exception &error) {
        return impl->failed(error, CallLimits());
    }
    return std::unique_ptr<FrozenCatalogWriter>(new FrozenCatalogWriter(std::move(impl)));
}

Status FrozenCatalogWriter::Impl::failed(const std::exception &error, const CallLimits &limits) const {
    if (limits.over()) return limits.end("writing a frozen catalog");
    std::string message = duckdb::ErrorData(error).RawMessage();
    for (size_t at = 0; (at = message.find(options.address.where, at)) != std::string::npos;) {
        message.replace(at, options.address.where.size(), "the catalog");
    }
    return Status(Code::io_error, "a frozen catalog can't be written: " + without_password(message));
}

Result<FrozenStats> FrozenCatalogWriter::write(const LakeState &state,
                                               const std::optional<std::vector<FrozenTable>> &asked,
                                               const std::string &path, const CallLimits &limits) {
    if (limits.over()) return limits.end("writing a frozen catalog");
    std::vector<FrozenTable> tables;
    if (asked) {
        tables = *asked;
    } else {
        for (const auto &table : state.tables()) tables.push_back({.table_id = table->id(), .data_file_ids = {}});
    }
    FrozenStats stats;
    const TemporaryFile file(path);
    Status status;
    {
        // DuckDB's statements end at an interrupt; between them limits are looked at.
        const std::stop_callback interrupt(limits.cancelled, [this] { impl_->connection->Interrupt(); });
        bool attached = false;
        try {
            impl_->run("ATTACH " + quote_literal(file.path()) + " AS " + kFrozenDatabase + kFileOptions);
            attached = true;
            impl_->connection->BeginTransaction();
            impl_->run(frozen_schema_sql());
            status = impl_->write_rows(state, tables, limits, stats);
            status.ok() ? impl_->connection->Commit() : impl_->connection->Rollback();
        } catch (const std::exception &error) {
            status = impl_->failed(error, limits);
            if (impl_->connection->HasActiveTransaction()) impl_->connection->Rollback();
        }
        // These leave nothing attached for the next file; a failure of theirs shows there.
        if (attached) {
            const auto left = impl_->connection->Query(std::string("DETACH ") + kFrozenDatabase);
            if (status.ok() && left->HasError()) status = Status(Code::io_error, left->GetError());
        }
        (void)impl_->connection->Query("DETACH DATABASE IF EXISTS source");
    }
    ROOST_RETURN_IF_ERROR(status);
    ROOST_RETURN_IF_ERROR(file.put_in_place(path));
    std::error_code ignored;
    stats.file_bytes = std::filesystem::file_size(path, ignored);
    return stats;
}

Status FrozenCatalogWriter::Impl::write_rows(const LakeState &state, const std::vector<FrozenTable> &tables,
                                             const CallLimits &limits, FrozenStats &stats) {
    FrozenRows rows(*connection, state);
    rows.lake();
    Missing missing;
    for (const FrozenTable &asked : tables) {
        const auto table = state.table(asked.table_id);
        if (!table) return Status(Code::not_found, "the lake has no table " + std::to_string(asked.table_id));
        if (!table->data) return Status(Code::internal, "the table's contents were not read");
        const bool inlined = asked.inlined_rows && !table->data->inlined.empty();
        // The shapes that the table had are needed with the rows that were written in them.
        rows.definition(*table, !inlined);
        if (!rows.segments(*table, asked, limits)) return limits.end("writing a frozen catalog");
        rows.stats(*table, asked);
        const FrozenRows::Segments &written = rows.written();
        missing.mapping_ids.insert(written.mapping_ids.begin(), written.mapping_ids.end());
        if (!written.with_inlined_deletes.empty())
            missing.inlined_deletes[asked.table_id] = written.with_inlined_deletes;
        if (inlined) missing.inlined.push_back(table);
        stats.tables++;
        stats.segments += written.count;
    }
    rows.close();
    return missing.any() ? add_missing(state, missing, limits, stats) : Status();
}

Status FrozenCatalogWriter::Impl::add_missing(const LakeState &state, const Missing &missing, const CallLimits &limits,
                                              FrozenStats &stats) {
    const uint64_t snapshot = state.snapshot().id;
    std::vector<std::tuple<uint64_t, InlinedTable, Shape>> inlined;
    ROOST_RETURN_IF_ERROR(reader->begin(limits));
    Status status = [&]() -> Status {
        if (!missing.mapping_ids.empty()) {
            const std::string where = "mapping_id IN (" + join(missing.mapping_ids) + ")";
            ROOST_RETURN_IF_ERROR(copy("ducklake_column_mapping", "mapping_id, table_id, type", where, limits));
            ROOST_RETURN_IF_ERROR(copy(
                "ducklake_name_mapping",
                "mapping_id, column_id, source_name, target_field_id, parent_column, is_partition", where, limits));
        }
        for (const auto &[table_id, files] : missing.inlined_deletes) {
            ROOST_RETURN_IF_ERROR(add_inlined_deletes(table_id, files, snapshot, limits));
        }
        std::set<uint64_t> tables;
        for (const auto &table : missing.inlined) {
            tables.insert(table->id());
            for (const InlinedTable &each : table->data->inlined) {
                ROOST_ASSIGN_OR_RETURN(auto then, shape(*table->definition, each.schema_version, limits));
                inlined.emplace_back(table->id(), each, std::move(then));
            }
        }
        return tables.empty() ? Status() : add_history(tables, snapshot, limits);
    }();
    reader->end();
    ROOST_RETURN_IF_ERROR(status);
    if (!inlined.empty()) attach_source();
    for (const auto &[table_id, each, shape] : inlined) {
        if (limits.over()) return limits.end("writing a frozen catalog");
        for (const LakeColumn &column : shape.columns) {
            if (sql_type(column)) continue;
            return Status(Code::unimplemented, "rows of the type " + column.type + " can't be frozen");
        }
        add_inlined(table_id, each, shape, snapshot);
        stats.inlined_rows += each.rows;
    }
    return still_there(state, missing, limits);
}

// Rows of a small table, as text that DuckDB casts.
Status FrozenCatalogWriter::Impl::copy(const std::string &table, const std::string &columns, const std::string &where,
                                       const CallLimits &limits) {
    const auto count = static_cast<int>(std::count(columns.begin(), columns.end(), ',')) + 1;
    std::vector<std::string> rows;
    ROOST_RETURN_IF_ERROR(reader->select(
        "SELECT " + columns + " FROM " + table + " WHERE " + where,
        [&](const MetadataRow &row) {
            std::string values;
            for (int i = 0; i < count; i++) {
                values += (i > 0 ? ", " : "") + (row.is_null(i) ? "NULL" : quote_literal(row.text(i)));
            }
            rows.push_back("(" + values + ")");
            return true;
        },
        limits));
    constexpr size_t kRowsMax = 500;
    for (size_t from = 0; from < rows.size(); from += kRowsMax) {
        std::string values;
        for (size_t i = from; i < std::min(rows.size(), from + kRowsMax); i++) {
            values += (values.empty() ? "" : ", ") + rows[i];
        }
        run("INSERT INTO " + std::string(kFrozenDatabase) + "." + table + " (" + columns + ") VALUES " + values);
    }
    return Status();
}

Status FrozenCatalogWriter::Impl::add_history(const std::set<uint64_t> &tables, uint64_t snapshot,
                                              const CallLimits &limits) {
    const std::string of_tables =
        "table_id IN (" + join(tables) + ") AND begin_snapshot <= " + std::to_string(snapshot);
    ROOST_RETURN_IF_ERROR(copy("ducklake_table",
                               "table_id, table_uuid, begin_snapshot, end_snapshot, schema_id, table_name, path, "
                               "path_is_relative",
                               of_tables, limits));
    ROOST_RETURN_IF_ERROR(copy("ducklake_column",
                               "column_id, begin_snapshot, end_snapshot, table_id, column_order, column_name, "
                               "column_type, initial_default, default_value, nulls_allowed, parent_column, "
                               "default_value_type, default_value_dialect",
                               of_tables, limits));
    return copy("ducklake_schema_versions", "begin_snapshot, schema_version, table_id", of_tables, limits);
}

Status FrozenCatalogWriter::Impl::add_inlined_deletes(uint64_t table_id, const std::vector<uint64_t> &files,
                                                      uint64_t snapshot, const CallLimits &limits) {
    const std::string table = "ducklake_inlined_delete_" + std::to_string(table_id);
    run("CREATE TABLE " + std::string(kFrozenDatabase) + "." + table +
        "(file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)");
    return copy(table, "file_id, row_id, begin_snapshot",
                "begin_snapshot <= " + std::to_string(snapshot) + " AND file_id IN (" + join(files) + ")", limits);
}

// The columns that a table had when rows of this schema version were written. The version is the whole lake's: where
// the place of the rows was made at an INSERT, after other tables had changed, the table has no change of that number,
// and its newest one before counts. DuckLake takes the table's first shape then and is wrong unless columns were only
// added.
Result<FrozenCatalogWriter::Impl::Shape> FrozenCatalogWriter::Impl::shape(const TableDefinition &table,
                                                                          uint64_t schema_version,
                                                                          const CallLimits &limits) {
    std::optional<uint64_t> begin;
    const std::string id = std::to_string(table.id);
    const auto first = [&](const MetadataRow &row) {
        begin = row.id(0);
        return false;
    };
    ROOST_RETURN_IF_ERROR(reader->select("SELECT begin_snapshot FROM ducklake_schema_versions WHERE table_id = " + id +
                                             " AND schema_version <= " + std::to_string(schema_version) +
                                             " ORDER BY schema_version DESC LIMIT 1",
                                         first, limits));
    if (!begin) {
        ROOST_RETURN_IF_ERROR(
            reader->select("SELECT begin_snapshot FROM ducklake_table WHERE table_id = " + id, first, limits));
    }
    Shape shape{.begin_snapshot = begin.value_or(table.begin_snapshot), .columns = {}};
    ROOST_ASSIGN_OR_RETURN(shape.columns, LakeLoader(*reader, limits).columns(table.id, shape.begin_snapshot));
    return shape;
}

void FrozenCatalogWriter::Impl::attach_source() {
    const bool sqlite = options.address.kind == MetadataAddress::Kind::sqlite;
    if (!scanner_loaded) {
        run("LOAD " + quote_literal(options.extension_dir + (sqlite ? "/sqlite_scanner" : "/postgres_scanner") +
                                    ".duckdb_extension"));
        scanner_loaded = true;
    }
    run("ATTACH " + quote_literal(options.address.where) + " AS source (TYPE " + (sqlite ? "sqlite" : "postgres") +
        ", READ_ONLY)");
}

// DuckLake casts what the scanner gives it to the column's type, and so is it done here: the same values come out.
void FrozenCatalogWriter::Impl::add_inlined(uint64_t table_id, const InlinedTable &inlined, const Shape &shape,
                                            uint64_t snapshot) {
    const bool sqlite = options.address.kind == MetadataAddress::Kind::sqlite;
    const std::string target = std::string(kFrozenDatabase) + "." + quote_identifier(inlined.name);
    const std::string source =
        "source." + quote_identifier(sqlite ? "main" : options.address.schema) + "." + quote_identifier(inlined.name);
    std::string definitions, values;
    for (const LakeColumn &column : shape.columns) {
        const std::string name = quote_identifier(column.name);
        const std::string type = *sql_type(column);
        definitions += ", " + name + " " + type;
        // Postgres keeps text as bytes.
        const bool is_text = type == "VARCHAR" || type == "JSON";
        values += is_text ? (sqlite ? ", " + name : ", decode(" + name + ")") : ", CAST(" + name + " AS " + type + ")";
    }
    const std::string id = std::to_string(snapshot);
    run("CREATE TABLE " + target + "(row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT" + definitions + ")");
    run("INSERT INTO " + target + " SELECT row_id, begin_snapshot, NULL" + values + " FROM " + source +
        " WHERE begin_snapshot <= " + id + " AND (end_snapshot IS NULL OR end_snapshot > " + id + ")");
    const std::string database(kFrozenDatabase), of_table = std::to_string(table_id),
                                                 version = std::to_string(inlined.schema_version);
    run("INSERT INTO " + database + ".ducklake_inlined_data_tables VALUES (" + of_table + ", " +
        quote_literal(inlined.name) + ", " + version + ")");
    run("INSERT INTO " + database + ".ducklake_schema_versions SELECT " + std::to_string(shape.begin_snapshot) + ", " +
        version + ", " + of_table + " WHERE NOT EXISTS (FROM " + database +
        ".ducklake_schema_versions WHERE table_id = " + of_table + " AND schema_version = " + version + ")");
}

Status FrozenCatalogWriter::Impl::still_there(const LakeState &state, const Missing &missing,
                                              const CallLimits &limits) {
    ROOST_RETURN_IF_ERROR(reader->begin(limits));
    LakeLoader loader(*reader, limits);
    const Status status = [&]() -> Status {
        ROOST_ASSIGN_OR_RETURN(const LakeSnapshot newest, loader.newest());
        if (newest == state.known_until()) return Status();
        ROOST_ASSIGN_OR_RETURN(const LakeLoader::Since since, loader.since(state.known_until(), newest));
        bool moved = !since.complete;
        for (const auto &table : missing.inlined) moved = moved || since.changes.rewritten.contains(table->id());
        for (const auto &[id, files] : missing.inlined_deletes) moved = moved || since.changes.rewritten.contains(id);
        if (!moved) return Status();
        return Status(Code::conflict, "the lake was compacted while a frozen catalog of it was written")
            .with_retryable(true);
    }();
    reader->end();
    return status;
}

}  // namespace roost
