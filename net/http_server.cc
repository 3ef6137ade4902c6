#include "net/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <unordered_set>
#include <vector>

#include "net/http_connection.h"
#include "net/link.h"

namespace roost::net {
namespace {

using asio::ip::tcp;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kAfterCutMax{1000};

}  // namespace

// Held by each of the server's coroutines, so that none of them outlives what it uses.
struct HttpServer::Shared : std::enable_shared_from_this<Shared> {
    Shared(asio::io_context &loop_in, HttpHandler &handler_in, const Clock &clock_in, obs::Log &log_in,
           const HttpLimits &limits_in)
        : loop(loop_in),
          handler(handler_in),
          clock(clock_in),
          log(log_in),
          limits(limits_in),
          acceptor(loop_in),
          sweep_timer(loop_in),
          connection_ended(loop_in.get_executor()) {}

    Task<void> accept();
    Task<void> sweep();
    void open(tcp::socket socket);
    void turn_away(tcp::socket socket);
    std::vector<std::shared_ptr<HttpConnection>> all() const { return {connections.begin(), connections.end()}; }

    asio::io_context &loop;
    HttpHandler &handler;
    const Clock &clock;
    obs::Log &log;
    const HttpLimits limits;
    tcp::acceptor acceptor;
    asio::steady_timer sweep_timer;
    Event connection_ended;
    std::unordered_set<std::shared_ptr<HttpConnection>> connections;
    bool stopping = false;
};

Task<void> HttpServer::Shared::accept() {
    const auto self = shared_from_this();
    while (!stopping) {
        auto [ec, socket] = co_await acceptor.async_accept(kAwait);
        if (stopping) break;
        if (!ec) {
            open(std::move(socket));
            continue;
        }
        if (ec == asio::error::operation_aborted) break;
        // Out of file descriptors, most likely: some will be free again.
        log.warn("http_accept_failed", {{"error", ec.message()}});
        asio::steady_timer pause(loop, kAcceptPause);
        co_await pause.async_wait(kAwait);
    }
}

void HttpServer::Shared::open(tcp::socket socket) {
    if (connections.size() >= limits.connections_max) return turn_away(std::move(socket));
    auto connection = std::make_shared<HttpConnection>(std::move(socket), handler, clock, log, limits);
    connections.insert(connection);
    handler.connection_opened();
    auto on_end = [self = shared_from_this(), connection](const std::exception_ptr &) {
        // What gets here is the cancellation of a cut connection; a handler's exceptions end in call_handler.
        self->connections.erase(connection);
        self->handler.connection_closed();
        self->connection_ended.notify();
    };
    asio::co_spawn(loop, connection->run(),
                   asio::bind_cancellation_slot(connection->cancellation().slot(), std::move(on_end)));
}

// Over the limit of connections: says so if the socket takes it at once.
void HttpServer::Shared::turn_away(tcp::socket socket) {
    const HttpResponse response = handler.refuse({503, "too_many_connections", "The server has no connection left."});
    std::string text = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: " +
                       std::to_string(response.body.size()) + "\r\n";
    for (const auto &[name, value] : response.headers) text.append(name).append(": ").append(value).append("\r\n");
    text.append("\r\n").append(response.body);
    boost::system::error_code ec;
    socket.non_blocking(true, ec);
    socket.write_some(asio::buffer(text), ec);
    socket.shutdown(tcp::socket::shutdown_send, ec);
}

Task<void> HttpServer::Shared::sweep() {
    const auto self = shared_from_this();
    while (!stopping || !connections.empty()) {
        sweep_timer.expires_after(std::chrono::milliseconds(limits.sweep_interval_ms));
        co_await sweep_timer.async_wait(kAwait);
        const int64_t now_ms = clock.monotonic_ms();
        for (const auto &connection : connections) connection->sweep(now_ms);
    }
}

HttpServer::HttpServer(asio::io_context &loop, HttpHandler &handler, const Clock &clock, obs::Log &log,
                       HttpLimits limits)
    : shared_(std::make_shared<Shared>(loop, handler, clock, log, limits)) {}

HttpServer::~HttpServer() {
    shared_->stopping = true;
    boost::system::error_code ec;
    shared_->acceptor.close(ec);
    shared_->sweep_timer.cancel();
}

Status HttpServer::listen(const std::string &address) {
    auto where = Endpoint::parse(address);
    if (!where.ok()) return where.status();
    boost::system::error_code ec;
    tcp::resolver resolver(shared_->loop);
    const auto found = resolver.resolve(where->host, std::to_string(where->port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, ec);
    const auto fail = [&](const char *what) {
        return Status(Code::io_error, std::string("Can't ") + what + " " + address + ": " + ec.message() + ".");
    };
    if (ec || found.empty()) return fail("resolve");
    const tcp::endpoint endpoint = found.begin()->endpoint();
    auto &acceptor = shared_->acceptor;
    acceptor.open(endpoint.protocol(), ec);
    if (ec) return fail("open a socket for");
    acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
    acceptor.bind(endpoint, ec);
    if (ec) return fail("bind");
    acceptor.listen(asio::socket_base::max_listen_connections, ec);
    if (ec) return fail("listen on");
    asio::co_spawn(shared_->loop, shared_->accept(), asio::detached);
    asio::co_spawn(shared_->loop, shared_->sweep(), asio::detached);
    return {};
}

std::string HttpServer::endpoint() const {
    boost::system::error_code ec;
    const auto local = shared_->acceptor.local_endpoint(ec);
    const std::string host = local.address().to_string();
    return (local.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(local.port());
}

Task<void> HttpServer::stop(int64_t drain_ms) {
    const auto shared = shared_;
    shared->stopping = true;
    boost::system::error_code ec;
    shared->acceptor.close(ec);
    for (const auto &connection : shared->all()) connection->drain();
    const auto all_gone = [&shared](std::chrono::milliseconds wait) -> Task<bool> {
        const auto until = std::chrono::steady_clock::now() + wait;
        while (!shared->connections.empty()) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
            if (left.count() <= 0) co_return false;
            co_await shared->connection_ended.wait_for(left);
        }
        co_return true;
    };
    if (!co_await all_gone(std::chrono::milliseconds(drain_ms))) {
        for (const auto &connection : shared->all()) connection->cut();
        const bool gone = co_await all_gone(kAfterCutMax);
        if (!gone) shared->log.warn("http_connections_left", {{"count", shared->connections.size()}});
    }
    shared->sweep_timer.cancel();
}

size_t HttpServer::connection_count() const { return shared_->connections.size(); }

}  // namespace roost::net
