// The routes of one-shot statements: submit, follow, read, cancel, list.
#include <algorithm>

#include "front/http/api.h"
#include "front/http/json.h"
#include "front/http/render.h"

namespace roost::http {
namespace {

using net::HttpResponse;
using net::Task;

constexpr std::string_view kArrowType = "application/vnd.apache.arrow.stream";

Result<Uuid> statement_id(const Call &call) {
    const auto id = Uuid::parse(call.args[0]);
    if (!id) return Status(Code::not_found, "There is no statement '" + call.args[0] + "'.");
    return *id;
}

// The frames of a kept result as a response body. Dropping it drops the stream, which stops the work on the node.
class ArrowSource final : public net::HttpBodySource {
public:
    ArrowSource(std::unique_ptr<service::ResultStream> stream, std::optional<service::RowsFrame> first)
        : stream_(std::move(stream)), first_(std::move(first)), ended_(!first_) {}

    Task<Result<std::optional<std::string>>> next() override {
        if (first_) {
            std::string bytes = std::move(first_->bytes);
            first_.reset();
            co_return std::optional<std::string>(std::move(bytes));
        }
        if (ended_) co_return std::optional<std::string>();
        auto frame = co_await stream_->next();
        if (!frame.ok()) co_return frame.status();
        if (!frame->has_value()) {
            ended_ = true;
            if (!stream_->completion().status.ok()) co_return stream_->completion().status;
            co_return std::optional<std::string>();
        }
        co_return std::optional<std::string>(std::move((*frame)->bytes));
    }

