#include "net/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "net/http_test_client.h"

namespace roost::net {
namespace {

// What the tests see of a body that is streamed.
struct StreamSeen {
    std::atomic<size_t> pulled = 0;
    std::atomic<bool> cancelled = false, dropped = false;
};

class CountingSource final : public HttpBodySource {
public:
    CountingSource(asio::any_io_executor executor, StreamSeen &seen, size_t pieces, size_t piece_bytes, Status end,
                   bool hang)
        : event_(std::move(executor)),
          seen_(seen),
          pieces_(pieces),
          piece_bytes_(piece_bytes),
          end_(std::move(end)),
          hang_(hang) {}
    ~CountingSource() override { seen_.dropped = true; }
    Task<Result<std::optional<std::string>>> next() override {
        if (seen_.pulled < pieces_) {
            ++seen_.pulled;
            co_return std::optional(std::string(piece_bytes_, 'x'));
        }
        while (hang_ && !seen_.cancelled) co_await event_.wait();
        if (!end_.ok()) co_return end_;
        co_return std::optional<std::string>();
    }
    void cancel() override {
        seen_.cancelled = true;
        event_.notify();
    }

private:
    Event event_;
    StreamSeen &seen_;
    const size_t pieces_, piece_bytes_;
    const Status end_;
    const bool hang_;
};

// Answers by path.
class TestHandler final : public HttpHandler {
public:
    explicit TestHandler(asio::any_io_executor executor) : executor(std::move(executor)), release(this->executor) {}

    Task<HttpResponse> handle(HttpRequest request, HttpBody &body) override {
        ++handled;
        HttpResponse response;
        response.headers.emplace_back("Content-Type", "text/plain");
        if (request.target == "/echo") {
            auto text = co_await body.read_all(1 << 20);
            if (!text.ok()) {
                last_error = text.status();
                response.status = text.status().name() == "body_too_large" ? 413 : 400;
            } else {
                response.body = *text;
            }
        } else if (request.target == "/count") {
            size_t size_bytes = 0;
            while (true) {
                auto piece = co_await body.next();
                if (!piece.ok()) {
                    last_error = piece.status();
                    break;
                }
                if (piece->empty()) break;
                size_bytes += piece->size();
                largest_piece_bytes = std::max(largest_piece_bytes, piece->size());
            }
            response.body = std::to_string(size_bytes);
        } else if (request.target == "/throw") {
            throw std::runtime_error("boom");
        } else if (request.target == "/wait") {
            waiting = true;
            co_await release.wait();
            response.body = "waited";
        } else if (request.target == "/stream") {
            response.source = std::make_unique<CountingSource>(executor, seen, stream_pieces, stream_piece_bytes,
                                                               stream_end, stream_hang);
        } else {
            response.body = request.method + " " + request.target;
        }
        co_return response;
    }
    HttpResponse refuse(const HttpRefusal &refusal) override {
        HttpResponse response;
        response.status = refusal.status;
        response.body = refusal.code;
        return response;
    }
    void connection_opened() override { ++open; }
    void connection_closed() override { --open; }

