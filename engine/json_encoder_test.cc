#include "engine/json_encoder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/test_rows.h"

namespace roost {
namespace {

std::string page(const TestRows &rows, const std::string &zone, TestDb &db) {
    auto offsets = ZoneOffsets::make(zone, db.context());
    EXPECT_TRUE(offsets.ok());
    JsonPageEncoder encoder(rows.names, rows.types, std::move(*offsets));
    std::string out = "[";
    for (const auto &chunk : rows.chunks) encoder.append(*chunk, 0, chunk->size(), out);
    return out + "]";
}

struct JsonCase {
    const char *expression, *json;
};

// The HTTP contract's table, section 8, with the values of its conformance suite.
TEST(JsonPage, ValuesFollowTheContract) {
    TestDb db;
    const JsonCase cases[] = {
        {"true", "true"},
        {"(-128)::TINYINT", "-128"},
        {"4294967295::UINTEGER", "4294967295"},
        {"9007199254740991::BIGINT", "9007199254740991"},
        {"9007199254740993::BIGINT", "\"9007199254740993\""},
        {"(-9223372036854775808)::BIGINT", "\"-9223372036854775808\""},
        {"18446744073709551615::UBIGINT", "\"18446744073709551615\""},
        {"42::UBIGINT", "42"},
        {"(-170141183460469231731687303715884105728)::HUGEINT", "\"-170141183460469231731687303715884105728\""},
        {"5::HUGEINT", "\"5\""},
        {"340282366920938463463374607431768211455::UHUGEINT", "\"340282366920938463463374607431768211455\""},
        {"1.50::DECIMAL(9,2)", "\"1.50\""},
        {"(-0.05)::DECIMAL(4,2)", "\"-0.05\""},
        {"0::DECIMAL(9,3)", "\"0.000\""},
        {"3::DOUBLE", "3.0"},
        {"0.1::DOUBLE", "0.1"},
        {"1e308::DOUBLE", "1e+308"},
        {"1e20::DOUBLE", "1e+20"},
        {"1.5::FLOAT", "1.5"},
        {"-2::FLOAT", "-2.0"},
        {"'nan'::DOUBLE", "NaN"},
        {"'inf'::DOUBLE", "Infinity"},
        {"'-inf'::FLOAT", "-Infinity"},
        {"'héllo \"q\" \\ 🦆'", "\"héllo \\\"q\\\" \\\\ 🦆\""},
        {"chr(1) || chr(9) || chr(10) || chr(127)", "\"\\u0001\\t\\n\x7f\""},
        {"'\\x00\\xFF\\x10a'::BLOB", "\"00ff1061\""},
        {"''::BLOB", "\"\""},
        {"DATE '2024-02-29'", "\"2024-02-29\""},
        {"DATE '0001-01-01'", "\"0001-01-01\""},
        {"DATE '9999-12-31'", "\"9999-12-31\""},
        {"DATE '10000-01-01'", "null"},
        {"DATE '0001-12-31 (BC)'", "null"},
        {"'infinity'::DATE", "null"},
        {"TIME '23:59:59.999999'", "\"23:59:59.999999\""},
        {"'24:00:00'::TIME", "null"},
        {"'12:34:56+02'::TIMETZ", "\"12:34:56+02\""},
        {"TIMESTAMP '2024-01-02 03:04:05.678901'", "\"2024-01-02 03:04:05.678901\""},
        {"'-infinity'::TIMESTAMP", "null"},
        {"'infinity'::TIMESTAMPTZ", "null"},
        {"'2024-01-02 03:04:05'::TIMESTAMP_S", "\"2024-01-02 03:04:05\""},
        {"'infinity'::TIMESTAMP_S", "null"},
        {"'2024-01-02 03:04:05.678'::TIMESTAMP_MS", "\"2024-01-02 03:04:05.678\""},
        {"'2024-01-02 03:04:05.678901234'::TIMESTAMP_NS", "\"2024-01-02 03:04:05.678901234\""},
        {"'infinity'::TIMESTAMP_NS", "null"},
        {"TIMESTAMPTZ '2024-01-02 03:04:05.5+05:30'", "\"2024-01-02 03:04:05.5+05:30\""},
        {"'550e8400-e29b-41d4-a716-446655440000'::UUID", "\"550e8400-e29b-41d4-a716-446655440000\""},
        {"INTERVAL 1 DAY", "\"1 day\""},
        {"INTERVAL '1 year 2 months 03:04:05'", "\"1 year 2 months 03:04:05\""},
        {"'b'::ENUM('a', 'b')", "\"b\""},
        {"'{\"a\": [1, null]}'::JSON", "\"{\\\"a\\\": [1, null]}\""},
        {"'0101'::BIT", "\"0101\""},
        {"'12345678901234567890123456789012345678901234567890'::BIGNUM",
         "\"12345678901234567890123456789012345678901234567890\""},
        {"[1, NULL, 3]", "[1,null,3]"},
        {"[1.5, NULL]::DECIMAL(4,1)[]", "[\"1.5\",null]"},
        {"['\\x01'::BLOB]", "[\"01\"]"},
        {"[[1, 2], [], NULL]", "[[1,2],[],null]"},
        {"[1, 2, 3]::INTEGER[3]", "[1,2,3]"},
        {"{'a': 1, 'b': 'x', 'c': DATE '2024-01-01', 'd': NULL::DOUBLE}",
         "{\"a\":1,\"b\":\"x\",\"c\":\"2024-01-01\",\"d\":null}"},
        {"{'a b': 1.5::DECIMAL(3,1), 'Q': 2}", "{\"a b\":\"1.5\",\"Q\":2}"},
        {"MAP {'k': 1, 'l': NULL}", "{\"k\":1,\"l\":null}"},
        {"MAP {1: 'a', 2: 'b'}", "{\"1\":\"a\",\"2\":\"b\"}"},
        {"MAP {DATE '2024-01-01': [1.0::DECIMAL(2,1)]}", "{\"2024-01-01\":[\"1.0\"]}"},
        {"MAP {}::MAP(VARCHAR, INTEGER)", "{}"},
        {"union_value(num := 7)::UNION(num INTEGER, str VARCHAR)", "7"},
        {"NULL", "null"},
        {"NULL::INTEGER[]", "null"},
    };
    for (const auto &[expression, json] : cases) {
        const auto rows = db.rows(std::string("SELECT ") + expression + " AS \"v\"\"w\"");
        EXPECT_EQ(page(rows, "Asia/Kolkata", db), std::string("[{\"v\\\"w\":") + json + "}]") << expression;
    }
}

TEST(JsonPage, EveryTypeOfTheEngineIsValidJson) {
    TestDb db;
    const auto rows = db.rows("FROM test_all_types()");
    std::string text = page(rows, "Europe/Berlin", db);
    // The three tokens that are not strict JSON.
    for (const std::string token : {"-Infinity", "Infinity", "NaN"}) {
        for (size_t at; (at = text.find(":" + token)) != std::string::npos;) text.replace(at + 1, token.size(), "0");
        for (size_t at; (at = text.find("," + token)) != std::string::npos;) text.replace(at + 1, token.size(), "0");
        for (size_t at; (at = text.find("[" + token)) != std::string::npos;) text.replace(at + 1, token.size(), "0");
    }
    const auto document = nlohmann::json::parse(text);
    ASSERT_EQ(document.size(), 3U);
    for (const auto &row : document) EXPECT_EQ(row.size(), rows.names.size());
    for (const auto &name : rows.names) EXPECT_TRUE(document[2][name].is_null()) << name;
}

// Every byte at every place of a word, alone and beside others.
TEST(JsonPage, StringsReadBackExactly) {
    for (int c = 1; c < 128; ++c) {
        for (size_t before = 0; before < 18; ++before) {
            for (size_t after = 0; after < 10; ++after) {
                const std::string text =
                    std::string(before, 'a') + static_cast<char>(c) + std::string(after, 'z') + "é🦆";
                std::string out;
                append_json_string(out, text);
                ASSERT_EQ(nlohmann::json::parse(out).get<std::string>(), text) << c << " at " << before;
            }
        }
    }
}

// Floats read back as the same bits.
TEST(JsonPage, FloatsReadBackExactly) {
    TestDb db;
    const auto rows = db.rows(
        "SELECT (hash(i)::DOUBLE / 3e10) * pow(10, (hash(i + 1) % 500)::INTEGER - 250) AS d, "
        "((hash(i)::DOUBLE / 3e10) * pow(10, (hash(i + 1) % 40)::INTEGER - 25))::FLOAT AS f FROM range(20000) t(i)");
    const auto document = nlohmann::json::parse(page(rows, "UTC", db));
    size_t at = 0;
    for (const auto &chunk : rows.chunks) {
        for (duckdb::idx_t i = 0; i < chunk->size(); ++i, ++at) {
            ASSERT_TRUE(document[at]["d"].is_number_float());
            ASSERT_EQ(document[at]["d"].get<double>(), chunk->GetValue(0, i).GetValue<double>());
            ASSERT_EQ(document[at]["f"].get<float>(), chunk->GetValue(1, i).GetValue<float>());
        }
    }
}

}  // namespace
}  // namespace roost
