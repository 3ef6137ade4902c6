// Coroutine vocabulary of the gateway: Task<T>, and Event, the one thing coroutines of a loop wait for each other with.
// Everything here is used on one io_context thread only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace roost::net {

namespace asio = boost::asio;

template <class T>
using Task = asio::awaitable<T>;

// Coroutines wait until somebody notifies. A notify wakes all that wait now; there is no memory of notifies, so wait in
// a loop on a condition, as with a condition variable.
class Event {
public:
    explicit Event(asio::any_io_executor executor) : executor_(std::move(executor)) {}
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    void notify();
    // Waits for a notify.
    Task<void> wait();
    // Waits for a notify or until `timeout` has passed; false on timeout. Negative timeout: no limit.
    Task<bool> wait_for(std::chrono::milliseconds timeout);
    const asio::any_io_executor &executor() const { return executor_; }

private:
    asio::any_io_executor executor_;
    std::vector<asio::steady_timer *> waiters_;  // each lives in the frame of the coroutine that waits
};

}  // namespace roost::net