    asio::any_io_executor executor;
    Event release;
    StreamSeen seen;
    size_t stream_pieces = 3, stream_piece_bytes = 10, largest_piece_bytes = 0;
    Status stream_end, last_error;
    bool stream_hang = false;
    std::atomic<int> handled = 0, open = 0;
    std::atomic<bool> waiting = false;
};

// Time that the tests move.
class TestClock final : public Clock {
public:
    int64_t monotonic_us() const override { return now_us_; }
    int64_t wall_us() const override { return 1'700'000'000'000'000; }
    void advance_ms(int64_t ms) { now_us_ += ms * 1000; }

private:
    std::atomic<int64_t> now_us_ = 1'000'000;
};

class HttpServerTest : public ::testing::Test {
protected:
    void start(HttpLimits limits = {}) {
        limits.sweep_interval_ms = 2;
        server_.emplace(loop_, handler_, clock_, *log_, limits);
        ASSERT_TRUE(server_->listen("127.0.0.1:0").ok());
        thread_ = std::thread([this] { loop_.run(); });
    }
    void TearDown() override {
        if (!thread_.joinable()) return;
        stop(0);
        work_.reset();
        loop_.stop();
        thread_.join();
    }
    void stop(int64_t drain_ms) {
        on_loop([this, drain_ms]() -> Task<void> { co_await server_->stop(drain_ms); });
    }
    // Orders what the test reads with what the handler wrote.
    void sync() { asio::post(loop_, asio::use_future).get(); }
    template <class Make>
    void on_loop(Make make) {
        asio::co_spawn(loop_, make(), asio::use_future).get();
    }
    // Waits (bounded) for what another thread will make true.
    template <class Condition>
    static bool eventually(Condition condition) {
        for (int i = 0; i < 5000; ++i) {
            if (condition()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return false;
    }
    // Moves time on until the connection gets something to read.
    bool readable_after(HttpTestClient &client, int64_t step_ms) {
        return eventually([&] {
            clock_.advance_ms(step_ms);
            return client.readable(1);
        });
    }
    HttpTestClient::Response get(const std::string &target) {
        HttpTestClient client(server_->endpoint());
        client.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
        return client.read().value();
    }

    asio::io_context loop_;
    asio::executor_work_guard<asio::io_context::executor_type> work_{loop_.get_executor()};
    TestHandler handler_{loop_.get_executor()};
    TestClock clock_;
    std::unique_ptr<obs::Log> log_ = obs::make_null_log();
    std::optional<HttpServer> server_;
    std::thread thread_;
};

TEST_F(HttpServerTest, AnswersAndKeepsTheConnection) {
    start();
    HttpTestClient client(server_->endpoint());
    for (int i = 0; i < 3; ++i) {
        client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        const auto response = client.read();
        ASSERT_TRUE(response);
        EXPECT_EQ(response->status, 200);
        EXPECT_EQ(response->body, "GET /a");
        EXPECT_EQ(*find_header(response->headers, "Date"), "Tue, 14 Nov 2023 22:13:20 GMT");
    }
    EXPECT_EQ(handler_.open, 1);
    client.leave();
    EXPECT_TRUE(eventually([&] { return handler_.open == 0; }));
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
    start();
    HttpTestClient client(server_->endpoint());
    std::string all;
    for (int i = 0; i < 50; ++i) {
        const std::string body = "body " + std::to_string(i);
        all += "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    }
    client.send(all);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(client.read()->body, "body " + std::to_string(i));
}

TEST_F(HttpServerTest, RequestSentByteByByte) {
    start();
    HttpTestClient client(server_->endpoint());
    for (const char c : std::string_view("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")) {
        client.send({&c, 1});
    }
    EXPECT_EQ(client.read()->body, "abc");
}

TEST_F(HttpServerTest, HeadHasNoBody) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto head = client.read(true);
    EXPECT_EQ(*find_header(head->headers, "Content-Length"), "7");
    EXPECT_EQ(client.read()->body, "GET /b");
}

TEST_F(HttpServerTest, Http10ClosesUnlessAskedTo) {
    start();
    HttpTestClient closing(server_->endpoint());
    closing.send("GET /a HTTP/1.0\r\n\r\n");
    EXPECT_EQ(*find_header(closing.read()->headers, "Connection"), "close");
    EXPECT_TRUE(closing.at_end());
    HttpTestClient keeping(server_->endpoint());
    keeping.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(*find_header(keeping.read()->headers, "Connection"), "keep-alive");
    keeping.send("GET /a HTTP/1.0\r\n\r\n");
    EXPECT_EQ(keeping.read()->status, 200);
}

TEST_F(HttpServerTest, GarbageIsRefusedAndTheConnectionClosed) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send(std::string("\x16\x03\x01\x00\xff\x00nonsense\r\n\r\n", 18));
    const auto response = client.read();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 400);
    EXPECT_EQ(*find_header(response->headers, "Connection"), "close");
    EXPECT_TRUE(client.at_end());
    EXPECT_EQ(get("/a").status, 200);
    EXPECT_EQ(handler_.handled, 1);
}

TEST_F(HttpServerTest, TooLongHeadersAndTargets) {
    start();
    HttpTestClient header(server_->endpoint());
    header.send("GET / HTTP/1.1\r\nX: " + std::string(64 * 1024, 'x') + "\r\n\r\n");
    EXPECT_EQ(header.read()->status, 431);
    HttpTestClient target(server_->endpoint());
    target.send("GET /" + std::string(10 * 1024, 'x') + " HTTP/1.1\r\n\r\n");
    EXPECT_EQ(target.read()->status, 414);
}

TEST_F(HttpServerTest, HandlerThatThrowsIsA500AndTheConnectionLives) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.read()->status, 500);
    EXPECT_EQ(client.read()->status, 200);
}

TEST_F(HttpServerTest, ContinueIsSentWhenTheBodyIsWanted) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    EXPECT_EQ(client.read()->status, 100);
    client.send("abc");
    EXPECT_EQ(client.read()->body, "abc");
}

