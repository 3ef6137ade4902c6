// What the gateway knows of a SQL text before it runs: its statements, what each is, what it touches. Pure functions
// over text with DuckDB's bare parser (no I/O, nothing evaluated) and, for PostgreSQL's session commands that DuckDB
// does not know, a small parser of our own. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace roost::sql {

class Tree;  // DuckDB's parse tree of a statement (tree.h)

// clang-format off
enum class Kind : uint8_t {
    empty,         // nothing but blanks and comments
    select,        // SELECT, VALUES, FROM-first, WITH, TABLE, PIVOT
    insert, update, delete_rows, merge,
    create_table, create_table_as, create_view, create_schema, create_other,
    alter, drop, truncate, comment_on,
    explain, describe,  // EXPLAIN; DESCRIBE, SHOW TABLES, SUMMARIZE: run as reads
    copy,
    // Session commands, handled by roost itself and never sent to a node:
    begin, commit, rollback, savepoint, release, rollback_to,
    set, reset, show,        // show: SHOW name of a session variable, SHOW ALL
    use,                     // USE catalog.schema
    prepare, execute, deallocate,
    declare, fetch, move, close_cursor,
    discard, listen, unlisten, notify, lock_table, set_constraints,
    set_variable,  // DuckDB's SET VARIABLE, RESET VARIABLE: a node makes the value, the session keeps it
    other,         // parsed, but nothing we run: refused with its name (command.name)
};
// clang-format on

std::string_view kind_name(Kind kind);  // "select", "create_table_as", …: history, metrics, errors
// The kinds that roost answers without a node.
bool is_session_command(Kind kind);
bool changes_lake(Kind kind);

// A table as the text names it; parts that are not given are empty.
struct TableName {
    std::string catalog, schema, table;
    auto operator<=>(const TableName &) const = default;
};

// What a session command says, for those kinds that need it.
struct SessionCommand {
    std::string name;  // set/reset/show: variable, lower case; prepare…/cursor kinds: the object's name; "all" for ALL
    std::vector<std::string>
        values;               // set: the value list as text (literals unquoted; SET x TO a, b → two); use: path parts
    bool is_default = false;  // SET x TO DEFAULT
    bool is_local = false;    // SET LOCAL
    bool is_number = false;   // the single value was an unquoted number
    std::string body;         // prepare, declare: the statement inside; execute: "(args)" text; set_variable: a SELECT
                              // of the value, empty for RESET VARIABLE
    std::map<std::string, std::string>
        options;  // begin: "isolation", "read_only" = "on"/"off", "deferrable"; fetch: "direction", "count"; …
};

struct Statement {
    std::string text;     // its part of the original text, blanks and `;` around it removed
    uint32_t offset = 0;  // where it starts in the original, characters (for error positions)
    Kind kind = Kind::empty;
    std::vector<TableName> reads;   // tables and views named anywhere in it, CTE names left out
    std::vector<TableName> writes;  // targets of DML and DDL
    std::vector<TableName> calls;   // functions that the engine does not have: macros of the lake, or nothing
    uint32_t param_count = 0;       // highest $n, or number of ? marks
    bool read_only_hint = false;    // begin: READ ONLY was said
    SessionCommand command;
    std::string tag_object;  // DDL: TABLE, VIEW, SCHEMA …: for the command tag
    bool returning = false;  // DML with RETURNING
    uint64_t shape = 0;      // fingerprint() of text, where somebody has computed it (StatementCache); else 0
    // The parse tree of `text`, shared by copies, so that check() need not parse again. Null for session commands;
    // prepare and declare hold the tree of their body. check() uses it only while it still belongs to the text.
    std::shared_ptr<const Tree> tree;
};

struct ParseLimits {
    uint32_t text_max_bytes = 16 * 1024 * 1024;
    uint32_t statements_max = 10'000;
    uint32_t depth_max = 1'000;  // nesting of the tree; more is refused, not recursed into
};

// Splits and parses the whole text: all statements or an error (42601 with a position; nothing runs if any part is
// broken). An empty text gives one statement of kind empty. Invalid UTF-8 and NUL: 22021. Too long: 54000
// (program_limit_exceeded).
Result<std::vector<Statement>> parse(std::string_view text, const ParseLimits &limits = {});

enum class Context : uint8_t { oneshot, session };

// What the guard knows beside the text. Whatever is left out is refused, so an empty policy is the strictest.
struct GuardPolicy {
    std::vector<std::string> catalogs;  // names that SQL may use as a catalog
    // The session's own prefix for COPY and read_*, with its final `/`: s3://bucket/staging/SESSION/. Empty: none.
    std::string staging_prefix;
    // Exact URLs that the service staged for this session and that read_parquet, read_csv and read_json may name.
    std::vector<std::string> staged_urls;
    // Macros that may be called: made by CREATE MACRO, their bodies judged then. Null: none beside the engine's own.
    std::function<bool(std::string_view folded_name)> is_macro;
    // Whether a name that looks like a path (`data.csv`, `a/b`) is a table or view of the lake. Null: names that look
    // like paths are refused where they are read. Names that do not look so are left to the catalog.
    std::function<bool(const TableName &)> is_table;
};

// The guard: allow-list over the whole parse tree. Ok, or not_allowed with `rule`, `position` and what to do.
// The text is parsed again inside, so that the verdict is on what will run and not on a summary of it.
// A session command is judged by what it says and by the statement inside it (PREPARE, DECLARE). Positions count
// characters in the original text, as parse()'s do.
Status check(const Statement &statement, Context context, const GuardPolicy &policy);

// check() of each statement, before the first runs. Macros that an earlier statement of the text makes may be called by
// later ones.
Status check_all(const std::vector<Statement> &statements, Context context, const GuardPolicy &policy);

// Of the DuckDB whose parser this is: "v1.5.5".
std::string engine_version();

// 64-bit hash of the statement's shape: literals normalised, case of keywords and blanks ignored. Equal shapes share
// memory of their size. Cheap enough for each statement (no parse).
uint64_t fingerprint(std::string_view statement_text);

}  // namespace roost::sql
