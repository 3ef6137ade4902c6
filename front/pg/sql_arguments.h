// The argument list of SQL's own EXECUTE, and type names as PREPARE takes them. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/statement.h"

namespace roost::pg {

// "(1, 'a', NULL, '2020-01-01'::date)" → one parameter each; an empty text means none. Only constants: 0A000 for an
// expression, 42601 for what is no list.
Result<std::vector<Param>> parse_arguments(std::string_view text);

// PostgreSQL's oid of a type by its SQL name ("integer", "varchar(10)", "text[]"); 0 where unknown, which lets the
// engine infer it.
uint32_t type_oid(std::string_view name);

}  // namespace roost::pg
