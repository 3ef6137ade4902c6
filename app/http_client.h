// A blocking HTTP/1.1 client for the command line and the supervisor: one connection, kept alive, bearer token on each
// request. Every request has a deadline. Not thread-safe, except stop(). The only file that includes the HTTP library
// is http_client.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace roost::app {

struct HttpResponse {
    int status = 0;
    std::string body;
};

class HttpClient {
public:
    // `url`: http://HOST:PORT or https://HOST:PORT, without a path. invalid_argument when it is something else.
    static Result<std::unique_ptr<HttpClient>> make(const std::string &url, const std::string &token);
    ~HttpClient();

    // Any answer is a value here, whatever its status. Errors: unavailable when there is no connection or it broke,
    // timeout, and cancelled after stop().
    Result<HttpResponse> get(const std::string &path, int64_t timeout_ms);
    Result<HttpResponse> post(const std::string &path, const std::string &json, int64_t timeout_ms);
    Result<HttpResponse> del(const std::string &path, int64_t timeout_ms);

    // The `size_bytes` of the file at `file_path` as the body. `sent` is told how far it is, now and then; when it
    // returns false the upload breaks off (cancelled). `stall_ms`: how long no byte may move. invalid_argument when the
    // file cannot be read or shrinks.
    Result<HttpResponse> put_file(const std::string &path, const std::string &file_path, uint64_t size_bytes,
                                  const std::function<bool(uint64_t sent_bytes)> &sent, int64_t stall_ms);

    // From any thread: breaks off the request that is running. Later requests work again.
    void stop();

    const std::string &url() const { return url_; }

private:
    struct Impl;
    HttpClient(std::string url, std::unique_ptr<Impl> impl);
    std::string url_;
    std::unique_ptr<Impl> impl_;
};

// "a b/c" → "a%20b%2Fc": one segment of a path or a value of a query.
std::string url_encode(std::string_view text);

}  // namespace roost::app
