// The gateway's end of the links, against a node whose every frame the test sends itself.
#include "cluster/gateway_hub.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

#include "cluster/test_pool.h"

namespace roost::cluster {
namespace {

namespace asio = net::asio;
using net::FrameType;

// One link as a node has it; every wait runs the test's loop.
struct Peer {
    std::shared_ptr<net::FrameLink> link;
    std::string answer;               // of the gateway to the request
    std::deque<net::Frame> received;  // since the upgrade
    bool closed = false;

    void send(FrameType type, uint64_t stream, std::string_view payload = {}, uint32_t rows = 0) const {
        std::string frame;
        net::append_frame(frame, type, stream, payload, rows);
        link->send(std::move(frame));
    }
};

Hello hello_of(const Uuid &node, uint64_t incarnation = 1, int64_t pid = 1) {
    Hello hello;
    hello.node = node;
    hello.incarnation = incarnation;
    hello.name = "peer";
    hello.version = "1";
    hello.pid = pid;
    return hello;
}

ResultHeader grid() {
    ResultHeader header;
    header.has_grid = true;
    header.columns.push_back({.name = "n", .type = "INTEGER", .pg_oid = 23});
    return header;
}

std::string ended(uint64_t rows) {
    Completion completion;
    completion.rows = rows;
    return encode(completion);
}

class GatewayHubTest : public TestPool {
protected:
    using PeerPtr = std::shared_ptr<Peer>;