TEST_F(HttpServerTest, ContinueIsNotSentWhenTheBodyIsRefused) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3000000\r\n\r\n");
    const auto response = client.read();
    EXPECT_EQ(response->status, 413);
    EXPECT_EQ(*find_header(response->headers, "Connection"), "close");
}

TEST_F(HttpServerTest, UnreadBodyThatHasArrivedKeepsTheConnection) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.read()->body, "POST /a");
    EXPECT_EQ(client.read()->body, "GET /b");
}

TEST_F(HttpServerTest, ClientStillSendingSeesTheRefusal) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n");
    // Sends all of it although the response is there already, as most clients do.
    EXPECT_TRUE(client.send(std::string(8'000'000, 'x')));
    const auto response = client.read();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 413);
}

TEST_F(HttpServerTest, ClientThatSendsALargeFileToTheEndSeesTheRefusal) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 300000000\r\n\r\n");
    const std::string piece(1'000'000, 'x');
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(client.send(piece)) << i;
    const auto response = client.read();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 413);
    EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, WhatARefusedClientMaySendIsBounded) {
    HttpLimits limits;
    limits.linger_max_bytes = 3'000'000;
    start(limits);
    HttpTestClient client(server_->endpoint());
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000000\r\n\r\n");
    const std::string piece(1'000'000, 'x');
    int sent = 0;
    while (sent < 100 && client.send(piece)) sent++;
    EXPECT_LT(sent, 100);
}

TEST_F(HttpServerTest, ARefusedClientThatStopsSendingIsNotWaitedForForEver) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000000\r\n\r\n");
    EXPECT_EQ(client.read()->status, 413);
    EXPECT_TRUE(eventually([&] {
        clock_.advance_ms(100);
        return handler_.open == 0;
    }));
}

TEST_F(HttpServerTest, LargeUploadIsReadInSmallPieces) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("PUT /count HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n");
    const std::string piece(1'000'000, 'x');
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(client.send(piece));
    EXPECT_EQ(client.read()->body, "50000000");
    sync();
    EXPECT_LE(handler_.largest_piece_bytes, 64u * 1024);
}

TEST_F(HttpServerTest, ChunkedBody) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    client.send("2\r\nde\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.read()->body, "abcde");
    EXPECT_EQ(client.read()->body, "GET /b");
}

TEST_F(HttpServerTest, ChunkHeaderWithoutEndIsRefused) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send("3;" + std::string(1 << 20, 'x'));
    const auto response = client.read();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 400);
}

TEST_F(HttpServerTest, ClientThatLeavesInTheMiddleOfABody) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
    client.leave();
    EXPECT_TRUE(eventually([&] { return handler_.handled == 1 && handler_.open == 0; }));
    sync();
    EXPECT_EQ(handler_.last_error.code(), Code::unavailable);
}

// --- deadlines

TEST_F(HttpServerTest, HalfAHeadIsGivenUp) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET / HTTP/1.1\r\nHo");
    ASSERT_TRUE(readable_after(client, 1000));
    EXPECT_EQ(client.read()->status, 408);
    EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, HeadThatTricklesIsGivenUp) {
    start({.head_max_ms = 30'000, .keep_alive_max_ms = 1'000'000});
    HttpTestClient client(server_->endpoint());
    client.send("GET / HTTP/1.1\r\nX: ");
    EXPECT_TRUE(eventually([&] {
        client.send("x");
        clock_.advance_ms(1000);
        return client.readable(1);
    }));
    EXPECT_EQ(client.read()->status, 408);
}

TEST_F(HttpServerTest, StalledBodyIsGivenUp) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
    ASSERT_TRUE(readable_after(client, 10'000));
    EXPECT_EQ(client.read()->body, "3");
    sync();
    EXPECT_EQ(handler_.last_error.code(), Code::timeout);
}

TEST_F(HttpServerTest, IdleConnectionIsClosed) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.read()->status, 200);
    ASSERT_TRUE(readable_after(client, 20'000));
    EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, HandlerMayTakeItsTime) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return handler_.waiting.load(); }));
    clock_.advance_ms(10'000'000);
    EXPECT_FALSE(client.readable(50));
    asio::post(loop_, [this] { handler_.release.notify(); });
    EXPECT_EQ(client.read()->body, "waited");
}

TEST_F(HttpServerTest, ReaderThatTakesNothingIsGivenUp) {
    handler_.stream_pieces = 1000;
    handler_.stream_piece_bytes = 1 << 20;
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(eventually([&] {
        clock_.advance_ms(10'000);
        return handler_.seen.dropped.load();
    }));
    EXPECT_TRUE(eventually([&] { return handler_.open == 0; }));
}

// --- streamed responses

TEST_F(HttpServerTest, StreamsInChunks) {
    start();
    const auto response = get("/stream");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, std::string(30, 'x'));
    EXPECT_TRUE(response.whole);
}

