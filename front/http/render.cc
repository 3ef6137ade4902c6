#include "front/http/render.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "front/http/decode.h"
#include "front/http/json.h"
#include "obs/json_text.h"

namespace roost::http {
namespace {

constexpr std::string_view kFieldMark = "field: ";

std::string id_or_null(const Uuid &id) { return id.is_nil() ? "null" : "\"" + id.to_string() + "\""; }

std::string error_details(const Error &error, std::string_view sqlstate) {
    JsonObject details;
    if (!error.rule.empty()) details.text("rule", error.rule);
    if (error.position > 0) details.number("position", error.position);
    if (!error.hint.empty()) details.text("hint", error.hint);
    if (error.detail.starts_with(kFieldMark)) {
        details.text("field", std::string_view(error.detail).substr(kFieldMark.size()));
    } else if (!error.detail.empty()) {
        details.text("more", error.detail);
    }
    details.text("sqlstate", sqlstate);
    if (error.retryable) details.flag("retryable", true);
    return details.take();
}

std::string envelope(std::string_view name, std::string_view message, std::string_view details) {
    return JsonObject().text("error", name).text("message", message).raw("details", details).take();
}

void add_error_headers(net::HttpResponse &response) {
    if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"roost\"");
    if (response.status == 503 || response.status == 429) response.headers.emplace_back("Retry-After", "1");
}

// The text cut at a character that ends within `most_bytes`.
std::string_view cut(std::string_view text, size_t most_bytes) {
    if (text.size() <= most_bytes) return text;
    while (most_bytes > 0 && (static_cast<uint8_t>(text[most_bytes]) & 0xC0) == 0x80) --most_bytes;
    return text.substr(0, most_bytes);
}

std::string first_page(const service::StatementInfo &info, uint32_t max_rows) {
    if (max_rows == 0 || info.first_page.empty() || !info.record.has_result) return {};
    const uint64_t total_rows = info.record.row_count.value_or(0);
    return rows_page(info.record.id, info.columns, info.first_page, std::min<uint64_t>(max_rows, total_rows),
                     total_rows);
}

void add_error(JsonObject &object, const meta::StatementRecord &record) {
    object.text_or_null("error", record.error);
    object.text_or_null("error_code", record.error_code);
    object.text_or_null("sqlstate", record.sqlstate);
}

void add_result(JsonObject &object, const service::StatementInfo &info) {
    const meta::StatementRecord &record = info.record;
    object.flag("has_result", record.has_result);
    if (record.row_count) {
        object.number("row_count", *record.row_count);
    } else {
        object.null("row_count");
    }
    if (!record.has_result) {
        object.null("column_schema");
    } else if (!info.columns.empty()) {
        object.raw("column_schema", column_schema(info.columns));
    } else {
        object.raw_or_null("column_schema", record.column_schema);
    }
    object.number("result_bytes", record.result_bytes);
}

void add_times(JsonObject &object, const service::StatementInfo &info) {
    const meta::StatementRecord &record = info.record;
    if (record.finished_us > 0) {
        object.number("duration_ms", std::max<int64_t>(0, record.finished_us - record.started_us) / 1000);
    } else {
        object.null("duration_ms");
    }
    object.raw("started_at", json_time(record.started_us));
    object.raw("running_at", json_time(record.running_us));
    object.raw("finished_at", json_time(record.finished_us));
    if (info.progress >= 0) {
        object.real("progress", info.progress);
    } else {
        object.null("progress");
    }
    object.text_or_null("wait", info.wait);
}

}  // namespace

net::HttpResponse json_response(int status, std::string body) {
    net::HttpResponse response;
    response.status = status;
    response.headers.emplace_back("Content-Type", "application/json");
    response.headers.emplace_back("Cache-Control", "no-store");
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    response.body = std::move(body);
    return response;
}

Status as_oneshot(Status error) {
    if (error.code() != Code::not_allowed || !error.error().name.empty()) return error;
    return std::move(error).with_name("sql_not_allowed");
}

