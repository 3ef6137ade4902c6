#include "app/pool_client.h"

#include <nlohmann/json.hpp>

#include "app/json_slices.h"

namespace roost::app {
namespace {

using nlohmann::json;

constexpr int64_t kRequest_ms = 30'000;
constexpr int64_t kCacheWork_ms = 3'600'000;  // a large table comes from the store at the store's pace
// Beyond what the server was asked to wait.
constexpr int64_t kSlack_ms = 30'000;
// Uploads and imports: how long no byte may move, respectively the server may be busy with the end of a file.
constexpr int64_t kUploadStall_ms = 120'000;
constexpr uint32_t kPageRows = 1000;

std::string text_of(const json &object, const char *name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string seconds(int64_t ms) { return json(static_cast<double>(ms) / 1000).dump(); }

std::string dump(const json &value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

Status not_understood(std::string_view body) {
    return Status(Code::data_loss, "the server's answer is not what was expected: " + std::string(body.substr(0, 200)));
}

Code code_of(int http_status) {
    switch (http_status) {
        case 401:
            return Code::unauthenticated;
        case 403:
            return Code::permission_denied;
        case 404:
        case 410:
            return Code::not_found;
        case 409:
            return Code::failed_precondition;
        case 429:
            return Code::resource_exhausted;
        case 502:
        case 503:
            return Code::unavailable;
        case 408:
        case 504:
            return Code::timeout;
        case 501:
            return Code::unimplemented;
        default:
            return http_status < 500 ? Code::not_allowed : Code::internal;
    }
}

// The body of an answer below 400, else the error in it.
Result<std::string> body_of(Result<HttpResponse> response) {
    if (!response.ok()) return response.status();
    if (response->status >= 400) return error_from_response(*response);
    return std::move(response->body);
}

Result<json> json_of(Result<HttpResponse> response) {
    ROOST_ASSIGN_OR_RETURN(const std::string body, body_of(std::move(response)));
    json parsed = json::parse(body, nullptr, false);
    if (parsed.is_discarded()) return not_understood(body);
    return parsed;
}

Result<std::vector<ResultColumn>> columns_of(std::string_view column_schema) {
    const json parsed = json::parse(column_schema, nullptr, false);
    if (!parsed.is_array()) return not_understood(column_schema);
    std::vector<ResultColumn> out;
    for (const json &column : parsed) {
        if (!column.is_object()) return not_understood(column_schema);
        out.push_back({text_of(column, "name"), text_of(column, "type")});
    }
    return out;
}

}  // namespace

Status error_from_response(const HttpResponse &response) {
    const json parsed = json::parse(response.body, nullptr, false);
    if (!parsed.is_object() || text_of(parsed, "message").empty()) {
        return Status(code_of(response.status),
                      "the server answered " + std::to_string(response.status) + ": " + response.body.substr(0, 200));
    }
    Error error;
    error.code = code_of(response.status);
    error.name = text_of(parsed, "error");
    error.message = text_of(parsed, "message");
    if (const auto details = parsed.find("details"); details != parsed.end() && details->is_object()) {
        error.hint = text_of(*details, "hint");
        error.detail = text_of(*details, "more");
        const auto position = details->find("position");
        if (position != details->end() && position->is_number_unsigned()) error.position = position->get<uint32_t>();
    }
    return Status(std::move(error));
}

Result<RowsPage> rows_page_from_json(std::string_view body) {
    ROOST_ASSIGN_OR_RETURN(const auto members, json_members(body));
    RowsPage page;
    bool has_rows = false;
    for (const auto &[name, value] : members) {
        if (name == "rows") {
            page.rows = value;
            has_rows = true;
        } else if (name == "column_schema" && value != "null") {
            ROOST_ASSIGN_OR_RETURN(page.columns, columns_of(value));
        } else if (name == "cursor" && value != "null") {
            page.cursor = json_as_text(value);
        }
    }
    if (!has_rows) return not_understood(body);
    return page;
}

Result<StatementState> statement_from_json(std::string_view body) {
    ROOST_ASSIGN_OR_RETURN(const auto members, json_members(body));
    StatementState out;
    for (const auto &[name, value] : members) {
        if (value == "null") continue;
        if (name == "id") {
            out.id = json_as_text(value);
        } else if (name == "status") {
            out.status = json_as_text(value);
        } else if (name == "statement_type") {
            out.kind = json_as_text(value);
        } else if (name == "error") {
            out.error = json_as_text(value);
        } else if (name == "wait") {
            out.wait = json_as_text(value);
        } else if (name == "has_result") {
            out.has_result = value == "true";
        } else if (name == "first_page") {
            ROOST_ASSIGN_OR_RETURN(out.first_page, rows_page_from_json(value));
        } else if (name == "row_count" || name == "progress" || name == "error_position") {
            const json number = json::parse(value, nullptr, false);
            if (name == "progress" && number.is_number()) out.progress = number.get<double>();
            if (name == "row_count" && number.is_number_unsigned()) out.row_count = number.get<uint64_t>();
            if (name == "error_position" && number.is_number_unsigned()) out.position = number.get<uint32_t>();
        }
    }
    if (out.id.empty() || out.status.empty()) return not_understood(body);
    return out;
}

Result<std::unique_ptr<PoolClient>> PoolClient::connect(const PoolAddress &address) {
    ROOST_ASSIGN_OR_RETURN(auto http, HttpClient::make(address.url, address.token));
    return std::unique_ptr<PoolClient>(new PoolClient(std::move(http)));
}

Result<StatementState> PoolClient::submit(const std::string &sql, const SubmitOptions &options) {
    json body{{"sql", sql},
              {"timeout_s", options.timeout_s},
              {"wait_timeout_s", static_cast<double>(options.wait_ms) / 1000},
              {"first_page_limit", 200}};
    if (!options.catalog.empty()) body["catalog"] = options.catalog;
    const std::string path = "/api/workspaces/" + url_encode(options.workspace) + "/queries";
    ROOST_ASSIGN_OR_RETURN(const std::string answer,
                           body_of(http_->post(path, dump(body), options.wait_ms + kSlack_ms)));
    return statement_from_json(answer);
}

Result<StatementState> PoolClient::status(const std::string &id, int64_t wait_ms) {
    const std::string path = "/api/queries/" + url_encode(id) + "?wait_timeout_s=" + seconds(wait_ms);
    ROOST_ASSIGN_OR_RETURN(const std::string answer, body_of(http_->get(path, wait_ms + kSlack_ms)));
    return statement_from_json(answer);
}

Result<RowsPage> PoolClient::rows(const std::string &id, const std::string &cursor) {
    std::string path = "/api/queries/" + url_encode(id) + "/rows?limit=" + std::to_string(kPageRows);
    if (!cursor.empty()) path += "&cursor=" + url_encode(cursor);
    ROOST_ASSIGN_OR_RETURN(const std::string answer, body_of(http_->get(path, kRequest_ms)));
    return rows_page_from_json(answer);
}

Status PoolClient::cancel(const std::string &id) {
    return body_of(http_->del("/api/queries/" + url_encode(id), kRequest_ms)).status();
}

Result<json> PoolClient::nodes() { return json_of(http_->get("/api/nodes", kRequest_ms)); }

Result<json> PoolClient::node_action(const std::string &node, const std::string &action) {
    return json_of(http_->post("/api/nodes/" + url_encode(node) + "/" + action, "", kRequest_ms));
}

Result<json> PoolClient::set_profile(const std::string &node, const std::string &profile) {
    return json_of(
        http_->post("/api/nodes/" + url_encode(node) + "/profile", dump(json{{"profile", profile}}), kRequest_ms));
}

Result<json> PoolClient::placement(const std::string &workspace, const std::string &table) {
    const std::string path = "/api/workspaces/" + url_encode(workspace) + "/placement";
    return json_of(http_->get(table.empty() ? path : path + "?table=" + url_encode(table), kRequest_ms));
}

Result<json> PoolClient::cache_work(const std::string &workspace, const std::string &action, const std::string &table,
                                    const std::string &node) {
    json body{{"action", action}, {"table", table}};
    if (!node.empty()) body["node"] = node;
    return json_of(http_->post("/api/workspaces/" + url_encode(workspace) + "/cache", dump(body), kCacheWork_ms));
}

Result<json> PoolClient::explain_route(const std::string &workspace, const std::string &sql) {
    const std::string path = "/api/workspaces/" + url_encode(workspace) + "/explain-route";
    return json_of(http_->post(path, dump(json{{"sql", sql}}), kRequest_ms));
}

Status PoolClient::check_workspace(const std::string &workspace) {
    return body_of(http_->get("/api/workspaces/" + url_encode(workspace), kRequest_ms)).status();
}

Status PoolClient::upload(const ImportTarget &target, const ImportFile &file,
                          const std::function<bool(uint64_t)> &sent) {
    const std::string path = "/api/workspaces/" + url_encode(target.workspace) + "/imports/" + target.id + "/files/" +
                             url_encode(file.staged_name);
    return body_of(http_->put_file(path, file.path, file.size_bytes, sent, kUploadStall_ms)).status();
}

Result<StatementState> PoolClient::run_import(const ImportTarget &target, const std::vector<ImportFile> &files,
                                              int64_t wait_ms) {
    json parts{{"files", json::array()}};
    for (const ImportFile &file : files) {
        parts["files"].push_back({{"name", file.staged_name}, {"original", file.path}, {"format", file.format}});
    }
    return post_import(target, std::move(parts), wait_ms);
}

Result<StatementState> PoolClient::run_import_of(const ImportTarget &target, const std::vector<std::string> &sources,
                                                 int64_t wait_ms) {
    return post_import(target, {{"sources", sources}}, wait_ms);
}

Result<StatementState> PoolClient::run_in_place(const ImportTarget &target, const RegisterFiles &files,
                                                int64_t wait_ms) {
    json in_place{{"paths", files.patterns}};
    if (files.allow_missing) in_place["allow_missing"] = true;
    if (files.ignore_extra) in_place["ignore_extra"] = true;
    if (files.skip_registered) in_place["skip_registered"] = true;
    if (files.hive_partitioning) in_place["hive_partitioning"] = *files.hive_partitioning;
    return post_import(target, {{"in_place", std::move(in_place)}}, wait_ms);
}

Result<StatementState> PoolClient::post_import(const ImportTarget &target, json body, int64_t wait_ms) {
    body["table"] = target.table.table;
    body["wait_timeout_s"] = static_cast<double>(wait_ms) / 1000;
    if (!target.table.schema.empty()) body["schema"] = target.table.schema;
    if (!target.catalog.empty()) body["catalog"] = target.catalog;
    const std::string path = "/api/workspaces/" + url_encode(target.workspace) + "/imports/" + target.id;
    ROOST_ASSIGN_OR_RETURN(const std::string answer, body_of(http_->post(path, dump(body), wait_ms + kSlack_ms)));
    return statement_from_json(answer);
}

Status PoolClient::drop_import(const ImportTarget &target) {
    const std::string path = "/api/workspaces/" + url_encode(target.workspace) + "/imports/" + target.id;
    return body_of(http_->del(path, kRequest_ms)).status();
}

}  // namespace roost::app
