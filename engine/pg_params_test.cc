#include <gtest/gtest.h>

#include "engine/test_rows.h"
#include "engine/type_map.h"

namespace roost {
namespace {

using duckdb::LogicalType;

class Params : public testing::Test {
protected:
    Result<duckdb::Value> text(uint32_t oid, const std::string &value,
                               const LogicalType &inferred = LogicalType::UNKNOWN) {
        Param param;
        param.pg_oid = oid;
        param.value = value;
        return decode_param(param, 1, inferred, &db_.context());
    }
    Result<duckdb::Value> binary(uint32_t oid, const std::string &hex,
                                 const LogicalType &inferred = LogicalType::UNKNOWN) {
        Param param;
        param.form = Param::Form::pg_binary;
        param.pg_oid = oid;
        std::string bytes;
        for (size_t i = 0; i + 1 < hex.size(); i += 2)
            bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
        param.value = bytes;
        return decode_param(param, 1, inferred, &db_.context());
    }
    Result<duckdb::Value> json(const std::string &type, const std::string &value) {
        Param param;
        param.form = Param::Form::typed_json;
        param.type = type;
        param.value = value;
        return decode_param(param, 1, LogicalType::UNKNOWN, &db_.context());
    }
    // `TYPE value`, or the SQLSTATE. (The engine prints DECIMAL(2,2) without a leading zero.)
    static std::string show(const Result<duckdb::Value> &value) {
        if (!value.ok()) {
            EXPECT_TRUE(value.status().message().starts_with("parameter $2: ")) << value.status().message();
            EXPECT_EQ(default_http_status(value.status().code()) / 100, value.status().sqlstate() == "0A000" ? 5 : 4)
                << value.status().to_string();
            return std::string(value.status().sqlstate());
        }
        return value->type().ToString() + " " + value->ToString();
    }