int http_status(const Status &error) {
    const std::string_view name = error.name();
    if (name == "bad_request") return 400;
    if (name == "body_too_large") return 413;
    if (name == "request_timeout") return 408;
    // A program limit (text too long, too many statements) is the request's fault and stays so: nothing to retry.
    if (error.sqlstate().starts_with("54")) return 422;
    return default_http_status(error.code());
}

net::HttpResponse error_response(const Status &error) {
    net::HttpResponse response = json_response(
        http_status(error), envelope(error.name(), error.message(), error_details(error.error(), error.sqlstate())));
    add_error_headers(response);
    return response;
}

net::HttpResponse error_response(int http_status, std::string_view name, std::string_view message) {
    net::HttpResponse response = json_response(http_status, envelope(name, message, "{}"));
    add_error_headers(response);
    return response;
}

std::string json_time(int64_t wall_us) {
    if (wall_us <= 0) return "null";
    namespace chrono = std::chrono;
    const chrono::sys_time<chrono::microseconds> time{chrono::microseconds(wall_us)};
    const auto day = chrono::floor<chrono::days>(time);
    const chrono::year_month_day date(day);
    const chrono::hh_mm_ss clock(time - day);
    char text[64];
    const int size =
        std::snprintf(text, sizeof(text), "\"%04d-%02u-%02uT%02d:%02d:%02d.%06d+00:00\"", int(date.year()),
                      unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                      int(clock.minutes().count()), int(clock.seconds().count()), int(clock.subseconds().count()));
    return {text, static_cast<size_t>(size)};
}

std::string column_schema(const std::vector<Column> &columns) {
    return json_array(columns, [](const Column &column) {
        return JsonObject().text("name", column.name).text("type", column.type).take();
    });
}

std::string statement_object(const service::StatementInfo &info, const StatementView &view) {
    const meta::StatementRecord &record = info.record;
    const std::string_view sql = cut(record.sql, view.sql_max_bytes);
    JsonObject object;
    object.raw("id", id_or_null(record.id));
    object.text("status", meta::status_name(record.status));
    object.raw("workspace_id", id_or_null(record.workspace));
    object.text_or_null("workspace", record.workspace_slug);
    object.text_or_null("catalog", record.catalog);
    object.raw("agent_id", id_or_null(record.node));
    object.raw("session_id", id_or_null(record.session));
    object.raw("user_id", id_or_null(record.user));
    object.text_or_null("user_name", record.user_name);
    object.text("sql", sql);
    if (sql.size() < record.sql.size()) object.flag("sql_truncated", true);
    object.text("statement_type", statement_type(record.kind));
    object.text_or_null("origin", record.origin);
    object.text_or_null("front", record.front);
    add_error(object, record);
    add_result(object, info);
    add_times(object, info);
    object.null("cache_status").null("schedule_id").null("inline_arrow");
    object.raw_or_null("first_page", first_page(info, view.first_page_max_rows));
    return object.take();
}

std::string rows_page(const Uuid &statement, const std::vector<Column> &columns, std::string_view rows_json,
                      uint64_t next_offset_rows, uint64_t total_rows) {
    JsonObject page;
    page.raw("columns", json_array(columns, [](const Column &column) { return json_string(column.name); }));
    page.raw("rows", rows_json.empty() ? std::string_view("[]") : rows_json);
    page.raw("column_schema", column_schema(columns));
    page.number("total", total_rows);
    if (next_offset_rows < total_rows) {
        page.text("cursor", encode_cursor(statement, next_offset_rows));
    } else {
        page.null("cursor");
    }
    return page.take();
}

std::string workspace_object(const meta::Workspace &workspace) {
    JsonObject object;
    object.raw("id", id_or_null(workspace.id)).text("slug", workspace.slug).text("name", workspace.name);
    object.text_or_null("default_catalog", workspace.default_catalog);
    object.raw("created_at", json_time(workspace.created_us));
    return object.take();
}

