// What does not belong to one query protocol: cancel, clients that leave or stall, limits, stopping.
#include <gtest/gtest.h>

#include "front/pg/test_gateway.h"

namespace roost::pg {
namespace {

using namespace std::string_literals;
using test::Client;
using test::Gateway;
using Log = std::vector<std::string>;

void cancel(Gateway &gateway, const std::string &key) {
    Client client(gateway.port);
    client.send_raw(test::be32(16) + test::be32(kCancelRequest) + key);
    EXPECT_TRUE(client.is_closed()) << "no answer, just the end";
}

TEST(PgConnection, CancelStopsTheStatementThatRuns) {
    Gateway gateway;
    Client client(gateway.port);
    ASSERT_EQ(client.login(), "");
    client.send('Q', test::cstr("SELECT 0 AS hang"));
    ASSERT_TRUE(gateway.logged("hangs"));
    std::string wrong = client.key;
    wrong[7] = static_cast<char>(wrong[7] ^ 1);
    cancel(gateway, wrong);
    cancel(gateway, "\0\0\0\0\0\0\0\0"s);
    cancel(gateway, client.key);
    const auto reply = client.until();
    EXPECT_EQ(reply.shape, "EZ");
    EXPECT_EQ(reply.code(), "57014");
    EXPECT_EQ(reply.status, 'I');
    cancel(gateway, client.key);  // late: hits nobody
    EXPECT_EQ(client.query("SELECT 1 AS rows").shape, "TDCZ");
}

TEST(PgConnection, CancelInTheMiddleOfRowsFailsTheTransaction) {
    Gateway gateway;
    Client client(gateway.port);
    ASSERT_EQ(client.login(), "");
    client.query("BEGIN");
    client.parse("SELECT 5 AS rows, 0 AS hang").bind().describe('P').execute().add('S');
    client.flush_out();
    ASSERT_TRUE(gateway.logged("hangs"));
    cancel(gateway, client.key);
    const auto reply = client.until();
    EXPECT_EQ(reply.shape, "12TDEZ");
    EXPECT_EQ(reply.code(), "57014");
    EXPECT_EQ(reply.status, 'E');
    client.query("ROLLBACK");
    client.query("BEGIN; DECLARE c CURSOR FOR SELECT 5 AS rows, 0 AS hang");
    gateway.take_log();
    client.send('Q', test::cstr("FETCH ALL FROM c"));
    ASSERT_TRUE(gateway.logged("hangs"));
    cancel(gateway, client.key);
    EXPECT_EQ(client.until().code(), "57014");
}

TEST(PgConnection, OnlyTheNamedConnectionIsCancelled) {
    Gateway gateway;
    Client a(gateway.port), b(gateway.port);
    ASSERT_EQ(a.login(), "");
    ASSERT_EQ(b.login(), "");
    ASSERT_NE(a.key, b.key);
    a.send('Q', test::cstr("SELECT 0 AS hang"));
    b.send('Q', test::cstr("SELECT 3 AS rows, 0 AS hang"));
    ASSERT_TRUE(gateway.eventually(
        [&] { return std::count(gateway.service.log.begin(), gateway.service.log.end(), "hangs") == 2; }));
    cancel(gateway, a.key);
    EXPECT_EQ(a.until().code(), "57014");
    cancel(gateway, b.key);
    EXPECT_EQ(b.until().shape, "TDEZ");
}

TEST(PgConnection, AClientThatLeavesWhileAStatementRunsIsNoticed) {
    Gateway gateway({.watch_after_ms = 100});
    for (const char *text : {"SELECT 0 AS hang", "SELECT 5 AS rows, 0 AS hang"}) {
        Client client(gateway.port);
        ASSERT_EQ(client.login(), "");
        gateway.take_log();
        client.send('Q', test::cstr(text));
        ASSERT_TRUE(gateway.logged("hangs"));
        client.close();
        gateway.pass(101);
        EXPECT_TRUE(gateway.logged("close_session"));
        EXPECT_TRUE(gateway.eventually([&] { return gateway.service.connections == 0; }));
    }
}

TEST(PgConnection, AClientThatSaysGoodbyeWhileAStatementRunsIsNoticed) {
    Gateway gateway({.watch_after_ms = 100});
    Client client(gateway.port);
    ASSERT_EQ(client.login(), "");
    client.send('Q', test::cstr("SELECT 0 AS hang"));
    ASSERT_TRUE(gateway.logged("hangs"));
    client.send('X');
    client.close();
    gateway.pass(101);
    EXPECT_TRUE(gateway.eventually([&] { return gateway.service.connections == 0; }));
}

TEST(PgConnection, AClientThatLeavesInTheMiddleOfAResultDropsItsStream) {
    Gateway gateway;
    Client client(gateway.port);
    ASSERT_EQ(client.login(), "");
    client.send('Q', test::cstr("SELECT 50000000 AS rows"));  // more than socket buffers hold
    ASSERT_EQ(client.recv()->type, 'T');
    client.close();
    EXPECT_TRUE(gateway.logged("dropped SELECT 50000000 AS rows"));
    EXPECT_TRUE(gateway.logged("close_session"));
}

TEST(PgConnection, WhatIsSentWhileAWatchedStatementRunsIsAnsweredAfterIt) {
    Gateway gateway({.watch_after_ms = 100});
    Client client(gateway.port);
    ASSERT_EQ(client.login(), "");
    client.send('Q', test::cstr("SELECT 0 AS hang"));
    ASSERT_TRUE(gateway.logged("hangs"));
    gateway.pass(101);
    client.send('Q', test::cstr("SELECT 2 AS rows"));
    client.send_raw("Q"s + test::be32(4 + 17) + "SELECT 3");
    cancel(gateway, client.key);
    EXPECT_EQ(client.until().code(), "57014");
    EXPECT_EQ(client.until().rows.size(), 2U);
    client.send_raw(" AS rows\0"s);
    EXPECT_EQ(client.until().rows.size(), 3U);
    EXPECT_EQ(client.query("SELECT 4 AS rows").rows.size(), 4U);
}

TEST(PgConnection, MessagesThatBreakTheProtocolEndOnlyTheirConnection) {
    Gateway gateway;
    for (const std::string &bytes : {"Q\x7f\xff\xff\xffSELECT 1"s, "Q\0\0\0\0"s, "Q\0\0\0\3"s, "Q\xff\xff\xff\xfb"s,
                                     "~\0\0\0\7abc"s, "S\0\2\0\0"s, "B\x10\0\0\5"s}) {
        Client client(gateway.port);
        ASSERT_EQ(client.login(), "");
        client.send_raw(bytes);
        const auto reply = client.until("E");
        EXPECT_EQ(reply.code(), "08P01");
        EXPECT_EQ(reply.error.at('S'), "FATAL");
        EXPECT_TRUE(client.is_closed());
    }
    Client client(gateway.port);
    EXPECT_EQ(client.login(), "");
}

TEST(PgConnection, OneByteAtATime) {
    Gateway gateway;
    Client client(gateway.port);
    ASSERT_EQ(client.login(), "");
    for (const char c : Client::packed('Q', test::cstr("SELECT 7 AS rows"))) client.send_raw(std::string(1, c));
    EXPECT_EQ(client.until().rows.size(), 7U);
}

TEST(PgConnection, AHalfMessageEndsAtItsDeadlineAndAnIdleClientDoesNot) {
    Gateway gateway({.message_stall_max_ms = 1000});
    Client half(gateway.port), idle(gateway.port);
    ASSERT_EQ(half.login(), "");
    ASSERT_EQ(idle.login(), "");
    half.send_raw("Q"s + test::be32(100) + "SELECT");
    ASSERT_TRUE(gateway.eventually([&] { return true; }));
    // The bytes may still be on their way: deadlines are looked at until they count.
    ASSERT_TRUE(gateway.eventually([&] {
        gateway.listener->sweep();
        gateway.clock.advance_us(1'001'000);
        gateway.listener->sweep();
        return gateway.service.connections == 1;
    }));
    EXPECT_EQ(half.until("E").code(), "08P01");
    EXPECT_EQ(idle.query("SELECT 1 AS rows").shape, "TDCZ");
}

TEST(PgConnection, IdleTimeouts) {
    Gateway gateway;
    Client client(gateway.port), other(gateway.port);
    ASSERT_EQ(client.login(), "");
    ASSERT_EQ(other.login(), "");
    client.query("SET idle_in_transaction_session_timeout = 500");
    other.query("SET idle_session_timeout = '2s'");
    gateway.pass(501);
    EXPECT_EQ(client.query("BEGIN").status, 'T');
    gateway.pass(501);
    EXPECT_EQ(client.until("E").code(), "25P03");
    EXPECT_TRUE(client.is_closed());
    gateway.pass(2001);
    EXPECT_EQ(other.until("E").code(), "57P05");
}

TEST(PgConnection, StoppingTellsTheIdleAndWaitsForTheBusy) {
    Gateway gateway;
    Client idle(gateway.port), busy(gateway.port);
    ASSERT_EQ(idle.login(), "");
    ASSERT_EQ(busy.login(), "");
    busy.send('Q', test::cstr("SELECT 2 AS rows, 0 AS hang"));
    ASSERT_TRUE(gateway.logged("hangs"));
    auto stopped = gateway.stop(20'000);
    EXPECT_EQ(idle.until("E").code(), "57P01");
    EXPECT_TRUE(idle.is_closed());
    Client late(gateway.port);
    EXPECT_EQ(late.login(), "57P03");
    cancel(gateway, busy.key);
    EXPECT_EQ(busy.until().shape, "TDEZ");
    EXPECT_EQ(busy.until("E").code(), "57P01");
    stopped.get();
    EXPECT_EQ(gateway.on_loop([&] { return gateway.service.connections; }), 0);
}

TEST(PgConnection, StoppingCutsOffWhatDoesNotEnd) {
    Gateway gateway;
    Client busy(gateway.port), half(gateway.port);
    ASSERT_EQ(busy.login(), "");
    half.send_raw("\0\0\0\x3c\0\3"s);
    busy.send('Q', test::cstr("SELECT 0 AS hang"));
    ASSERT_TRUE(gateway.logged("hangs"));
    gateway.stop(0).get();
    EXPECT_EQ(busy.until("E").code(), "57P01");
    EXPECT_TRUE(half.is_closed());
    EXPECT_EQ(gateway.on_loop([&] { return gateway.service.sessions_open; }), 0);
}

TEST(PgConnection, AListenerThatCannotBindSaysWhere) {
    Gateway gateway;
    Listener second(gateway.loop, gateway.service, gateway.clock, *gateway.log, {.port = gateway.port});
    const Status status = second.listen();
    EXPECT_EQ(status.code(), Code::io_error);
    EXPECT_NE(status.message().find("127.0.0.1:" + std::to_string(gateway.port)), std::string::npos)
        << status.message();
}

}  // namespace
}  // namespace roost::pg
