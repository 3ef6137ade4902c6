#include "engine/altered_tables.h"

#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/common/error_data.hpp"
#include "duckdb/execution/operator/join/join_filter_pushdown.hpp"
#include "duckdb/planner/operator/logical_comparison_join.hpp"
#include "duckdb/planner/operator/logical_get.hpp"

namespace roost {

namespace {

void collect(duckdb::LogicalOperator &op, std::vector<duckdb::JoinFilterPushdownInfo *> &joins,
             std::vector<std::string> &tables) {
    using Type = duckdb::LogicalOperatorType;
    if (op.type == Type::LOGICAL_COMPARISON_JOIN || op.type == Type::LOGICAL_DELIM_JOIN) {
        auto &join = op.Cast<duckdb::LogicalComparisonJoin>();
        if (join.filter_pushdown && join.filter_pushdown->build_side_has_filter)
            joins.push_back(join.filter_pushdown.get());
    } else if (op.type == Type::LOGICAL_GET) {
        const auto table = op.Cast<duckdb::LogicalGet>().GetTable();
        if (table)
            tables.push_back(table->ParentCatalog().GetName() + "." + table->ParentSchema().name + "." + table->name);
    }
    for (const auto &child : op.children) collect(*child, joins, tables);
}

}  // namespace

std::vector<std::string> AlteredTables::spare(duckdb::LogicalOperator &plan) const {
    std::vector<duckdb::JoinFilterPushdownInfo *> joins;
    std::vector<std::string> tables;
    collect(plan, joins, tables);
    if (joins.empty()) return {};
    MutexLock lock(mutex_);
    bool known = false;
    for (const std::string &table : tables) known = known || tables_.contains(table);
    if (!known) return tables;
    for (auto *join : joins) join->build_side_has_filter = false;
    return {};
}

bool AlteredTables::remember(const duckdb::ErrorData &error, const std::vector<std::string> &tables) {
    if (tables.empty() || error.Type() != duckdb::ExceptionType::NOT_IMPLEMENTED ||
        error.RawMessage().find("(BLOOM_FILTER)") == std::string::npos) {
        return false;
    }
    MutexLock lock(mutex_);
    if (tables_.size() + tables.size() > kTablesMax) tables_.clear();
    tables_.insert(tables.begin(), tables.end());
    return true;
}

}  // namespace roost