std::string catalog_object(const meta::Catalog &catalog) {
    JsonObject object;
    object.raw("id", id_or_null(catalog.id)).text("slug", catalog.slug).text("name", catalog.slug);
    object.raw("workspace_id", id_or_null(catalog.workspace)).flag("is_default", catalog.is_default);
    object.text("access_mode", catalog.access_mode).text("kind", "ducklake");
    object.raw("created_at", json_time(catalog.created_us));
    return object.take();
}

std::string schema_object(const CatalogPlace &place, const service::SchemaInfo &schema) {
    JsonObject object;
    object.text("name", schema.name).text("catalog", place.catalog).text("catalog_name", place.catalog);
    object.raw("workspace_id", id_or_null(place.workspace));
    object.number("table_count", schema.tables).number("view_count", schema.views);
    return object.take();
}

std::string table_object(const CatalogPlace &place, const service::TableInfo &table) {
    JsonObject object;
    object.text("name", table.name).text("table_type", table.is_view ? "VIEW" : "BASE TABLE");
    object.text("schema_name", table.schema).text("catalog", place.catalog).text("catalog_name", place.catalog);
    object.raw("workspace_id", id_or_null(place.workspace));
    object.text_or_null("data_source_format", table.is_view ? "" : "parquet");
    object.text("format", table.is_view ? "view" : "ducklake");
    if (table.is_view) return object.take();
    object.number("row_count", table.rows).number("column_count", table.columns);
    object.number("file_count", table.segments).number("file_size_bytes", table.bytes);
    return object.take();
}

std::string agent_object(const service::NodeInfo &node) {
    JsonObject object;
    object.raw("id", id_or_null(node.id)).text("name", node.name).text("status", node.status);
    object.raw("capabilities", "[]").text_or_null("version", node.version);
    object.raw("last_ping_at", json_time(node.last_seen_us)).raw("created_at", json_time(node.first_seen_us));
    return object.take();
}

namespace {

std::string cache_object(const obs::CacheGauges &cache) {
    constexpr std::string_view kModes[] = {"ok", "full", "bypass"};
    JsonObject object;
    object.number("warm_bytes", cache.warm_bytes).number("room_bytes", cache.room_bytes);
    object.text("disk", kModes[std::min<uint64_t>(cache.disk_mode, 2)]);
    object.number("store_bytes", cache.store_bytes).number("peer_bytes", cache.peer_bytes);
    object.number("cache_bytes", cache.cache_bytes).number("requests", cache.fetches);
    object.number("evicted_blocks", cache.evicted).number("refused_blocks", cache.refused);
    return object.number("corrupt_blocks", cache.corrupt).take();
}

}  // namespace

std::string node_object(const service::NodeInfo &node) {
    JsonObject object;
    object.raw("id", id_or_null(node.id)).text("name", node.name).text("pool", node.pool);
    object.text("status", node.status).text("version", node.version).text("dir", node.dir);
    object.number("pid", node.pid).number("cpus", node.cpus).number("memory_bytes", node.memory_bytes);
    object.number("budget_bytes", node.budget_bytes).number("granted_bytes", node.granted_bytes);
    object.text_or_null("admission_profile", node.profile);
    object.number("required_bytes", node.required_bytes).number("elastic_bytes", node.elastic_bytes);
    object.number("memory_pressure", node.pressure);
    object.raw("groups", json_array(node.groups, [](const service::NodeInfo::Group &group) {
                   JsonObject item;
                   item.text("name", group.name.empty() ? "default" : group.name).number("running", group.running);
                   return item.number("waiting", group.waiting).number("required_bytes", group.required_bytes).take();
               }));
    object.number("used_bytes", node.used_bytes).number("resident_bytes", node.resident_bytes);
    object.number("running", node.running).number("waiting", node.waiting).real("load", node.load);
    object.number("incarnation", node.incarnation).number("transactions", node.transactions);
    object.flag("routable", node.routable).text_or_null("state", node.state).text_or_null("why", node.why);
    object.raw_or_null("cache", node.cache ? cache_object(*node.cache) : std::string());
    object.raw("last_seen_at", json_time(node.last_seen_us)).raw("first_seen_at", json_time(node.first_seen_us));
    return object.take();
}

