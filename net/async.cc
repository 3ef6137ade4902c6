#include "net/async.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>

namespace roost::net {

void Event::notify() {
    for (asio::steady_timer *waiter : waiters_) waiter->cancel();
}

Task<void> Event::wait() { co_await wait_for(std::chrono::milliseconds(-1)); }

Task<bool> Event::wait_for(std::chrono::milliseconds timeout) {
    asio::steady_timer timer(executor_);
    if (timeout.count() < 0) {
        timer.expires_at(std::chrono::steady_clock::time_point::max());
    } else {
        timer.expires_after(timeout);
    }
    // Unregisters however the coroutine ends, its destruction by a stopped loop included.
    struct Registration {
        std::vector<asio::steady_timer *> &waiters;
        asio::steady_timer *timer;
        ~Registration() { std::erase(waiters, timer); }
    };
    waiters_.push_back(&timer);
    const Registration registration{waiters_, &timer};
    boost::system::error_code ec;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    co_return ec == asio::error::operation_aborted;
}

}  // namespace roost::net
