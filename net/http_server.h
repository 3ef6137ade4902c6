// An HTTP/1.1 server on the gateway's loop: accepts, reads requests, asks a handler, writes responses. Limits and
// deadlines are here, meaning is the handler's. Loop thread only.
//
// A connection is one coroutine: requests of one connection are answered one after the other (a pipelined one waits in
// the socket), so a client can't have more than one at work on a connection. Deadlines are kept by one sweep over all
// connections rather than a timer each.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/http_message.h"
#include "net/http_parser.h"
#include "obs/log.h"

namespace roost::net {

struct HttpLimits {
    size_t head_max_bytes = 16 * 1024;
    size_t target_max_bytes = 8 * 1024;
    uint32_t connections_max = 10'000;
    int64_t head_max_ms = 30'000;         // from a request's first byte to the end of its head
    int64_t body_idle_max_ms = 60'000;    // between two pieces of a body
    int64_t keep_alive_max_ms = 120'000;  // idle between two requests
    int64_t write_idle_max_ms = 300'000;  // a reader that takes nothing for so long is gone
    // Reading on after an answer that came before the end of the request: many clients look for it only when they have
    // sent all, and what is sent to a closed socket turns it into a reset.
    int64_t linger_max_ms = 30'000;
    int64_t linger_idle_max_ms = 5'000;
    uint64_t linger_max_bytes = 4ULL << 30;
    int64_t sweep_interval_ms = 250;
};

class HttpHandler {
public:
    virtual ~HttpHandler() = default;
    // Answers one request. What it leaves of the body is thrown away, or ends the connection when that is much. A HEAD
    // request is given as such; the server drops the response's body.
    virtual Task<HttpResponse> handle(HttpRequest request, HttpBody &body) = 0;
    // The response to a request that never got as far as handle().
    virtual HttpResponse refuse(const HttpRefusal &refusal) = 0;
    virtual void connection_opened() {}
    virtual void connection_closed() {}
};

class HttpServer {
public:
    // `handler`, `clock` and `log` outlive the server's coroutines: until stop() has returned, or the loop has gone.
    HttpServer(asio::io_context &loop, HttpHandler &handler, const Clock &clock, obs::Log &log, HttpLimits limits = {});
    ~HttpServer();
    HttpServer(const HttpServer &) = delete;
    HttpServer &operator=(const HttpServer &) = delete;

    // Binds "host:port" (port 0: any free one) and starts to accept.
    Status listen(const std::string &address);
    // "host:port" as bound. REQUIRES: listen() was ok.
    std::string endpoint() const;
    // Accepts no more, lets running requests finish for `drain_ms`, then cuts them off. Returns when no connection is
    // left (or a second after the cut, should a handler not react to its cancellation).
    Task<void> stop(int64_t drain_ms);
    size_t connection_count() const;

private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace roost::net
