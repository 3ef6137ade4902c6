#include "net/link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace roost::net {
namespace {

std::pair<std::shared_ptr<FrameLink>, std::shared_ptr<FrameLink>> pair_of_links(asio::io_context &loop) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    auto a = adopt_socket(loop.get_executor(), fds[0]);
    auto b = adopt_socket(loop.get_executor(), fds[1]);
    return {FrameLink::make(std::move(*a)), FrameLink::make(std::move(*b))};
}

std::string frame_of(uint64_t stream, std::string payload) {
    std::string out;
    append_frame(out, FrameType::rows, stream, payload);
    return out;
}

TEST(FrameLink, DeliversInOrderPastAFullSocket) {
    asio::io_context loop;
    auto [a, b] = pair_of_links(loop);
    constexpr uint64_t kFrames = 200;
    for (uint64_t i = 0; i < kFrames; ++i) ASSERT_TRUE(a->send(frame_of(i, std::string(50'000, 'x'))));
    EXPECT_GT(a->queued_bytes(), 1'000'000u);
    uint64_t next = 0;
    asio::co_spawn(
        loop,
        [&]() -> Task<void> {
            while (next < kFrames) {
                auto frame = co_await b->read();
                if (!frame.ok() || frame->stream != next) break;
                next++;
            }
        },
        asio::detached);
    while (next < kFrames && loop.run_one_for(std::chrono::seconds(10)) > 0) {
    }
    EXPECT_EQ(next, kFrames);
    EXPECT_EQ(a->queued_bytes(), 0u);
}

TEST(FrameLink, ParkResumesWhenTheReaderHasCaughtUp) {
    asio::io_context loop;
    auto [a, b] = pair_of_links(loop);
    ASSERT_TRUE(a->send(frame_of(1, std::string(4'000'000, 'x'))));
    bool resumed = false;
    ASSERT_TRUE(a->park(1000, [&] { resumed = true; }));
    loop.run_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(resumed);
    asio::co_spawn(
        loop, [&]() -> Task<void> { EXPECT_TRUE((co_await b->read()).ok()); }, asio::detached);
    loop.restart();
    while (!resumed && loop.run_one_for(std::chrono::seconds(10)) > 0) {
    }
    EXPECT_TRUE(resumed);
    EXPECT_FALSE(a->park(1000, [] {})) << "nothing is queued any more";
}

TEST(FrameLink, CloseOfThePeerEndsReadSendAndPark) {
    asio::io_context loop;
    auto [a, b] = pair_of_links(loop);
    ASSERT_TRUE(a->send(frame_of(1, std::string(4'000'000, 'x'))));
    bool resumed = false;
    ASSERT_TRUE(a->park(1000, [&] { resumed = true; }));
    Code code = Code::ok;
    asio::co_spawn(
        loop, [&]() -> Task<void> { code = (co_await a->read()).status().code(); }, asio::detached);
    b->close();
    while ((!resumed || code == Code::ok) && loop.run_one_for(std::chrono::seconds(10)) > 0) {
    }
    EXPECT_TRUE(resumed);
    EXPECT_EQ(code, Code::unavailable);
    EXPECT_FALSE(a->send(frame_of(2, "late")));
}

TEST(LinkRequest, RoundTrip) {
    const LinkRequest request{"secret", true, Uuid::make(), 42};
    const auto parsed = parse_link_request(encode_link_request(request));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->token, "secret");
    EXPECT_TRUE(parsed->result_link);
    EXPECT_EQ(parsed->node, request.node);
    EXPECT_EQ(parsed->incarnation, 42u);
}

TEST(LinkRequest, AnythingElseIsRefused) {
    EXPECT_FALSE(parse_link_request("GET / HTTP/1.1\r\n\r\n").ok());
    EXPECT_FALSE(parse_link_request("GET /roost/link HTTP/1.1\r\nUpgrade: websocket\r\n\r\n").ok());
    EXPECT_FALSE(
        parse_link_request("GET /roost/link HTTP/1.1\r\nUpgrade: roost/1\r\nRoost-Node: nonsense\r\n\r\n").ok());
    EXPECT_FALSE(parse_link_request("\x16\x03\x01garbage").ok());
}

TEST(Endpoint, ParsesWhatItPrints) {
    for (const char *text : {"unix:/run/roost.sock", "127.0.0.1:8081"}) {
        const auto endpoint = Endpoint::parse(text);
        ASSERT_TRUE(endpoint.ok()) << text;
        EXPECT_EQ(endpoint->to_string(), text);
    }
    for (const char *text : {"", "host", "host:", "host:99999", "unix:", ":80"})
        EXPECT_FALSE(Endpoint::parse(text).ok()) << text;
}

}  // namespace
}  // namespace roost::net
