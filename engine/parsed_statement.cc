#include "engine/parsed_statement.h"

#include <algorithm>

#include "duckdb/main/client_context.hpp"
#include "duckdb/parser/parsed_data/create_info.hpp"
#include "duckdb/parser/parser.hpp"
#include "duckdb/parser/query_node/select_node.hpp"
#include "duckdb/parser/statement/create_statement.hpp"
#include "duckdb/parser/statement/multi_statement.hpp"
#include "duckdb/parser/statement/select_statement.hpp"
#include "duckdb/planner/planner.hpp"
#include "engine/plan_grants.h"
#include "engine/plan_wall.h"
#include "engine/statement_kinds.h"

namespace roost {

namespace {

bool makes_temporary(const duckdb::SQLStatement &statement) {
    return statement.type == duckdb::StatementType::CREATE_STATEMENT &&
           statement.Cast<duckdb::CreateStatement>().info->temporary;
}

// A part runs at once, apart from the plan that is judged later. It makes a type of what a query reads, so binding it
// twice costs little beside running it.
Status judge_part(duckdb::ClientContext &context, const duckdb::SQLStatement &part,
                  const std::vector<std::string> &catalogs, const std::optional<Rights> &rights) {
    Status verdict;
    context.RunFunctionInTransaction([&] {
        duckdb::Planner planner(context);
        planner.CreatePlan(part.Copy());
        verdict = check_catalogs(planner.properties, catalogs);
        if (verdict.ok() && planner.plan) verdict = check_bound_plan(*planner.plan);
        if (verdict.ok() && planner.plan && rights) verdict = check_grants(*planner.plan, *rights);
    });
    return verdict;
}

}  // namespace

Result<duckdb::unique_ptr<duckdb::SQLStatement>> parse_statement(LakeConnection &connection,
                                                                 const StatementSpec &spec) {
    auto &context = connection.context();
    duckdb::Parser parser(context.GetParserOptions());
    parser.ParseQuery(spec.sql);
    if (parser.statements.empty()) return Status(Code::syntax_error, "there is no statement");
    if (parser.statements.size() > 1) return Status(Code::syntax_error, "only one statement at a time");
    auto statement = std::move(parser.statements.front());
    ROOST_RETURN_IF_ERROR(check_statement_kind(*statement, spec.internal));
    // The connection is another statement's next: what is temporary would be gone, and nobody told.
    if (spec.work == Work::execute && spec.transaction == TransactionAction::autocommit &&
        makes_temporary(*statement)) {
        return Status(Code::unimplemented, "temporary objects are not kept between transactions yet: BEGIN one first");
    }
    if (statement->type != duckdb::StatementType::MULTI_STATEMENT) return statement;

    std::vector<std::string> catalogs = spec.catalogs;
    catalogs.push_back(spec.settings.catalog);
    auto parts = std::move(statement->Cast<duckdb::MultiStatement>().statements);
    auto last = std::move(parts.back());
    parts.pop_back();
    connection.spoil();
    for (auto &part : parts) {
        if (!spec.internal) ROOST_RETURN_IF_ERROR(judge_part(context, *part, catalogs, spec.rights));
        auto result = context.Query(std::move(part), duckdb::QueryParameters());
        if (result->HasError()) result->ThrowError();
    }
    return last;
}

// Tree and letters together: a walk of all expressions would cost as much as planning such a statement.
bool may_name_objects(const duckdb::SQLStatement &statement, std::string_view sql) {
    if (statement.type != duckdb::StatementType::SELECT_STATEMENT) return true;
    const auto &node = *statement.Cast<duckdb::SelectStatement>().node;
    if (node.type != duckdb::QueryNodeType::SELECT_NODE || !node.cte_map.map.empty()) return true;
    const auto &from = node.Cast<duckdb::SelectNode>().from_table;
    if (from && from->type != duckdb::TableReferenceType::EMPTY_FROM) return true;
    // A call may be of a macro of the lake, also of one with a built-in function's name; and a few words are calls
    // without parentheses that tell of the search path: current_schema, current_schemas …
    const auto holds = [sql](std::string_view word) {
        const auto same = [](char a, char b) { return (a | 0x20) == b; };
        return std::search(sql.begin(), sql.end(), word.begin(), word.end(), same) != sql.end();
    };
    return sql.find('(') != std::string_view::npos || holds("current");
}

}  // namespace roost
