// The routes of the HTTP interface: each member function answers one route by calls to the service. No SQL logic.
// Gateway loop thread only; called by HttpFront once the caller is known.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "front/http/decode.h"
#include "front/http/routes.h"
#include "net/http_message.h"
#include "net/offload.h"
#include "service/service.h"

namespace roost::http {

struct ApiOptions {
    std::string version;
    size_t json_body_max_bytes = 32 << 20;
    size_t small_body_max_bytes = 4 << 20;    // of the bodies that hold no SQL parameters
    size_t all_bodies_max_bytes = 512 << 20;  // of all bodies being read or decoded at one time
    // SQL text in a page of the history: a thousand statements of 16 MiB each would not fit in memory.
    size_t listed_sql_max_bytes = 16 << 10;
    size_t upload_piece_bytes = 1 << 20;         // what is gathered before the file thread writes it
    size_t decode_inline_max_bytes = 128 << 10;  // longer bodies are decoded on the file thread: 10 ms a megabyte
    DecodeLimits decode;
};

// One request on its way through the front.
struct Call {
    const net::HttpRequest &request;
    net::HttpBody &body;
    const Target &target;
    const std::vector<std::string> &args;
    service::Principal who;  // unset on public routes
};

class Api {
public:
    // `files`: where blocking file work runs.
    Api(service::Service &service, net::asio::thread_pool &files, ApiOptions options);

    net::Task<net::HttpResponse> answer(Route route, Call call);

private:
    using Response = net::HttpResponse;

    Response look(Route route, const Call &call);
    Response liveness();
    Response readiness();
    Response version();
    Response pool_health();
    net::Task<Response> set_profile(Call &call);
    net::Task<Response> drain_node(const Call &call, bool drained);
    Response metrics();
    Response me(const Call &call);
    Response workspaces(const Call &call);
    Response workspace(const Call &call);
    Response workspace_catalogs(const Call &call);
    Response all_catalogs(const Call &call);

    net::Task<Response> catalog_schemas(Call &call);
    net::Task<Response> schema_tables(Call &call);

    net::Task<Response> submit(Call &call);
    net::Task<Response> history(Call &call);
    net::Task<Response> audit(Call &call);
    net::Task<Response> explain_route(Call &call);
    net::Task<Response> placement(Call &call);
    net::Task<Response> cache_work(Call &call);
    net::Task<Response> statement(Call &call);
    net::Task<Response> statement_cancel(Call &call);
    net::Task<Response> statement_rows(Call &call);
    net::Task<Response> statement_result(Call &call);
    net::Task<Response> statement_profile(Call &call);

    net::Task<Response> access(Route route, Call &call);
    net::Task<Response> access_of_pool(Route route, Call &call, service::AccessAdmin &admin, AccessBody body);
    net::Task<Response> access_of_workspace(Route route, Call &call, service::AccessAdmin &admin, AccessBody body);
    net::Task<Response> access_of_catalog(Route route, Call &call, service::AccessAdmin &admin, AccessBody body);

    net::Task<Response> sessions(Route route, Call &call);
    net::Task<Response> open_session(Call &call, service::SqlSessions &sessions);
    Response list_sessions(const Call &call, service::SqlSessions &sessions);
    net::Task<Response> submit_in_session(Call &call, service::SqlSessions &sessions, Uuid id);
    net::Task<Response> session_statements(Call &call, service::SqlSessions &sessions, Uuid id);
    // What a submit asks for, its body read and decoded.
    net::Task<Result<service::SubmitRequest>> submit_request(Call &call);
    Response history_page(meta::StatementPage &page) const;

    net::Task<Response> import_upload(Call &call);
    net::Task<Response> import_run(Call &call);
    net::Task<Response> import_drop(Call &call);
    net::Task<Status> receive(net::HttpBody &body, const std::string &path, uint64_t &size_bytes);

    // The whole body. Its bytes count against all_bodies_max_bytes as long as the result lives.
    struct HeldBody {
        std::string text;
        std::shared_ptr<void> held;
    };
    net::Task<Result<HeldBody>> read_body(net::HttpBody &body, size_t max_bytes);
    // What `decode` makes of the body, which is gone then.
    template <class Decode>
    auto decoded(HeldBody body, Decode decode) -> net::Task<std::invoke_result_t<Decode, const std::string &>> {
        if (body.text.size() <= options_.decode_inline_max_bytes) co_return decode(body.text);
        auto work = [text = std::move(body.text), decode = std::move(decode)] {
            return std::optional(decode(text));  // Asio wants a result that can be made empty
        };
        auto result = co_await net::run_blocking(files_, std::move(work));
        co_return std::move(*result);
    }
    Result<meta::Workspace> find_workspace(const service::Principal &who, std::string_view slug_or_id);
    Response statement_response(const service::StatementInfo &info, uint32_t first_page_rows) const;

    service::Service &service_;
    net::asio::thread_pool &files_;
    const ApiOptions options_;
    size_t held_bytes_ = 0;
};

}  // namespace roost::http
