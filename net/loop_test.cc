#include "net/loop.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "net/async.h"

namespace roost::net {
namespace {

// What the coroutines of a loop use: they say goodbye to it.
struct Part {
    explicit Part(asio::any_io_executor executor) : event(std::move(executor)) {}
    Event event;
    int goodbyes = 0;
};

struct Guest {
    Part &part;
    ~Guest() { part.goodbyes++; }
};

Task<void> wait_forever(Part &part) {
    const Guest guest{part};
    co_await part.event.wait();
}

Task<void> accept_forever(Part &part) {
    const Guest guest{part};
    asio::ip::tcp::acceptor acceptor(co_await asio::this_coro::executor, {asio::ip::address_v4::loopback(), 0});
    co_await acceptor.async_accept(asio::use_awaitable);
}

TEST(Loop, EndDestroysWhatWaitsWhileWhatItUsesIsThere) {
    Loop loop;
    Part part(loop.get_executor());
    asio::co_spawn(loop, wait_forever(part), asio::detached);
    asio::co_spawn(loop, accept_forever(part), asio::detached);
    asio::co_spawn(loop, wait_forever(part), asio::detached);
    loop.poll();
    EXPECT_EQ(part.goodbyes, 0);
    loop.stop();
    EXPECT_EQ(part.goodbyes, 0) << "a loop that has stopped still holds them";
    loop.end();
    EXPECT_EQ(part.goodbyes, 3);
    loop.end();
    EXPECT_EQ(part.goodbyes, 3);
}

TEST(Loop, WhatIsPostedToAnEndedLoopIsDroppedWithIt) {
    bool ran = false;
    std::weak_ptr<int> held;
    {
        Loop loop;
        Part part(loop.get_executor());
        {
            const LoopEnd end(loop);
            asio::co_spawn(loop, wait_forever(part), asio::detached);
            loop.poll();
        }
        EXPECT_EQ(part.goodbyes, 1);
        const auto token = std::make_shared<int>(1);
        held = token;
        asio::post(loop, [&ran, token] { ran = true; });
    }
    EXPECT_FALSE(ran);
    EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace roost::net
