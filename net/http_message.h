// HTTP messages as the rest of the product sees them: plain values, no library types. Values only; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "net/async.h"

namespace roost::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name (any case), or null.
const std::string *find_header(const HttpHeaders &headers, std::string_view name);

// The head of a request. The body is read through HttpBody.
struct HttpRequest {
    std::string method;
    std::string target;  // as sent
    HttpHeaders headers;
    std::string peer;       // "address:port" of the other end
    bool http_1_0 = false;  // no chunked answers
};

// The body of the request being handled. Lives as long as the handler's call; reading is for one coroutine.
class HttpBody {
public:
    virtual ~HttpBody() = default;
    // The next piece, at most 64 KiB; empty at the end. The view is good until the next call. Errors: unavailable (the
    // client left), timeout (it stalled), invalid_argument (broken encoding).
    virtual Task<Result<std::string_view>> next() = 0;
    // The rest as one string. Error: resource_exhausted with name "body_too_large" when there is more than `max_bytes`.
    virtual Task<Result<std::string>> read_all(size_t max_bytes) = 0;
    // What Content-Length said; unset for a chunked body.
    virtual std::optional<uint64_t> length_bytes() const = 0;
};

// A response body made while it is sent. The next piece is asked for when the socket has taken the last one: a slow
// reader slows the source down. Dropped when the response ends or the client has gone.
class HttpBodySource {
public:
    virtual ~HttpBodySource() = default;
    // The next piece; unset at the end. An error cuts the response off without its end marker, so that the reader sees
    // it.
    virtual Task<Result<std::optional<std::string>>> next() = 0;
    // The client has gone while next() runs: make it end soon.
    virtual void cancel() = 0;
};

struct HttpResponse {
    int status = 200;
    HttpHeaders headers;  // without Content-Length, Transfer-Encoding, Connection, Date
    std::string body;
    std::unique_ptr<HttpBodySource> source;  // set: the body is streamed from it, `body` is not used
    bool close = false;                      // close the connection after it
};

std::string_view http_reason(int status);

}  // namespace roost::net
