// Which names SET, SHOW and current_setting() know: PostgreSQL's variables that roost keeps for a session, and DuckDB's
// settings with the guard's rule for each. Pure tables, thread-safe.
#pragma once

#include <string_view>

namespace roost::sql {

// A variable of PostgreSQL that roost acts on or accepts (docs: the pgwire contract). `folded` is lower case.
bool is_postgres_variable(std::string_view folded);

enum class SettingRule : unsigned char {
    unknown,   // no setting of DuckDB's
    allowed,   // may be set and read
    readable,  // may be read (by a literal name), not set
    forbidden,
};
SettingRule setting_rule(std::string_view folded);

}  // namespace roost::sql
