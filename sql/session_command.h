// PostgreSQL's session commands, which roost answers itself: SET, RESET, SHOW, transactions, savepoints, prepared
// statements, cursors, DISCARD, LISTEN and the like. A small recursive-descent parser over our own tokens, because
// DuckDB's grammar lacks half of them. Called by parse() on each statement; pure, thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"
#include "sql/statement.h"

namespace roost::sql {

// Fills kind, command and read_only_hint of `statement`, whose text is set, when it is a session command; leaves kind
// `empty` when it is DuckDB's to parse (SHOW TABLES, SHOW of a table, SET VARIABLE…). 42601 when it starts as a session
// command and goes wrong; the position is a 1-based character in statement.text. What is set, by kind:
//   set          name, values, is_default, is_local, is_number; options "scope" = "global", "expression" = "1" when a
//   value is
//                no literal (the guard refuses it). name "transaction" and "session characteristics": options as for
//                begin
//   reset, show  name ("all", "timezone", "transaction_isolation", "session_authorization", else the variable)
//   begin        options "isolation", "read_only", "deferrable" ("on" or "off"), "start" = "1" for START TRANSACTION
//   commit, rollback  options "chain" = "on" for AND CHAIN
//   prepare      name, values (declared types as text), body
//   declare      name, body, options "binary", "insensitive", "scroll", "hold" = "on"; "scroll" = "off" for NO SCROLL
//   execute      name, body ("(args)" or empty)
//   fetch, move  name (the cursor), options "direction" (next, prior, first, last, absolute, relative, forward,
//   backward) and
//                "count" (a number or "all"; absent: one)
//   close_cursor, deallocate, discard, unlisten  name ("all" for ALL and *)
//   notify       name, values (the payload)
//   lock_table   values (names as written), options "mode"
//   set_constraints  values (empty: ALL), options "mode"
//   use          values (path parts)
Status parse_session_command(Statement &statement);

}  // namespace roost::sql
