// Reads: rows in and out, parameters, descriptions, sizes, stored results.
#include "engine/engine.h"

#include "engine/test_engine.h"

namespace roost {
namespace {

using testing::Outcome;
using testing::RowSink;
using testing::TestEngine;

class EngineRead : public ::testing::Test {
protected:
    TestEngine &lake = TestEngine::get();
};

TEST_F(EngineRead, SelectOneFitsTheSmallLane) {
    const Outcome one = lake.read("SELECT 1 AS a, 'x' AS b, NULL AS c");
    ASSERT_TRUE(one.status.ok()) << one.status.to_string();
    EXPECT_TRUE(one.plan.fits_small);
    ASSERT_EQ(one.rows.size(), 1u);
    EXPECT_EQ(one.rows[0], (testing::Row{"1", "x", std::nullopt}));
    ASSERT_EQ(one.header.columns.size(), 3u);
    EXPECT_EQ(one.header.columns[0].name, "a");
    EXPECT_EQ(one.header.columns[0].pg_oid, 23u);
    EXPECT_EQ(one.completion.rows, 1u);
    EXPECT_FALSE(one.completion.ran_large);
    EXPECT_FALSE(one.completion.affected.has_value());
}

TEST_F(EngineRead, RowCountsArriveExactInEveryLane) {
    for (const uint64_t count : {0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 100'000}) {
        for (const auto lane : {Grant::Lane::small, Grant::Lane::slot}) {
            const Outcome got = lake.run(TestEngine::spec("SELECT i FROM range(" + std::to_string(count) + ") t(i)"),
                                         Grant{.lane = lane, .slot = 0, .bytes = testing::kSlotBytes});
            ASSERT_TRUE(got.status.ok()) << got.status.to_string();
            ASSERT_EQ(got.rows.size(), count);
            EXPECT_EQ(got.completion.rows, count);
            for (uint64_t i = 0; i < count; i++) ASSERT_EQ(got.rows[i][0], std::to_string(i));
        }
    }
}

TEST_F(EngineRead, StreamsMillionsOfRowsInBoundedBatches) {
    RowSink sink;
    sink.keep = false;
    sink.stop_after_batch = true;
    const Outcome got =
        lake.run(TestEngine::spec("SELECT i, 'row number ' || i AS text FROM range(3000000) t(i)"), sink);
    ASSERT_TRUE(got.status.ok()) << got.status.to_string();
    EXPECT_FALSE(got.plan.fits_small);
    EXPECT_EQ(sink.row_count, 3'000'000u);
    EXPECT_EQ(got.completion.rows, 3'000'000u);
    EXPECT_LE(sink.batch_bytes_max, 256u * 1024);
    EXPECT_GE(sink.batches, 500u);
    EXPECT_LE(got.completion.peak_memory_bytes, testing::kSlotBytes);
}

TEST_F(EngineRead, WideRowsStayNearTheBatchSize) {
    RowSink sink;
    sink.keep = false;
    const Outcome got = lake.run(TestEngine::spec("SELECT repeat('x', 20000) FROM range(5000)"), sink);
    ASSERT_TRUE(got.status.ok()) << got.status.to_string();
    EXPECT_EQ(sink.row_count, 5000u);
    EXPECT_LE(sink.batch_bytes_max, 256u * 1024);
}

TEST_F(EngineRead, ErrorsCarrySqlstateAndPlace) {
    const Outcome table = lake.read("SELECT * FROM nowhere");
    EXPECT_EQ(table.status.sqlstate(), "42P01") << table.status.to_string();
    EXPECT_EQ(table.status.error().position, 15u);
    const Outcome column = lake.read("SELECT 'ä', nothere FROM range(1)");
    EXPECT_EQ(column.status.sqlstate(), "42703") << column.status.to_string();
    EXPECT_EQ(column.status.error().position, 13u);
    EXPECT_EQ(lake.read("SELEC 1").status.sqlstate(), "42601");
    EXPECT_EQ(lake.read("SELECT nofunction(1)").status.sqlstate(), "42883");
    EXPECT_EQ(lake.read("SELECT 'x'::INTEGER").status.sqlstate(), "22P02");
    EXPECT_EQ(lake.read("SELECT s::INTEGER FROM (SELECT 'x' || range AS s FROM range(3))").status.sqlstate(), "22P02");
    EXPECT_EQ(lake.read("SELECT 300::UTINYINT").status.sqlstate(), "22003");
    EXPECT_EQ(lake.read("SELECT '2020-13-01'::DATE").status.sqlstate(), "22008");
    EXPECT_EQ(lake.read("SELECT 1; SELECT 2").status.sqlstate(), "42601");
    EXPECT_EQ(lake.read("SELECT i, count(*) FROM range(3) t(i)").status.sqlstate(), "42803");
    EXPECT_EQ(lake.read("").status.sqlstate(), "42601");
    StatementSpec other = TestEngine::spec("SELECT 1");
    other.settings.catalog = "elsewhere";
    EXPECT_EQ(lake.run(other).status.sqlstate(), "3D000");
}

// A thread that fails interrupts the others, and a stream that is asked then says only that it was interrupted.
TEST_F(EngineRead, AnErrorInTheMiddleOfAStreamIsTheOneThatHappened) {
    for (int i = 0; i < 30; ++i) {
        const Outcome got =
            lake.read("SELECT CASE WHEN range < 300000 THEN '1' ELSE 'x' END::INTEGER FROM range(400000)");
        ASSERT_EQ(got.status.sqlstate(), "22P02") << got.status.to_string();
    }
}

TEST_F(EngineRead, SettingsTravelWithTheStatement) {
    StatementSpec spec = TestEngine::spec("SELECT TIMESTAMPTZ '2020-01-01 00:00:00+00'");
    spec.settings.time_zone = "Asia/Kolkata";
    EXPECT_EQ(lake.run(spec).value(), "2020-01-01 05:30:00+05:30");
    EXPECT_EQ(lake.read("SELECT TIMESTAMPTZ '2020-01-01 00:00:00+00'").value(), "2020-01-01 00:00:00+00");
    spec.settings.time_zone = "Nowhere/Land";
    EXPECT_EQ(lake.run(spec).status.sqlstate(), "22023");
    spec = TestEngine::spec("SELECT current_schema()");
    spec.settings.search_path = {"absent", "main"};
    EXPECT_TRUE(lake.run(spec).status.ok());
}

StatementSpec with_params(const std::string &sql,
                          const std::vector<std::pair<uint32_t, std::optional<std::string>>> &params) {
    StatementSpec spec = TestEngine::spec(sql);
    for (const auto &[oid, value] : params)
        spec.params.push_back({.form = Param::Form::pg_text, .pg_oid = oid, .type = {}, .value = value});
    return spec;
}

TEST_F(EngineRead, ParametersAreBoundByTypeOrAsUntypedLiterals) {
    EXPECT_EQ(lake.run(with_params("SELECT $1::INTEGER + $2", {{23, "40"}, {23, "2"}})).value(), "42");
    EXPECT_EQ(lake.run(with_params("SELECT count(*) FROM range(10) t(i) WHERE i < $1", {{0, "3"}})).value(), "3");
    EXPECT_EQ(lake.run(with_params("SELECT DATE '2020-01-02' > $1", {{0, "2020-01-01"}})).value(), "t");
    EXPECT_EQ(lake.run(with_params("SELECT $1", {{0, "text"}})).value(), "text");
    EXPECT_EQ(lake.run(with_params("SELECT coalesce($1, 'none')", {{25, std::nullopt}})).value(), "none");
    EXPECT_EQ(
        lake.run(with_params("SELECT i FROM range(10) t(i) ORDER BY i LIMIT $1 OFFSET $2", {{20, "1"}, {20, "4"}}))
            .value(),
        "4");
    EXPECT_EQ(lake.run(with_params("SELECT $1::INTEGER", {{0, "x"}})).status.sqlstate(), "22P02");
    EXPECT_EQ(lake.run(with_params("SELECT $1, $2", {{0, "x"}})).status.sqlstate(), "08P01");
}

TEST_F(EngineRead, BinaryParametersWithoutATypeTakeTheStatements) {
    StatementSpec spec = TestEngine::spec("SELECT i FROM range(10) t(i) WHERE i = $1");
    spec.params.push_back(
        {.form = Param::Form::pg_binary, .pg_oid = 0, .type = {}, .value = std::string("\0\0\0\0\0\0\0\7", 8)});
    EXPECT_EQ(lake.run(spec).value(), "7");
}

TEST_F(EngineRead, TextParametersWithoutATypeFollowPostgresSyntaxOfTheirPlace) {
    EXPECT_EQ(lake.run(with_params("SELECT $1::INTEGER[]", {{0, "{1,NULL,3}"}})).value(), "{1,NULL,3}");
    EXPECT_EQ(lake.run(with_params("SELECT $1::VARCHAR[]", {{0, "{a,\"b,c\"}"}})).value(), "{a,\"b,c\"}");
    EXPECT_EQ(
        lake.run(with_params("SELECT count(*) FROM range(10) t(i) WHERE i = ANY($1::BIGINT[])", {{0, "{1,2,99}"}}))
            .value(),
        "2");
    EXPECT_EQ(lake.run(with_params("SELECT $1::BLOB", {{0, "\\x00ff41"}})).value(), "\\x00ff41");
    EXPECT_EQ(lake.run(with_params("SELECT $1::BLOB", {{0, "\\000a\\\\"}})).value(), "\\x00615c");
    EXPECT_EQ(lake.run(with_params("SELECT $1::INTEGER[]", {{0, "{1,x}"}})).status.sqlstate(), "22P02");
    // What is text stays text, also beside one that is not.
    EXPECT_EQ(lake.run(with_params("SELECT $1", {{0, "{not an array"}})).value(), "{not an array");
    EXPECT_EQ(lake.run(with_params("SELECT 'a\\b' || $1", {{0, "\\d{2}"}})).value(), "a\\b\\d{2}");
    EXPECT_EQ(lake.run(with_params("SELECT regexp_matches('x12', $1)", {{0, "\\d{2}"}})).value(), "t");
    EXPECT_EQ(lake.run(with_params("SELECT count(*) FROM range(10) t(i) WHERE i < $2 AND i = ANY($1::BIGINT[])",
                                   {{0, "{1,2,5}"}, {0, "3"}}))
                  .value(),
              "2");
}

StatementSpec describe(const std::string &sql, std::vector<uint32_t> oids = {}) {
    StatementSpec spec = TestEngine::spec(sql);
    spec.work = Work::describe;
    spec.param_oids = std::move(oids);
    return spec;
}

Result<ResultHeader> describe_with(Engine &engine, const StatementSpec &spec) {
    auto execution = engine.create(spec);
    if (!execution.ok()) return execution.status();
    auto plan = (*execution)->plan();
    const Completion end = (*execution)->finish(Status());
    if (!plan.ok()) return end.status;
    return plan->header;
}

TEST_F(EngineRead, DescribeTellsColumnsAndParametersWithoutRunning) {
    const auto typed =
        describe_with(lake.engine(), describe("SELECT i, $1::VARCHAR AS v FROM range(3) t(i) WHERE i > $2"));
    ASSERT_TRUE(typed.ok()) << typed.status().to_string();
    ASSERT_EQ(typed->columns.size(), 2u);
    EXPECT_EQ(typed->columns[0].pg_oid, 20u);
    EXPECT_EQ(typed->columns[1].name, "v");
    EXPECT_EQ(typed->param_oids, (std::vector<uint32_t>{25, 20}));

    const auto unknown = describe_with(lake.engine(), describe("SELECT $1 AS x"));
    ASSERT_TRUE(unknown.ok()) << unknown.status().to_string();
    ASSERT_EQ(unknown->columns.size(), 1u);
    EXPECT_EQ(unknown->columns[0].pg_oid, 25u);
    EXPECT_EQ(unknown->param_oids, std::vector<uint32_t>{25});

    const auto declared = describe_with(lake.engine(), describe("SELECT $1 AS x", {23}));
    ASSERT_TRUE(declared.ok()) << declared.status().to_string();
    EXPECT_EQ(declared->columns.at(0).pg_oid, 23u);
    EXPECT_EQ(declared->param_oids, std::vector<uint32_t>{23});

    const auto ddl = describe_with(lake.engine(), describe("CREATE TABLE described (i INTEGER)"));
    ASSERT_TRUE(ddl.ok()) << ddl.status().to_string();
    EXPECT_FALSE(ddl->has_grid);
    EXPECT_EQ(lake.read("SELECT * FROM described").status.sqlstate(), "42P01");

    EXPECT_EQ(describe_with(lake.engine(), describe("SELECT * FROM nowhere")).status().sqlstate(), "42P01");
    const auto pivot =
        describe_with(lake.engine(), describe("PIVOT (SELECT i % 2 AS k, i FROM range(4) t(i)) ON k USING sum(i)"));
    ASSERT_TRUE(pivot.ok()) << pivot.status().to_string();
    EXPECT_EQ(pivot->columns.size(), 2u);
}

TEST_F(EngineRead, StoredResultsComeWithAFirstPageAndStay) {
    StatementSpec spec = TestEngine::spec("SELECT i AS a, i * 2 AS a FROM range(1000) t(i)");
    spec.format = ResultFormat::stored;
    spec.first_page_rows = 2;
    const Outcome got = lake.run(spec);
    ASSERT_TRUE(got.status.ok()) << got.status.to_string();
    EXPECT_EQ(got.completion.rows, 1000u);
    EXPECT_EQ(got.completion.first_page, R"([{"a":0,"a_1":0},{"a":1,"a_1":2}])");
    ASSERT_EQ(got.header.columns.size(), 2u);
    EXPECT_EQ(got.header.columns[1].name, "a_1");
    const auto page = lake.engine().read_page(spec.id, 999, 10);
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(*page, R"([{"a":999,"a_1":1998}])");
    EXPECT_TRUE(lake.engine().drop_result(spec.id).ok());
    EXPECT_EQ(lake.engine().read_page(spec.id, 0, 1).status().code(), Code::not_found);
}

TEST_F(EngineRead, BinaryFormatsAreCheckedAgainstTheColumns) {
    StatementSpec spec = TestEngine::spec("SELECT 1, 2");
    spec.result_formats = {1};
    const Outcome binary = lake.run(spec);
    ASSERT_TRUE(binary.status.ok()) << binary.status.to_string();
    EXPECT_EQ(binary.rows[0][1], std::string("\0\0\0\2", 4));
    spec = TestEngine::spec("SELECT 1, 2, 3");
    spec.result_formats = {1, 0};
    EXPECT_EQ(lake.run(spec).status.sqlstate(), "08P01");
}

TEST_F(EngineRead, PivotExplainAndCallWork) {
    EXPECT_TRUE(lake.read("EXPLAIN SELECT 1").status.ok());
    const Outcome pivot = lake.read("PIVOT (SELECT i % 2 AS k, i FROM range(4) t(i)) ON k USING sum(i)");
    EXPECT_TRUE(pivot.status.ok()) << pivot.status.to_string();
}

TEST_F(EngineRead, FunctionsAndMacrosAreFoundWithAndWithoutTheLake) {
    ASSERT_TRUE(lake.write("CREATE MACRO plus_one(x) AS x + 1").status.ok());
    EXPECT_EQ(lake.read("SELECT plus_one(41)").value(), "42");
    EXPECT_EQ(lake.read("SELECT abs(-7)").value(), "7");
    EXPECT_EQ(lake.read("SELECT current_schema()").value(), "main");
    EXPECT_EQ(lake.read("SELECT current_database()").value(), "lake");
    EXPECT_EQ(lake.read("SELECT nofunction(1)").status.sqlstate(), "42883");
    EXPECT_EQ(lake.read("SELECT abs('x'::DATE)").status.sqlstate(), "42883");
    EXPECT_EQ(lake.read("SELECT (SELECT count(*) FROM duckdb_tables() WHERE false)").value(), "0");
    EXPECT_EQ(lake.run(with_params("SELECT abs($1)", {{23, "-3"}})).value(), "3");
    // The lake's own name comes before the engine's.
    ASSERT_TRUE(lake.write("CREATE MACRO bit_count(x) AS 'mine'").status.ok());
    EXPECT_EQ(lake.read("SELECT bit_count(3)").value(), "mine");
    ASSERT_TRUE(lake.write("DROP MACRO bit_count").status.ok());
    EXPECT_EQ(lake.read("SELECT bit_count(3::TINYINT)").value(), "2");
}

TEST_F(EngineRead, StatementsWithoutFromThatLookAtTheLake) {
    ASSERT_TRUE(lake.write("CREATE TABLE looked_at AS SELECT 5 AS five").status.ok());
    EXPECT_EQ(lake.read("TABLE looked_at").value(), "5");
    const auto tables = lake.read("SHOW TABLES").rows;
    EXPECT_TRUE(std::find(tables.begin(), tables.end(), testing::Row{"looked_at"}) != tables.end());
    EXPECT_EQ(lake.read("DESCRIBE looked_at").rows.at(0).at(0), "five");
    EXPECT_EQ(lake.read("SUMMARIZE looked_at").rows.at(0).at(0), "five");
    EXPECT_EQ(lake.read("SELECT current_schema").value(), "main");
    EXPECT_EQ(lake.read("VALUES (1)").value(), "1");
    EXPECT_EQ(lake.read("SELECT 1 UNION ALL TABLE looked_at").rows.size(), 2U);
    EXPECT_EQ(lake.read("WITH looked AS MATERIALIZED (SELECT 1 AS a) TABLE looked").value(), "1");
}

// A local time is of the session's time zone.
TEST_F(EngineRead, ATimestampParameterWithoutAnOffset) {
    auto spec = with_params("SELECT $1 = '2024-07-01 12:00:00+00'::TIMESTAMPTZ", {{1184, "2024-07-01 14:00:00"}});
    spec.settings.time_zone = "Europe/Berlin";
    EXPECT_EQ(lake.run(spec).value(), "t");
    spec.settings.time_zone = "UTC";
    EXPECT_EQ(lake.run(spec).value(), "f");
}

TEST_F(EngineRead, ALargerStatementHasAProfile) {
    const Outcome got = lake.run(TestEngine::spec("SELECT count(*) FROM range(100000) t(i) WHERE i % 3 = 0"),
                                 Grant{.lane = Grant::Lane::slot, .slot = 0, .bytes = testing::kSlotBytes});
    ASSERT_TRUE(got.status.ok());
    EXPECT_NE(got.completion.profile_json.find("operator_cardinality"), std::string::npos)
        << got.completion.profile_json;
    EXPECT_TRUE(lake.read("SELECT 1").completion.profile_json.empty());
}

TEST_F(EngineRead, OutOfMemoryIsTheStatementsOwnTrouble) {
    const Outcome big =
        lake.run(TestEngine::spec("SELECT length(string_agg(repeat('x', 1000), ',')) FROM range(2000000)"),
                 Grant{.lane = Grant::Lane::small, .slot = 0, .bytes = 0});
    EXPECT_EQ(big.status.sqlstate(), "53200") << big.status.to_string();
    EXPECT_EQ(lake.read("SELECT 42").value(), "42");
}

}  // namespace
}  // namespace roost