std::string route_object(const service::RouteExplanation &route) {
    JsonObject object;
    object.text("kind", route.kind).text("policy", route.policy).text("reason", route.reason);
    object.text_or_null("node", route.node);
    object.raw("candidates", json_array(route.candidates, [](const service::RouteExplanation::Candidate &candidate) {
                   JsonObject item;
                   item.text("node", candidate.node).real("load", candidate.load);
                   return item.text_or_null("note", candidate.note).take();
               }));
    return object.take();
}

std::string placement_object(const service::TablePlacement &table) {
    JsonObject object;
    object.text("catalog", table.catalog).text("schema", table.schema).text("table", table.name);
    object.number("bytes", table.bytes).number("segments", table.segments).number("epoch", table.epoch);
    object.text_or_null("owner", table.owner);
    object.raw("homes", json_array(table.homes, [](const service::PlacementHome &home) {
                   JsonObject item;
                   item.raw("node_id", id_or_null(home.node)).text("node", home.name).flag("online", home.online);
                   item.number("warm_bytes", home.warm_bytes).number("files", home.files);
                   item.number("epoch", home.epoch).text_or_null("state", home.state);
                   return item.number("reading", home.reading).take();
               }));
    return object.take();
}

std::string cache_done_object(const service::CacheDone &done) {
    JsonObject object;
    object.raw("node_id", id_or_null(done.node)).text("node", done.name).number("bytes", done.bytes);
    return object.take();
}

std::string session_object(const service::SqlSessionInfo &session) {
    JsonObject object;
    object.text("id", session.id.to_string()).text("status", session.status);
    object.raw("agent_id", id_or_null(session.node)).null("agent_name");
    object.text("active_catalog", session.active_catalog).null("staging_uri");
    object.text_or_null("error", session.is_open() ? std::string() : "the session is over: " + session.close_reason);
    object.raw("workspace_id", id_or_null(session.workspace_id)).text("workspace", session.workspace);
    object.raw("user_id", id_or_null(session.user_id)).text("user_name", session.user_name);
    object.text_or_null("client_name", session.client_name).text_or_null("client_version", session.client_version);
    object.raw("created_at", json_time(session.created_us)).raw("opened_at", json_time(session.created_us));
    object.raw("last_active_at", json_time(session.last_active_us)).raw("closed_at", json_time(session.closed_us));
    object.text_or_null("close_reason", session.close_reason).number("statement_count", session.statements);
    return object.take();
}

std::string audit_object(const meta::AuditRecord &record) {
    const auto id = [](const Uuid &uuid) { return uuid.is_nil() ? std::string() : uuid.to_string(); };
    JsonObject object;
    object.number("id", record.sequence).raw("at", json_time(record.at_us)).text("event", record.event);
    object.text("front", record.front).text_or_null("peer", record.peer);
    object.text_or_null("user_id", id(record.user)).text_or_null("user_name", record.user_name);
    object.text_or_null("workspace", record.workspace).text_or_null("session_id", id(record.session));
    object.text_or_null("query_id", id(record.statement));
    object.text_or_null("rule", record.rule).text_or_null("sqlstate", record.sqlstate);
    if (record.position > 0) {
        object.number("position", record.position);
    } else {
        object.null("position");
    }
    object.number("count", record.count).text_or_null("message", record.message).text_or_null("sql", record.sql);
    object.text_or_null("shape", record.shape == 0 ? std::string() : std::to_string(record.shape));
    return object.take();
}

}  // namespace roost::http
