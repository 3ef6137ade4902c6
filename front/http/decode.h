// What a request says, decoded: target, cursors, times, bodies. Pure functions over hostile text; every error names the
// field and becomes a 400 or 422. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/register_files.h"
#include "engine/statement.h"
#include "meta/store.h"
#include "sql/statement.h"

namespace roost::http {

struct DecodeLimits {
    uint32_t page_max_rows = 1'000;
    uint32_t page_default_rows = 100;
    uint32_t first_page_max_rows = 200;
    double wait_max_s = 30;
    double timeout_max_s = 86'400;
    double timeout_default_s = 600;
    size_t segments_max = 32;
    size_t query_fields_max = 256;
};

// invalid_argument that says which field is wrong; error_details() of render.h makes details.field of it.
Status bad_field(std::string_view field, std::string_view message);

// Percent-decoding. Unset for a broken escape, NUL or text that is not UTF-8.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank);

// The part after '?', decoded.
class QueryString {
public:
    static Result<QueryString> parse(std::string_view text, const DecodeLimits &limits = {});
    const std::string *find(std::string_view name) const;  // the last of that name
    std::vector<std::string_view> all(std::string_view name) const;
    // The number, or `fallback` when the field is missing.
    Result<uint64_t> integer(std::string_view name, uint64_t fallback, uint64_t least, uint64_t most) const;
    Result<double> real(std::string_view name, double fallback, double least, double most) const;
    Result<bool> flag(std::string_view name, bool fallback) const;

private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

struct Target {
    std::vector<std::string> segments;  // decoded, of the path: "/api/queries" is {"api", "queries"}
    QueryString query;
};

// Takes origin form ("/path?query") and absolute form ("http://host/path").
Result<Target> parse_target(std::string_view text, const DecodeLimits &limits = {});

// A place in a kept result. Bound to the statement: the cursor of another one is refused.
std::string encode_cursor(const Uuid &statement, uint64_t offset_rows);
Result<uint64_t> decode_cursor(const Uuid &statement, std::string_view cursor);

// ISO 8601: a date, with or without a time, with or without an offset (none: UTC), as microseconds since 1970.
std::optional<int64_t> parse_time_us(std::string_view text);

// The contract's word for a kind of statement ("create" for create_table_as), and the kinds behind a word.
std::string_view statement_type(std::string_view kind_name);
std::optional<std::vector<std::string>> kinds_of_type(std::string_view type);

struct SubmitBody {
    std::string sql, catalog;
    std::optional<Uuid> agent;
    std::vector<Param> params;
    int64_t timeout_ms = 600'000;
    int64_t wait_ms = 0;
    uint32_t first_page_rows = 200;
};
Result<SubmitBody> decode_submit(std::string_view body, const DecodeLimits &limits = {});

struct OpenSessionBody {
    std::string catalog;
    std::optional<Uuid> agent;
};
Result<OpenSessionBody> decode_open_session(std::string_view body);

struct ImportBody {
    struct File {
        std::string name, original, format;
    };
    std::string catalog, schema, table;
    std::vector<File> files;
    std::vector<std::string> sources;
    std::optional<RegisterFiles> in_place;
    int64_t wait_ms = 0;
};
Result<ImportBody> decode_import(std::string_view body, const DecodeLimits &limits = {});

// Of the routes of users, members and grants; each uses some of it.
struct AccessBody {
    std::string name, email, password, slug, user_id, tier, schema_name, table_name, access_mode;
    std::optional<std::string> role;
    std::optional<bool> active;
};
Result<AccessBody> decode_access(std::string_view body);

// {"sql": …}
Result<std::string> decode_sql(std::string_view body);

// {"profile": …}
Result<std::string> decode_profile(std::string_view body);

// {"action": "warm"|"pin"|"unpin"|"evict", "table": …, "node": …}
struct CacheBody {
    CacheWork::Action action = CacheWork::Action::warm;
    std::string table, node;  // node: empty where it is not given
};
Result<CacheBody> decode_cache_body(std::string_view body);

struct HistoryQuery {
    meta::StatementFilter filter;  // workspace unset
    bool all_workspaces = false;
};
Result<HistoryQuery> decode_history(const QueryString &query, const DecodeLimits &limits = {});

Result<meta::AuditFilter> decode_audit(const QueryString &query, const DecodeLimits &limits = {});

// The token of "Authorization: Bearer TOKEN"; empty when there is none.
std::string_view bearer_token(std::string_view authorization);

// "duckhaven-cli/0.4.0" of a User-Agent: its first word, cut at a sensible length.
std::string_view client_product(std::string_view user_agent);

}  // namespace roost::http