TEST_F(HttpServerTest, ConnectionGoesOnAfterAStream) {
    start();
    HttpTestClient client(server_->endpoint());
    for (int i = 0; i < 3; ++i) {
        handler_.seen.pulled = 0;
        client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ(client.read()->body.size(), 30u);
    }
}

TEST_F(HttpServerTest, StreamThatFailsIsNeverAWholeResponse) {
    handler_.stream_end = Status(Code::unavailable, "node lost");
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto response = client.read();
    EXPECT_EQ(response->status, 200);
    EXPECT_FALSE(response->whole);
    EXPECT_TRUE(client.at_end());
}

TEST_F(HttpServerTest, Http10GetsNoStream) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /stream HTTP/1.0\r\n\r\n");
    EXPECT_EQ(client.read()->status, 505);
    EXPECT_TRUE(eventually([&] { return handler_.seen.dropped.load(); }));
}

TEST_F(HttpServerTest, SlowReaderSlowsTheSourceDown) {
    handler_.stream_pieces = 200;
    handler_.stream_piece_bytes = 1 << 20;
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(client.readable(5000));
    // The socket buffers fill up and then nothing more is pulled.
    size_t before = 0;
    EXPECT_TRUE(eventually([&] {
        const size_t now = handler_.seen.pulled;
        const bool still = now == before && now > 0;
        before = now;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return still;
    }));
    EXPECT_LT(handler_.seen.pulled, 50u);
    const auto response = client.read();
    EXPECT_TRUE(response->whole);
    EXPECT_EQ(response->body.size(), size_t{200} << 20);
}

TEST_F(HttpServerTest, ClientThatLeavesCancelsTheSource) {
    handler_.stream_hang = true;
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return handler_.seen.pulled == 3; }));
    EXPECT_FALSE(handler_.seen.cancelled);
    client.leave();
    EXPECT_TRUE(eventually([&] { return handler_.seen.cancelled.load(); }));
    EXPECT_TRUE(eventually([&] { return handler_.seen.dropped.load() && handler_.open == 0; }));
}

TEST_F(HttpServerTest, ClientThatLeavesDuringAHoldDoesNotEndTheHandler) {
    start();
    HttpTestClient client(server_->endpoint());
    client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return handler_.waiting.load(); }));
    client.leave();
    EXPECT_FALSE(HttpTestClient(server_->endpoint()).readable(20));
    EXPECT_EQ(get("/a").status, 200);
    asio::post(loop_, [this] { handler_.release.notify(); });
    EXPECT_TRUE(eventually([&] { return handler_.open == 0; }));
}

// --- limits, stopping

TEST_F(HttpServerTest, ConnectionsOverTheLimitAreTurnedAway) {
    start({.connections_max = 2});
    HttpTestClient first(server_->endpoint()), second(server_->endpoint());
    ASSERT_TRUE(eventually([&] { return handler_.open == 2; }));
    HttpTestClient third(server_->endpoint());
    EXPECT_EQ(third.read()->status, 503);
    first.leave();
    ASSERT_TRUE(eventually([&] { return handler_.open == 1; }));
    EXPECT_EQ(get("/a").status, 200);
}

TEST_F(HttpServerTest, StopLetsARunningRequestFinish) {
    start();
    HttpTestClient idle(server_->endpoint()), busy(server_->endpoint());
    busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return handler_.waiting.load(); }));
    auto stopped = std::async(std::launch::async, [this] { stop(30'000); });
    EXPECT_TRUE(idle.at_end());
    EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    asio::post(loop_, [this] { handler_.release.notify(); });
    const auto response = busy.read();
    EXPECT_EQ(response->body, "waited");
    EXPECT_EQ(*find_header(response->headers, "Connection"), "close");
    stopped.get();
    EXPECT_EQ(handler_.open, 0);
}

TEST_F(HttpServerTest, StopCutsWhatDoesNotFinish) {
    start();
    HttpTestClient busy(server_->endpoint());
    busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return handler_.waiting.load(); }));
    stop(1);
    EXPECT_EQ(handler_.open, 0);
    EXPECT_TRUE(busy.at_end());
}

TEST_F(HttpServerTest, PortInUseIsAnError) {
    start();
    HttpServer other(loop_, handler_, clock_, *log_);
    const Status status = other.listen(server_->endpoint());
    EXPECT_EQ(status.code(), Code::io_error);
    EXPECT_NE(status.message().find(server_->endpoint()), std::string::npos);
}

}  // namespace
}  // namespace roost::net
