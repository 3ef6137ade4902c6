// What the HTTP front says: JSON objects of the contract, made of the service's values. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "net/http_message.h"
#include "service/service.h"
#include "service/sql_sessions.h"

namespace roost::http {

net::HttpResponse json_response(int status, std::string body);

// The error envelope. 503 and 429 carry Retry-After, 401 WWW-Authenticate.
net::HttpResponse error_response(const Status &error);
net::HttpResponse error_response(int http_status, std::string_view name, std::string_view message);
// What the guard refuses has a code of its own outside of sessions.
Status as_oneshot(Status error);
// The HTTP status an error is answered with.
int http_status(const Status &error);

// "2024-01-02T03:04:05.678901+00:00"; JSON null for 0.
std::string json_time(int64_t wall_us);

// JSON array of {"name","type"}.
std::string column_schema(const std::vector<Column> &columns);

// The query object. `first_page_max_rows` is what the submit asked for; 0: no first page (polls, lists).
// `sql_max_bytes` cuts the statement's text, for lists.
struct StatementView {
    uint32_t first_page_max_rows = 0;
    size_t sql_max_bytes = std::string::npos;
};
std::string statement_object(const service::StatementInfo &info, const StatementView &view);

// One page of rows. `next_offset_rows` equal to `total_rows` ends the paging.
std::string rows_page(const Uuid &statement, const std::vector<Column> &columns, std::string_view rows_json,
                      uint64_t next_offset_rows, uint64_t total_rows);

std::string workspace_object(const meta::Workspace &workspace);
std::string catalog_object(const meta::Catalog &catalog);
// Where a schema is.
struct CatalogPlace {
    Uuid workspace;
    std::string catalog;
};
std::string schema_object(const CatalogPlace &place, const service::SchemaInfo &schema);
std::string table_object(const CatalogPlace &place, const service::TableInfo &table);
std::string agent_object(const service::NodeInfo &node);
std::string node_object(const service::NodeInfo &node);
std::string route_object(const service::RouteExplanation &route);

std::string placement_object(const service::TablePlacement &table);
std::string cache_done_object(const service::CacheDone &done);

std::string audit_object(const meta::AuditRecord &record);
std::string session_object(const service::SqlSessionInfo &session);

}  // namespace roost::http
