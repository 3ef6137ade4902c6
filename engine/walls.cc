#include "engine/walls.h"

#include <array>
#include <string_view>

#include "duckdb/catalog/catalog.hpp"
#include "duckdb/catalog/catalog_entry/table_function_catalog_entry.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "engine/failed_commit.h"

namespace roost {

namespace {

using duckdb::CatalogType;

// Forbidden to tenants and not needed by DuckLake. parquet_scan stays, for DuckLake looks it up for each scan; so does
// ducklake_set_commit_message, which marks our commits (a forged message is overwritten by ours). The gateway's guard
// refuses both by name.
constexpr std::string_view kTableFunctions[] = {
    "arrow_scan",
    "arrow_scan_dumb",
    "checkpoint",
    "disable_logging",
    "disable_profiling",
    "duckdb_approx_database_count",
    "duckdb_connection_count",
    "duckdb_databases",
    "duckdb_extensions",
    "duckdb_external_file_cache",
    "duckdb_log_contexts",
    "duckdb_logs",
    "duckdb_memory",
    "duckdb_secrets",
    "duckdb_settings",
    "duckdb_table_sample",
    "duckdb_temporary_files",
    "ducklake_add_data_files",
    "ducklake_cleanup_old_files",
    "ducklake_commit",
    "ducklake_delete_orphaned_files",
    "ducklake_expire_snapshots",
    "ducklake_flush_inlined_data",
    "ducklake_list_files",
    "ducklake_merge_adjacent_files",
    "ducklake_options",
    "ducklake_rewrite_data_files",
    "ducklake_scan",
    "ducklake_set_option",
    "ducklake_settings",
    "enable_logging",
    "enable_profiling",
    "force_checkpoint",
    "glob",
    "json_execute_serialized_sql",
    "pandas_scan",
    "parquet_bloom_probe",
    "parquet_file_metadata",
    "parquet_full_metadata",
    "parquet_kv_metadata",
    "parquet_metadata",
    "parquet_schema",
    "pg_clear_cache",
    "postgres_attach",
    "postgres_configure_pool",
    "postgres_scan",
    "postgres_scan_pushdown",
    "pragma_database_size",
    "pragma_metadata_info",
    "pragma_platform",
    "pragma_storage_info",
    "pragma_user_agent",
    "python_map_function",
    "query",
    "query_table",
    "read_blob",
    "read_duckdb",
    "read_postgres_binary",
    "read_text",
    "seq_scan",
    "sqlite_attach",
    "sqlite_query",
    "sqlite_scan",
    "truncate_duckdb_logs",
    "which_secret",
};
// The readers of uploaded files: an instance for internal statements keeps them.
constexpr std::string_view kFileReaders[] = {
    "read_csv",       "read_csv_auto",     "read_json",
    "read_json_auto", "read_json_objects", "read_json_objects_auto",
    "read_ndjson",    "read_ndjson_auto",  "read_ndjson_objects",
    "read_parquet",   "sniff_csv",
};
constexpr std::string_view kScalarFunctions[] = {
    "json_serialize_plan", "postgres_hstore_get", "postgres_hstore_to_json", "stats", "vector_type", "write_log"};
constexpr std::string_view kCopyFunctions[] = {"postgres_binary"};
// DuckLake calls these on connections of its own when its catalog is in Postgres: they stay, for nobody else.
constexpr std::string_view kReservedFunctions[] = {"postgres_execute", "postgres_query"};
constexpr std::string_view kMacros[] = {"get_block_size"};
constexpr std::string_view kTableMacros[] = {"duckdb_logs_parsed", "duckdb_profiling_settings", "histogram",
                                             "histogram_values"};
constexpr std::string_view kMainViews[] = {"duckdb_databases", "duckdb_logs", "pragma_database_list"};
constexpr std::string_view kPgCatalogViews[] = {"pg_settings"};

struct ReservedFunction : duckdb::TableFunctionInfo {
    explicit ReservedFunction(duckdb::table_function_bind_t own_bind) : bind(own_bind) {}
    const duckdb::table_function_bind_t bind;
};

// A connection of ours runs what a tenant sent, whatever view or macro brought the call: binding alone would send text
// to the catalog.
duckdb::unique_ptr<duckdb::FunctionData> bind_reserved(duckdb::ClientContext &context,
                                                       duckdb::TableFunctionBindInput &input,
                                                       duckdb::vector<duckdb::LogicalType> &types,
                                                       duckdb::vector<std::string> &names) {
    if (is_ours(context)) {
        throw duckdb::PermissionException("The function is not open to statements (rule functions.reserved)");
    }
    return input.info->Cast<ReservedFunction>().bind(context, input, types, names);
}

class Pruner {
public:
    explicit Pruner(duckdb::ClientContext &context)
        : context_(context), system_(duckdb::Catalog::GetSystemCatalog(context)) {}

    template <size_t N>
    void drop(CatalogType type, const std::string_view (&names)[N], const char *schema = "main") {
        for (const auto name : names) {
            duckdb::DropInfo info;
            info.type = type;
            info.schema = schema;
            info.name = std::string(name);
            info.if_not_found = duckdb::OnEntryNotFound::RETURN_NULL;  // some come with extensions that are not loaded
            info.allow_drop_internal = true;
            info.cascade = true;
            system_.DropEntry(context_, info);
        }
    }

    void reserve(std::string_view name) {
        auto entry = system_.GetEntry<duckdb::TableFunctionCatalogEntry>(context_, "main", std::string(name),
                                                                               duckdb::OnEntryNotFound::RETURN_NULL);
        if (!entry) return;
        for (auto &function : entry->functions.functions) {
            if (function.function_info) throw duckdb::InternalException("a reserved function has state of its own");
            function.function_info = duckdb::make_shared_ptr<ReservedFunction>(function.bind);
            function.bind = bind_reserved;
        }
    }

private:
    duckdb::ClientContext &context_;
    duckdb::Catalog &system_;
};

void lock_configuration(duckdb::DatabaseInstance &database) {
    auto &config = duckdb::DBConfig::GetConfig(database);
    config.replacement_scans.clear();
    config.SetOptionByName("lock_configuration", duckdb::Value::BOOLEAN(true));
}

}  // namespace

void raise_walls(duckdb::Connection &connection, bool internal) {
    auto &context = *connection.context;
    context.RunFunctionInTransaction([&] {
        Pruner pruner(context);
        pruner.drop(CatalogType::TABLE_FUNCTION_ENTRY, kTableFunctions);
        if (!internal) pruner.drop(CatalogType::TABLE_FUNCTION_ENTRY, kFileReaders);
        pruner.drop(CatalogType::SCALAR_FUNCTION_ENTRY, kScalarFunctions);
        pruner.drop(CatalogType::COPY_FUNCTION_ENTRY, kCopyFunctions);
        pruner.drop(CatalogType::MACRO_ENTRY, kMacros);
        pruner.drop(CatalogType::TABLE_MACRO_ENTRY, kTableMacros);
        pruner.drop(CatalogType::VIEW_ENTRY, kMainViews);
        pruner.drop(CatalogType::VIEW_ENTRY, kPgCatalogViews, "pg_catalog");
        for (const auto name : kReservedFunctions) pruner.reserve(name);
    });
    lock_configuration(*context.db);
}

}  // namespace roost
