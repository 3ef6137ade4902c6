#include "front/http/api.h"

#include <algorithm>

#include "front/http/json.h"
#include "front/http/render.h"

namespace roost::http {
namespace {

using net::HttpResponse;
using net::Task;

constexpr int kApiVersion =
    2;  // 3 obliges every client with pyarrow to read results as Arrow; sessions can't inline it

Status workspace_not_found(std::string_view name) {
    return Status(Code::not_found, "There is no workspace '" + std::string(name) + "'.")
        .with_name("workspace_not_found");
}

}  // namespace

Api::Api(service::Service &service, net::asio::thread_pool &files, ApiOptions options)
    : service_(service), files_(files), options_(std::move(options)) {}

Task<HttpResponse> Api::answer(Route route, Call call) {
    switch (route) {
        case Route::submit:
            co_return co_await submit(call);
        case Route::history:
            co_return co_await history(call);
        case Route::audit:
            co_return co_await audit(call);
        case Route::explain_route:
            co_return co_await explain_route(call);
        case Route::placement:
            co_return co_await placement(call);
        case Route::cache_work:
            co_return co_await cache_work(call);
        case Route::statement:
            co_return co_await statement(call);
        case Route::statement_cancel:
            co_return co_await statement_cancel(call);
        case Route::statement_rows:
            co_return co_await statement_rows(call);
        case Route::statement_result:
            co_return co_await statement_result(call);
        case Route::statement_profile:
            co_return co_await statement_profile(call);
        case Route::catalog_schemas:
            co_return co_await catalog_schemas(call);
        case Route::schema_tables:
            co_return co_await schema_tables(call);
        case Route::import_upload:
            co_return co_await import_upload(call);
        case Route::import_run:
            co_return co_await import_run(call);
        case Route::import_drop:
            co_return co_await import_drop(call);
        case Route::set_profile:
            co_return co_await set_profile(call);
        case Route::drain_node:
        case Route::resume_node:
            co_return co_await drain_node(call, route == Route::drain_node);
        case Route::users:
        case Route::create_user:
        case Route::update_user:
        case Route::put_user_workspace:
        case Route::drop_user_workspace:
        case Route::create_workspace:
        case Route::members:
        case Route::put_member:
        case Route::drop_member:
        case Route::grants:
        case Route::put_grant:
        case Route::drop_grant:
        case Route::access_mode:
            co_return co_await access(route, call);
        case Route::open_session:
        case Route::list_sessions:
        case Route::session:
        case Route::close_session:
        case Route::session_submit:
        case Route::session_statements:
        case Route::stage_files:
            co_return co_await sessions(route, call);
        default:
            co_return look(route, call);
    }
}

// The routes that wait for nothing.
HttpResponse Api::look(Route route, const Call &call) {
    switch (route) {
        case Route::liveness:
            return liveness();
        case Route::readiness:
            return readiness();
        case Route::version:
            return version();
        case Route::pool_health:
            return pool_health();
        case Route::metrics:
            return metrics();
        case Route::me:
            return me(call);
        case Route::workspaces:
            return workspaces(call);
        case Route::workspace:
            return workspace(call);
        case Route::workspace_health: {
            const auto found = find_workspace(call.who, call.args[0]);
            return found.ok() ? readiness() : error_response(found.status());
        }
        case Route::workspace_catalogs:
            return workspace_catalogs(call);
        case Route::all_catalogs:
            return all_catalogs(call);
        case Route::agents:
            return json_response(200, json_array(service_.nodes(), agent_object));
        case Route::nodes:
            return json_response(200, json_array(service_.nodes(), node_object));
        default:
            return error_response(404, "not_found", "There is no such route.");
    }
}

HttpResponse Api::liveness() { return json_response(200, R"({"status":"ok"})"); }

HttpResponse Api::readiness() {
    const bool draining = service_.draining();
    if (service_.ready() && !draining) return json_response(200, R"({"status":"ok"})");
    HttpResponse response = error_response(
        503, "unavailable", draining ? "The gateway is shutting down." : "No node of the pool answers yet.");
    // `status` is what health checks print.
    response.body.insert(1, R"("status":"unavailable",)");
    return response;
}

HttpResponse Api::version() {
    return json_response(200, JsonObject().text("version", options_.version).number("api_version", kApiVersion).take());
}

net::Task<HttpResponse> Api::set_profile(Call &call) {
    auto body = co_await read_body(call.body, options_.json_body_max_bytes);
    if (!body.ok()) co_return error_response(body.status());
    auto profile = co_await decoded(std::move(*body), [](const std::string &json) { return decode_profile(json); });
    if (!profile.ok()) co_return error_response(profile.status());
    const auto node = co_await service_.set_profile(call.who, call.args[0], std::move(*profile));
    if (!node.ok()) co_return error_response(node.status());
    co_return json_response(200, node_object(*node));
}

net::Task<HttpResponse> Api::drain_node(const Call &call, bool drained) {
    const auto node = co_await service_.drain_node(call.who, call.args[0], drained);
    if (!node.ok()) co_return error_response(node.status());
    co_return json_response(200, node_object(*node));
}

HttpResponse Api::pool_health() {
    const auto nodes = service_.nodes();
    const auto online = std::ranges::count(nodes, "online", &service::NodeInfo::status);
    HttpResponse response = readiness();
    response.body.insert(
        1, R"("nodes":)" + std::to_string(nodes.size()) + R"(,"nodes_online":)" + std::to_string(online) + ",");
    return response;
}

HttpResponse Api::metrics() {
    HttpResponse response;
    response.headers.emplace_back("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    response.body = service_.metrics_text();
    return response;
}

HttpResponse Api::me(const Call &call) {
    JsonObject object;
    object.text("id", call.who.user_id.to_string()).text("name", call.who.user_name);
    // Clients print it as who they are; users have no address here, so it is their name.
    object.text("email", call.who.user_name).text("role", call.who.role);
    return json_response(200, object.take());
}

Result<meta::Workspace> Api::find_workspace(const service::Principal &who, std::string_view slug_or_id) {
    ROOST_ASSIGN_OR_RETURN(const auto all, service_.workspaces(who));
    const auto id = Uuid::parse(slug_or_id);
    for (const meta::Workspace &workspace : all) {
        if (workspace.slug == slug_or_id || (id && workspace.id == *id)) return workspace;
    }
    return workspace_not_found(slug_or_id);
}

HttpResponse Api::workspaces(const Call &call) {
    const auto all = service_.workspaces(call.who);
    if (!all.ok()) return error_response(all.status());
    return json_response(200, json_array(*all, workspace_object));
}

HttpResponse Api::workspace(const Call &call) {
    const auto found = find_workspace(call.who, call.args[0]);
    if (!found.ok()) return error_response(found.status());
    return json_response(200, workspace_object(*found));
}

HttpResponse Api::workspace_catalogs(const Call &call) {
    const auto workspace = find_workspace(call.who, call.args[0]);
    if (!workspace.ok()) return error_response(workspace.status());
    const auto catalogs = service_.catalogs(call.who, workspace->slug);
    if (!catalogs.ok()) return error_response(catalogs.status());
    return json_response(200, json_array(*catalogs, catalog_object));
}

HttpResponse Api::all_catalogs(const Call &call) {
    const auto workspaces = service_.workspaces(call.who);
    if (!workspaces.ok()) return error_response(workspaces.status());
    std::vector<meta::Catalog> all;
    for (const meta::Workspace &workspace : *workspaces) {
        auto catalogs = service_.catalogs(call.who, workspace.slug);
        if (!catalogs.ok()) return error_response(catalogs.status());
        all.insert(all.end(), catalogs->begin(), catalogs->end());
    }
    return json_response(200, json_array(all, catalog_object));
}

Task<HttpResponse> Api::catalog_schemas(Call &call) {
    const auto workspace = find_workspace(call.who, call.args[0]);
    if (!workspace.ok()) co_return error_response(workspace.status());
    const auto schemas = co_await service_.schemas(call.who, workspace->slug, call.args[1]);
    if (!schemas.ok()) co_return error_response(schemas.status());
    const CatalogPlace place{workspace->id, call.args[1]};
    co_return json_response(200, json_array(*schemas, [&place](const auto &one) { return schema_object(place, one); }));
}

Task<HttpResponse> Api::schema_tables(Call &call) {
    const auto workspace = find_workspace(call.who, call.args[0]);
    if (!workspace.ok()) co_return error_response(workspace.status());
    const auto tables = co_await service_.tables(call.who, workspace->slug, call.args[1], call.args[2]);
    if (!tables.ok()) co_return error_response(tables.status());
    const CatalogPlace place{workspace->id, call.args[1]};
    co_return json_response(200, json_array(*tables, [&place](const auto &one) { return table_object(place, one); }));
}

Task<Result<Api::HeldBody>> Api::read_body(net::HttpBody &body, size_t max_bytes) {
    const auto length_bytes = body.length_bytes();
    const size_t claim_bytes = static_cast<size_t>(std::min<uint64_t>(length_bytes.value_or(max_bytes), max_bytes));
    if (claim_bytes > options_.all_bodies_max_bytes - held_bytes_) {
        co_return Status(Code::unavailable, "The gateway is reading as many request bodies as it has memory for.")
            .with_name("too_busy");
    }
    held_bytes_ += claim_bytes;
    HeldBody held;
    held.held = std::shared_ptr<void>(nullptr, [this, claim_bytes](void *) { held_bytes_ -= claim_bytes; });
    auto text = co_await body.read_all(max_bytes);
    if (!text.ok()) co_return text.status();
    held.text = std::move(*text);
    co_return held;
}

Task<HttpResponse> Api::explain_route(Call &call) {
    auto body = co_await read_body(call.body, options_.json_body_max_bytes);
    if (!body.ok()) co_return error_response(body.status());
    const auto sql = co_await decoded(std::move(*body), [](const std::string &json) { return decode_sql(json); });
    if (!sql.ok()) co_return error_response(sql.status());
    const auto explained = co_await service_.explain_route(call.who, call.args[0], *sql);
    if (!explained.ok()) co_return error_response(as_oneshot(explained.status()));
    co_return json_response(200, route_object(*explained));
}

Task<HttpResponse> Api::placement(Call &call) {
    const std::string *table = call.target.query.find("table");
    const auto placed = co_await service_.placement(call.who, call.args[0], table ? *table : std::string());
    if (!placed.ok()) co_return error_response(placed.status());
    co_return json_response(200, json_array(*placed, placement_object));
}

Task<HttpResponse> Api::cache_work(Call &call) {
    auto body = co_await read_body(call.body, options_.json_body_max_bytes);
    if (!body.ok()) co_return error_response(body.status());
    const auto wish =
        co_await decoded(std::move(*body), [](const std::string &json) { return decode_cache_body(json); });
    if (!wish.ok()) co_return error_response(wish.status());
    const auto done = co_await service_.cache_work(call.who, {call.args[0], wish->table, wish->node, wish->action});
    if (!done.ok()) co_return error_response(done.status());
    co_return json_response(200, json_array(*done, cache_done_object));
}

}  // namespace roost::http
