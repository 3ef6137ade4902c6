// The routes behind `roost import`: files are uploaded to staging, then taken into a table.
#include "front/http/api.h"
#include "front/http/json.h"
#include "front/http/render.h"
#include "front/http/upload_file.h"
#include "net/offload.h"

namespace roost::http {
namespace {

using net::HttpResponse;
using net::Task;

Result<Uuid> import_id(const Call &call) {
    const auto id = Uuid::parse(call.args[1]);
    if (!id) return Status(Code::not_found, "An import's id is a UUID, and '" + call.args[1] + "' is none.");
    return *id;
}

}  // namespace

// Writes the body to `path` in pieces, so that a file of any size takes one piece of memory.
Task<Status> Api::receive(net::HttpBody &body, const std::string &path, uint64_t &size_bytes) {
    // Shared with the file thread: this coroutine may be destroyed while a piece is being written.
    const auto file = std::make_shared<UploadFile>(path);
    std::string piece;
    while (true) {
        const auto got = co_await body.next();
        if (!got.ok()) co_return got.status();
        piece.append(*got);
        const bool at_end = got->empty();
        if (!at_end && piece.size() < options_.upload_piece_bytes) continue;
        auto write = [file, bytes = std::move(piece), at_end]() -> Status {
            ROOST_RETURN_IF_ERROR(file->append(bytes));
            return at_end ? file->commit() : Status();
        };
        piece = {};
        const Status written = co_await net::run_blocking(files_, std::move(write));
        if (!written.ok()) co_return written;
        if (at_end) break;
    }
    size_bytes = file->size_bytes();
    co_return Status();
}

Task<HttpResponse> Api::import_upload(Call &call) {
    const auto workspace = find_workspace(call.who, call.args[0]);
    if (!workspace.ok()) co_return error_response(workspace.status());
    const auto id = import_id(call);
    if (!id.ok()) co_return error_response(id.status());
    const std::string &name = call.args[2];
    const auto path = service_.staging_path(call.who, *id, name);
    if (!path.ok()) co_return error_response(path.status());
    uint64_t size_bytes = 0;
    const Status status = co_await receive(call.body, *path, size_bytes);
    if (!status.ok()) co_return error_response(status);
    co_return json_response(201, JsonObject().text("name", name).number("size_bytes", size_bytes).take());
}

Task<HttpResponse> Api::import_run(Call &call) {
    const auto id = import_id(call);
    if (!id.ok()) co_return error_response(id.status());
    const auto text = co_await read_body(call.body, options_.small_body_max_bytes);
    if (!text.ok()) co_return error_response(text.status());
    auto body = decode_import(text->text, options_.decode);
    if (!body.ok()) co_return error_response(body.status());
    service::ImportRequest request;
    request.principal = call.who;
    request.workspace = call.args[0];
    request.import_id = *id;
    request.catalog = std::move(body->catalog);
    request.schema = std::move(body->schema);
    request.table = std::move(body->table);
    for (ImportBody::File &file : body->files) {
        request.files.push_back({std::move(file.name), std::move(file.original), std::move(file.format)});
    }
    request.sources = std::move(body->sources);
    request.in_place = std::move(body->in_place);
    const int64_t wait_ms = body->wait_ms;
    const auto info = co_await service_.run_import(std::move(request), wait_ms);
    if (!info.ok()) co_return error_response(info.status());
    co_return statement_response(*info, 0);
}

Task<HttpResponse> Api::import_drop(Call &call) {
    const auto workspace = find_workspace(call.who, call.args[0]);
    if (!workspace.ok()) co_return error_response(workspace.status());
    const auto id = import_id(call);
    if (!id.ok()) co_return error_response(id.status());
    service_.drop_staging(*id);
    HttpResponse response;
    response.status = 204;
    co_return response;
}

}  // namespace roost::http
