#include "net/http_parser.h"

#include <gtest/gtest.h>

namespace roost::net {
namespace {

using State = HttpParser::State;

struct Parsed {
    State state = State::head;
    HttpRequest request;
    std::string body;
    size_t used_bytes = 0;
    HttpRefusal refusal;
};

// Feeds `text` in pieces of `piece_bytes`, as a socket would.
Parsed parse(std::string_view text, size_t piece_bytes = std::string::npos) {
    HttpParser parser(16 * 1024, 8 * 1024);
    Parsed parsed;
    std::string pending;
    while (parser.state() == State::head || parser.state() == State::body) {
        const size_t used = parser.feed(pending);
        pending.erase(0, used);
        parsed.used_bytes += used;
        parsed.body += parser.body();
        parser.body().clear();
        if (used > 0) continue;
        if (text.empty()) break;
        pending += text.substr(0, piece_bytes);
        text.remove_prefix(std::min(piece_bytes, text.size()));
    }
    parsed.state = parser.state();
    if (parsed.state == State::failed) parsed.refusal = parser.refusal();
    if (parsed.state == State::body || parsed.state == State::done) parsed.request = parser.take_request();
    return parsed;
}

int refusal_status(std::string_view text) {
    const Parsed parsed = parse(text);
    return parsed.state == State::failed ? parsed.refusal.status : 0;
}

TEST(HttpParser, ReadsARequestHoweverItIsCut) {
    const std::string text = "POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX-Two: 1\r\n\r\nhello";
    for (size_t piece_bytes = 1; piece_bytes <= text.size(); ++piece_bytes) {
        const Parsed parsed = parse(text, piece_bytes);
        ASSERT_EQ(parsed.state, State::done) << piece_bytes;
        EXPECT_EQ(parsed.request.method, "POST");
        EXPECT_EQ(parsed.request.target, "/a?b=c");
        EXPECT_EQ(*find_header(parsed.request.headers, "x-two"), "1");
        EXPECT_EQ(parsed.body, "hello");
    }
}

TEST(HttpParser, ReadsAChunkedBodyHoweverItIsCut) {
    const std::string text =
        "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n6\r\n "
        "world\r\n0\r\nTrailer: t\r\n\r\n";
    for (size_t piece_bytes = 1; piece_bytes <= text.size(); ++piece_bytes) {
        const Parsed parsed = parse(text, piece_bytes);
        ASSERT_EQ(parsed.state, State::done) << piece_bytes;
        EXPECT_EQ(parsed.body, "hello world");
    }
}

TEST(HttpParser, LeavesTheNextRequestAlone) {
    const std::string first = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
    const Parsed parsed = parse(first + "GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(parsed.state, State::done);
    EXPECT_EQ(parsed.used_bytes, first.size());
    EXPECT_EQ(parsed.body, "hi");
}

TEST(HttpParser, RequestWithoutBodyIsDoneAtItsHead) {
    EXPECT_EQ(parse("GET / HTTP/1.1\r\nHost: x\r\n\r\n").state, State::done);
    EXPECT_EQ(parse("DELETE / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").state, State::done);
}

TEST(HttpParser, RefusesWhatIsNoRequest) {
    EXPECT_EQ(refusal_status("garbage\r\n\r\n"), 400);
    EXPECT_EQ(refusal_status(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15)), 400);
    EXPECT_EQ(refusal_status("GET / HTTP/2.0\r\n\r\n"), 505);
    EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\nNo colon\r\n\r\n"), 400);
    EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
    EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"), 400);
}

TEST(HttpParser, RefusesTwoLengths) {
    EXPECT_EQ(refusal_status("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), 400);
    EXPECT_EQ(refusal_status("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
              400);
    EXPECT_EQ(refusal_status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
              400);
}

TEST(HttpParser, RefusesABrokenChunk) {
    EXPECT_EQ(refusal_status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n"), 400);
    EXPECT_EQ(refusal_status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(refusal_status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nhello\r\n"),
              400);
}

TEST(HttpParser, LimitsHeadAndTarget) {
    EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\nX: " + std::string(17 * 1024, 'x') + "\r\n\r\n"), 431);
    EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\nX: " + std::string(20 * 1024, 'x')), 431);
    EXPECT_EQ(refusal_status("GET /" + std::string(9 * 1024, 'x') + " HTTP/1.1\r\n\r\n"), 414);
    EXPECT_EQ(refusal_status("GET /" + std::string(8 * 1024 - 1, 'x') + " HTTP/1.1\r\n\r\n"), 0);
}

TEST(HttpParser, ClaimedLengthCostsNothing) {
    const Parsed parsed = parse("PUT / HTTP/1.1\r\nContent-Length: 9000000000000000000\r\n\r\nabc");
    EXPECT_EQ(parsed.state, State::body);
    EXPECT_EQ(parsed.body, "abc");
}

}  // namespace
}  // namespace roost::net
