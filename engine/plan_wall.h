// The wall between binding and running: what a bound plan reads must be tables of a catalog and functions that a tenant
// may call. The parse tree, which the guard judges, does not show what views and macros kept in the lake bring with
// them; the bound plan does. Stateless. Called by RunningQuery before it optimises.
#pragma once

#include "base/status.h"

namespace duckdb {
class LogicalOperator;
}

namespace roost {

// not_allowed, with the rule `plan:NAME`, when the plan calls a function that is not for tenants. REQUIRES: not
// optimised yet (the optimizer brings functions of its own).
Status check_bound_plan(duckdb::LogicalOperator &plan);

}  // namespace roost
