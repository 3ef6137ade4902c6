// The Postgres front's door: accepts clients, gives each a Connection, keeps their deadlines, and lets them go when the
// gateway stops. Loop thread only; made by app/.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "front/pg/shared.h"
#include "net/async.h"

namespace roost::pg {

class Listener {
public:
    // `service`, `clock` and `log` outlive the loop's coroutines: until stop() has returned, or the loop is gone.
    Listener(net::asio::io_context &loop, service::Service &service, const Clock &clock, obs::Log &log,
             Options options = {});
    ~Listener();
    Listener(const Listener &) = delete;
    Listener &operator=(const Listener &) = delete;

    // Binds options.address:port and begins to accept. Errors: io_error, with the address and the system's reason.
    Status listen();
    // "host:port" as bound. REQUIRES: listen() was ok.
    std::string endpoint() const;
    uint16_t port() const;
    size_t connection_count() const { return shared_->connections.size(); }

    // Tells idle clients (57P01) and closes them, refuses new ones (57P03), lets running statements finish for
    // `drain_ms`, then cuts off what is left. Returns when no connection is left, or a second after the cut.
    net::Task<void> stop(int64_t drain_ms);
    // One round of deadlines; runs by itself every options.sweep_interval_ms. Public for tests with a clock of their
    // own.
    void sweep();

private:
    struct Door;
    static net::Task<void> accept(std::shared_ptr<Door> door, std::shared_ptr<Shared> shared);
    static net::Task<void> sweep_for_ever(std::shared_ptr<Door> door, std::shared_ptr<Shared> shared);
    net::Task<bool> wait_until_empty(int64_t at_most_ms);

    net::asio::io_context &loop_;
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Door> door_;
};

}  // namespace roost::pg
