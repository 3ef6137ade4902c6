#include "engine/plan_wall.h"

#include <algorithm>

#include "base/wall.h"
#include "duckdb/common/string_util.hpp"
#include "duckdb/parser/parsed_data/alter_info.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "duckdb/planner/expression/bound_aggregate_expression.hpp"
#include "duckdb/planner/expression/bound_function_expression.hpp"
#include "duckdb/planner/expression/bound_window_expression.hpp"
#include "duckdb/planner/expression_iterator.hpp"
#include "duckdb/planner/logical_operator_visitor.hpp"
#include "duckdb/planner/operator/logical_create_index.hpp"
#include "duckdb/planner/operator/logical_get.hpp"
#include "duckdb/planner/operator/logical_insert.hpp"
#include "duckdb/planner/operator/logical_merge_into.hpp"
#include "duckdb/planner/operator/logical_simple.hpp"
#include "duckdb/planner/operator/logical_update.hpp"
#include "sql/rules.h"

namespace roost {

namespace {

bool is_table_kind(sql::FunctionKind kind) {
    using sql::FunctionKind;
    return kind == FunctionKind::table || kind == FunctionKind::table_macro || kind == FunctionKind::lake_macro;
}

// Table functions by allow-list: one that nobody classified is refused.
bool may_scan(const std::string &name) {
    const auto entries = sql::find_functions(name);
    return std::any_of(entries.begin(), entries.end(), [](const sql::FunctionEntry &entry) {
        return is_table_kind(entry.kind) && entry.verdict != sql::Verdict::forbidden;
    });
}

// The binder calls functions that have no name in SQL, so here only the known bad ones are refused.
bool may_call(const std::string &name) {
    const auto entries = sql::find_functions(name);
    return entries.empty() || std::any_of(entries.begin(), entries.end(), [](const sql::FunctionEntry &entry) {
               return entry.verdict != sql::Verdict::forbidden && !is_table_kind(entry.kind);
           });
}

// What a tenant's plan is made of. Files written, databases opened, settings, secrets, extensions are not among it, nor
// what a newer engine may bring.
bool may_run(const duckdb::LogicalOperator &op) {
    using duckdb::CatalogType;
    using Type = duckdb::LogicalOperatorType;
    switch (op.type) {
        case Type::LOGICAL_PROJECTION:
        case Type::LOGICAL_FILTER:
        case Type::LOGICAL_AGGREGATE_AND_GROUP_BY:
        case Type::LOGICAL_WINDOW:
        case Type::LOGICAL_UNNEST:
        case Type::LOGICAL_LIMIT:
        case Type::LOGICAL_ORDER_BY:
        case Type::LOGICAL_TOP_N:
        case Type::LOGICAL_DISTINCT:
        case Type::LOGICAL_SAMPLE:
        case Type::LOGICAL_PIVOT:
        case Type::LOGICAL_GET:
        case Type::LOGICAL_CHUNK_GET:
        case Type::LOGICAL_DELIM_GET:
        case Type::LOGICAL_EXPRESSION_GET:
        case Type::LOGICAL_DUMMY_SCAN:
        case Type::LOGICAL_EMPTY_RESULT:
        case Type::LOGICAL_CTE_REF:
        case Type::LOGICAL_JOIN:
        case Type::LOGICAL_DELIM_JOIN:
        case Type::LOGICAL_COMPARISON_JOIN:
        case Type::LOGICAL_ANY_JOIN:
        case Type::LOGICAL_CROSS_PRODUCT:
        case Type::LOGICAL_POSITIONAL_JOIN:
        case Type::LOGICAL_ASOF_JOIN:
        case Type::LOGICAL_DEPENDENT_JOIN:
        case Type::LOGICAL_UNION:
        case Type::LOGICAL_EXCEPT:
        case Type::LOGICAL_INTERSECT:
        case Type::LOGICAL_RECURSIVE_CTE:
        case Type::LOGICAL_MATERIALIZED_CTE:
        case Type::LOGICAL_INSERT:
        case Type::LOGICAL_DELETE:
        case Type::LOGICAL_UPDATE:
        case Type::LOGICAL_MERGE_INTO:
        case Type::LOGICAL_CREATE_TABLE:
        case Type::LOGICAL_CREATE_INDEX:
        case Type::LOGICAL_CREATE_SEQUENCE:
        case Type::LOGICAL_CREATE_VIEW:
        case Type::LOGICAL_CREATE_SCHEMA:
        case Type::LOGICAL_CREATE_MACRO:
        case Type::LOGICAL_CREATE_TYPE:
        case Type::LOGICAL_EXPLAIN:
        case Type::LOGICAL_EXTENSION_OPERATOR:  // DuckLake's own, for INSERT and its like; no statement makes another
            return true;
        case Type::LOGICAL_ALTER:
            return op.Cast<duckdb::LogicalSimple>().info->Cast<duckdb::AlterInfo>().type !=
                   duckdb::AlterType::ALTER_DATABASE;
        case Type::LOGICAL_DROP: {
            const auto type = op.Cast<duckdb::LogicalSimple>().info->Cast<duckdb::DropInfo>().type;
            return type != CatalogType::SECRET_ENTRY && type != CatalogType::DATABASE_ENTRY &&
                   type != CatalogType::PREPARED_STATEMENT;
        }
        default:
            return false;
    }
}

class PlanWall {
public:
    const Status &verdict() const { return verdict_; }

