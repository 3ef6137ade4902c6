#include "front/http/http_front.h"

#include "front/http/decode.h"
#include "front/http/render.h"
#include "front/http/routes.h"

namespace roost::http {

using net::HttpResponse;
using net::Task;

HttpFront::HttpFront(net::asio::io_context &loop, service::Service &service, const Clock &clock, obs::Log &log,
                     ApiOptions options, net::HttpLimits limits)
    : service_(service),
      log_(log),
      files_(1),
      api_(service, files_, std::move(options)),
      server_(loop, *this, clock, log, limits) {}

HttpFront::~HttpFront() { files_.join(); }

Task<HttpResponse> HttpFront::handle(net::HttpRequest request, net::HttpBody &body) {
    if (!request.http_1_0 && !net::find_header(request.headers, "Host")) {
        co_return error_response(400, "bad_request", "The request has no Host header.");
    }
    const auto target = parse_target(request.target);
    if (!target.ok()) co_return error_response(target.status());
    const RouteMatch match = match_route(request.method, target->segments);
    Call call{.request = request, .body = body, .target = *target, .args = match.args, .who = {}};
    // Who has no token learns nothing of the routes either.
    if (!is_public(match.route)) {
        auto who = authenticate(request);
        if (!who.ok()) co_return error_response(who.status());
        call.who = std::move(*who);
    }
    if (match.route == Route::wrong_method) {
        HttpResponse response =
            error_response(405, "method_not_allowed", request.method + " is not a method of this route.");
        response.headers.emplace_back("Allow", match.allow);
        co_return response;
    }
    if (match.route == Route::none) co_return error_response(404, "not_found", "There is no such route.");
    co_return co_await api_.answer(match.route, std::move(call));
}

Result<service::Principal> HttpFront::authenticate(const net::HttpRequest &request) {
    const std::string *authorization = net::find_header(request.headers, "Authorization");
    const std::string_view token = authorization ? bearer_token(*authorization) : std::string_view();
    if (token.empty()) {
        if (authorization) service_.auth_failed("http", "", request.peer);
        return Status(Code::unauthenticated, "A token is needed: send Authorization: Bearer TOKEN.");
    }
    auto who = service_.authenticate_token(token);
    if (!who.ok() && who.status().code() == Code::unauthenticated) {
        service_.auth_failed("http", "", request.peer);
        log_.warn("http_auth_failed", {{"peer", request.peer}});
    }
    return who;
}

HttpResponse HttpFront::refuse(const net::HttpRefusal &refusal) {
    return error_response(refusal.status, refusal.code, refusal.message);
}

}  // namespace roost::http
