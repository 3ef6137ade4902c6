// The caller's grants, held against the bound plan: whatever names the text used, these are the tables that it reads
// and changes, views and macros expanded. The gateway has judged the same by the names in the text. Stateless.
#pragma once

#include "base/status.h"
#include "duckdb/planner/logical_operator.hpp"
#include "lake/rights.h"

namespace roost {

// permission_denied (42501), or not_found (42P01) of what the caller may not see.
Status check_grants(const duckdb::LogicalOperator &plan, const Rights &rights);

}  // namespace roost
