// The guard's verdict on session commands: which variables may be set and read, to what, and which catalogs USE and the
// search path may name. Pure, thread-safe; used by guard.cc only.
#pragma once

#include "base/status.h"
#include "sql/statement.h"

namespace roost::sql {

// REQUIRES: is_session_command(statement.kind). What stands inside PREPARE, DECLARE and EXECUTE is judged by its tree.
Status check_session_command(const Statement &statement, const GuardPolicy &policy);

}  // namespace roost::sql