    void look(duckdb::LogicalOperator &op) {
        if (!verdict_.ok()) return;
        if (!may_run(op)) {
            const std::string name = duckdb::StringUtil::Lower(duckdb::LogicalOperatorToString(op.type));
            verdict_ = Status(Code::not_allowed, "a statement may not do this here: " + name)
                           .with_rule("plan:" + name)
                           .with_hint("the pool's operators do this, or nobody");
            return;
        }
        if (op.type == duckdb::LogicalOperatorType::LOGICAL_GET) {
            const auto &get = op.Cast<duckdb::LogicalGet>();
            // A table's own scan goes by whatever name its catalog gives it; which catalogs are open is checked apart.
            if (!get.GetTable()) judge(get.function.name, may_scan);
        }
        duckdb::LogicalOperatorVisitor::EnumerateExpressions(
            op, [this](duckdb::unique_ptr<duckdb::Expression> *child) { look(**child); });
        look_at_rest(op);
        for (auto &child : op.children) look(*child);
    }

private:
    // Expressions that DuckDB's own enumeration leaves out: defaults of columns, stored by whoever made the table.
    void look_at_rest(duckdb::LogicalOperator &op) {
        const auto all = [this](auto &expressions) {
            for (auto &expression : expressions) {
                if (expression) look(*expression);
            }
        };
        if (op.type == duckdb::LogicalOperatorType::LOGICAL_INSERT) {
            auto &insert = op.Cast<duckdb::LogicalInsert>();
            all(insert.bound_defaults);
            for (auto &row : insert.insert_values) all(row);
        } else if (op.type == duckdb::LogicalOperatorType::LOGICAL_UPDATE) {
            all(op.Cast<duckdb::LogicalUpdate>().bound_defaults);
        } else if (op.type == duckdb::LogicalOperatorType::LOGICAL_MERGE_INTO) {
            all(op.Cast<duckdb::LogicalMergeInto>().bound_defaults);
        } else if (op.type == duckdb::LogicalOperatorType::LOGICAL_CREATE_INDEX) {
            all(op.Cast<duckdb::LogicalCreateIndex>().unbound_expressions);
        }
    }

    void look(duckdb::Expression &expression) {
        switch (expression.GetExpressionClass()) {
            case duckdb::ExpressionClass::BOUND_FUNCTION:
                judge(expression.Cast<duckdb::BoundFunctionExpression>().function.name, may_call);
                break;
            case duckdb::ExpressionClass::BOUND_AGGREGATE:
                judge(expression.Cast<duckdb::BoundAggregateExpression>().function.name, may_call);
                break;
            case duckdb::ExpressionClass::BOUND_WINDOW:
                if (const auto &aggregate = expression.Cast<duckdb::BoundWindowExpression>().aggregate) {
                    judge(aggregate->name, may_call);
                }
                break;
            default:
                break;
        }
        duckdb::ExpressionIterator::EnumerateChildren(expression, [this](duckdb::Expression &child) { look(child); });
    }

    void judge(const std::string &name, bool (*may)(const std::string &)) {
        if (!verdict_.ok()) return;
        const std::string folded = duckdb::StringUtil::Lower(name);
        if (may(folded)) return;
        verdict_ = Status(Code::not_allowed, "the function " + folded + " is not open to statements")
                       .with_rule("plan:" + folded)
                       .with_hint("a view or macro that is named in the statement may be what calls it");
    }

    Status verdict_;
};

}  // namespace

Status check_catalogs(const duckdb::StatementProperties &properties, const std::vector<std::string> &own) {
    if (!stands(Wall::bound_plan)) return Status();
    const auto check = [&own](const std::string &name) {
        if (std::ranges::find(own, name) != own.end() || name == TEMP_CATALOG || name == SYSTEM_CATALOG)
            return Status();
        return Status(Code::not_allowed, "the catalog \"" + name + "\" is not open to statements")
            .with_rule("catalog.foreign");
    };
    for (const auto &[name, identity] : properties.read_databases) ROOST_RETURN_IF_ERROR(check(name));
    for (const auto &[name, change] : properties.modified_databases) ROOST_RETURN_IF_ERROR(check(name));
    return Status();
}

Status check_bound_plan(duckdb::LogicalOperator &plan) {
    if (!stands(Wall::bound_plan)) return Status();
    PlanWall wall;
    wall.look(plan);
    return wall.verdict();
}

}  // namespace roost