    // Sends `request` and reads what comes: the answer's head, then frames.
    PeerPtr connect(std::string request) {
        auto peer = std::make_shared<Peer>();
        asio::co_spawn(loop, live(peer, socket(), std::move(request)), asio::detached);
        run_until([&] { return peer->link || peer->closed; });
        return peer;
    }
    PeerPtr connect(const Uuid &node, bool result_link = false, const std::string &token = kTestToken) {
        return connect(net::encode_link_request({token, result_link, node, 1}));
    }
    PeerPtr join(const Hello &hello) {
        auto peer = connect(hello.node);
        peer->send(FrameType::hello, 0, encode(hello));
        run_until([&] { return !peer->received.empty() || peer->closed; });
        return peer;
    }
    // The next frame that came over the link; of type welcome when there is none.
    net::Frame take(const PeerPtr &peer) {
        run_until([&] { return !peer->received.empty() || peer->closed; });
        if (peer->received.empty()) return {};
        net::Frame frame = std::move(peer->received.front());
        peer->received.pop_front();
        return frame;
    }
    // A joined peer that has had its welcome.
    PeerPtr member(const Uuid &node) {
        auto peer = join(hello_of(node));
        EXPECT_EQ(take(peer).type, FrameType::welcome);
        EXPECT_TRUE(hub().members().contains(node));
        return peer;
    }
    // Opens a stream to the node; `number` is what the node calls it.
    std::shared_ptr<RemoteStream> open(const PeerPtr &peer, const Uuid &node, uint64_t &number) {
        auto stream = hub().open(node, FrameType::dispatch, encode(spec_of("SELECT 1")));
        EXPECT_TRUE(stream.ok()) << stream.status().to_string();
        const net::Frame frame = take(peer);
        EXPECT_EQ(frame.type, FrameType::dispatch);
        EXPECT_EQ(decode_spec(frame.payload).value().sql, "SELECT 1");
        number = frame.stream;
        return std::move(*stream);
    }
    void run_until_ended(const Seen &seen) {
        run_until([&] { return seen.ended; });
    }

private:
    static net::Task<void> live(PeerPtr peer, std::string path, std::string request) {
        asio::local::stream_protocol::socket socket(co_await asio::this_coro::executor);
        co_await socket.async_connect({path}, asio::use_awaitable);
        boost::system::error_code ec;
        co_await asio::async_write(socket, asio::buffer(request), asio::redirect_error(asio::use_awaitable, ec));
        while (!peer->answer.ends_with("\r\n\r\n")) {
            char byte = 0;
            co_await socket.async_read_some(asio::buffer(&byte, 1), asio::redirect_error(asio::use_awaitable, ec));
            if (ec) break;
            peer->answer += byte;
        }
        if (ec || peer->answer != net::kLinkAccepted) {
            peer->closed = true;
            co_return;
        }
        const auto link = net::FrameLink::make(net::StreamSocket(std::move(socket)));
        peer->link = link;
        for (;;) {
            auto frame = co_await link->read();
            if (!frame.ok()) break;
            peer->received.push_back(std::move(*frame));
        }
        peer->closed = true;
    }
};

const Uuid kNode = Uuid::from_name("node");

TEST_F(GatewayHubTest, AResultInlineIsHeaderRowsEndAndGivesItsLoadBack) {
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    EXPECT_EQ(hub().members().at(kNode).in_flight, 1u);
    Seen seen;
    read(stream, seen);
    control->send(FrameType::header, number, encode(grid()));
    control->send(FrameType::rows, number, "xyz", 3);
    settle();
    EXPECT_FALSE(seen.ended);
    EXPECT_EQ(hub().members().at(kNode).in_flight, 1u) << "charged until the stream ends";
    control->send(FrameType::end, number, ended(3));
    run_until_ended(seen);
    EXPECT_TRUE(seen.status.ok());
    EXPECT_EQ(seen.types, (std::vector{FrameType::header, FrameType::rows, FrameType::end}));
    EXPECT_EQ(seen.rows, 3u);
    EXPECT_EQ(hub().members().at(kNode).in_flight, 0u);
}

TEST_F(GatewayHubTest, AWrongTokenIsRefused) {
    const auto peer = connect(kNode, false, "guessed");
    EXPECT_TRUE(peer->closed);
    EXPECT_TRUE(peer->answer.starts_with("HTTP/1.1 401 ")) << peer->answer;
    EXPECT_TRUE(hub().members().empty());
    const auto results = connect(kNode, true, "guessed");
    EXPECT_TRUE(results->answer.starts_with("HTTP/1.1 401 ")) << results->answer;
}

TEST_F(GatewayHubTest, AnotherVersionOfTheProtocolIsRefused) {
    std::string request = net::encode_link_request({kTestToken, false, kNode, 1});
    request.replace(request.find("roost/1"), 7, "roost/2");
    const auto peer = connect(request);
    EXPECT_TRUE(peer->answer.starts_with("HTTP/1.1 400 ")) << peer->answer;
    // The same in a frame.
    const auto later = connect(kNode);
    std::string frame;
    net::append_frame(frame, FrameType::hello, 0, encode(hello_of(kNode)));
    frame[6] = 9;
    later->link->send(frame);
    run_until([&] { return later->closed; });
    EXPECT_TRUE(hub().members().empty());
}

TEST_F(GatewayHubTest, WhatIsNoHelloEndsTheLink) {
    const auto expect_refused = [&](const std::string &bytes) {
        const auto peer = connect(kNode);
        peer->link->send(bytes);
        run_until([&] { return peer->closed; });
        EXPECT_TRUE(hub().members().empty());
    };
    expect_refused(std::string(100, '\xff'));
    std::string frame;
    net::append_frame(frame, FrameType::heartbeat, 0, encode(Heartbeat()));
    expect_refused(frame);
    frame.clear();
    net::append_frame(frame, FrameType::hello, 0, "too short");
    expect_refused(frame);
    frame.clear();
    net::append_frame(frame, FrameType::hello, 0, encode(hello_of(Uuid::from_name("another"))));
    expect_refused(frame);
}

TEST_F(GatewayHubTest, APeerThatSaysNothingIsCutOff) {
    hub_options.handshake_max_ms = 20;
    start_hub();
    const auto silent = connect(kNode);
    run_until([&] { return silent->closed; });
    const auto half = connect("GET /roost/link HT");
    EXPECT_TRUE(half->closed);
    EXPECT_EQ(half->answer, "");
}

TEST_F(GatewayHubTest, GarbageOnAControlLinkLosesTheNodeAndItsStatements) {
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    Seen seen;
    read(stream, seen);
    std::string frame;
    net::append_frame(frame, FrameType::header, number, encode(grid()));
    frame.back() ^= 1;  // against its checksum
    control->link->send(frame);
    run_until_ended(seen);
    EXPECT_TRUE(seen.status.retryable());
    EXPECT_TRUE(seen.types.empty());
    EXPECT_TRUE(hub().members().empty());
    EXPECT_FALSE(hub().open(kNode, FrameType::dispatch, "").ok());
}

TEST_F(GatewayHubTest, FramesOfNoStreamAreIgnored) {
    const auto control = member(kNode);
    for (const FrameType type : {FrameType::rows, FrameType::end, FrameType::progress, FrameType::refused}) {
        control->send(type, 77, "x");
    }
    control->send(FrameType::heartbeat, 0, "not a heartbeat");
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    Seen seen;
    read(stream, seen);
    control->send(FrameType::progress, number, "not progress");
    control->send(FrameType::end, number, ended(0));
    run_until_ended(seen);
    EXPECT_TRUE(seen.status.ok());
}

TEST_F(GatewayHubTest, ANewRunOfANodeTakesThePlaceOfTheOldOne) {
    const auto old = member(kNode);
    uint64_t number = 0;
    auto stream = open(old, kNode, number);
    Seen seen;
    read(stream, seen);
    const auto fresh = join(hello_of(kNode, 2, 2));
    EXPECT_EQ(take(fresh).type, FrameType::welcome);
    run_until_ended(seen);
    EXPECT_EQ(seen.status.code(), Code::unavailable);
    run_until([&] { return old->closed; });
    EXPECT_EQ(hub().members().at(kNode).hello.incarnation, 2u);
    EXPECT_EQ(hub().members().at(kNode).in_flight, 0u);
    EXPECT_FALSE(fresh->closed);
}

TEST_F(GatewayHubTest, ACopyOfANodeDoesNotPushOutTheOneThatAnswers) {
    const auto first = member(kNode);
    const auto refused = [&](const Hello &hello) {
        const auto copy = join(hello);
        run_until([&] { return copy->closed; });
        return copy->received.empty();
    };
    EXPECT_TRUE(refused(hello_of(kNode, 1, 2))) << "another process of the same directory's copy";
    EXPECT_TRUE(refused(hello_of(kNode, 0, 1))) << "an earlier run";
    EXPECT_FALSE(first->closed);
    // Its own next try is welcome, though the gateway has not noticed that the first link is gone.
    const auto again = join(hello_of(kNode, 1, 1));
    EXPECT_EQ(take(again).type, FrameType::welcome);
    run_until([&] { return first->closed; });
}

TEST_F(GatewayHubTest, ANodeWithoutHeartbeatsIsDropped) {
    hub_options.drop_after_ms = 60;
    start_hub();
    std::optional<Uuid> left;
    hub().on_leave = [&](const Uuid &id) { left = id; };
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    Seen seen;
    read(stream, seen);
    run_until_ended(seen);
    EXPECT_EQ(seen.status.code(), Code::unavailable);
    EXPECT_TRUE(seen.status.retryable());
    EXPECT_EQ(left, kNode);
    EXPECT_TRUE(hub().members().empty());
    run_until([&] { return control->closed; });
}

TEST_F(GatewayHubTest, HeartbeatsKeepANodeAndAreSeen) {
    hub_options.drop_after_ms = 1'000;  // a busy machine may keep the test itself waiting for a tenth of that
    start_hub();
    const auto control = member(kNode);
    Heartbeat beat;
    beat.granted_bytes = 7;
    const int64_t end_us = clock.monotonic_us() + 2'000'000;
    while (clock.monotonic_us() < end_us) {
        control->send(FrameType::heartbeat, 0, encode(beat));
        loop.restart();
        loop.run_for(std::chrono::milliseconds(5));
    }
    ASSERT_TRUE(hub().members().contains(kNode));
    EXPECT_EQ(hub().members().at(kNode).heartbeat.granted_bytes, 7u);
}

TEST_F(GatewayHubTest, AResultLinkThatBreaksIsAnErrorAndNeverAShortResult) {
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    Seen seen;
    read(stream, seen);
    const auto results = connect(kNode, true);
    results->send(FrameType::result_begin, number);
    results->send(FrameType::header, number, encode(grid()));
    results->send(FrameType::rows, number, "xyz", 3);
    run_until([&] { return seen.rows == 3; });
    results->link->close();
    run_until_ended(seen);
    EXPECT_EQ(seen.status.code(), Code::unavailable);
    EXPECT_TRUE(hub().members().contains(kNode)) << "only the result was lost";
    EXPECT_EQ(hub().members().at(kNode).in_flight, 0u);
}

TEST_F(GatewayHubTest, AControlLinkThatBreaksEndsTheResultsOnOtherLinks) {
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    Seen seen;
    read(stream, seen);
    const auto results = connect(kNode, true);
    results->send(FrameType::result_begin, number);
    results->send(FrameType::header, number, encode(grid()));
    run_until([&] { return seen.types.size() == 1; });
    control->link->close();
    run_until_ended(seen);
    EXPECT_EQ(seen.status.code(), Code::unavailable);
    run_until([&] { return results->closed; });
}

TEST_F(GatewayHubTest, WhatCameWholeBeforeTheLossIsGood) {
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    control->send(FrameType::header, number, encode(grid()));
    control->send(FrameType::end, number, ended(0));
    control->link->close();
    run_until([&] { return hub().members().empty(); });
    Seen seen;
    read(stream, seen);
    run_until_ended(seen);
    EXPECT_TRUE(seen.status.ok());
    EXPECT_EQ(seen.types.back(), FrameType::end);
}

TEST_F(GatewayHubTest, TwoResultsOnTwoLinksDoNotMix) {
    const auto control = member(kNode);
    uint64_t a = 0, b = 0;
    auto stream_a = open(control, kNode, a);
    auto stream_b = open(control, kNode, b);
    Seen seen_a, seen_b;
    read(stream_a, seen_a);
    read(stream_b, seen_b);
    const auto link_a = connect(kNode, true);
    const auto link_b = connect(kNode, true);
    link_b->send(FrameType::result_begin, b);
    link_a->send(FrameType::result_begin, a);
    for (const auto &[link, number] : {std::pair{link_b, b}, std::pair{link_a, a}}) {
        link->send(FrameType::header, number, encode(grid()));
    }
    for (int i = 0; i < 10; ++i) {
        link_a->send(FrameType::rows, a, "a", 1);
        link_b->send(FrameType::rows, b, "bb", 2);
    }
    link_a->send(FrameType::end, a, ended(10));
    run_until_ended(seen_a);
    EXPECT_FALSE(seen_b.ended);
    link_b->send(FrameType::end, b, ended(20));
    run_until_ended(seen_b);
    EXPECT_EQ(seen_a.rows, 10u);
    EXPECT_EQ(seen_b.rows, 20u);
    EXPECT_TRUE(seen_a.status.ok() && seen_b.status.ok());
}

TEST_F(GatewayHubTest, AFrameOfAnotherStatementOnAResultLinkIsDataLoss) {
    const auto control = member(kNode);
    uint64_t a = 0, b = 0;
    auto stream_a = open(control, kNode, a);
    auto stream_b = open(control, kNode, b);
    Seen seen;
    read(stream_a, seen);
    const auto results = connect(kNode, true);
    results->send(FrameType::result_begin, a);
    results->send(FrameType::rows, b, "x", 1);
    run_until_ended(seen);
    EXPECT_EQ(seen.status.code(), Code::data_loss);
    run_until([&] { return results->closed; });
}

TEST_F(GatewayHubTest, AResultOfNoStatementEndsItsLink) {
    const auto control = member(kNode);
    const auto unknown = connect(kNode, true);
    unknown->send(FrameType::result_begin, 12345);
    run_until([&] { return unknown->closed; });
    const auto no_begin = connect(kNode, true);
    no_begin->send(FrameType::rows, 1, "x", 1);
    run_until([&] { return no_begin->closed; });
    const auto stranger = connect(Uuid::from_name("never joined"), true);
    stranger->send(FrameType::result_begin, 1);
    run_until([&] { return stranger->closed; });
}

TEST_F(GatewayHubTest, AStreamDroppedEarlyIsCancelledAndItsLinkCarriesTheNext) {
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    const auto results = connect(kNode, true);
    results->send(FrameType::result_begin, number);
    results->send(FrameType::header, number, encode(grid()));
    settle();
    stream.reset();
    const net::Frame cancel = take(control);
    EXPECT_EQ(cancel.type, FrameType::cancel);
    EXPECT_EQ(cancel.stream, number);
    EXPECT_EQ(hub().members().at(kNode).in_flight, 1u) << "the node has not stopped yet";
    results->send(FrameType::rows, number, "xyz", 3);
    results->send(FrameType::end, number, ended(3));
    run_until([&] { return hub().members().at(kNode).in_flight == 0; });
    auto next = open(control, kNode, number);
    Seen seen;
    read(next, seen);
    results->send(FrameType::result_begin, number);
    results->send(FrameType::header, number, encode(grid()));
    results->send(FrameType::end, number, ended(0));
    run_until_ended(seen);
    EXPECT_TRUE(seen.status.ok()) << seen.status.to_string();
    EXPECT_FALSE(results->closed);
}

TEST_F(GatewayHubTest, ANodeThatDoesNotStopLosesTheLink) {
    hub_options.drain_max_ms = 20;
    start_hub();
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    const auto results = connect(kNode, true);
    results->send(FrameType::result_begin, number);
    settle();
    stream.reset();
    run_until([&] { return results->closed; });
    run_until([&] { return hub().members().at(kNode).in_flight == 0; });
    EXPECT_TRUE(hub().members().contains(kNode));
}

TEST_F(GatewayHubTest, AStreamDroppedBeforeItsResultIsRidOfItWhereverItComes) {
    const auto control = member(kNode);
    uint64_t inline_one = 0, on_link = 0;
    open(control, kNode, inline_one).reset();
    EXPECT_EQ(take(control).type, FrameType::cancel);
    open(control, kNode, on_link).reset();
    EXPECT_EQ(take(control).type, FrameType::cancel);
    control->send(FrameType::end, inline_one, ended(0));
    const auto results = connect(kNode, true);
    results->send(FrameType::result_begin, on_link);
    results->send(FrameType::end, on_link, ended(0));
    run_until([&] { return hub().members().at(kNode).in_flight == 0; });
    EXPECT_FALSE(results->closed);
}

TEST_F(GatewayHubTest, BackpressureIsTheSocketsAndNotTheGatewaysMemory) {
    const auto control = member(kNode);
    uint64_t number = 0;
    auto stream = open(control, kNode, number);
    const auto results = connect(kNode, true);
    results->send(FrameType::result_begin, number);
    results->send(FrameType::header, number, encode(grid()));
    const std::string rows(1 << 20, 'x');
    for (int i = 0; i < 32; ++i) results->send(FrameType::rows, number, rows, 1000);
    settle();
    EXPECT_GT(results->link->queued_bytes(), 24u << 20) << "nobody reads, so it stays with the sender";
    Seen seen;
    read(stream, seen);
    results->send(FrameType::end, number, ended(32'000));
    run_until_ended(seen);
    EXPECT_EQ(seen.rows, 32'000u);
}

}  // namespace
}  // namespace roost::cluster
