#include "sql/guard_names.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "sql/lexer.h"
#include "sql/rules.h"

namespace roost::sql {
namespace {

// Last parts of a name that DuckDB's replacement scans read as files; a compression suffix may follow.
constexpr std::string_view file_extensions[] = {".csv",    ".tsv",    ".parquet", ".json", ".jsonl",
                                                ".ndjson", ".duckdb", ".ddb",     ".db"};
constexpr std::string_view compressions[] = {".gz", ".zst", ".zstd"};

bool one_of(std::string_view text, const std::vector<std::string> &folded_or_not) {
    return std::any_of(folded_or_not.begin(), folded_or_not.end(),
                       [&](const std::string &entry) { return equals_folded(text, fold(entry)); });
}

// Catalogs that every DuckDB instance has and no tenant may name.
bool is_engine_catalog(std::string_view folded) { return folded == "system" || folded == "memory"; }
bool is_system_schema(std::string_view folded) { return folded == "information_schema" || folded == "pg_catalog"; }

bool looks_like_path(const TableName &name) {
    std::string joined;
    for (const std::string *part : {&name.catalog, &name.schema, &name.table}) {
        if (!part->empty()) joined += (joined.empty() ? "" : ".") + fold(*part);
    }
    if (joined.find_first_of("/\\*?") != std::string::npos || joined.find("://") != std::string::npos) return true;
    if (joined[0] == '~') return true;
    std::string_view rest = joined;
    for (const std::string_view suffix : compressions) {
        if (rest.ends_with(suffix)) rest.remove_suffix(suffix.size());
    }
    return std::any_of(std::begin(file_extensions), std::end(file_extensions),
                       [&](std::string_view extension) { return rest.ends_with(extension); });
}

Status refuse_catalog(std::string_view name) {
    return refuse("catalog:" + fold(name), "the catalog \"" + std::string(name) + "\" may not be used",
                  "name tables as schema.table or catalog.schema.table of your own catalogs");
}

Status refuse_metadata() {
    return refuse("catalog:metadata", "the lake's metadata catalog may not be used",
                  "use information_schema, or lake.snapshots() and its like");
}

// A view of the engine's own schemas: known and safe, or refused.
Status check_system_view(std::string_view schema, std::string_view folded_table) {
    const std::string qualified = std::string(schema) + '.' + std::string(folded_table);
    for (const FunctionEntry &entry : find_functions(qualified)) {
        if (entry.kind != FunctionKind::view) continue;
        if (entry.verdict == Verdict::safe) return Status();
        return refuse("view:" + qualified, "the view " + qualified + " may not be read",
                      "SHOW and current_setting() tell a session's own settings");
    }
    return refuse("view:" + qualified, "relation " + qualified + " does not exist or is not available",
                  "SHOW ALL TABLES lists what can be read")
        .with_sqlstate("42P01");
}

// A name without a schema, or in main, may mean a view of the engine's.
Status check_engine_view(std::string_view folded_table) {
    for (const std::string &key : {std::string(folded_table), "pg_catalog." + std::string(folded_table)}) {
        for (const FunctionEntry &entry : find_functions(key)) {
            if (entry.kind != FunctionKind::view || entry.verdict == Verdict::safe) continue;
            return refuse("view:" + std::string(folded_table),
                          "the view " + std::string(folded_table) + " may not be read",
                          "SHOW tells a session's settings; information_schema the catalogs");
        }
    }
    return Status();
}

}  // namespace

Status refuse(std::string rule, std::string message, std::string hint) {
    return Status(Code::not_allowed, std::move(message)).with_rule(std::move(rule)).with_hint(std::move(hint));
}

bool is_metadata_catalog(std::string_view name) {
    constexpr std::string_view prefix = "__ducklake_metadata";
    return name.size() >= prefix.size() && equals_folded(name.substr(0, prefix.size()), prefix);
}

Status check_qualifiers(const TableName &name, bool changes, const GuardPolicy &policy) {
    for (const std::string *part : {&name.catalog, &name.schema, &name.table}) {
        if (is_metadata_catalog(*part)) return refuse_metadata();
    }
    const std::string catalog = fold(name.catalog);
    const std::string schema = fold(name.schema);
    if (changes && is_system_schema(schema)) {
        return refuse("schema:" + schema, "the schema " + schema + " cannot be changed", "use a schema of your own");
    }
    if (catalog.empty()) {
        // The only qualifier: `memory.t` is the engine's catalog before it is a schema.
        return is_engine_catalog(schema) && !name.table.empty() ? refuse_catalog(schema) : Status();
    }
    if (catalog == "temp" || one_of(catalog, policy.catalogs)) return Status();
    if (catalog == "system" && is_system_schema(schema) && !changes) return Status();
    return refuse_catalog(name.catalog);
}

Status check_not_a_path(const TableName &name, const GuardPolicy &policy) {
    if (name.table.empty() || !looks_like_path(name)) return Status();
    if (policy.is_table && policy.is_table(name)) return Status();
    return refuse("path", "\"" + name.table + "\" is not a table; files cannot be read as tables",
                  "load the file with COPY or roost import, then read the table");
}

Status check_relation(const TableName &name, const GuardPolicy &policy) {
    const std::string schema = fold(name.schema);
    const std::string table = fold(name.table);
    if (is_system_schema(schema)) return check_system_view(schema, table);
    const bool own_catalog =
        one_of(name.catalog, policy.catalogs) || (name.catalog.empty() && one_of(schema, policy.catalogs));
    if (!own_catalog && (schema.empty() || schema == "main")) ROOST_RETURN_IF_ERROR(check_engine_view(table));
    return check_not_a_path(name, policy);
}

Status check_staging_path(std::string_view path, const GuardPolicy &policy) {
    const auto no = [&](const char *why) {
        return refuse("path", std::string("the path ") + why,
                      policy.staging_prefix.empty()
                          ? "use COPY … FROM STDIN or TO STDOUT, or open a session with staged files"
                          : "name a file below " + policy.staging_prefix);
    };
    const std::string_view prefix = policy.staging_prefix;
    if (prefix.empty() || prefix.back() != '/' || path.substr(0, prefix.size()) != prefix ||
        path.size() == prefix.size()) {
        return no("is not below this session's staging prefix");
    }
    const std::string_view rest = path.substr(prefix.size());
    if (rest.find_first_of("?#%\\") != std::string_view::npos) return no("holds one of ? # % \\");
    if (rest.find_first_of("*[]{}") != std::string_view::npos) return no("holds a pattern");
    if (std::any_of(rest.begin(), rest.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; })) {
        return no("holds a control character");
    }
    size_t begin = 0;
    while (begin <= rest.size()) {
        const size_t slash = std::min(rest.find('/', begin), rest.size());
        const std::string_view step = rest.substr(begin, slash - begin);
        if (step.empty() || step == "." || step == "..") return no("holds an empty, . or .. step");
        begin = slash + 1;
    }
    return Status();
}

