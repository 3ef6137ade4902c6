#include "engine/walls.h"

#include <array>
#include <atomic>
#include <string_view>

#include "base/wall.h"
#include "duckdb/catalog/catalog.hpp"
#include "duckdb/catalog/catalog_entry/scalar_function_catalog_entry.hpp"
#include "duckdb/catalog/catalog_entry/table_function_catalog_entry.hpp"
#include "duckdb/catalog/default/default_table_functions.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "engine/failed_commit.h"
#include "engine/foreign_scan.h"
#include "engine/lake_statistics.h"
#include "engine/visible_names.h"
#include "sql/rules.h"

namespace roost {

namespace {

using duckdb::CatalogType;

// Forbidden to tenants and not needed by DuckLake. parquet_scan stays, for DuckLake looks it up for each scan (see
// keep_parquet_for_the_lake); so does ducklake_set_commit_message, which marks our commits (a forged message is
// overwritten by ours). The gateway's guard refuses both by name.
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
    "ducklake_cleanup_old_files",
    "ducklake_commit",
    "ducklake_delete_orphaned_files",
    "ducklake_expire_snapshots",
    "ducklake_flush_inlined_data",
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
// The readers of uploaded files, and what registers files in place: an instance for internal statements keeps them.
constexpr std::string_view kFileReaders[] = {
    "ducklake_add_data_files",
    "ducklake_list_files",
    "parquet_file_metadata",
    "parquet_full_metadata",
    "read_csv",
    "read_csv_auto",
    "read_json",
    "read_json_auto",
    "read_json_objects",
    "read_json_objects_auto",
    "read_ndjson",
    "read_ndjson_auto",
    "read_ndjson_objects",
    "read_parquet",
    "sniff_csv",
};
// txid_current takes every catalog for one of the engine's own, and fails in it with an internal error.
constexpr std::string_view kScalarFunctions[] = {"json_serialize_plan",
                                                 "postgres_hstore_get",
                                                 "postgres_hstore_to_json",
                                                 "stats",
                                                 "txid_current",
                                                 "vector_type",
                                                 "write_log"};
constexpr std::string_view kCopyFunctions[] = {"postgres_binary"};
// DuckLake calls these on connections of its own when its catalog is in Postgres: they stay, for nobody else.
constexpr std::string_view kReservedFunctions[] = {"postgres_execute", "postgres_query"};
constexpr std::string_view kMacros[] = {"get_block_size"};
constexpr std::string_view kTableMacros[] = {"duckdb_logs_parsed", "duckdb_profiling_settings", "histogram",
                                             "histogram_values"};
constexpr std::string_view kMainViews[] = {"duckdb_databases", "duckdb_logs", "pragma_database_list"};
constexpr std::string_view kPgCatalogViews[] = {"pg_settings"};

// In the place of the engine's own, which tells paths: SHOW DATABASES, SHOW SCHEMAS and dbt ask it which catalogs there
// are. Made of what its caller may see of their schemas.
constexpr duckdb::DefaultTableMacro kDatabases = {"main", "duckdb_databases", {nullptr}, {{nullptr, nullptr}}, R"(
    SELECT DISTINCT database_name, database_oid, NULL::VARCHAR AS path, NULL::VARCHAR AS comment,
           MAP {}::MAP(VARCHAR, VARCHAR) AS tags, database_name IN ('system', 'temp') AS internal,
           CASE WHEN database_name IN ('system', 'temp') THEN 'duckdb' ELSE 'ducklake' END AS type, false AS readonly
    FROM duckdb_schemas() WHERE database_name <> 'memory')"};

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
        for (const auto name : names) drop_one(type, name, schema);
    }
    void drop_one(CatalogType type, std::string_view name, const char *schema) {
        duckdb::DropInfo info;
        info.type = type;
        info.schema = schema;
        info.name = std::string(name);
        info.if_not_found = duckdb::OnEntryNotFound::RETURN_NULL;  // some come with extensions that are not loaded
        info.allow_drop_internal = true;
        info.cascade = true;
        system_.DropEntry(context_, info);
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

// What parquet_scan does when it is bound. One function of the engine's for all instances of the process; a table
// function has no place for data of ours that DuckLake would not overwrite.
std::atomic<duckdb::table_function_bind_t> bind_parquet{nullptr};

// DuckLake brings the list of files that its tables have, or calls under a name of its own for its deletions. Called as
// parquet_scan it is somebody's path, and binding alone would open it: DESCRIBE and SHOW ALL TABLES bind views.
duckdb::unique_ptr<duckdb::FunctionData> bind_parquet_of_lake(duckdb::ClientContext &context,
                                                              duckdb::TableFunctionBindInput &input,
                                                              duckdb::vector<duckdb::LogicalType> &types,
                                                              duckdb::vector<std::string> &names) {
    if (!input.table_function.get_multi_file_reader && input.table_function.name == "parquet_scan") {
        throw duckdb::PermissionException(
            "the function parquet_scan is not open to statements (rule function:parquet_scan)");
    }
    auto bound = bind_parquet.load()(context, input, types, names);
    if (bound) open_foreign_files_anew(context, *bound);
    return bound;
}

duckdb::unique_ptr<duckdb::FunctionData> bind_parquet_of_live_lake(duckdb::ClientContext &context,
                                                                   duckdb::TableFunctionBindInput &input,
                                                                   duckdb::vector<duckdb::LogicalType> &types,
                                                                   duckdb::vector<std::string> &names) {
    auto bound = bind_parquet_of_lake(context, input, types, names);
    if (input.table_function.name == "ducklake_scan") tell_no_bounds(input.table_function);
    return bound;
}

void keep_parquet_for_the_lake(duckdb::ClientContext &context, duckdb::Catalog &system, bool frozen) {
    auto &entry = system.GetEntry<duckdb::TableFunctionCatalogEntry>(context, "main", "parquet_scan");
    for (auto &function : entry.functions.functions) {
        bind_parquet.store(function.bind);
        function.bind = frozen ? bind_parquet_of_lake : bind_parquet_of_live_lake;
    }
}

// The engine's own binding of current_setting, kept with the function that stands in its place.
struct CurrentSettingInfo : duckdb::ScalarFunctionInfo {
    explicit CurrentSettingInfo(duckdb::bind_scalar_function_t b) : bind(b) {}
    duckdb::bind_scalar_function_t bind;
};

// It is folded while a statement is bound, so the bound plan shows nothing of it: what a tenant may not read must not
// be readable here.
duckdb::unique_ptr<duckdb::FunctionData> bind_current_setting(
    duckdb::ClientContext &context, duckdb::ScalarFunction &function,
    duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> &arguments) {
    const duckdb::Expression &name = *arguments[0];
    if (name.return_type.id() == duckdb::LogicalTypeId::VARCHAR && name.IsFoldable()) {
        const duckdb::Value value = duckdb::ExpressionExecutor::EvaluateScalar(context, name);
        const sql::SettingEntry *setting =
            value.IsNull() ? nullptr : sql::find_setting(duckdb::StringUtil::Lower(duckdb::StringValue::Get(value)));
        if (setting == nullptr || !setting->may_read) {
            throw duckdb::PermissionException("this setting is not open to statements (rule function:current_setting)");
        }
    }
    return function.GetExtraFunctionInfo().Cast<CurrentSettingInfo>().bind(context, function, arguments);
}

void narrow_current_setting(duckdb::ClientContext &context, duckdb::Catalog &system) {
    auto &entry = system.GetEntry<duckdb::ScalarFunctionCatalogEntry>(context, "main", "current_setting");
    for (auto &function : entry.functions.functions) {
        function.SetExtraFunctionInfo<CurrentSettingInfo>(function.GetBindCallback());
        function.SetBindCallback(bind_current_setting);
    }
}

void narrow_functions(duckdb::ClientContext &context, const InstanceKind &kind) {
    const bool internal = kind.internal;
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
    auto &system = duckdb::Catalog::GetSystemCatalog(context);
    auto databases = duckdb::DefaultTableFunctionGenerator::CreateTableMacroInfo(kDatabases);
    system.CreateFunction(context, *databases);
    keep_parquet_for_the_lake(context, system, kind.frozen);
    if (!internal) narrow_current_setting(context, system);
    if (!internal) wrap_name_functions(context);
}

void lock_configuration(duckdb::DatabaseInstance &database) {
    auto &config = duckdb::DBConfig::GetConfig(database);
    if (stands(Wall::replacement_scans)) config.replacement_scans.clear();
    if (stands(Wall::configuration)) config.SetOptionByName("lock_configuration", duckdb::Value::BOOLEAN(true));
}

}  // namespace

void drop_history_functions(duckdb::Connection &connection) {
    auto &context = *connection.context;
    context.RunFunctionInTransaction([&] {
        auto &system = duckdb::Catalog::GetSystemCatalog(context);
        std::vector<std::pair<CatalogType, std::string>> found;  // a scan of functions lists macros too
        system.GetSchema(context, "main")
            .Scan(context, CatalogType::TABLE_FUNCTION_ENTRY, [&found](duckdb::CatalogEntry &entry) {
                if (duckdb::StringUtil::StartsWith(entry.name, "ducklake_")) found.emplace_back(entry.type, entry.name);
            });
        for (const auto &[type, name] : found) Pruner(context).drop_one(type, name, "main");
    });
}

void raise_walls(duckdb::Connection &connection, const InstanceKind &kind) {
    auto &context = *connection.context;
    if (stands(Wall::functions)) context.RunFunctionInTransaction([&] { narrow_functions(context, kind); });
    lock_configuration(*context.db);
}

}  // namespace roost
