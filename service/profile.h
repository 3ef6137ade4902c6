// What a statement's story looks like to people and programs: command tags and the profile. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/statement.h"
#include "routing/policy.h"
#include "sql/statement.h"

namespace roost::service {

// PostgreSQL's command tag. `rows` counts the grid's rows.
std::string command_tag(const sql::Statement &statement, const Completion &completion, uint64_t rows);

// What the history and the HTTP front say of a failure: the message, more of it, what to do about it.
// REQUIRES: !status.ok()
std::string error_text(const Status &status);

// Where the time went at the gateway, microseconds.
struct GatewayTimings {
    int64_t parse_us = 0;
    int64_t lease_us = 0;
    int64_t route_us = 0;
    int64_t first_frame_us = 0;  // dispatch to the first frame back
    int64_t total_us = 0;
};

struct ProfileFacts {
    Uuid statement;
    std::string kind;
    GatewayTimings gateway;
    std::string node, node_name;
    const routing::Decision *decision = nullptr;
    uint32_t retries = 0, conflicts = 0, refused_by = 0;
    bool shape_was_large = false;
    const Completion *completion = nullptr;
    // The name of the table whose files are in a folder; empty: not known. May be unset.
    std::function<std::string(const std::string &)> table_in;
};

// JSON object: stages with times, the node and why, memory, DuckDB's operator tree.
std::string profile_json(const ProfileFacts &facts);

// A JSON string literal.
std::string json_quote(std::string_view text);
// JSON array of {"name","type"}, and back.
std::string column_schema_json(const std::vector<Column> &columns);
std::vector<Column> parse_column_schema(const std::string &json);

}  // namespace roost::service
