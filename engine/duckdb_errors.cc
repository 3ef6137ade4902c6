#include "engine/duckdb_errors.h"

#include <algorithm>
#include <charconv>

#include "duckdb/common/error_data.hpp"
#include "engine/outages.h"

namespace roost {

namespace {

using duckdb::ExceptionType;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// 1-based character of a byte offset; 0 when there is none.
uint32_t character_position(const duckdb::ErrorData &error, std::string_view sql) {
    const auto entry = error.ExtraInfo().find("position");
    if (entry == error.ExtraInfo().end()) return 0;
    const std::string &text = entry->second;
    size_t offset = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), offset);
    if (failed != std::errc() || offset > sql.size()) return 0;
    const auto before = sql.substr(0, offset);
    return 1 + static_cast<uint32_t>(std::count_if(before.begin(), before.end(), [](char c) {
               return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
           }));
}

// The rest of a message, split into what to try (hint) and more of it (detail). The echo of the statement ("LINE 1: …")
// is dropped: the position says it.
struct Remainder {
    std::string detail;
    std::string hint;
};
Remainder split_remainder(std::string_view text) {
    Remainder out;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.starts_with("LINE ")) break;
        if (line.empty()) continue;
        std::string &to = line.starts_with("Did you mean") || line.starts_with("Candidate") ? out.hint : out.detail;
        if (!to.empty()) to += '\n';
        to += line;
    }
    return out;
}

std::string subtype_of(const duckdb::ErrorData &error) {
    const auto entry = error.ExtraInfo().find("error_subtype");
    return entry == error.ExtraInfo().end() ? std::string() : entry->second;
}

std::string_view missing_entry_sqlstate(std::string_view text) {
    if (has(text, "Table with name") || has(text, "View with name") || has(text, "Table Function with name \"\"")) {
        return "42P01";
    }
    if (has(text, "Function with name") || has(text, "Macro")) return "42883";
    if (has(text, "Schema with name") || has(text, "Schema \"")) return "3F000";
    if (has(text, "Catalog with name") || has(text, "Catalog \"")) return "3D000";
    return "42704";
}

std::string_view catalog_sqlstate(std::string_view text, std::string_view subtype) {
    if (subtype == "ENTRY_ALREADY_EXISTS" || has(text, "already exists")) {
        return has(text, "Schema") ? "42P06" : has(text, "olumn") ? "42701" : "42P07";
    }
    if (subtype == "COLUMN_NOT_FOUND") return "42703";
    if (subtype == "NO_MATCHING_FUNCTION" || has(text, "No function matches")) return "42883";
    if (subtype == "MISSING_ENTRY" || has(text, "does not exist") || has(text, " not found in DuckLake"))
        return missing_entry_sqlstate(text);
    if (has(text, "No catalog + schema named")) return "3F000";
    if (has(text, "mbiguous")) return "42702";
    if (has(text, "GROUP BY") || has(text, "aggregate") || has(text, "window functions are not allowed"))
        return "42803";
    if (has(text, "Referenced column") || has(text, "does not have a column")) return "42703";
    if (has(text, "Referenced table")) return "42P01";
    if (has(text, "read-only")) return "25006";
    if (has(text, "ot supported") || has(text, "ot implemented")) return "0A000";
    if (has(text, "columns but") && has(text, "values")) return "42601";
    if (has(text, "type")) return "42804";
    return "42601";
}

std::string_view conversion_sqlstate(ExceptionType type, std::string_view text) {
    if (type == ExceptionType::DIVIDE_BY_ZERO || has(text, "ivision by zero")) return "22012";
    const bool date = has(text, "date") || has(text, "time") || has(text, "interval");
    if (date && has(text, "out of range")) return "22008";
    if (date && (has(text, "field value") || has(text, "format") || has(text, "onversion"))) return "22007";
    if (type == ExceptionType::OUT_OF_RANGE || has(text, "out of range") || has(text, "verflow") ||
        has(text, "can't be cast because the value is")) {
        return "22003";
    }
    return "22P02";
}

