#include "sql/session_variables.h"

#include <algorithm>
#include <iterator>

#include "sql/rules.h"

namespace roost::sql {
namespace {

// Sorted: is_postgres_variable() searches by halves.
constexpr std::string_view postgres_variables[] = {
    "application_name",
    "backslash_quote",
    "block_size",
    "bytea_output",
    "check_function_bodies",
    "client_encoding",
    "client_min_messages",
    "constraint_exclusion",
    "cursor_tuple_fraction",
    "datestyle",
    "default_table_access_method",
    "default_tablespace",
    "default_transaction_deferrable",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "escape_string_warning",
    "extra_float_digits",
    "geqo",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "in_hot_standby",
    "integer_datetimes",
    "intervalstyle",
    "is_superuser",
    "jit",
    "lc_collate",
    "lc_ctype",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "lock_timeout",
    "max_identifier_length",
    "max_index_keys",
    "max_parallel_workers_per_gather",
    "role",
    "row_security",
    "search_path",
    "server_encoding",
    "server_version",
    "server_version_num",
    "session_authorization",
    "standard_conforming_strings",
    "statement_timeout",
    "synchronous_commit",
    "timezone",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
    "work_mem",
    "xmloption",
};

// PostgreSQL's planner switches; DuckDB has settings of that prefix too, which the table of settings answers for first.
constexpr std::string_view planner_switches[] = {
    "enable_async_append",
    "enable_bitmapscan",
    "enable_gathermerge",
    "enable_hashagg",
    "enable_hashjoin",
    "enable_incremental_sort",
    "enable_indexonlyscan",
    "enable_indexscan",
    "enable_material",
    "enable_memoize",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_parallel_append",
    "enable_parallel_hash",
    "enable_partition_pruning",
    "enable_partitionwise_aggregate",
    "enable_partitionwise_join",
    "enable_presorted_aggregate",
    "enable_seqscan",
    "enable_sort",
    "enable_tidscan",
};

}  // namespace

bool is_postgres_variable(std::string_view folded) {
    return std::binary_search(std::begin(postgres_variables), std::end(postgres_variables), folded) ||
           std::binary_search(std::begin(planner_switches), std::end(planner_switches), folded);
}

SettingRule setting_rule(std::string_view folded) {
    const SettingEntry *entry = find_setting(folded);
    if (entry == nullptr) return SettingRule::unknown;
    if (entry->may_set) return SettingRule::allowed;
    return entry->may_read ? SettingRule::readable : SettingRule::forbidden;
}

}  // namespace roost::sql
