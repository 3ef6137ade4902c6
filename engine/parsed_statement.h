// From a statement's text to the one tree that is planned. DuckDB's parser turns some statements into several (PIVOT
// without a list of values makes types first); the parts before the last run at once. Stateless.
#pragma once

#include <string_view>

#include "base/status.h"
#include "duckdb/parser/sql_statement.hpp"
#include "engine/lake_connection.h"
#include "engine/statement.h"

namespace roost {

// Parses and judges the kind. REQUIRES: the connection has an open transaction, in which the first parts run. Throws
// DuckDB's exceptions; a Status is roost's own refusal.
Result<duckdb::unique_ptr<duckdb::SQLStatement>> parse_statement(LakeConnection &connection, const StatementSpec &spec);

// Whether the statement may name something in the lake: false only when it surely does not, as SELECT 1.
bool may_name_objects(const duckdb::SQLStatement &statement, std::string_view sql);

}  // namespace roost