    TestDb db_{"America/New_York"};
};

TEST_F(Params, TextFollowsPostgres) {
    const struct {
        uint32_t oid;
        const char *text, *want;
    } cases[] = {
        {16, "t", "BOOLEAN true"},
        {16, " TRUE ", "BOOLEAN true"},
        {16, "ye", "BOOLEAN true"},
        {16, "on", "BOOLEAN true"},
        {16, "1", "BOOLEAN true"},
        {16, "of", "BOOLEAN false"},
        {16, "n", "BOOLEAN false"},
        {16, "0", "BOOLEAN false"},
        {16, "o", "22P02"},
        {16, "", "22P02"},
        {16, "2", "22P02"},
        {21, " -32768 ", "SMALLINT -32768"},
        {21, "32768", "22003"},
        {23, "+42", "INTEGER 42"},
        {23, "2147483648", "22003"},
        {23, "99999999999999999999999999999999999999999999", "22003"},
        {23, "4 2", "22P02"},
        {23, "", "22P02"},
        {23, "-", "22P02"},
        {23, "1.0", "22P02"},
        {23, "abc", "22P02"},
        {20, "-9223372036854775808", "BIGINT -9223372036854775808"},
        {20, "9223372036854775808", "22003"},
        {700, "1.5", "FLOAT 1.5"},
        {700, "1e39", "22003"},
        {701, " -1e-3 ", "DOUBLE -0.001"},
        {701, "NaN", "DOUBLE nan"},
        {701, "-Infinity", "DOUBLE -inf"},
        {701, "+inf", "DOUBLE inf"},
        {701, "1e400", "22003"},
        {701, "0x10", "22P02"},
        {701, "--1", "22P02"},
        {701, "1,5", "22P02"},
        {1700, "1.50", "DECIMAL(3,2) 1.50"},
        {1700, "-0.05", "DECIMAL(2,2) -.05"},
        {1700, "0", "DECIMAL(1,0) 0"},
        {1700, ".5", "DECIMAL(1,1) .5"},
        {1700, "5.", "DECIMAL(1,0) 5"},
        {1700, "1e3", "DECIMAL(4,0) 1000"},
        {1700, "12.5e-3", "DECIMAL(4,4) .0125"},
        {1700, "-99999999999999999999999999999999999999", "DECIMAL(38,0) -99999999999999999999999999999999999999"},
        {1700, "0.00000000000000000000000000000000000001", "DECIMAL(38,38) .00000000000000000000000000000000000001"},
        {1700, "170141183460469231731687303715884105727", "HUGEINT 170141183460469231731687303715884105727"},
        {1700, "340282366920938463463374607431768211455", "UHUGEINT 340282366920938463463374607431768211455"},
        {1700, "1234567890123456789012345678901234567890123", "BIGNUM 1234567890123456789012345678901234567890123"},
        {1700, "1e40", "DOUBLE 1e+40"},
        {1700, "NaN", "DOUBLE nan"},
        {1700, "1e9999999999", "22P02"},
        {1700, "1.2.3", "22P02"},
        {1700, "", "22P02"},
        {25, "as it is ", "VARCHAR as it is "},
        {1043, "", "VARCHAR "},
        {705, "unknown", "VARCHAR unknown"},
        {0, "inferred as text", "VARCHAR inferred as text"},
        {424242, "an oid of a stranger", "VARCHAR an oid of a stranger"},
        {17, "\\x00Ff", "BLOB \\x00\\xFF"},
        {17, "\\x 00 ff", "BLOB \\x00\\xFF"},
        {17, "a\\\\b\\001", "BLOB a\\x5Cb\\x01"},
        {17, "", "BLOB "},
        {17, "\\x0", "22P02"},
        {17, "\\xzz", "22P02"},
        {17, "a\\9", "22P02"},
        {1082, "2024-02-29", "DATE 2024-02-29"},
        {1082, "2024-02-29 +01", "DATE 2024-02-29"},
        {1082, "0044-03-15 BC", "DATE 0044-03-15 (BC)"},
        {1082, "infinity", "DATE infinity"},
        {1082, "epoch", "DATE 1970-01-01"},
        {1082, "2023-02-29", "22008"},
        {1082, "yesterday", "22007"},
        {1082, "10:00", "22007"},
        {1083, "10:00:00.1234567", "TIME 10:00:00.123457"},
        {1083, "10:00:00+02", "TIME 10:00:00"},
        {1083, "25:00", "22008"},
        {1083, "noon", "22007"},
        {1266, "10:00:00+05:30", "TIME WITH TIME ZONE 10:00:00+05:30"},
        {1114, "2024-01-02 03:04:05.678+09", "TIMESTAMP 2024-01-02 03:04:05.678"},
        {1114, "2024-01-02", "TIMESTAMP 2024-01-02 00:00:00"},
        {1114, "-infinity", "TIMESTAMP -infinity"},
        {1114, "9999999-01-01", "22008"},
        {1186, "1 year 2 mons -3 days +04:05:06.7", "INTERVAL 1 year 2 months -3 days 04:05:06.7"},
        {1186, "P1Y", "INTERVAL 1 year"},
        {1186, "1 fortnight", "22007"},
        {2950, "{550E8400-E29B-41D4-A716-446655440000}", "UUID 550e8400-e29b-41d4-a716-446655440000"},
        {2950, "550e8400", "22P02"},
        {1562, "0101", "BIT 0101"},
        {1560, "X1F", "BIT 00011111"},
        {1562, "012", "22P02"},
        {114, " {\"a\": [1]} ", "JSON  {\"a\": [1]} "},
        {3802, "[1]", "JSON [1]"},
        {114, "{a}", "22P02"},
        {1007, "{1,NULL, 3 }", "INTEGER[] [1, NULL, 3]"},
        {1007, "{}", "INTEGER[] []"},
        {1007, " {{1,2},{3,4}} ", "INTEGER[][] [[1, 2], [3, 4]]"},
        {1007, "[2:3]={7,8}", "INTEGER[] [7, 8]"},
        {1009, R"({a,"b c","q\"\\",NULL,"NULL",""})", R"(VARCHAR[] [a, b c, 'q"\\', NULL, 'NULL', ''])"},
        {1231, "{1.5,10,NULL}", "DECIMAL(3,1)[] [1.5, 10.0, NULL]"},
        {1007, "{1,x}", "22P02"},
        {1007, "{1", "22P02"},
        {1007, "1}", "22P02"},
        {1007, "{1}}", "22P02"},
        {1007, "{1,}", "22P02"},
        {1007, "{{1},2}", "22P02"},
        {1007, "{{{{{{{1}}}}}}}", "54000"},
        {1009, "{\"a}", "22P02"},
    };
    for (const auto &[oid, value, want] : cases) EXPECT_EQ(show(text(oid, value)), want) << oid << " " << value;
}

TEST_F(Params, LocalTimesAreOfTheSessionsZone) {
    EXPECT_EQ(text(1184, "2024-07-01 00:00:00")->ToString(), "2024-07-01 04:00:00+00");
    EXPECT_EQ(text(1184, "2024-07-01 00:00:00+05:30")->ToString(), "2024-06-30 18:30:00+00");
    EXPECT_EQ(text(1184, "2024-07-01 00:00:00 Europe/Berlin")->ToString(), "2024-06-30 22:00:00+00");
    EXPECT_EQ(text(1184, "2024-07-01")->type(), LogicalType::TIMESTAMP_TZ);
    EXPECT_EQ(text(1184, "infinity")->ToString(), "infinity");
    EXPECT_EQ(show(text(1184, "2024-07-01 00:00:00 Mars/Olympus")), "22007");
    // Without a context the engine's own cast resolves it later.
    Param param;
    param.pg_oid = 1184;
    param.value = "2024-07-01 00:00:00";
    EXPECT_EQ(decode_param(param, 0, LogicalType::UNKNOWN)->type(), LogicalType::VARCHAR);
}

TEST_F(Params, UndeclaredTextTakesTheInferredType) {
    EXPECT_EQ(show(text(0, "7", LogicalType::TINYINT)), "TINYINT 7");
    EXPECT_EQ(show(text(0, "300", LogicalType::UTINYINT)), "22003");
    EXPECT_EQ(show(text(0, "-1", LogicalType::UBIGINT)), "22003");
    EXPECT_EQ(show(text(705, "2024-01-02", LogicalType::DATE)), "DATE 2024-01-02");
    // Not rounded to the column's scale: a comparison must see all digits.
    EXPECT_EQ(show(text(0, "1.234", LogicalType::DECIMAL(15, 2))), "DECIMAL(4,3) 1.234");
    EXPECT_EQ(show(text(0, "{1,2}", LogicalType::LIST(LogicalType::BIGINT))), "BIGINT[] [1, 2]");
    EXPECT_EQ(show(text(0, "2024-01-02 03:04:05.123456789", LogicalType::TIMESTAMP_NS)),
              "TIMESTAMP_NS 2024-01-02 03:04:05.123456789");
    EXPECT_EQ(show(text(0, "{\"a\": 1}", LogicalType::STRUCT({{"a", LogicalType::INTEGER}}))), "JSON {\"a\": 1}");
    EXPECT_EQ(show(text(23, "7", LogicalType::VARCHAR)), "INTEGER 7");
}

TEST_F(Params, NullHasTheDeclaredType) {
    Param param;
    param.pg_oid = 23;
    EXPECT_EQ(decode_param(param, 0, LogicalType::UNKNOWN)->type(), LogicalType::INTEGER);
    EXPECT_TRUE(decode_param(param, 0, LogicalType::UNKNOWN)->IsNull());
    param.pg_oid = 0;
    EXPECT_EQ(decode_param(param, 0, LogicalType::DATE)->type(), LogicalType::DATE);
}

TEST_F(Params, BadEncodingIsRefused) {
    for (const std::string &bad :
         {std::string("\xff"), std::string("a\0b", 3), std::string("\xc3"), std::string("\xed\xa0\x80")}) {
        EXPECT_EQ(show(text(25, bad)), "22021");
        EXPECT_EQ(show(text(23, bad)), "22021");
        Param param;
        param.form = Param::Form::pg_binary;
        param.pg_oid = 25;
        param.value = bad;
        EXPECT_EQ(decode_param(param, 0, LogicalType::UNKNOWN).status().sqlstate(), "22021");
    }
    // A bytea may hold anything.
    EXPECT_EQ(show(binary(17, "ff00")), "BLOB \\xFF\\x00");
}

TEST_F(Params, BinaryFollowsPostgres) {
    const struct {
        uint32_t oid;
        const char *hex, *want;
    } cases[] = {
        {16, "01", "BOOLEAN true"},
        {16, "", "22P03"},
        {16, "0001", "22P03"},
        {21, "fffe", "SMALLINT -2"},
        {21, "00000001", "22P03"},
        {23, "80000000", "INTEGER -2147483648"},
        {23, "0001", "22P03"},
        {20, "000000000000002a", "BIGINT 42"},
        {26, "ffffffff", "BIGINT 4294967295"},
        {700, "3fc00000", "FLOAT 1.5"},
        {701, "7ff8000000000000", "DOUBLE nan"},
        {701, "3ff8", "22P03"},
        {25, "6162", "VARCHAR ab"},
        {19, "6162", "VARCHAR ab"},
        {0, "6162", "VARCHAR ab"},
        {1700, "0000000000000002", "DECIMAL(2,2) .00"},
        {1700, "0003000100000002000109291a2c", "DECIMAL(7,2) 12345.67"},
        {1700, "0001ffff4000000201f4", "DECIMAL(2,2) -.05"},
        {1700, "00010001000000000001", "DECIMAL(5,0) 10000"},
        {1700, "0001fffe000000080001", "DECIMAL(8,8) .00000001"},
        {1700, "00000000c0000000", "DOUBLE nan"},
        {1700, "00000000d0000000", "DOUBLE inf"},
        {1700, "00000000f0000000", "DOUBLE -inf"},
        {1700, "0001000000000000270f", "DECIMAL(4,0) 9999"},
        {1700, "00010000000000002710", "22P03"},
        {1700, "0001000012340000270f", "22P03"},
        {1700, "0002000000000000270f", "22P03"},
        {1700, "00017fff000000000001", "22003"},
        {1700, "00018000000000010001", "DECIMAL(1,1) .0"},
        {1082, "00000001", "DATE 2000-01-02"},
        {1082, "7fffffff", "DATE infinity"},
        {1082, "80000000", "DATE -infinity"},
        {1082, "7ffffffe", "22008"},
        {1083, "00000000000f4240", "TIME 00:00:01"},
        {1083, "ffffffffffffffff", "22008"},
        {1083, "000000141dd76001", "22008"},
        {1266, "00000000000f4240ffffe3e0", "TIME WITH TIME ZONE 00:00:01+02"},
        {1266, "00000000000f42407fffffff", "22008"},
        {1114, "00000000000f4240", "TIMESTAMP 2000-01-01 00:00:01"},
        {1114, "7fffffffffffffff", "TIMESTAMP infinity"},
        {1114, "7ffffffffffffff0", "22008"},
        {1184, "8000000000000000", "TIMESTAMP WITH TIME ZONE -infinity"},
        {1186, "00000000000f4240000000030000000e", "INTERVAL 1 year 2 months 3 days 00:00:01"},
        {1186, "00", "22P03"},
        {2950, "550e8400e29b41d4a716446655440000", "UUID 550e8400-e29b-41d4-a716-446655440000"},
        {2950, "55", "22P03"},
        {1562, "00000009ff80", "BIT 111111111"},
        {1562, "00000009ff", "22P03"},
        {1562, "ffffffffff", "22P03"},
        {114, "5b315d", "JSON [1]"},
        {114, "5b", "22P02"},
        {3802, "015b315d", "JSON [1]"},
        {3802, "025b315d", "22P03"},
        {1007, "00000001000000010000001700000002000000010000000400000001ffffffff", "INTEGER[] [1, NULL]"},
        {1007, "000000000000000000000017", "INTEGER[] []"},
        {1007, "00000002000000000000001700000001000000010000000200000001000000040000000100000004000000020000", "22P03"},
        {1007,
         "000000020000000000000017000000010000000100000002000000010000000400000001000000040000000"
         "2",
         "INTEGER[][] [[1, 2]]"},
        {1007, "0000000100000000000000197fffffff00000001", "42804"},
        {1007, "0000000100000000000000177fffffff00000001", "22P03"},
        {1007, "0000000700000000000000177fffffff00000001", "54000"},
        {1009, "00000001000000000000041300000001000000010000000161", "VARCHAR[] [a]"},
        {600, "00", "0A000"},
    };
    for (const auto &[oid, hex, want] : cases) EXPECT_EQ(show(binary(oid, hex)), want) << oid << " " << hex;
}

TEST_F(Params, JsonFollowsTheContract) {
    const struct {
        const char *type, *json, *want;
    } cases[] = {
        {"", "null", "\"NULL\" NULL"},
        {"", " true ", "BOOLEAN true"},
        {"", "42", "INTEGER 42"},
        {"", "-9007199254740993", "BIGINT -9007199254740993"},
        {"", "9223372036854775808", "HUGEINT 9223372036854775808"},
        {"", "340282366920938463463374607431768211455", "UHUGEINT 340282366920938463463374607431768211455"},
        {"", "340282366920938463463374607431768211456", "22003"},
        {"", "0.1", "DOUBLE 0.1"},
        {"", "1e5", "DOUBLE 100000.0"},
        {"", "NaN", "DOUBLE nan"},
        {"", "-Infinity", "DOUBLE -inf"},
        {"", "\"it's \\\"q\\\" \\\\ ; 🦆\"", "VARCHAR it's \"q\" \\ ; 🦆"},
        {"", "\"Infinity\"", "VARCHAR Infinity"},
        {"", "[1]", "42804"},
        {"", "{", "22P02"},
        {"", "\"\\u0000\"", "22021"},
        {"DECIMAL(7,4)", "\"123.4500\"", "DECIMAL(7,4) 123.4500"},
        {"DECIMAL(3,2)", "\"1.50\"", "DECIMAL(3,2) 1.50"},
        {"DECIMAL(38,0)", "\"12345678901234567890123456789012345678\"",
         "DECIMAL(38,0) 12345678901234567890123456789012345678"},
        {"DECIMAL(3,2)", "\"1.505\"", "22003"},
        {"DECIMAL(3,2)", "\"123\"", "22003"},
        {"DECIMAL(3,2)", "\"abc\"", "22P02"},
        {"DECIMAL(3,2)", "1", "DECIMAL(3,2) 1.00"},
        {"TIMESTAMP", "\"2024-01-02 03:04:05.000006\"", "TIMESTAMP 2024-01-02 03:04:05.000006"},
        {"TIMESTAMPTZ", "\"2024-01-02 03:04:05+05:00\"", "TIMESTAMP WITH TIME ZONE 2024-01-01 22:04:05+00"},
        {"DATE", "\"2024-02-29\"", "DATE 2024-02-29"},
        {"DATE", "\"2024-02-30\"", "22008"},
        {"DATE", "20240229", "42804"},
        {"TIME", "\"01:02:03.000004\"", "TIME 01:02:03.000004"},
        {"BLOB", "\"AP9hYg==\"", "BLOB \\x00\\xFFab"},
        {"BLOB", "\"?\"", "22P02"},
        {"UUID", "\"550e8400-e29b-41d4-a716-446655440000\"", "UUID 550e8400-e29b-41d4-a716-446655440000"},
        {"BIGINT[]", "[1, null, 3]", "BIGINT[] [1, NULL, 3]"},
        {"VARCHAR[]", "[\"a'b\", \"c\"]", "VARCHAR[] ['a\\'b', c]"},
        {"DATE[]", "[\"2024-01-01\"]", "DATE[] [2024-01-01]"},
        {"BOOLEAN[]", "[true, false]", "BOOLEAN[] [true, false]"},
        {"DOUBLE[]", "[1, 2.5]", "DOUBLE[] [1.0, 2.5]"},
        {"UUID[]", "[]", "UUID[] []"},
        {"TIMESTAMPTZ[]", "[\"2024-01-02 03:04:05Z\"]", "TIMESTAMP WITH TIME ZONE[] ['2024-01-02 03:04:05+00']"},
        {"BIGINT[]", "1", "42804"},
        {"BIGINT[]", "[1.5]", "22P02"},
        {"INTEGER[2]", "[1, 2]", "INTEGER[2] [1, 2]"},
        {"INTEGER[2]", "[1, 2, 3]", "22003"},
        {"BIGINT", "\"12\"", "BIGINT 12"},
        {"TINYINT", "300", "22003"},
        {"HUGEINT", "170141183460469231731687303715884105727", "HUGEINT 170141183460469231731687303715884105727"},
        {"DOUBLE", "\"NaN\"", "DOUBLE nan"},
        {"DOUBLE", "3", "DOUBLE 3.0"},
        {"VARCHAR", "\"x\"", "VARCHAR x"},
        {"VARCHAR", "{}", "42804"},
        {"JSON", "{\"a\": 1}", "JSON {\"a\":1}"},
        {"INTERVAL", "\"1 day\"", "INTERVAL 1 day"},
        {"FROBNICATE", "1", "42704"},
        {"INTEGER; DROP TABLE x", "1", "42704"},
        {"DATE", "null", "DATE NULL"},
    };
    for (const auto &[type, value, want] : cases) EXPECT_EQ(show(json(type, value)), want) << type << " " << value;
}

TEST_F(Params, HugeInputsAreBounded) {
    EXPECT_EQ(show(text(1700, std::string(200'000, '9'))).substr(0, 6), "BIGNUM");
    EXPECT_EQ(show(text(23, std::string(1'000'000, '9'))), "22003");
    const auto bad = text(23, std::string(1'000'000, 'x'));
    EXPECT_LT(bad.status().message().size(), 300U);
    std::string nested;
    for (int i = 0; i < 10'000; ++i) nested += '{';
    EXPECT_EQ(show(text(1007, nested)), "54000");
    std::string deep(100'000, '[');
    EXPECT_FALSE(json("INTEGER[]", deep).ok());
    EXPECT_FALSE(json("INTEGER" + std::string(2 * 10'000, '['), "1").ok());
}

}  // namespace
}  // namespace roost
