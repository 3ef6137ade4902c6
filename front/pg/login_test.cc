#include "front/pg/login.h"

#include <gtest/gtest.h>

#include "front/pg/test_gateway.h"

namespace roost::pg {
namespace {

using namespace std::string_literals;
using test::Client;
using test::Gateway;
using Parameters = std::vector<std::pair<std::string, std::string>>;

TEST(PgLogin, TheRightPasswordOpensASessionAndSaysWhatAClientMustKnow) {
    Gateway gateway;
    Client client(gateway.port);
    EXPECT_EQ(client.login("ann", "secret", {{"database", "lake"}, {"application_name", "t"}}), "");
    const std::map<std::string, std::string> expected = {{"server_version", "15.0"},
                                                         {"server_encoding", "UTF8"},
                                                         {"client_encoding", "UTF8"},
                                                         {"application_name", "t"},
                                                         {"is_superuser", "off"},
                                                         {"session_authorization", "ann"},
                                                         {"DateStyle", "ISO, MDY"},
                                                         {"IntervalStyle", "postgres"},
                                                         {"TimeZone", "UTC"},
                                                         {"integer_datetimes", "on"},
                                                         {"standard_conforming_strings", "on"},
                                                         {"default_transaction_read_only", "off"},
                                                         {"in_hot_standby", "off"}};
    EXPECT_EQ(client.parameter_status, expected);
    EXPECT_EQ(client.key.size(), 8U);
    client.send('X');
    EXPECT_TRUE(client.is_closed());
    EXPECT_TRUE(
        gateway.eventually([&] { return gateway.service.sessions_open == 0 && gateway.service.connections == 0; }));
}

TEST(PgLogin, AWrongPasswordAndAnUnknownUserLookTheSame) {
    Gateway gateway;
    Client wrong(gateway.port), unknown(gateway.port), again(gateway.port);
    EXPECT_EQ(wrong.login("ann", "guess"), "28P01");
    EXPECT_EQ(wrong.error['S'], "FATAL");
    EXPECT_TRUE(wrong.is_closed());
    EXPECT_EQ(unknown.login("nobody", "guess"), "28P01");
    EXPECT_EQ(again.login("nobody", "other"), "28P01");
    EXPECT_EQ(unknown.server_salt, again.server_salt) << "asking twice must not tell";
    EXPECT_TRUE(gateway.logged("auth_failed nobody"));
    EXPECT_EQ(gateway.on_loop([&] { return gateway.service.sessions_open; }), 0);
}

TEST(PgLogin, ADatabaseIsACatalogAWorkspaceOrTheUsersName) {
    Gateway gateway;
    for (const char *name : {"lake", "main", "ann"}) {
        Client client(gateway.port);
        EXPECT_EQ(client.login("ann", "secret", {{"database", name}}), "") << name;
    }
    Client none(gateway.port), other(gateway.port), wrong(gateway.port);
    EXPECT_EQ(none.login(), "");
    EXPECT_EQ(other.login("ann", "secret", {{"database", "nope"}}), "3D000");
    EXPECT_EQ(wrong.login("ann", "guess", {{"database", "nope"}}), "28P01") << "the password comes first";
}

TEST(PgLogin, StartupParametersAreSessionVariables) {
    Gateway gateway;
    Client client(gateway.port);
    EXPECT_EQ(client.login("ann", "secret",
                           {{"options", "-c statement_timeout=12345 --search-path=a,\\ b -cDateStyle=ISO"},
                            {"TimeZone", "europe/paris"}}),
              "");
    EXPECT_EQ(client.parameter_status["TimeZone"], "Europe/Paris");
    EXPECT_EQ(client.query("SHOW statement_timeout").value(), "12345ms");
    EXPECT_EQ(gateway.on_loop([&] { return gateway.service.last_session->statement_timeout_ms; }), 12345);
    EXPECT_EQ(client.query("SET statement_timeout = '1min'; RESET statement_timeout; SHOW statement_timeout").value(),
              "12345ms");
    Client encoding(gateway.port), unknown(gateway.port), broken(gateway.port);
    EXPECT_EQ(encoding.login("ann", "secret", {{"client_encoding", "'latin1'"}}), "0A000");
    EXPECT_EQ(unknown.login("ann", "secret", {{"no_such_variable", "1"}}), "42704");
    EXPECT_EQ(broken.login("ann", "secret", {{"options", "-x"}}), "42601");
}

TEST(PgLogin, SslAndGssAreDeclinedOnceEach) {
    Gateway gateway;
    Client client(gateway.port);
    client.send_raw(test::be32(8) + test::be32(kGssEncRequest));
    EXPECT_EQ(client.recv_raw(1), "N");
    client.send_raw(test::be32(8) + test::be32(kSslRequest));
    EXPECT_EQ(client.recv_raw(1), "N");
    EXPECT_EQ(client.login(), "");
    Client again(gateway.port);
    again.send_raw(test::be32(8) + test::be32(kSslRequest) + test::be32(8) + test::be32(kSslRequest));
    EXPECT_EQ(again.recv_raw(10), "N");
}

TEST(PgLogin, OtherProtocolVersions) {
    Gateway gateway;
    Client newer(gateway.port), option(gateway.port), old(gateway.port), future(gateway.port);
    EXPECT_EQ(newer.login("ann", "secret", {}, 196610), "");
    EXPECT_EQ(newer.negotiated, "\0\3\0\0\0\0\0\0"s);
    EXPECT_EQ(option.login("ann", "secret", {{"_pq_.something_new", "1"}}), "");
    EXPECT_EQ(option.negotiated, "\0\3\0\0\0\0\0\1_pq_.something_new\0"s);
    old.send_raw(Client::startup({{"user", "ann"}}, 131072));
    const std::string answer = old.recv_raw(1000);
    EXPECT_EQ(answer.front(), 'E');
    EXPECT_EQ(answer.back(), '\0');
    future.send_raw(Client::startup({{"user", "ann"}}, 262144));
    EXPECT_TRUE(future.is_closed());
}

TEST(PgLogin, RefusedBeforeAPasswordIsAsked) {
    Gateway gateway({.connections_max = 1});
    Client nobody(gateway.port);
    EXPECT_EQ(nobody.login("", "", {{"application_name", "x"}}), "28000");
    EXPECT_TRUE(nobody.is_closed());
    EXPECT_TRUE(gateway.eventually([&] { return gateway.service.connections == 0; }));
    Client replication(gateway.port);
    EXPECT_EQ(replication.login("ann", "secret", {{"replication", "database"}}), "0A000");
    EXPECT_TRUE(gateway.eventually([&] { return gateway.service.connections == 0; }));
    Client first(gateway.port);
    EXPECT_EQ(first.login(), "");
    Client second(gateway.port);
    EXPECT_EQ(second.login(), "53300");
    first.close();
    EXPECT_TRUE(gateway.eventually([&] { return gateway.service.connections == 0; }));
    gateway.on_loop([&] { gateway.service.is_draining = true; });
    Client late(gateway.port);
    EXPECT_EQ(late.login(), "57P03");
}

TEST(PgLogin, AMessageOfAnotherKindInsteadOfThePassword) {
    Gateway gateway;
    Client client(gateway.port);
    client.send_raw(Client::startup({{"user", "ann"}}));
    EXPECT_EQ(client.recv()->type, 'R');
    client.send('Q', test::cstr("SELECT 1"));
    EXPECT_EQ(client.until("E").code(), "08P01");
    EXPECT_TRUE(client.is_closed());
    Client plus(gateway.port);
    plus.send_raw(Client::startup({{"user", "ann"}}));
    EXPECT_EQ(plus.recv()->type, 'R');
    plus.send('p', test::cstr("SCRAM-SHA-256-PLUS") + test::be32(3) + "n,,");
    EXPECT_EQ(plus.until("E").code(), "08P01");
}

TEST(PgLogin, GarbageAndLyingLengthsEndOnlyTheirOwnConnection) {
    Gateway gateway;
    for (const std::string &bytes :
         {"GET / HTTP/1.1\r\nHost: x\r\n\r\n"s, "\0\0\0\0\0\3\0\0"s, "\0\0\0\7\0\3\0\0"s, "\xff\xff\xff\xff\0\3\0\0"s,
          "\x7f\xff\xff\xff\0\3\0\0"s, "\0\0\0\x40"s + std::string(60, '\xa5')}) {
        Client client(gateway.port);
        client.send_raw(bytes);
        EXPECT_TRUE(client.is_closed());
    }
    Client client(gateway.port);
    EXPECT_EQ(client.login(), "");
}

TEST(PgLogin, AHalfLoginEndsAtItsDeadline) {
    Gateway gateway({.login_max_ms = 1000});
    Client half(gateway.port), silent(gateway.port), mute(gateway.port);
    half.send_raw("\0\0\0\x3c\0\3"s);
    mute.send_raw(Client::startup({{"user", "ann"}}));
    EXPECT_EQ(mute.recv()->type, 'R');
    EXPECT_TRUE(gateway.eventually([&] { return gateway.service.connections == 3; }));
    gateway.pass(999);
    EXPECT_EQ(gateway.on_loop([&] { return gateway.service.connections; }), 3);
    gateway.pass(2);
    EXPECT_TRUE(half.is_closed());
    EXPECT_TRUE(silent.is_closed());
    EXPECT_TRUE(mute.is_closed());
}

TEST(PgLogin, StartupOptions) {
    const auto options = parse_startup_options("  -c a=b\\ c  --max-size=3 -cx=\\\\ ");
    ASSERT_TRUE(options.ok());
    EXPECT_EQ(*options, (Parameters{{"a", "b c"}, {"max_size", "3"}, {"x", "\\"}}));
    EXPECT_TRUE(parse_startup_options("")->empty());
    for (const char *bad : {"-c", "-c novalue", "--=x", "plain", "-d5"})
        EXPECT_FALSE(parse_startup_options(bad).ok()) << bad;
}

}  // namespace
}  // namespace roost::pg
