#include "front/http/routes.h"

#include <array>

namespace roost::http {
namespace {

struct Entry {
    std::string_view method;
    std::string_view pattern;  // segments without the leading '/'; {} stands for any one that is not empty
    Route route;
};

constexpr std::array kRoutes = {
    Entry{"GET", "healthz", Route::liveness},
    Entry{"GET", "api/healthz", Route::liveness},
    Entry{"GET", "readyz", Route::readiness},
    Entry{"GET", "api/readyz", Route::readiness},
    Entry{"GET", "api/version", Route::version},
    Entry{"GET", "metrics", Route::metrics},
    Entry{"GET", "api/maintenance/health", Route::pool_health},
    Entry{"GET", "api/queries/{}", Route::statement},
    Entry{"DELETE", "api/queries/{}", Route::statement_cancel},
    Entry{"GET", "api/queries/{}/rows", Route::statement_rows},
    Entry{"GET", "api/queries/{}/result", Route::statement_result},
    Entry{"GET", "api/queries/{}/profile", Route::statement_profile},
    Entry{"POST", "api/workspaces/{}/queries", Route::submit},
    Entry{"GET", "api/workspaces/{}/queries", Route::history},
    Entry{"POST", "api/workspaces/{}/explain-route", Route::explain_route},
    Entry{"GET", "api/workspaces/{}/placement", Route::placement},
    Entry{"POST", "api/workspaces/{}/cache", Route::cache_work},
    Entry{"GET", "api/workspaces", Route::workspaces},
    Entry{"GET", "api/workspaces/{}", Route::workspace},
    Entry{"GET", "api/workspaces/{}/health", Route::workspace_health},
    Entry{"GET", "api/workspaces/{}/catalogs", Route::workspace_catalogs},
    Entry{"GET", "api/workspaces/{}/catalogs/{}/schemas", Route::catalog_schemas},
    Entry{"GET", "api/workspaces/{}/catalogs/{}/schemas/{}/tables", Route::schema_tables},
    Entry{"GET", "api/catalogs", Route::all_catalogs},
    Entry{"POST", "api/workspaces", Route::create_workspace},
    Entry{"GET", "api/workspaces/{}/members", Route::members},
    Entry{"POST", "api/workspaces/{}/members", Route::put_member},
    Entry{"DELETE", "api/workspaces/{}/members/{}", Route::drop_member},
    Entry{"GET", "api/workspaces/{}/catalogs/{}/grants", Route::grants},
    Entry{"PUT", "api/workspaces/{}/catalogs/{}/grants", Route::put_grant},
    Entry{"DELETE", "api/workspaces/{}/catalogs/{}/grants/{}", Route::drop_grant},
    Entry{"PATCH", "api/workspaces/{}/catalogs/{}/access-mode", Route::access_mode},
    Entry{"GET", "api/admin/users", Route::users},
    Entry{"POST", "api/admin/users", Route::create_user},
    Entry{"PATCH", "api/admin/users/{}", Route::update_user},
    Entry{"PUT", "api/admin/users/{}/workspaces/{}", Route::put_user_workspace},
    Entry{"DELETE", "api/admin/users/{}/workspaces/{}", Route::drop_user_workspace},
    Entry{"GET", "api/audit", Route::audit},
    Entry{"GET", "api/me", Route::me},
    Entry{"GET", "api/agents", Route::agents},
    Entry{"GET", "api/nodes", Route::nodes},
    Entry{"POST", "api/nodes/{}/drain", Route::drain_node},
    Entry{"POST", "api/nodes/{}/profile", Route::set_profile},
    Entry{"POST", "api/nodes/{}/resume", Route::resume_node},
    Entry{"PUT", "api/workspaces/{}/imports/{}/files/{}", Route::import_upload},
    Entry{"POST", "api/workspaces/{}/imports/{}", Route::import_run},
    Entry{"DELETE", "api/workspaces/{}/imports/{}", Route::import_drop},
    Entry{"POST", "api/workspaces/{}/sql/sessions", Route::open_session},
    Entry{"GET", "api/workspaces/{}/sql/sessions", Route::list_sessions},
    Entry{"GET", "api/sql/sessions/{}", Route::session},
    Entry{"DELETE", "api/sql/sessions/{}", Route::close_session},
    Entry{"POST", "api/sql/sessions/{}/statements", Route::session_submit},
    Entry{"GET", "api/sql/sessions/{}/statements", Route::session_statements},
    Entry{"POST", "api/sql/sessions/{}/staging-files", Route::stage_files},
};

bool match_pattern(std::string_view pattern, const std::vector<std::string> &segments) {
    for (size_t i = 0; i < segments.size(); ++i) {
        const size_t end = pattern.find('/');
        const std::string_view part = pattern.substr(0, end);
        if (part == "{}" ? segments[i].empty() : part != segments[i]) return false;
        if (end == std::string_view::npos) return i + 1 == segments.size();
        pattern.remove_prefix(end + 1);
    }
    return false;
}

std::vector<std::string> arguments(std::string_view pattern, const std::vector<std::string> &segments) {
    std::vector<std::string> args;
    for (const std::string &segment : segments) {
        const size_t end = pattern.find('/');
        if (pattern.substr(0, end) == "{}") args.push_back(segment);
        pattern.remove_prefix(end == std::string_view::npos ? pattern.size() : end + 1);
    }
    return args;
}

}  // namespace

RouteMatch match_route(std::string_view method, const std::vector<std::string> &segments) {
    if (method == "HEAD") method = "GET";
    RouteMatch match;
    for (const Entry &entry : kRoutes) {
        if (!match_pattern(entry.pattern, segments)) continue;
        if (entry.method == method) {
            match.route = entry.route;
            match.args = arguments(entry.pattern, segments);
            match.allow.clear();
            return match;
        }
        match.route = Route::wrong_method;
        if (!match.allow.empty()) match.allow += ", ";
        match.allow += entry.method;
        if (entry.method == "GET") match.allow += ", HEAD";
    }
    return match;
}

bool is_public(Route route) { return route == Route::liveness || route == Route::readiness || route == Route::version; }

}  // namespace roost::http
