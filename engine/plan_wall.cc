#include "engine/plan_wall.h"

#include <algorithm>

#include "base/wall.h"
#include "duckdb/common/string_util.hpp"
#include "duckdb/planner/expression/bound_aggregate_expression.hpp"
#include "duckdb/planner/expression/bound_function_expression.hpp"
#include "duckdb/planner/expression/bound_window_expression.hpp"
#include "duckdb/planner/expression_iterator.hpp"
#include "duckdb/planner/logical_operator_visitor.hpp"
#include "duckdb/planner/operator/logical_get.hpp"
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

class PlanWall {
public:
    const Status &verdict() const { return verdict_; }

    void look(duckdb::LogicalOperator &op) {
        if (!verdict_.ok()) return;
        if (op.type == duckdb::LogicalOperatorType::LOGICAL_GET) {
            const auto &get = op.Cast<duckdb::LogicalGet>();
            // A table's own scan goes by whatever name its catalog gives it; which catalogs are open is checked apart.
            if (!get.GetTable()) judge(get.function.name, may_scan);
        }
        duckdb::LogicalOperatorVisitor::EnumerateExpressions(
            op, [this](duckdb::unique_ptr<duckdb::Expression> *child) { look(**child); });
        for (auto &child : op.children) look(*child);
    }

private:
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

Status check_bound_plan(duckdb::LogicalOperator &plan) {
    if (!stands(Wall::bound_plan)) return Status();
    PlanWall wall;
    wall.look(plan);
    return wall.verdict();
}

}  // namespace roost
