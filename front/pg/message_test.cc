#include "front/pg/message.h"

#include <gtest/gtest.h>

namespace roost::pg {
namespace {

using namespace std::string_literals;

std::string hex(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
        if (c >= ' ' && c <= '~') {
            out.push_back(c);
        } else {
            constexpr char kDigits[] = "0123456789abcdef";
            out += {'\\', kDigits[static_cast<uint8_t>(c) >> 4], kDigits[static_cast<uint8_t>(c) & 15]};
        }
    }
    return out;
}

TEST(PgMessage, StartupLengthIsCheckedBeforeAnythingElse) {
    EXPECT_FALSE(startup_bytes("\0\0\0"s)->has_value());
    EXPECT_EQ(**startup_bytes("\0\0\0\x08"s), 8U);
    EXPECT_EQ(**startup_bytes("\0\0\x27\x10"s), 10'000U);
    EXPECT_FALSE(startup_bytes("\0\0\x27\x11"s).ok());
    EXPECT_FALSE(startup_bytes("\0\0\0\x07"s).ok());
    EXPECT_FALSE(startup_bytes("\xff\xff\xff\xff"s).ok());
    EXPECT_FALSE(startup_bytes("GET / HTTP/1.1").ok());
}

TEST(PgMessage, StartupParametersKeepTheirOrder) {
    const auto packet = decode_startup("\0\0\0\x21\0\3\0\0user\0ann\0database\0lake\0\0"s);
    ASSERT_TRUE(packet.ok());
    EXPECT_EQ(packet->code, kProtocol30);
    ASSERT_EQ(packet->parameters.size(), 2U);
    EXPECT_EQ(packet->parameters[0], (std::pair<std::string, std::string>("user", "ann")));
    EXPECT_EQ(packet->parameters[1], (std::pair<std::string, std::string>("database", "lake")));
}

TEST(PgMessage, StartupWithoutItsEndOrWithAnOddWordIsRefused) {
    EXPECT_FALSE(decode_startup("\0\0\0\x11\0\3\0\0user\0ann\0"s).ok());
    EXPECT_FALSE(decode_startup("\0\0\0\x0e\0\3\0\0user\0\0"s).ok());
    EXPECT_FALSE(decode_startup("\0\0\0\x09\0\3\0\0x"s).ok());
}

TEST(PgMessage, CancelRequestHasItsKey) {
    const auto packet = decode_startup("\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\xde\xad\xbe\xef"s);
    ASSERT_TRUE(packet.ok());
    EXPECT_EQ(packet->code, kCancelRequest);
    EXPECT_EQ(packet->cancel_pid, 7);
    EXPECT_EQ(packet->cancel_secret, 0xdeadbeefU);
}

TEST(PgMessage, SizesAboveTheCapOrBelowFourAreRefused) {
    EXPECT_FALSE(message_size("Q\0\0\0"s)->has_value());
    EXPECT_EQ((*message_size("Q\0\0\0\x0a"s))->total_bytes, 11U);
    EXPECT_TRUE(message_size("Q\x04\0\0\0"s).ok());
    EXPECT_EQ(message_size("Q\x04\0\0\x01"s).status().sqlstate(), "08P01");
    EXPECT_TRUE(message_size("B\x10\0\0\0"s).ok());
    EXPECT_FALSE(message_size("B\x10\0\0\1"s).ok());
    EXPECT_TRUE(message_size("S\0\1\0\0"s).ok());
    EXPECT_FALSE(message_size("S\0\1\0\1"s).ok());
    EXPECT_FALSE(message_size("Q\0\0\0\3"s).ok());
    EXPECT_FALSE(message_size("Q\xff\xff\xff\xff"s).ok());
    EXPECT_FALSE(message_size("~"s).ok());
    EXPECT_FALSE(message_size("p\0\0\0\x08"s).ok());
    EXPECT_TRUE(password_message_size("p\0\0\0\x08"s).ok());
    EXPECT_FALSE(password_message_size("Q\0\0\0\x08"s).ok());
    EXPECT_FALSE(password_message_size("p\0\1\0\1"s).ok());
}

TEST(PgMessage, QueryTextMustEndInNulAndBeUtf8) {
    EXPECT_EQ(*decode_query("SELECT 1\0"s), "SELECT 1");
    EXPECT_EQ(*decode_query("\0"s), "");
    EXPECT_EQ(decode_query("SELECT 1"s).status().sqlstate(), "08P01");
    EXPECT_EQ(decode_query(""s).status().sqlstate(), "08P01");
    EXPECT_EQ(decode_query("SELECT\0 1\0"s).status().sqlstate(), "22021");
    EXPECT_EQ(decode_query("SELECT '\xff\xfe'\0"s).status().sqlstate(), "22021");
}

TEST(PgMessage, ParseCountsAreCheckedAgainstTheBytesThatAreThere) {
    const std::string body = "s1\0SELECT $1\0\0\2\0\0\0\x17\0\0\0\0"s;
    const auto message = decode_parse(body);
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->name, "s1");
    EXPECT_EQ(message->query, "SELECT $1");
    EXPECT_EQ(message->param_oids, (std::vector<uint32_t>{23, 0}));
    EXPECT_EQ(decode_parse("s1\0SELECT $1\0\0\3\0\0\0\x17\0\0\0\0"s).status().sqlstate(), "08P01");
    EXPECT_EQ(decode_parse("s1\0SELECT $1\0\xff\xff"s).status().sqlstate(), "08P01");
    EXPECT_EQ(decode_parse("s1\0SELECT $1\0\0\0x"s).status().sqlstate(), "08P01");
    EXPECT_EQ(decode_parse("s1"s).status().sqlstate(), "08P01");
    EXPECT_EQ(decode_parse("\0SELECT '\xc3'\0\0\0"s).status().sqlstate(), "22021");
}

TEST(PgMessage, BindHasValuesNullsAndFormats) {
    const std::string body = "p\0s\0\0\1\0\1\0\3\0\0\0\2ab\xff\xff\xff\xff\0\0\0\0\0\2\0\0\0\1"s;
    const auto message = decode_bind(body);
    ASSERT_TRUE(message.ok()) << message.status().to_string();
    EXPECT_EQ(message->portal, "p");
    EXPECT_EQ(message->statement, "s");
    EXPECT_EQ(message->param_formats, (std::vector<int16_t>{1}));
    ASSERT_EQ(message->values.size(), 3U);
    EXPECT_EQ(message->values[0], "ab");
    EXPECT_FALSE(message->values[1].has_value());
    EXPECT_EQ(message->values[2], "");
    EXPECT_EQ(message->result_formats, (std::vector<int16_t>{0, 1}));
}

TEST(PgMessage, BindThatLiesIsRefused) {
    for (const std::string &body :
         {"\0\0\0\0\x75\x30"s, "\0\0\0\0\0\1\x40\0\0\0ab"s, "\0"s, "\0\0\1\xf4"s, "\0\0\0\0\0\1\xff\xff\xff\xfe\0\0"s,
          "\0\0\0\0\0\0\0\0x"s, "\0\0\0\2\0\0\0\0\0\1\0\0\0\0\0\0"s}) {
        EXPECT_EQ(decode_bind(body).status().sqlstate(), "08P01") << hex(body);
    }
    EXPECT_EQ(decode_bind("\0\0\0\1\0\2\0\0\0\0"s).status().sqlstate(), "22023") << "format 2";
}

TEST(PgMessage, DescribeExecuteAndSasl) {
    const std::string target = "Pname\0"s, sasl = "SCRAM-SHA-256\0\0\0\0\3n,,"s;
    EXPECT_EQ(decode_target(target)->name, "name");
    EXPECT_FALSE(decode_target("Xname\0"s).ok());
    EXPECT_FALSE(decode_target("Pname"s).ok());
    EXPECT_EQ(decode_execute("p\0\0\0\4\0"s)->max_rows, 1024U);
    EXPECT_EQ(decode_execute("p\0\xff\xff\xff\xff"s)->max_rows, 0U);
    EXPECT_FALSE(decode_execute("p\0\0\0"s).ok());
    const auto initial = decode_sasl_initial(sasl);
    EXPECT_EQ(initial->mechanism, "SCRAM-SHA-256");
    EXPECT_EQ(initial->data, "n,,");
    EXPECT_FALSE(decode_sasl_initial("SCRAM-SHA-256\0\0\0\0\4n,,"s).ok());
}

TEST(PgMessage, Utf8IsStrict) {
    for (const char *good :
         {"", "plain ascii, longer than eight", "naïve 😀 日本", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_TRUE(is_utf8(good)) << good;
    }
    for (const char *bad : {"\xff", "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                            "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "12345678\xc3", "\xf0\x9f\x98"}) {
        EXPECT_FALSE(is_utf8(bad)) << hex(bad);
    }
}

TEST(PgMessage, BackendMessagesAreByteExact) {
    std::string out;
    put_auth_ok(out);
    put_auth_sasl(out);
    put_parameter_status(out, "TimeZone", "UTC");
    put_backend_key(out, 7, 0x01020304);
    put_ready(out, 'I');
    EXPECT_EQ(hex(out),
              "R\\00\\00\\00\\08\\00\\00\\00\\00"
              "R\\00\\00\\00\\17\\00\\00\\00\\0aSCRAM-SHA-256\\00\\00"
              "S\\00\\00\\00\\11TimeZone\\00UTC\\00"
              "K\\00\\00\\00\\0c\\00\\00\\00\\07\\01\\02\\03\\04"
              "Z\\00\\00\\00\\05I");
    out.clear();
    put_row_description(out, {{.name = "a", .type = "INTEGER", .pg_oid = 23, .pg_typlen = 4, .pg_typmod = -1}}, {1});
    put_text_row(out, {"x", std::nullopt, ""});
    put_command_complete(out, "SELECT 1");
    put_empty(out, kPortalSuspended);
    put_parameter_description(out, {23, 25});
    EXPECT_EQ(hex(out),
              "T\\00\\00\\00\\1a\\00\\01a\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00\\17\\00\\04\\ff\\ff\\ff\\ff\\00\\01"
              "D\\00\\00\\00\\13\\00\\03\\00\\00\\00\\01x\\ff\\ff\\ff\\ff\\00\\00\\00\\00"
              "C\\00\\00\\00\\0dSELECT 1\\00"
              "s\\00\\00\\00\\04"
              "t\\00\\00\\00\\0e\\00\\02\\00\\00\\00\\17\\00\\00\\00\\19");
    out.clear();
    put_negotiate_version(out, {"_pq_.new"});
    EXPECT_EQ(hex(out), "v\\00\\00\\00\\15\\00\\03\\00\\00\\00\\00\\00\\01_pq_.new\\00");
}

TEST(PgMessage, ErrorsCarryWhatIsKnown) {
    std::string out;
    put_error(out, Status(Code::not_allowed, "no").with_rule("read_file").with_hint("ask").with_position(8));
    EXPECT_EQ(hex(out.substr(5)), "SERROR\\00VERROR\\00C42501\\00Mno\\00Drule: read_file\\00Hask\\00P8\\00\\00");
    out.clear();
    put_error(out, Status(Code::internal, "a\0b"s), Severity::fatal);
    EXPECT_EQ(hex(out.substr(5)), "SFATAL\\00VFATAL\\00CXX000\\00Mab\\00\\00");
}

TEST(PgMessage, RowsAreCutAtTheirBoundaries) {
    std::string rows;
    for (int i = 0; i < 5; i++) put_text_row(rows, {std::string(static_cast<size_t>(i) * 10, 'x')});
    EXPECT_EQ(*rows_bytes(rows, 0), 0U);
    EXPECT_EQ(*rows_bytes(rows, 1), 11U);
    EXPECT_EQ(*rows_bytes(rows, 2), 32U);
    EXPECT_EQ(*rows_bytes(rows, 5), rows.size());
    EXPECT_EQ(rows_bytes(rows, 6).status().code(), Code::data_loss);
    EXPECT_EQ(rows_bytes(std::string_view(rows).substr(0, rows.size() - 1), 5).status().code(), Code::data_loss);
    EXPECT_EQ(rows_bytes("C\0\0\0\x08tag\0"s, 1).status().code(), Code::data_loss);
}

}  // namespace
}  // namespace roost::pg