    void cancel() override { stream_->cancel(Status(Code::cancelled, "The client closed the connection.")); }

private:
    std::unique_ptr<service::ResultStream> stream_;
    std::optional<service::RowsFrame> first_;
    bool ended_;
};

}  // namespace

HttpResponse Api::statement_response(const service::StatementInfo &info, uint32_t first_page_rows) const {
    return json_response(info.is_terminal() ? 200 : 202,
                         statement_object(info, {.first_page_max_rows = first_page_rows}));
}

Task<Result<service::SubmitRequest>> Api::submit_request(Call &call) {
    auto text = co_await read_body(call.body, options_.json_body_max_bytes);
    if (!text.ok()) co_return text.status();
    auto body = co_await decoded(
        std::move(*text), [limits = options_.decode](const std::string &json) { return decode_submit(json, limits); });
    if (!body.ok()) co_return body.status();
    service::SubmitRequest request;
    request.principal = call.who;
    request.catalog = std::move(body->catalog);
    request.sql = std::move(body->sql);
    request.params = std::move(body->params);
    request.timeout_ms = body->timeout_ms;
    request.wait_ms = body->wait_ms;
    request.first_page_rows = body->first_page_rows;
    request.node = body->agent;
    request.peer = call.request.peer;
    if (const std::string *agent = net::find_header(call.request.headers, "User-Agent")) {
        request.client_name = client_product(*agent);
    }
    co_return request;
}

Task<HttpResponse> Api::submit(Call &call) {
    auto request = co_await submit_request(call);
    if (!request.ok()) co_return error_response(request.status());
    request->workspace = call.args[0];
    const uint32_t first_page_rows = request->first_page_rows;
    const auto info = co_await service_.submit(std::move(*request));
    if (!info.ok()) co_return error_response(as_oneshot(info.status()));
    co_return statement_response(*info, first_page_rows);
}

Task<HttpResponse> Api::statement(Call &call) {
    const auto id = statement_id(call);
    if (!id.ok()) co_return error_response(id.status());
    const auto wait_s = call.target.query.real("wait_timeout_s", 0, 0, options_.decode.wait_max_s);
    if (!wait_s.ok()) co_return error_response(wait_s.status());
    const auto info = co_await service_.status(call.who, *id, static_cast<int64_t>(*wait_s * 1000));
    if (!info.ok()) co_return error_response(info.status());
    co_return json_response(200, statement_object(*info, {}));
}

Task<HttpResponse> Api::statement_cancel(Call &call) {
    const auto id = statement_id(call);
    if (!id.ok()) co_return error_response(id.status());
    const Status status = co_await service_.cancel(call.who, *id);
    if (!status.ok()) co_return error_response(status);
    HttpResponse response;
    response.status = 204;
    co_return response;
}

Task<HttpResponse> Api::statement_rows(Call &call) {
    const auto id = statement_id(call);
    if (!id.ok()) co_return error_response(id.status());
    const auto limit =
        call.target.query.integer("limit", options_.decode.page_default_rows, 1, options_.decode.page_max_rows);
    if (!limit.ok()) co_return error_response(limit.status());
    uint64_t offset_rows = 0;
    if (const std::string *cursor = call.target.query.find("cursor")) {
        const auto decoded = decode_cursor(*id, *cursor);
        if (!decoded.ok()) co_return error_response(decoded.status());
        offset_rows = *decoded;
    }
    const auto page = co_await service_.rows(call.who, *id, offset_rows, static_cast<uint32_t>(*limit));
    if (!page.ok()) co_return error_response(page.status());
    const uint64_t next_offset_rows = offset_rows + page->count_rows;
    if (page->count_rows == 0 && next_offset_rows < page->total_rows) {
        // Saying null here would end the paging early: a short result that looks whole.
        co_return error_response(500, "internal_error", "The node gave an empty page before the end of the result.");
    }
    co_return json_response(200, rows_page(*id, page->columns, page->rows_json, next_offset_rows, page->total_rows));
}

Task<HttpResponse> Api::statement_result(Call &call) {
    const auto id = statement_id(call);
    if (!id.ok()) co_return error_response(id.status());
    const std::string *format = call.target.query.find("format");
    if (!format || *format != "arrow") co_return error_response(bad_field("format", "must be arrow"));
    auto stream = co_await service_.arrow(call.who, *id);
    if (!stream.ok()) co_return error_response(stream.status());
    const auto header = co_await (*stream)->header();
    if (!header.ok()) co_return error_response(header.status());
    HttpResponse response;
    if (!header->has_grid) {
        response.status = 204;
        co_return response;
    }
    // The first frame is awaited before the response begins: what fails up to here still gets a status of its own.
    auto first = co_await (*stream)->next();
    if (!first.ok()) co_return error_response(first.status());
    response.headers.emplace_back("Content-Type", kArrowType);
    response.headers.emplace_back("Cache-Control", "no-store");
    response.source = std::make_unique<ArrowSource>(std::move(*stream), std::move(*first));
    co_return response;
}

Task<HttpResponse> Api::statement_profile(Call &call) {
    const auto id = statement_id(call);
    if (!id.ok()) co_return error_response(id.status());
    auto profile = co_await service_.profile(call.who, *id);
    if (!profile.ok()) co_return error_response(profile.status());
    co_return json_response(200, profile->empty() ? "null" : std::move(*profile));
}

Task<HttpResponse> Api::history(Call &call) {
    auto query = decode_history(call.target.query, options_.decode);
    if (!query.ok()) co_return error_response(query.status());
    const auto workspace = find_workspace(call.who, call.args[0]);
    if (!workspace.ok()) co_return error_response(workspace.status());
    if (!query->all_workspaces) query->filter.workspace = workspace->id;
    auto page = co_await service_.list(call.who, std::move(query->filter));
    if (!page.ok()) co_return error_response(page.status());
    co_return history_page(*page);
}

HttpResponse Api::history_page(meta::StatementPage &page) const {
    JsonObject object;
    object.raw("items", json_array(page.items, [this](meta::StatementRecord &record) {
                   service::StatementInfo info;
                   info.record = std::move(record);
                   return statement_object(info, {.sql_max_bytes = options_.listed_sql_max_bytes});
               }));
    if (page.has_more) {
        object.text("cursor", page.cursor);
    } else {
        object.null("cursor");
    }
    object.flag("has_more", page.has_more);
    return json_response(200, object.take());
}

Task<HttpResponse> Api::audit(Call &call) {
    const auto filter = decode_audit(call.target.query, options_.decode);
    if (!filter.ok()) co_return error_response(filter.status());
    const auto page = co_await service_.audit(call.who, *filter);
    if (!page.ok()) co_return error_response(page.status());
    JsonObject object;
    object.raw("items", json_array(page->items, audit_object));
    if (page->has_more) {
        object.text("cursor", std::to_string(page->items.back().sequence));
    } else {
        object.null("cursor");
    }
    object.flag("has_more", page->has_more);
    co_return json_response(200, object.take());
}

}  // namespace roost::http