std::string_view constraint_sqlstate(std::string_view text) {
    if (has(text, "NOT NULL")) return "23502";
    if (has(text, "foreign key") || has(text, "Foreign key")) return "23503";
    if (has(text, "CHECK")) return "23514";
    if (has(text, "nique") || has(text, "primary key") || has(text, "PRIMARY KEY") || has(text, "uplicate key")) {
        return "23505";
    }
    return "23000";
}

// A catalog's writer was busy, or another transaction changed what this one did.
bool is_conflict(ExceptionType type, std::string_view text) {
    if (has(text, "database is locked") || has(text, "database table is locked")) return true;
    if (has(text, "Transaction conflict") || has(text, "write-write conflict") || has(text, "Conflict on")) return true;
    if (has(text, "could not serialize access")) return true;
    const bool commit = has(text, "Failed to commit") || has(text, "Failed to flush changes");
    // Two commits of one instance met in DuckLake's own connections: this one is rolled back.
    if (commit && has(text, "cannot start a transaction within a transaction")) return true;
    if (commit && (has(text, "conflict") || has(text, "duplicate key value") || has(text, "concurrent") ||
                   has(text, "UNIQUE constraint failed") || has(text, "PRIMARY KEY"))) {
        return true;
    }
    return type == ExceptionType::TRANSACTION && has(text, "onflict");
}

// What a COMMIT met: the engine and DuckLake give every such error the type of a transaction's and keep only its words.
std::string_view commit_sqlstate(std::string_view text) {
    if (has(text, "read-only")) return "25006";
    if (has(text, "failed to offload data block") || has(text, "No space left")) return "53100";
    if (has(text, "allocate data of size") || has(text, "allocate block of") || has(text, "failed to pin block of") ||
        has(text, "failed to resize block from") || has(text, "failed to reserve memory") || has(text, "bad_alloc")) {
        return "53200";
    }
    return has(text, "abort") || has(text, "invalidated") ? "25P02" : "25000";
}

struct Kind {
    Code code;
    std::string_view sqlstate;  // empty: the code's own
};

Kind kind_of(const duckdb::ErrorData &error, std::string_view text) {
    const ExceptionType type = error.Type();
    // DuckLake wraps what its own statements meet.
    if (has(text, "Out of Memory Error")) return {Code::resource_exhausted, "53200"};
    switch (type) {
        case ExceptionType::PARSER:
        case ExceptionType::SYNTAX:
            return {Code::syntax_error, ""};
        case ExceptionType::CATALOG:
        case ExceptionType::BINDER:
            return {Code::engine_error, catalog_sqlstate(text, subtype_of(error))};
        case ExceptionType::CONVERSION:
        case ExceptionType::OUT_OF_RANGE:
        case ExceptionType::DIVIDE_BY_ZERO:
            return {Code::engine_error, conversion_sqlstate(type, text)};
        case ExceptionType::CONSTRAINT:
            return {Code::engine_error, constraint_sqlstate(text)};
        case ExceptionType::MISMATCH_TYPE:
        case ExceptionType::INVALID_TYPE:
        case ExceptionType::UNKNOWN_TYPE:
            return {Code::engine_error, "42804"};
        case ExceptionType::DEPENDENCY:
            return {Code::engine_error, "2BP01"};
        case ExceptionType::PARAMETER_NOT_RESOLVED:
        case ExceptionType::PARAMETER_NOT_ALLOWED:
            return {Code::engine_error, "42P18"};
        case ExceptionType::TRANSACTION:
            if (has(text, "Interrupted!")) return {Code::cancelled, ""};
            if (const auto sqlstate = commit_sqlstate(text); sqlstate.starts_with("53")) {
                return {Code::resource_exhausted, sqlstate};
            } else {
                return {Code::engine_error, sqlstate};
            }
        case ExceptionType::INTERRUPT:
            return {Code::cancelled, ""};
        case ExceptionType::OUT_OF_MEMORY:
            return {Code::resource_exhausted, has(text, "disk space") ? "53100" : "53200"};
        case ExceptionType::PERMISSION:
            return {Code::not_allowed, ""};
        case ExceptionType::NOT_IMPLEMENTED:
            return {Code::unimplemented, ""};
        case ExceptionType::IO:
        case ExceptionType::HTTP:
        case ExceptionType::NETWORK:
            return {Code::io_error, has(text, "No space left") ? "53100" : ""};
        case ExceptionType::INTERNAL:
        case ExceptionType::FATAL:
            return {Code::internal, ""};
        case ExceptionType::INVALID_INPUT:
        case ExceptionType::INVALID_CONFIGURATION:
        case ExceptionType::SETTINGS:
            if (has(text, "configuration has been locked")) return {Code::not_allowed, ""};
            if (has(text, "read-only mode")) return {Code::engine_error, "25006"};
            return {Code::engine_error, "22023"};
        default:
            return {Code::engine_error, "22000"};
    }
}

