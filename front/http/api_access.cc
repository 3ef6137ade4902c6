// The routes of users, members and grants.
#include "front/http/api.h"
#include "front/http/json.h"
#include "front/http/render.h"
#include "service/access_admin.h"

namespace roost::http {
namespace {

using net::HttpResponse;
using net::Task;

std::string user_object(const meta::User &user) {
    JsonObject object;
    object.text("id", user.id.to_string()).text("user_id", user.id.to_string()).text("name", user.name);
    object.text("email", user.email.empty() ? user.name : user.email).text("role", user.role);
    object.flag("is_active", user.active).raw("created_at", json_time(user.created_us));
    return object.take();
}

std::string member_object(const service::MemberInfo &member) {
    JsonObject object;
    object.text("user_id", member.membership.user.to_string()).text("name", member.user_name);
    object.text("role", member.membership.role).raw("created_at", json_time(member.membership.created_us));
    return object.take();
}

std::string grant_object(const meta::Grant &grant) {
    JsonObject object;
    object.text("id", grant.id.to_string()).text("user_id", grant.user.to_string()).text("tier", grant.tier);
    object.text_or_null("schema_name", grant.schema).text_or_null("table_name", grant.table);
    object.text("granted_by", grant.granted_by.to_string()).raw("created_at", json_time(grant.created_us));
    return object.take();
}

HttpResponse no_content() {
    HttpResponse response;
    response.status = 204;
    return response;
}

template <class T, class Render>
HttpResponse answer_with(unsigned status, const Result<T> &result, Render render) {
    if (!result.ok()) return error_response(result.status());
    return json_response(status, render(*result));
}

HttpResponse answer_done(const Status &status) { return status.ok() ? no_content() : error_response(status); }

Status bad_id(const std::string &what, const std::string &id) {
    return Status(Code::not_found, what + "'s id is a UUID, and '" + id + "' is none.");
}

}  // namespace

Task<HttpResponse> Api::access(Route route, Call &call) {
    service::AccessAdmin *admin = service_.access_admin();
    if (!admin) co_return error_response(404, "not_found", "There is no such route.");
    AccessBody body;
    if (call.request.method != "GET" && call.request.method != "HEAD" && call.request.method != "DELETE") {
        const auto text = co_await read_body(call.body, options_.small_body_max_bytes);
        if (!text.ok()) co_return error_response(text.status());
        auto decoded_body = decode_access(text->text);
        if (!decoded_body.ok()) co_return error_response(decoded_body.status());
        body = std::move(*decoded_body);
    }
    if (route == Route::users || route == Route::create_user || route == Route::update_user ||
        route == Route::create_workspace) {
        co_return co_await access_of_pool(route, call, *admin, std::move(body));
    }
    if (route == Route::members || route == Route::put_member || route == Route::drop_member ||
        route == Route::put_user_workspace || route == Route::drop_user_workspace) {
        co_return co_await access_of_workspace(route, call, *admin, std::move(body));
    }
    co_return co_await access_of_catalog(route, call, *admin, std::move(body));
}

Task<HttpResponse> Api::access_of_pool(Route route, Call &call, service::AccessAdmin &admin, AccessBody body) {
    if (route == Route::users) {
        const auto users = co_await admin.users(call.who);
        co_return answer_with(200, users, [](const auto &all) {
            return JsonObject()
                .raw("items", json_array(all, user_object))
                .null("cursor")
                .flag("has_more", false)
                .take();
        });
    }
    if (route == Route::create_user) {
        service::NewUser request{body.name, body.email, body.password, body.role.value_or("user")};
        const auto made = co_await admin.create_user(call.who, std::move(request));
        co_return answer_with(201, made, [](const service::CreatedUser &created) {
            std::string object = user_object(created.user);
            object.pop_back();
            return object + ",\"token\":" + json_string(created.token) + "}";
        });
    }
    if (route == Route::create_workspace) {
        co_return answer_with(201, co_await admin.create_workspace(call.who, body.slug, body.name), workspace_object);
    }
    const auto id = Uuid::parse(call.args[0]);
    if (!id) co_return error_response(bad_id("A user", call.args[0]));
    co_return answer_with(200, co_await admin.update_user(call.who, *id, body.role, body.active), user_object);
}

Task<HttpResponse> Api::access_of_workspace(Route route, Call &call, service::AccessAdmin &admin, AccessBody body) {
    if (route == Route::members) {
        const auto members = co_await admin.members(call.who, call.args[0]);
        co_return answer_with(200, members, [](const auto &all) { return json_array(all, member_object); });
    }
    // admin/users/{user}/workspaces/{workspace}, or workspaces/{workspace}/members[/{user}]
    const bool by_user = route == Route::put_user_workspace || route == Route::drop_user_workspace;
    const std::string &workspace = by_user ? call.args[1] : call.args[0];
    const std::string user_text = by_user ? call.args[0] : route == Route::drop_member ? call.args[1] : body.user_id;
    const auto user = Uuid::parse(user_text);
    if (!user) co_return error_response(bad_id("A user", user_text));
    if (route == Route::drop_member || route == Route::drop_user_workspace)
        co_return answer_done(co_await admin.drop_member(call.who, workspace, *user));
    co_return answer_with(200, co_await admin.put_member(call.who, workspace, *user, body.role.value_or("reader")),
                          member_object);
}

Task<HttpResponse> Api::access_of_catalog(Route route, Call &call, service::AccessAdmin &admin, AccessBody body) {
    const std::string &workspace = call.args[0], &catalog = call.args[1];
    if (route == Route::grants) {
        const auto list = co_await admin.grants(call.who, workspace, catalog);
        co_return answer_with(200, list, [](const service::GrantList &found) {
            JsonObject object;
            object.text("access_mode", found.access_mode).raw("grants", json_array(found.grants, grant_object));
            return object.raw("principals", json_array(found.principals, user_object)).take();
        });
    }
    if (route == Route::put_grant) {
        const auto user = Uuid::parse(body.user_id);
        if (!user) co_return error_response(bad_id("A user", body.user_id));
        meta::Grant wanted;
        wanted.user = *user;
        wanted.schema = body.schema_name;
        wanted.table = body.table_name;
        wanted.tier = body.tier;
        co_return answer_with(200, co_await admin.put_grant(call.who, workspace, catalog, wanted), grant_object);
    }
    if (route == Route::access_mode) {
        co_return answer_with(200, co_await admin.set_access_mode(call.who, workspace, catalog, body.access_mode),
                              catalog_object);
    }
    const auto grant = Uuid::parse(call.args[2]);
    if (!grant) co_return error_response(bad_id("A grant", call.args[2]));
    co_return answer_done(co_await admin.drop_grant(call.who, workspace, catalog, *grant));
}

}  // namespace roost::http
