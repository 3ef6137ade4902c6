#include "front/pg/listener.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <vector>

#include "base/ids.h"
#include "front/pg/connection.h"

namespace roost::pg {
namespace {

namespace asio = net::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 1024;
// Past the limit a client is still told so (53300), but a flood of sockets is not even read.
constexpr uint32_t kRefusedMax = 256;

void sweep_all(Shared &shared) {
    const int64_t now_ms = shared.clock.monotonic_ms();
    // A sweep may end a connection, which takes it out of the set.
    const std::vector<Connection *> all(shared.connections.begin(), shared.connections.end());
    for (Connection *connection : all) {
        if (shared.connections.contains(connection)) connection->sweep(now_ms);
    }
}

Status system_error(const std::string &what, const error_code &error) {
    return Status(Code::io_error, what + ": " + error.message());
}

}  // namespace

struct Listener::Door {
    explicit Door(asio::io_context &loop) : acceptor(loop), timer(loop) {}
    tcp::acceptor acceptor;
    asio::steady_timer timer;
    bool closed = false;
};

Listener::Listener(asio::io_context &loop, service::Service &service, const Clock &clock, obs::Log &log,
                   Options options)
    : loop_(loop),
      shared_(std::make_shared<Shared>(Shared{service, clock, log, std::move(options), {}, {}, false})),
      door_(std::make_shared<Door>(loop)) {
    if (shared_->options.mock_secret.empty()) shared_->options.mock_secret = random_bytes(32);
}

Listener::~Listener() {
    door_->closed = true;
    error_code ignored;  // nothing accepts after this either way
    door_->acceptor.close(ignored);
    door_->timer.cancel();
}

Status Listener::listen() {
    const std::string where = shared_->options.address + ":" + std::to_string(shared_->options.port);
    error_code error;
    const asio::ip::address address = asio::ip::make_address(shared_->options.address, error);
    if (error) return system_error("\"" + shared_->options.address + "\" is no address to listen at", error);
    const tcp::endpoint endpoint(address, shared_->options.port);
    tcp::acceptor &acceptor = door_->acceptor;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(kBacklog, error);
    if (error) return system_error("can't listen for Postgres clients at " + where, error);
    asio::co_spawn(loop_, accept(door_, shared_), asio::detached);
    asio::co_spawn(loop_, sweep_for_ever(door_, shared_), asio::detached);
    return {};
}

uint16_t Listener::port() const {
    error_code ignored;  // 0 then, as for a listener that is not bound
    return door_->acceptor.local_endpoint(ignored).port();
}

std::string Listener::endpoint() const {
    const std::string &address = shared_->options.address;
    const bool is_v6 = address.find(':') != std::string::npos;
    return (is_v6 ? "[" + address + "]" : address) + ":" + std::to_string(port());
}

net::Task<void> Listener::accept(std::shared_ptr<Door> door, std::shared_ptr<Shared> shared) {
    while (!door->closed) {
        error_code error;
        tcp::socket socket = co_await door->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
        if (door->closed) co_return;
        if (error) {
            // Out of descriptors, most likely: trying again at once would spin.
            shared->log.warn("pg_accept_failed", {{"error", error.message()}});
            asio::steady_timer pause(co_await asio::this_coro::executor, std::chrono::milliseconds(100));
            co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
            continue;
        }
        if (shared->connections.size() >= shared->options.connections_max + kRefusedMax) continue;
        asio::co_spawn(door->acceptor.get_executor(),
                       Connection::run(std::make_shared<Connection>(std::move(socket), shared)), asio::detached);
    }
}

net::Task<void> Listener::sweep_for_ever(std::shared_ptr<Door> door, std::shared_ptr<Shared> shared) {
    while (!door->closed) {
        door->timer.expires_after(std::chrono::milliseconds(shared->options.sweep_interval_ms));
        error_code ignored;  // cancelled: `closed` says so
        co_await door->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        if (!door->closed) sweep_all(*shared);
    }
}

void Listener::sweep() { sweep_all(*shared_); }

net::Task<bool> Listener::wait_until_empty(int64_t at_most_ms) {
    // Connections end by themselves and tell nobody; stopping happens once, so looking now and then is enough.
    constexpr int64_t kLookMs = 5;
    for (int64_t waited_ms = 0; !shared_->connections.empty() && waited_ms < at_most_ms; waited_ms += kLookMs) {
        asio::steady_timer timer(loop_, std::chrono::milliseconds(kLookMs));
        error_code ignored;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return shared_->connections.empty();
}

net::Task<void> Listener::stop(int64_t drain_ms) {
    shared_->draining = true;
    for (Connection *connection : std::vector<Connection *>(shared_->connections.begin(), shared_->connections.end())) {
        connection->drain();
    }
    if (!co_await wait_until_empty(drain_ms)) {
        for (Connection *connection :
             std::vector<Connection *>(shared_->connections.begin(), shared_->connections.end())) {
            if (shared_->connections.contains(connection)) connection->cut();
        }
        co_await wait_until_empty(1000);
    }
    door_->closed = true;
    error_code ignored;
    door_->acceptor.close(ignored);
    door_->timer.cancel();
}

}  // namespace roost::pg