// "… (rule files.outside_lake)": the file wall's own words.
std::string rule_in(std::string_view text) {
    constexpr std::string_view kMark = "(rule ";
    const size_t at = text.rfind(kMark);
    if (at == std::string_view::npos) return {};
    const auto rest = text.substr(at + kMark.size());
    return std::string(rest.substr(0, rest.find(')')));
}

}  // namespace

std::string redact(std::string text, const Redactions &redactions) {
    for (const auto &[secret, shown] : redactions) {
        if (secret.empty()) continue;
        for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + shown.size())) {
            text.replace(at, secret.size(), shown);
        }
    }
    return text;
}

Status status_of(const duckdb::ErrorData &error, std::string_view sql, const Redactions &redactions) {
    const std::string whole = redact(error.Message(), redactions);
    if (is_stale_catalog(error)) {
        return Status(Code::conflict, "could not serialize access: the lake's catalog was reorganised meanwhile")
            .with_name("catalog_reorganised")
            .with_hint("run the transaction again")
            .with_retryable(true);
    }
    if (is_conflict(error.Type(), whole)) {
        return Status(Code::conflict, "could not serialize access: another writer changed the lake at the same time")
            .with_hint("run the transaction again")
            .with_retryable(true);
    }
    if (auto outage = outage_of(error)) return *std::move(outage);
    const Kind kind = kind_of(error, whole);
    if (kind.code == Code::internal) {
        return Status(Code::internal, "the query engine failed on this statement; it was restarted")
            .with_hint("the node's log has the engine's own words under the statement's id");
    }
    const size_t line_end = std::min(whole.find('\n'), whole.size());
    Remainder rest = split_remainder(std::string_view(whole).substr(line_end));
    return Status(kind.code, whole.substr(0, line_end))
        .with_sqlstate(std::string(kind.sqlstate))
        .with_detail(std::move(rest.detail))
        .with_hint(std::move(rest.hint))
        .with_rule(kind.code == Code::not_allowed ? rule_in(whole) : std::string())
        .with_position(character_position(error, sql));
}

Status status_of(const std::exception &error, std::string_view sql, const Redactions &redactions) {
    return status_of(duckdb::ErrorData(error), sql, redactions);
}

std::string hint_without_names(const Status &status) {
    const std::string &hint = status.error().hint;
    return has(hint, "Did you mean") || has(hint, "Candidate") ? std::string() : hint;
}

bool is_stale_catalog(const duckdb::ErrorData &error) {
    const std::string_view text = error.RawMessage();
    if (has(text, "ducklake_inlined_data_")) return true;  // nobody else can name one
    // Over Postgres DuckLake looks at the columns of such an answer before it looks whether it is an error, and the
    // engine says so with a stack trace.
    const std::string whole = error.Message();
    return error.Type() == ExceptionType::INTERNAL && has(text, "index 0 within vector of size 0") &&
           has(whole, "DuckLakeInlinedDataReader");
}

bool breaks_instance(const duckdb::ErrorData &error) {
    return error.Type() == ExceptionType::FATAL || error.Type() == ExceptionType::INTERNAL;
}

}  // namespace roost
