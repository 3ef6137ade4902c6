// Which kinds of statements a node runs at all, whatever the gateway let through. Judged on the tree of DuckDB's bare
// parser, before anything is bound. Stateless, thread-safe.
#pragma once

#include "base/status.h"

namespace duckdb {
class SQLStatement;
}

namespace roost {

// not_allowed (42501) with a rule, or ok. `internal` statements are roost's own and may also COPY.
Status check_statement_kind(const duckdb::SQLStatement &statement, bool internal);

}  // namespace roost
