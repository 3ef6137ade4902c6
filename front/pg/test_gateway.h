// A listener with a fake service on a loop of its own thread, for this folder's tests. Time is a ManualClock: deadlines
// pass when a test says so.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <functional>
#include <future>
#include <thread>

#include "base/clock.h"
#include "front/pg/fake_service.h"
#include "front/pg/listener.h"

namespace roost::pg::test {

class Gateway {
public:
    // Runs `work` on the loop's thread and waits for it.
    template <class Work>
    auto on_loop(Work work) {
        auto task = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
        auto future = task->get_future();
        net::asio::post(loop, [task] { (*task)(); });
        return future.get();
    }
    explicit Gateway(Options options = {}) : service(loop) {
        options.sweep_interval_ms = 3'600'000;  // sweep() below instead
        options.mock_secret = "mock";
        listener = std::make_unique<Listener>(loop, service, clock, *log, options);
        const Status status = listener->listen();
        EXPECT_TRUE(status.ok()) << status.to_string();
        port = listener->port();
        thread = std::thread([this] { loop.run(); });
    }
    ~Gateway() {
        // Ends every connection: their coroutines must not outlive the service.
        if (listener) stop(0).get();
        loop.stop();
        thread.join();
    }

    // Waits until `condition`, looked at on the loop's thread between its other work, holds.
    bool eventually(const std::function<bool()> &condition) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!on_loop(condition)) {
            if (std::chrono::steady_clock::now() > end) return false;
            std::this_thread::yield();
        }
        return true;
    }
    bool logged(const std::string &line) {
        return eventually([&] { return std::find(service.log.begin(), service.log.end(), line) != service.log.end(); });
    }
    std::vector<std::string> take_log() {
        return on_loop([&] { return std::exchange(service.log, {}); });
    }
    // Lets `ms` pass and applies the deadlines.
    void pass(int64_t ms) {
        on_loop([&] {
            listener->sweep();
            clock.advance_us(ms * 1000);
            listener->sweep();
        });
    }
    // Begins to stop; get() of the future waits for its end.
    std::future<void> stop(int64_t drain_ms) {
        return net::asio::co_spawn(loop, listener->stop(drain_ms), net::asio::use_future);
    }

    net::asio::io_context loop{1};
    ManualClock clock;
    std::unique_ptr<obs::Log> log = obs::make_null_log();
    FakeService service;
    std::unique_ptr<Listener> listener;
    uint16_t port = 0;
    net::asio::executor_work_guard<net::asio::io_context::executor_type> work{loop.get_executor()};
    std::thread thread;
};

}  // namespace roost::pg::test
