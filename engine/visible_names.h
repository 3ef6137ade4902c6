// What the engine's own tables of names (duckdb_tables() and its like, and the views over them) tell a statement: only
// of what its caller may see, and of DuckLake's own tables nothing. Functions of the system catalogue are wrapped once
// for each instance; the rights are those that LakeConnection was given. Thread-safe.
#pragma once

#include <optional>

#include "duckdb/main/client_context.hpp"
#include "lake/rights.h"

namespace roost {

// The rights of the statement that the connection runs next, until that after it; nothing: everything.
void set_rights(duckdb::ClientContext &context, const std::optional<Rights> &rights);
// Null: everything.
const Rights *rights_of(duckdb::ClientContext &context);

// REQUIRES: a transaction; before the first statement of a tenant.
void wrap_name_functions(duckdb::ClientContext &context);

}  // namespace roost