Status check_staged_url(std::string_view url, const GuardPolicy &policy) {
    if (std::find(policy.staged_urls.begin(), policy.staged_urls.end(), url) != policy.staged_urls.end())
        return Status();
    return check_staging_path(url, policy);
}

Status check_search_path(std::string_view text, const GuardPolicy &policy) {
    Lexer lexer(text);
    std::vector<std::string> parts;
    const auto finish_element = [&]() -> Status {
        if (parts.size() > 2) return refuse_catalog(parts[0]);
        TableName name;
        if (parts.size() == 2) name = TableName{parts[0], parts[1], ""};
        if (parts.size() == 1) name.schema = parts[0];
        if (parts.size() == 1 && is_engine_catalog(fold(parts[0]))) return refuse_catalog(parts[0]);
        parts.clear();
        return check_qualifiers(name, false, policy);
    };
    while (true) {
        const Token token = lexer.next();
        switch (token.kind) {
            case Token::Kind::end:
                return finish_element();
            case Token::Kind::word:
            case Token::Kind::quoted:
                parts.push_back(identifier_value(text, token));
                break;
            case Token::Kind::parameter:
                break;  // $user, PostgreSQL's default element
            case Token::Kind::punct:
                if (token.in(text) == ",") {
                    ROOST_RETURN_IF_ERROR(finish_element());
                    break;
                }
                [[fallthrough]];
            default:
                if (token.in(text) == ".") break;
                return refuse("setting_value:search_path", "the search path holds something that is no schema's name",
                              "list schemas, separated by commas");
        }
    }
}

}  // namespace roost::sql
