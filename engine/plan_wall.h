// The wall between binding and running: what a bound plan reads must be tables of a catalog and functions that a tenant
// may call. The parse tree, which the guard judges, does not show what views and macros kept in the lake bring with
// them; the bound plan does. Stateless. Called for all that a node binds: by RunningQuery before it optimises, for the
// parts that a statement is split into, and by descriptions.
#pragma once

#include <string>

#include "base/status.h"

namespace duckdb {
class LogicalOperator;
struct StatementProperties;
}  // namespace duckdb

namespace roost {

// not_allowed (catalog.foreign) when a bound statement reads or changes another catalog than `own`: the lake's
// metadata, and the memory database that every instance has, are no tenant's.
Status check_catalogs(const duckdb::StatementProperties &properties, const std::vector<std::string> &own);

// not_allowed, with the rule `plan:NAME`, when the plan calls a function that is not for tenants. REQUIRES: not
// optimised yet (the optimizer brings functions of its own).
Status check_bound_plan(duckdb::LogicalOperator &plan);

}  // namespace roost
