// Which handler a method and path mean. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace roost::http {

enum class Route : uint8_t {
    none,          // no such path
    wrong_method,  // the path is one, but not with this method
    liveness,
    readiness,
    version,
    pool_health,
    metrics,
    me,
    workspaces,
    workspace,
    workspace_health,
    workspace_catalogs,
    catalog_schemas,
    schema_tables,
    all_catalogs,
    agents,
    nodes,
    set_profile,
    drain_node,
    resume_node,
    submit,
    history,
    audit,
    explain_route,
    placement,
    cache_work,
    statement,
    statement_cancel,
    statement_rows,
    statement_result,
    statement_profile,
    import_upload,
    import_run,
    import_drop,
    users,
    create_user,
    update_user,
    put_user_workspace,
    drop_user_workspace,
    create_workspace,
    members,
    put_member,
    drop_member,
    grants,
    put_grant,
    drop_grant,
    access_mode,
    open_session,
    list_sessions,
    session,
    close_session,
    session_submit,
    session_statements,
    stage_files,
};

struct RouteMatch {
    Route route = Route::none;
    std::vector<std::string> args;  // what stands for the {} of the pattern, in order
    std::string allow;              // wrong_method: the methods there are
};

// HEAD counts as GET.
RouteMatch match_route(std::string_view method, const std::vector<std::string> &segments);

// Answered without a token.
bool is_public(Route route);

}  // namespace roost::http
