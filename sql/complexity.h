// What a text would cost to parse, judged by its tokens before a parser sees it. DuckDB's parser bounds its recursion
// but not its work: it copies the argument of a simple CASE once for each WHEN and the ORDER BY of an ARRAY(subquery)
// (nested: exponentially), the source of a PIVOT once for each column, a named window once for each use; it builds AND
// chains and GROUP BY lists in quadratic time and writes grouping sets out. One small statement could fill the
// gateway's memory. Pure, thread-safe; called by Tree::parse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace roost::sql {

// 54001 statement_too_complex, with why and the 1-based character where it got too much (0: unknown).
Status too_complex(const std::string &why, uint32_t position);

// Refuses brackets nested deeper than depth_max and texts that would make the parser copy or move too much. `text`: one
// statement.
Status check_complexity(std::string_view text, uint32_t depth_max);

}  // namespace roost::sql
