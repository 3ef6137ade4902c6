#include "engine/statement_kinds.h"

#include "base/wall.h"
#include "duckdb/parser/parsed_data/alter_info.hpp"
#include "duckdb/parser/parsed_data/create_info.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "duckdb/parser/statement/alter_statement.hpp"
#include "duckdb/parser/statement/create_statement.hpp"
#include "duckdb/parser/statement/drop_statement.hpp"
#include "duckdb/parser/statement/explain_statement.hpp"
#include "duckdb/parser/statement/multi_statement.hpp"
#include "duckdb/parser/statement/set_statement.hpp"

namespace roost {

namespace {

using duckdb::CatalogType;
using duckdb::StatementType;

Status refuse(const std::string &what, const std::string &rule) {
    return Status(Code::not_allowed, what + " is not allowed here").with_rule(rule);
}

bool is_lake_object(CatalogType type) {
    return type != CatalogType::SECRET_ENTRY && type != CatalogType::DATABASE_ENTRY &&
           type != CatalogType::PREPARED_STATEMENT;
}

}  // namespace

Status check_statement_kind(const duckdb::SQLStatement &statement, bool internal) {
    if (!stands(Wall::statement_kinds)) return Status();
    switch (statement.type) {
        case StatementType::SELECT_STATEMENT:
        case StatementType::INSERT_STATEMENT:
        case StatementType::UPDATE_STATEMENT:
        case StatementType::DELETE_STATEMENT:
        case StatementType::MERGE_INTO_STATEMENT:
        case StatementType::CALL_STATEMENT:
            return Status();
        case StatementType::EXPLAIN_STATEMENT:
            return check_statement_kind(*statement.Cast<duckdb::ExplainStatement>().stmt, internal);
        case StatementType::MULTI_STATEMENT:
            for (const auto &part : statement.Cast<duckdb::MultiStatement>().statements) {
                ROOST_RETURN_IF_ERROR(check_statement_kind(*part, internal));
            }
            return Status();
        case StatementType::CREATE_STATEMENT:
            if (is_lake_object(statement.Cast<duckdb::CreateStatement>().info->type)) return Status();
            return refuse("making secrets or databases", "statement.create");
        case StatementType::DROP_STATEMENT:
            if (is_lake_object(statement.Cast<duckdb::DropStatement>().info->type)) return Status();
            return refuse("dropping secrets or databases", "statement.drop");
        case StatementType::ALTER_STATEMENT:
            if (statement.Cast<duckdb::AlterStatement>().info->type != duckdb::AlterType::ALTER_DATABASE)
                return Status();
            return refuse("altering databases", "statement.alter");
        case StatementType::COPY_STATEMENT:
            if (internal) return Status();
            return refuse("COPY", "statement.copy");
        case StatementType::SET_STATEMENT:
            // The guard lets sessions have variables; a node does not keep them between statements yet.
            if (statement.Cast<duckdb::SetStatement>().scope == duckdb::SetScope::VARIABLE)
                return Status(Code::unimplemented, "SET VARIABLE and RESET VARIABLE are not supported yet");
            [[fallthrough]];
        default:
            return refuse("a statement of kind " + duckdb::StatementTypeToString(statement.type), "statement.kind");
    }
}

}  // namespace roost
