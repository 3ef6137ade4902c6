// The routes of sessions.
#include "front/http/api.h"
#include "front/http/json.h"
#include "front/http/render.h"
#include "service/sql_sessions.h"

namespace roost::http {
namespace {

using net::HttpResponse;
using net::Task;

Result<Uuid> session_id(const Call &call) {
    const auto id = Uuid::parse(call.args[0]);
    if (!id)
        return Status(Code::not_found, "There is no session '" + call.args[0] + "'.").with_name("session_not_found");
    return *id;
}

// In a session what the guard refuses has this code.
Status as_in_session(Status error) {
    if (error.code() != Code::not_allowed || !error.error().name.empty()) return error;
    return std::move(error).with_name("statement_not_allowed");
}

}  // namespace

Task<HttpResponse> Api::sessions(Route route, Call &call) {
    service::SqlSessions *sessions = service_.sql_sessions();
    if (sessions == nullptr) co_return error_response(501, "not_implemented", "There are no sessions here.");
    if (route == Route::open_session) co_return co_await open_session(call, *sessions);
    if (route == Route::list_sessions) co_return list_sessions(call, *sessions);
    const auto id = session_id(call);
    if (!id.ok()) co_return error_response(id.status());
    switch (route) {
        case Route::session: {
            const auto info = sessions->sql_session(call.who, *id);
            co_return info.ok() ? json_response(200, session_object(*info)) : error_response(info.status());
        }
        case Route::close_session: {
            const Status status = co_await sessions->close_sql_session(call.who, *id);
            if (!status.ok()) co_return error_response(status);
            HttpResponse response;
            response.status = 204;
            co_return response;
        }
        case Route::session_submit:
            co_return co_await submit_in_session(call, *sessions, *id);
        case Route::session_statements:
            co_return co_await session_statements(call, *sessions, *id);
        default:
            co_return error_response(501, "not_implemented", "Files can't be staged yet; see `roost import`.");
    }
}

Task<HttpResponse> Api::open_session(Call &call, service::SqlSessions &sessions) {
    auto text = co_await read_body(call.body, options_.small_body_max_bytes);
    if (!text.ok()) co_return error_response(text.status());
    auto body = co_await decoded(std::move(*text), [](const std::string &json) { return decode_open_session(json); });
    if (!body.ok()) co_return error_response(body.status());
    service::OpenSession request;
    request.principal = call.who;
    request.workspace = call.args[0];
    request.catalog = std::move(body->catalog);
    request.front = "http";
    request.origin = "session";
    request.peer = call.request.peer;
    if (const std::string *agent = net::find_header(call.request.headers, "User-Agent")) {
        request.client_name = client_product(*agent);
    }
    const auto info = sessions.open_sql_session(request, body->agent);
    if (!info.ok()) co_return error_response(info.status());
    HttpResponse response = json_response(201, session_object(*info));
    response.headers.emplace_back("Location", "/api/sql/sessions/" + info->id.to_string());
    co_return response;
}

HttpResponse Api::list_sessions(const Call &call, service::SqlSessions &sessions) {
    const QueryString &query = call.target.query;
    const auto limit = query.integer("limit", options_.decode.page_default_rows, 1, options_.decode.page_max_rows);
    if (!limit.ok()) return error_response(limit.status());
    std::vector<std::string> statuses;
    for (const std::string_view status : query.all("status")) statuses.emplace_back(status);
    const std::string *cursor = query.find("cursor");
    const auto page =
        sessions.list_sql_sessions(call.who, call.args[0], statuses, cursor ? *cursor : std::string(), *limit);
    if (!page.ok()) return error_response(page.status());
    JsonObject object;
    object.raw("items", json_array(page->items, session_object));
    object.text_or_null("cursor", page->cursor).flag("has_more", !page->cursor.empty());
    return json_response(200, object.take());
}

Task<HttpResponse> Api::submit_in_session(Call &call, service::SqlSessions &sessions, Uuid id) {
    // Before the body is judged: a client takes 409 alone for a session that is over.
    const auto open = sessions.sql_session(call.who, id);
    if (!open.ok()) co_return error_response(open.status());
    auto request = co_await submit_request(call);
    if (!request.ok()) co_return error_response(request.status());
    const uint32_t first_page_rows = request->first_page_rows;
    const auto info = co_await sessions.submit_in_session(std::move(*request), id);
    if (!info.ok()) co_return error_response(as_in_session(info.status()));
    co_return statement_response(*info, first_page_rows);
}

// As they were run; of a session that this gateway does not know any more what the history has.
Task<HttpResponse> Api::session_statements(Call &call, service::SqlSessions &sessions, Uuid id) {
    auto query = decode_history(call.target.query, options_.decode);
    if (!query.ok()) co_return error_response(query.status());
    query->filter.session = id;
    query->filter.ascending = true;
    const auto known = sessions.sql_session(call.who, id);
    auto page = co_await service_.list(call.who, std::move(query->filter));
    if (!page.ok()) co_return error_response(page.status());
    if (!known.ok() && page->items.empty()) co_return error_response(known.status());
    co_return history_page(*page);
}

}  // namespace roost::http
