#include <gtest/gtest.h>

#include <random>

#include "engine/test_rows.h"
#include "engine/type_map.h"

namespace roost {
namespace {

std::optional<std::string> only_value(TestDb &db, const std::string &expression, int16_t format,
                                      const std::string &zone = "UTC") {
    const auto rows = pg_rows(db, db.rows("SELECT " + expression), {format}, zone);
    EXPECT_EQ(rows.size(), 1U) << expression;
    return rows.empty() ? std::nullopt : rows[0][0];
}

std::string hex(const std::string &bytes) { return to_hex(bytes); }

struct TextCase {
    const char *expression, *text;
};

const TextCase kTextCases[] = {
    {"true", "t"},
    {"false", "f"},
    {"(-128)::TINYINT", "-128"},
    {"255::UTINYINT", "255"},
    {"(-9223372036854775808)::BIGINT", "-9223372036854775808"},
    {"18446744073709551615::UBIGINT", "18446744073709551615"},
    {"(-170141183460469231731687303715884105728)::HUGEINT", "-170141183460469231731687303715884105728"},
    {"340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455"},
    {"'-123456789012345678901234567890123456789012345678901234567890'::BIGNUM",
     "-123456789012345678901234567890123456789012345678901234567890"},
    {"0::DECIMAL(9,2)", "0.00"},
    {"(-0.05)::DECIMAL(4,2)", "-0.05"},
    {"1.50::DECIMAL(18,2)", "1.50"},
    {"-99999999999999999999999999999999999999::DECIMAL(38,0)", "-99999999999999999999999999999999999999"},
    {"0.00000000000000000000000000000000000001::DECIMAL(38,38)", "0.00000000000000000000000000000000000001"},
    {"1::DOUBLE", "1"},
    {"0.1::DOUBLE", "0.1"},
    {"0.30000000000000004::DOUBLE", "0.30000000000000004"},
    {"1e20::DOUBLE", "1e+20"},
    {"1e15::DOUBLE", "1e+15"},
    {"123456789012345::DOUBLE", "123456789012345"},
    {"100000000000000::DOUBLE", "100000000000000"},
    {"0.0001::DOUBLE", "0.0001"},
    {"0.00001::DOUBLE", "1e-05"},
    {"1.5e300::DOUBLE", "1.5e+300"},
    {"5e-324::DOUBLE", "5e-324"},
    {"'-0'::DOUBLE", "-0"},
    {"'nan'::DOUBLE", "NaN"},
    {"'inf'::DOUBLE", "Infinity"},
    {"'-inf'::DOUBLE", "-Infinity"},
    {"1.5::FLOAT", "1.5"},
    {"1234567::FLOAT", "1.234567e+06"},
    {"123456::FLOAT", "123456"},
    {"0.1::FLOAT", "0.1"},
    {"'héllo'", "héllo"},
    {"''", ""},
    {"'b c'::ENUM('a', 'b c')", "b c"},
    {"'\\x00\\xFF\\x10a'::BLOB", "\\x00ff1061"},
    {"''::BLOB", "\\x"},
    {"'0101'::BIT", "0101"},
    {"DATE '2024-02-29'", "2024-02-29"},
    {"DATE '0001-01-01'", "0001-01-01"},
    {"DATE '0044-03-15 (BC)'", "0044-03-15 BC"},
    {"DATE '12345-01-02'", "12345-01-02"},
    {"'infinity'::DATE", "infinity"},
    {"'-infinity'::DATE", "-infinity"},
    {"TIME '23:59:59.999999'", "23:59:59.999999"},
    {"TIME '01:02:03.5'", "01:02:03.5"},
    {"TIME '00:00:00'", "00:00:00"},
    {"'24:00:00'::TIME", "24:00:00"},
    {"'12:34:56+02'::TIMETZ", "12:34:56+02"},
    {"'12:34:56.25-05:30'::TIMETZ", "12:34:56.25-05:30"},
    {"TIMESTAMP '2020-01-02 03:04:05.6'", "2020-01-02 03:04:05.6"},
    {"TIMESTAMP '1900-01-01 00:00:00.000001'", "1900-01-01 00:00:00.000001"},
    {"TIMESTAMP '0044-03-15 (BC) 12:00:00'", "0044-03-15 12:00:00 BC"},
    {"'infinity'::TIMESTAMP", "infinity"},
    {"'2024-01-02 03:04:05'::TIMESTAMP_S", "2024-01-02 03:04:05"},
    {"'infinity'::TIMESTAMP_S", "infinity"},
    {"'2024-01-02 03:04:05.678'::TIMESTAMP_MS", "2024-01-02 03:04:05.678"},
    {"'2024-01-02 03:04:05.123456789'::TIMESTAMP_NS", "2024-01-02 03:04:05.123456"},
    {"'1969-12-31 23:59:59.999999999'::TIMESTAMP_NS", "1969-12-31 23:59:59.999999"},
    {"TIMESTAMPTZ '2024-01-02 03:04:05.5+05:30'", "2024-01-01 21:34:05.5+00"},
    {"'-infinity'::TIMESTAMPTZ", "-infinity"},
    {"INTERVAL '1 year 2 months 3 days 04:05:06'", "1 year 2 mons 3 days 04:05:06"},
    {"to_days(-1) + INTERVAL '1.5 seconds'", "-1 days +00:00:01.5"},
    {"INTERVAL '0' DAY", "00:00:00"},
    {"to_months(1)", "1 mon"},
    {"to_months(-14)", "-1 years -2 mons"},
    {"to_months(14) + to_days(-3) + to_microseconds(-1)", "1 year 2 mons -3 days -00:00:00.000001"},
    {"to_months(-1) + to_days(2)", "-1 mons +2 days"},
    {"to_hours(100)", "100:00:00"},
    {"'550E8400-e29b-41d4-a716-446655440000'::UUID", "550e8400-e29b-41d4-a716-446655440000"},
    {"'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
    {"'{\"a\": [1, null]}'::JSON", "{\"a\": [1, null]}"},
    {"[1, NULL, 3]", "{1,NULL,3}"},
    {"[]::INTEGER[]", "{}"},
    {"['a b', 'x', '', NULL, 'null', 'q\"\\', 'a,b', '{}']",
     "{\"a b\",x,\"\",NULL,\"null\",\"q\\\"\\\\\",\"a,b\",\"{}\"}"},
    {"['nullable', 'nul']", "{nullable,nul}"},
    {"[1.5, NULL]::DECIMAL(4,1)[2]", "{1.5,NULL}"},
    {"[TIMESTAMP '2024-01-01 01:02:03']", "{\"2024-01-01 01:02:03\"}"},
    {"['\\x01'::BLOB]", "{\"\\\\x01\"}"},
    {"[true, false]", "{t,f}"},
    {"[[1, 2], [], NULL]", "[[1,2],[],null]"},
    {"{'a': 1, 'b': 'x\"y', 'c': DATE '2024-01-01', 'd': NULL::DOUBLE}",
     "{\"a\":1,\"b\":\"x\\\"y\",\"c\":\"2024-01-01\",\"d\":null}"},
    {"{'x': 'nan'::DOUBLE, 'y': '-inf'::DOUBLE, 'h': 170141183460469231731687303715884105727::HUGEINT, 'm': "
     "1.50::DECIMAL(9,2)}",
     "{\"x\":\"NaN\",\"y\":\"-Infinity\",\"h\":170141183460469231731687303715884105727,\"m\":1.50}"},
    {"{'j': '{\"k\": [1]}'::JSON, 'b': '\\x01'::BLOB}", "{\"j\":{\"k\": [1]},\"b\":\"\\\\x01\"}"},
    {"row(1, 'x')", "[1,\"x\"]"},
    {"MAP {'k': 1, 'l': NULL}", "{\"k\":1,\"l\":null}"},
    {"MAP {1: 'a'}", "{\"1\":\"a\"}"},
    {"MAP {[1]: 'a'}", "{\"[1]\":\"a\"}"},
    {"union_value(num := 7)::UNION(num INTEGER, str VARCHAR)", "{\"num\":7}"},
    {"[{'k': 1}]", "[{\"k\":1}]"},
    {"{'a': [1, 'x'::VARIANT]}::VARIANT", "{\"a\":[1,\"x\"]}"},
    {"42::VARIANT", "42"},
    {"1.50::DECIMAL(5,2)::VARIANT", "1.50"},
};

TEST(PgText, FollowsPostgres) {
    TestDb db;
    for (const auto &[expression, text] : kTextCases) {
        EXPECT_EQ(only_value(db, expression, 0), text) << expression;
        EXPECT_EQ(only_value(db, "CASE WHEN random() < 0 THEN " + std::string(expression) + " END", 0), std::nullopt)
            << expression;
    }
    EXPECT_EQ(only_value(db, "NULL", 0), std::nullopt);
}

TEST(PgText, ZonesShowTheirOffsetAcrossDaylightSaving) {
    TestDb db;
    const struct {
        const char *zone, *utc, *text;
    } cases[] = {
        {"Europe/Berlin", "2024-03-31 00:59:59.999999", "2024-03-31 01:59:59.999999+01"},
        {"Europe/Berlin", "2024-03-31 01:00:00", "2024-03-31 03:00:00+02"},
        {"Europe/Berlin", "2024-10-27 00:30:00", "2024-10-27 02:30:00+02"},
        {"Europe/Berlin", "2024-10-27 01:30:00", "2024-10-27 02:30:00+01"},
        {"America/New_York", "2024-11-03 05:59:59", "2024-11-03 01:59:59-04"},
        {"America/New_York", "2024-11-03 06:00:00", "2024-11-03 01:00:00-05"},
        {"Asia/Kolkata", "2024-01-01 20:00:00", "2024-01-02 01:30:00+05:30"},
        {"Asia/Kathmandu", "2024-01-01 00:00:00", "2024-01-01 05:45:00+05:45"},
        {"Pacific/Apia", "2011-12-30 09:59:59", "2011-12-29 23:59:59-10"},
        {"Pacific/Apia", "2011-12-30 10:00:00", "2011-12-31 00:00:00+14"},
        {"Australia/Lord_Howe", "2024-04-06 15:00:00", "2024-04-07 01:30:00+10:30"},
        {"Etc/GMT+5", "2024-01-01 00:00:00", "2023-12-31 19:00:00-05"},
        {"America/St_Johns", "1906-08-16 20:26:40", "1906-08-16 16:55:48-03:30:52"},
        {"UTC", "2024-01-01 00:00:00", "2024-01-01 00:00:00+00"},
    };
    for (const auto &[zone, utc, text] : cases) {
        const std::string expression = "TIMESTAMPTZ '" + std::string(utc) + "+00'";
        EXPECT_EQ(only_value(db, expression, 0, zone), text) << zone;
        EXPECT_EQ(only_value(db, "[" + expression + "]", 0, zone), "{\"" + std::string(text) + "\"}") << zone;
        EXPECT_EQ(only_value(db, "{'t': " + expression + "}", 0, zone), "{\"t\":\"" + std::string(text) + "\"}")
            << zone;
    }
}

TEST(PgText, ZonesAgreeWithTheEnginesOwnCast) {
    for (const std::string zone :
         {"Europe/Berlin", "America/St_Johns", "Africa/Casablanca", "Australia/Lord_Howe", "Asia/Tehran"}) {
        TestDb db(zone);
        // After 1970: before it some offsets have seconds, which the engine's text drops and PostgreSQL's keeps.
        const auto rows = db.rows(
            "SELECT t, t::VARCHAR FROM (SELECT TIMESTAMPTZ '1970-01-01 00:00:00+00' + INTERVAL (i * 1787) MINUTE AS t "
            "FROM range(20000) r(i) "
            "UNION ALL SELECT to_timestamp((hash(i) % 6000000000)::BIGINT) FROM range(5000) r(i))");
        for (const auto &row : pg_rows(db, rows, {}, zone)) ASSERT_EQ(row[0], row[1]) << zone;
    }
}

TEST(PgText, UnknownZoneIsAnError) {
    TestDb db;
    const auto encoder = PgRowEncoder::make({duckdb::LogicalType::TIMESTAMP_TZ}, {}, "Mars/Olympus", db.context());
    ASSERT_FALSE(encoder.ok());
    EXPECT_EQ(encoder.status().sqlstate(), "22023");
}

struct BinaryCase {
    const char *expression, *bytes;
};

TEST(PgBinary, FollowsPostgres) {
    TestDb db;
    const BinaryCase cases[] = {
        {"true", "01"},
        {"(-1)::TINYINT", "ffff"},
        {"200::UTINYINT", "00c8"},
        {"40000::USMALLINT", "00009c40"},
        {"(-2)::INTEGER", "fffffffe"},
        {"4000000000::UINTEGER", "00000000ee6b2800"},
        {"1::BIGINT", "0000000000000001"},
        {"1.5::FLOAT", "3fc00000"},
        {"1.5::DOUBLE", "3ff8000000000000"},
        {"0::DECIMAL(9,2)", "0000000000000002"},
        {"12345.67::DECIMAL(9,2)", "0003000100000002000109291a2c"},
        {"(-0.05)::DECIMAL(4,2)", "0001ffff4000000201f4"},
        {"10000::DECIMAL(9,0)", "00010001000000000001"},
        {"0.0001::DECIMAL(9,4)", "0001ffff000000040001"},
        {"18446744073709551615::UBIGINT", "000500040000000007341a5802e103bb064f"},
        {"'ab'", "6162"},
        {"'\\x00\\xFF'::BLOB", "00ff"},
        {"'0101'::BIT", "0000000450"},
        {"'111111111'::BIT", "00000009ff80"},
        {"DATE '2000-01-02'", "00000001"},
        {"DATE '1970-01-01'", "ffffd533"},
        {"'infinity'::DATE", "7fffffff"},
        {"'-infinity'::DATE", "80000000"},
        {"TIME '00:00:01'", "00000000000f4240"},
        {"'00:00:01+02'::TIMETZ", "00000000000f4240ffffe3e0"},
        {"TIMESTAMP '2000-01-01 00:00:01'", "00000000000f4240"},
        {"'infinity'::TIMESTAMP", "7fffffffffffffff"},
        {"'-infinity'::TIMESTAMPTZ", "8000000000000000"},
        {"to_months(14) + to_days(3) + INTERVAL 1 SECOND", "00000000000f4240000000030000000e"},
        {"'550e8400-e29b-41d4-a716-446655440000'::UUID", "550e8400e29b41d4a716446655440000"},
        {"'[1]'::JSON", "5b315d"},
        {"[1, NULL]::INTEGER[]", "00000001000000010000001700000002000000010000000400000001ffffffff"},
        {"[]::INTEGER[]", "000000000000000000000017"},
        {"['a']::VARCHAR[1]", "00000001000000000000001900000001000000010000000161"},
    };
    for (const auto &[expression, bytes] : cases)
        EXPECT_EQ(hex(only_value(db, expression, 1).value_or("NULL")), bytes) << expression;
    EXPECT_EQ(only_value(db, "{'a': 1}", 1), "{\"a\":1}");
    EXPECT_EQ(only_value(db, "'x'::ENUM('x', 'y')", 1), "x");
}

// What goes out comes back the same through the parameter decoder, for every type, in both formats.
class RoundTrip : public testing::TestWithParam<size_t> {};

TEST_P(RoundTrip, ThroughTextAndBinary) {
    const RandomColumn &column = random_columns()[GetParam()];
    TestDb db;
    const auto rows = db.rows(random_select(column, 5000));
    const auto &type = rows.types.at(0);
    for (const int16_t format : {int16_t{0}, int16_t{1}}) {
        const auto encoded = pg_rows(db, rows, {format});
        size_t at = 0;
        for (const auto &chunk : rows.chunks) {
            for (duckdb::idx_t i = 0; i < chunk->size(); ++i, ++at) {
                Param param;
                param.form = format == 0 ? Param::Form::pg_text : Param::Form::pg_binary;
                param.value = encoded.at(at)[0];
                const auto decoded = decode_param(param, 0, type, &db.context());
                ASSERT_TRUE(decoded.ok()) << decoded.status().to_string() << " for " << param.value.value_or("NULL");
                const duckdb::Value want = chunk->GetValue(0, i);
                duckdb::Value got;
                std::string message;
                ASSERT_TRUE(decoded->TryCastAs(db.context(), type, got, &message))
                    << message << " for " << want.ToString();
                ASSERT_TRUE(duckdb::Value::NotDistinctFrom(want, got))
                    << column.type << " format " << format << ": " << want.ToString() << " became " << got.ToString();
            }
        }
        ASSERT_EQ(at, encoded.size());
    }
}

INSTANTIATE_TEST_SUITE_P(EveryType, RoundTrip, testing::Range(size_t{0}, random_columns().size()));

// The engine's own list of types, with the extremes of each.
TEST(PgEncoder, EveryTypeOfTheEngineComesOutInBothFormats) {
    TestDb db;
    const auto rows = db.rows("FROM test_all_types()");
    ASSERT_GT(rows.types.size(), 40U);
    for (size_t c = 0; c < rows.types.size(); ++c) {
        const auto one = db.rows("SELECT \"" + rows.names[c] + "\" FROM test_all_types()");
        for (const int16_t format : {int16_t{0}, int16_t{1}}) {
            auto encoder = PgRowEncoder::make(one.types, {format}, "Europe/Berlin", db.context());
            ASSERT_TRUE(encoder.ok()) << rows.names[c];
            std::string bytes;
            const auto status = (*encoder)->append(*one.chunks.at(0), 0, one.chunks[0]->size(), bytes);
            // Beyond PostgreSQL's range in binary is the one way to fail, and says so.
            if (!status.ok()) {
                EXPECT_EQ(format, 1) << rows.names[c] << status.to_string();
                EXPECT_EQ(status.sqlstate().substr(0, 2), "22") << rows.names[c] << status.to_string();
                EXPECT_TRUE(bytes.empty());
                continue;
            }
            const auto decoded = read_data_rows(bytes);
            ASSERT_EQ(decoded.size(), 3U) << rows.names[c];
            EXPECT_EQ(decoded[2][0], std::nullopt) << rows.names[c];
            EXPECT_NE(decoded[0][0], std::nullopt) << rows.names[c];
        }
    }
}

TEST(PgEncoder, RowCountsAndSlicesAreExact) {
    TestDb db;
    for (const uint64_t count : {0, 1, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 100'000}) {
        const auto rows =
            db.rows("SELECT i, 'row ' || i, CASE WHEN i % 3 = 0 THEN NULL ELSE i * 0.5 END, [i, NULL] FROM range(" +
                    std::to_string(count) + ") t(i)");
        auto encoder = PgRowEncoder::make(rows.types, {0, 1, 0, 0}, "UTC", db.context());
        ASSERT_TRUE(encoder.ok());
        // The chunks in pieces of odd sizes, as a row limit cuts them.
        std::string bytes;
        std::mt19937 random(static_cast<unsigned>(count));
        for (const auto &chunk : rows.chunks) {
            for (uint64_t from = 0; from < chunk->size();) {
                const uint64_t to = std::min<uint64_t>(chunk->size(), from + 1 + random() % 700);
                ASSERT_TRUE((*encoder)->append(*chunk, from, to, bytes).ok());
                from = to;
            }
        }
        const auto decoded = read_data_rows(bytes);
        ASSERT_EQ(decoded.size(), count);
        for (uint64_t i = 0; i < count; ++i) {
            const std::string number = std::to_string(i);
            ASSERT_EQ(decoded[i][0], number);
            ASSERT_EQ(decoded[i][1], "row " + number);
            ASSERT_EQ(decoded[i][2].has_value(), i % 3 != 0);
            ASSERT_EQ(decoded[i][3], "{" + number + ",NULL}");
        }
    }
}

TEST(PgEncoder, VectorsOfEveryKindComeOutAlike) {
    TestDb db;
    // Constant, dictionary (a filter), sequence and nested dictionaries.
    const auto rows = db.rows(
        "SELECT 'constant', 7, i, s, {'a': s, 'i': i}, [s, s], [{'n': i}] FROM "
        "(SELECT i, (i % 5)::VARCHAR || ' a value of more than twelve bytes' AS s FROM range(5000) t(i)) WHERE i % 3 = "
        "1");
    uint64_t i = 1;
    for (const auto &row : pg_rows(db, rows, {})) {
        const std::string s = std::to_string(i % 5) + " a value of more than twelve bytes";
        ASSERT_EQ(row[0], "constant");
        ASSERT_EQ(row[1], "7");
        ASSERT_EQ(row[2], std::to_string(i));
        ASSERT_EQ(row[3], s);
        ASSERT_EQ(row[4], "{\"a\":\"" + s + "\",\"i\":" + std::to_string(i) + "}");
        ASSERT_EQ(row[5], "{\"" + s + "\",\"" + s + "\"}");
        ASSERT_EQ(row[6], "[{\"n\":" + std::to_string(i) + "}]");
        i += 3;
    }
    EXPECT_EQ(i, 5002U);
}

TEST(PgEncoder, WideRowsAndLongValuesAreExact) {
    TestDb db;
    std::string list;
    for (int i = 0; i < 1500; ++i) list += (i == 0 ? "i + " : ", i + ") + std::to_string(i);
    const auto wide = db.rows("SELECT " + list + " FROM range(300) t(i)");
    const auto decoded = pg_rows(db, wide, {});
    ASSERT_EQ(decoded.size(), 300U);
    EXPECT_EQ(decoded[299].size(), 1500U);
    EXPECT_EQ(decoded[299][1499], "1798");
    for (const size_t size : {0, 1, 11, 12, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000, 3'000'000}) {
        const auto rows = pg_rows(db, db.rows("SELECT repeat('z', " + std::to_string(size) + "), 1"), {});
        EXPECT_EQ(rows.at(0)[0], std::string(size, 'z'));
        EXPECT_EQ(rows.at(0)[1], "1");
    }
}

TEST(PgEncoder, NoColumnsIsAnEmptyRow) {
    TestDb db;
    auto encoder = PgRowEncoder::make({}, {}, "UTC", db.context());
    ASSERT_TRUE(encoder.ok());
    duckdb::DataChunk chunk;
    chunk.InitializeEmpty({});
    chunk.SetCardinality(2);
    std::string bytes;
    ASSERT_TRUE((*encoder)->append(chunk, 0, 2, bytes).ok());
    EXPECT_EQ(bytes, std::string("D\0\0\0\6\0\0D\0\0\0\6\0\0", 14));
}

}  // namespace
}  // namespace roost
