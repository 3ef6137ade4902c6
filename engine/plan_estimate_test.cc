// Each kind of operator that holds memory: what the estimate says against what DuckDB's buffer manager held, sampled
// after each of the executor's tasks, on one thread: the same figures in each run.
#include "engine/plan_estimate.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "duckdb.hpp"
#include "duckdb/execution/physical_plan_generator.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/main/pending_query_result.hpp"
#include "duckdb/main/prepared_statement_data.hpp"
#include "duckdb/optimizer/optimizer.hpp"
#include "duckdb/parser/parser.hpp"
#include "duckdb/planner/planner.hpp"
#include "duckdb/storage/buffer_manager.hpp"

namespace roost {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kTextLength = 40;

struct Measured {
    double estimate = 0, peak = 0;
    PlanEstimate plan;
    std::vector<std::string> operators;
    double ratio() const { return estimate / std::max(peak, 1.0); }
};

// One database for all tests: a million rows with a key, a text of 40 bytes and a key of 1,000 values.
class Estimate : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        duckdb::DBConfig config;
        config.options.maximum_threads = 1;
        database = new duckdb::DuckDB(nullptr, &config);
        duckdb::Connection connection(*database);
        run(connection,
            "CREATE TABLE t AS SELECT i AS k, (i * 7919) % 1000 AS g, (i * 7919) % 1000003 AS r, "
            "md5(i::VARCHAR) || '12345678' AS s FROM range(1000000) q(i)");
        run(connection, "CREATE TABLE small AS SELECT i AS k, i * 2 AS v FROM range(1000) q(i)");
        run(connection, "CREATE TABLE mid AS SELECT i AS k, i + 100 AS v FROM range(50000) q(i)");
    }
    static void TearDownTestSuite() {
        delete database;
        database = nullptr;
    }

    static void run(duckdb::Connection &connection, const std::string &sql) {
        const auto result = connection.Query(sql);
        ASSERT_FALSE(result->HasError()) << result->GetError();
    }
    static uint64_t held_bytes() {
        uint64_t bytes = 0;
        for (const auto &tag : database->instance->GetBufferManager().GetMemoryUsageInfo()) bytes += tag.size;
        return bytes;
    }
    static void list(const duckdb::PhysicalOperator &op, std::vector<std::string> &names) {
        names.push_back(op.GetName());
        for (const auto &child : op.GetChildren()) list(child.get(), names);
    }

    static Measured measure(const std::string &sql, const std::string &setting = "") {
        duckdb::Connection connection(*database);
        if (!setting.empty()) run(connection, setting);
        connection.BeginTransaction();
        auto &context = *connection.context;
        duckdb::Parser parser;
        parser.ParseQuery(sql);
        auto statement = std::move(parser.statements.at(0));
        auto data = duckdb::make_shared_ptr<duckdb::PreparedStatementData>(statement->type);
        duckdb::Planner planner(context);
        planner.CreatePlan(statement->Copy());
        data->properties = planner.properties;
        data->names = planner.names;
        data->types = planner.types;
        duckdb::Optimizer optimizer(*planner.binder, context);
        duckdb::PhysicalPlanGenerator generator(context);
        data->physical_plan = generator.Plan(optimizer.Optimize(std::move(planner.plan)));
        data->unbound_statement = std::move(statement);

        Measured measured;
        list(data->physical_plan->Root(), measured.operators);
        const TextLength text_length = [](const auto &, const std::string &) { return kTextLength; };
        measured.plan = estimate_plan(data->physical_plan->Root(), context, {.threads = 1, .text_length = text_length});
        measured.estimate = measured.plan.peak_bytes;
        const uint64_t idle = held_bytes();
        const auto sample = [&] {
            measured.peak = std::max(measured.peak, static_cast<double>(held_bytes()) - static_cast<double>(idle));
        };
        duckdb::PendingQueryParameters parameters;
        parameters.query_parameters.output_type = duckdb::QueryResultOutputType::ALLOW_STREAMING;
        auto pending = context.PendingQuery(sql, data, parameters);
        EXPECT_FALSE(pending->HasError()) << pending->GetError();
        while (!duckdb::PendingQueryResult::IsResultReady(pending->ExecuteTask())) sample();
        auto result = pending->Execute();
        EXPECT_FALSE(result->HasError()) << result->GetError();
        while (auto chunk = result->Fetch()) {
            sample();
            if (chunk->size() == 0) break;
        }
        result.reset();
        pending.reset();
        data->physical_plan.reset();
        connection.Rollback();
        return measured;
    }

    // The plan has the operator, and the estimate is so near to what was held.
    static void expect_near(const Measured &measured, std::string_view op, double least_ratio, double most_ratio) {
        EXPECT_NE(std::find(measured.operators.begin(), measured.operators.end(), op), measured.operators.end())
            << "no " << op << " in the plan";
        EXPECT_GE(measured.peak, 2 * kMiB) << "nothing worth an estimate was held";
        EXPECT_GE(measured.ratio(), least_ratio) << measured.estimate / kMiB << " MiB for " << measured.peak / kMiB;
        EXPECT_LE(measured.ratio(), most_ratio) << measured.estimate / kMiB << " MiB for " << measured.peak / kMiB;
        RecordProperty("ratio", std::to_string(measured.ratio()));
        if (getenv("ROOST_TEST_PRINT") != nullptr) {
            printf("%-22s %7.1f MiB for %7.1f MiB, %.2f\n", std::string(op).c_str(), measured.estimate / kMiB,
                   measured.peak / kMiB, measured.ratio());
        }
    }

    static duckdb::DuckDB *database;
};
duckdb::DuckDB *Estimate::database = nullptr;

TEST_F(Estimate, BuildSideOfAHashJoin) {
    expect_near(measure("SELECT sum(a.k + length(b.s)) FROM t a JOIN t b ON a.r = b.k"), "HASH_JOIN", 0.7, 2.2);
}

TEST_F(Estimate, BuildSidesOfSeveralJoinsAreAliveTogether) {
    const Measured one = measure("SELECT sum(length(b.s)) FROM t a JOIN t b ON a.r = b.k");
    const Measured two =
        measure("SELECT sum(length(b.s) + length(c.s)) FROM t a JOIN t b ON a.r = b.k JOIN t c ON a.k = c.k");
    expect_near(two, "HASH_JOIN", 0.7, 1.8);
    EXPECT_GT(two.peak, 1.7 * one.peak);
    EXPECT_GT(two.estimate, 1.7 * one.estimate);
}

TEST_F(Estimate, GroupsByHash) {
    expect_near(measure("SELECT r, count(*), sum(k), max(k) FROM t GROUP BY r"), "HASH_GROUP_BY", 0.25, 2.0);
    expect_near(measure("SELECT g, count(*) FROM t GROUP BY g, g + k % 7"), "HASH_GROUP_BY", 0.3, 3.0);
}

TEST_F(Estimate, AggregatesThatKeepTheirInput) {
    expect_near(measure("SELECT list(s ORDER BY k) FROM t"), "UNGROUPED_AGGREGATE", 0.3, 3.0);
    // What lists and medians keep is not the buffer manager's, but it is memory: a million texts, a million numbers.
    EXPECT_GT(measure("SELECT g, list(s) FROM t GROUP BY g").estimate, 1e6 * kTextLength);
    EXPECT_LT(measure("SELECT g, list(s) FROM t GROUP BY g").estimate, 1e6 * kTextLength * 4);
    EXPECT_GT(measure("SELECT median(k) FROM t").estimate, 1e6 * 8);
    EXPECT_LT(measure("SELECT median(k) FROM t").estimate, 1e6 * 8 * 4);
}

TEST_F(Estimate, DistinctValues) {
    expect_near(measure("SELECT count(DISTINCT s) FROM t"), "UNGROUPED_AGGREGATE", 0.5, 2.5);
    expect_near(measure("SELECT g, count(DISTINCT k) FROM t GROUP BY g"), "HASH_GROUP_BY", 0.4, 2.5);
}

TEST_F(Estimate, Order) {
    expect_near(measure("SELECT k, s FROM t ORDER BY r"), "ORDER_BY", 0.6, 2.0);
    expect_near(measure("SELECT k FROM t ORDER BY s"), "ORDER_BY", 0.6, 2.5);
}

TEST_F(Estimate, TopN) { expect_near(measure("SELECT k, s FROM t ORDER BY r LIMIT 5000"), "TOP_N", 0.3, 3.0); }

TEST_F(Estimate, Window) {
    expect_near(measure("SELECT sum(x) FROM (SELECT sum(k) OVER (PARTITION BY g ORDER BY r) AS x FROM t)"), "WINDOW",
                0.6, 2.5);
    expect_near(measure("SELECT max(x || s) FROM (SELECT lag(k) OVER (ORDER BY r) AS x, s FROM t)"), "WINDOW", 0.4,
                2.5);
}

TEST_F(Estimate, JoinsThatSortBothSides) {
    expect_near(
        measure("SELECT count(*) FROM mid a JOIN mid b ON a.k < b.v AND a.v > b.k", "SET merge_join_threshold = 0"),
        "IE_JOIN", 0.3, 3.0);
    expect_near(measure("SELECT sum(b.k) FROM t a ASOF JOIN t b ON a.r >= b.k"), "ASOF_JOIN", 0.4, 2.5);
}

TEST_F(Estimate, NestedLoopsHoldTheirRightSide) {
    expect_near(measure("SELECT count(*) FROM small a, (SELECT k, s FROM t LIMIT 100000) b "
                        "WHERE a.k % 3 = 7 OR (a.k + b.k = -5 AND b.s = 'x')"),
                "BLOCKWISE_NL_JOIN", 0.3, 3.0);
}

TEST_F(Estimate, MaterialisedCommonTablesStay) {
    expect_near(measure("WITH c AS MATERIALIZED (SELECT k, s, g FROM t) SELECT (SELECT sum(k + length(s)) FROM c), "
                        "(SELECT max(g) FROM c)"),
                "CTE", 0.5, 2.0);
}

TEST_F(Estimate, CorrelatedSubqueries) {
    // It becomes a join with groups, of whose filter DuckDB thinks that a fifth comes through.
    expect_near(measure("SELECT sum(length(a.s)) FROM t a WHERE a.k > (SELECT avg(b.k) FROM t b WHERE b.r = a.r)"),
                "HASH_JOIN", 0.2, 4.0);
}

TEST_F(Estimate, WritersHoldTheirRowGroups) {
    char name[] = "/tmp/roost-estimate-XXXXXX";
    const std::string dir = mkdtemp(name);
    expect_near(measure("COPY (SELECT k, s FROM t) TO '" + dir + "/t.parquet' (FORMAT parquet)"), "COPY_TO_FILE", 0.4,
                2.5);
    std::filesystem::remove_all(dir);
}

TEST_F(Estimate, StagesThatFollowEachOtherDoNotAddUp) {
    // Of a sort over a sort the first is gone as the second grows.
    const Measured one = measure("SELECT k, s FROM t ORDER BY r");
    const Measured two = measure(
        "SELECT g, count(*) FROM (SELECT * FROM (SELECT g, s, row_number() OVER (ORDER BY r) AS n FROM t) WHERE n % 2 "
        "= 0) "
        "GROUP BY g ORDER BY g");
    EXPECT_LT(two.estimate, 2.5 * one.estimate);
}

TEST_F(Estimate, WhatStreamsHoldsNextToNothing) {
    const Measured measured = measure("SELECT count(*) FROM t WHERE s LIKE '%abc%' AND k % 3 = 0");
    EXPECT_LT(measured.estimate, 8 * kMiB);
    EXPECT_LT(measured.peak, 8 * kMiB);
}

TEST_F(Estimate, UnknownGroupsAreFewerThanRows) {
    // Of what is computed DuckDB knows nothing, and says as many groups as rows.
    const Measured measured =
        measure("SELECT a, b, sum(k) FROM (SELECT substr(s, 1, 1) AS a, k % 10 AS b, k FROM t) GROUP BY a, b");
    EXPECT_LT(measured.estimate, 40 * kMiB);
}

TEST_F(Estimate, ThreadsHoldTheirOwnBlocks) {
    duckdb::Connection connection(*database);
    connection.BeginTransaction();
    auto &context = *connection.context;
    duckdb::Parser parser;
    parser.ParseQuery("SELECT sum(a.k + length(b.s)) FROM t a JOIN t b ON a.r = b.k");
    duckdb::Planner planner(context);
    planner.CreatePlan(std::move(parser.statements.at(0)));
    duckdb::Optimizer optimizer(*planner.binder, context);
    duckdb::PhysicalPlanGenerator generator(context);
    const auto plan = generator.Plan(optimizer.Optimize(std::move(planner.plan)));
    const auto bytes = [&](uint32_t threads) {
        return estimate_plan(plan->Root(), context, {.threads = threads, .text_length = {}}).peak_bytes;
    };
    EXPECT_GT(bytes(8), bytes(1) + 7 * 2 * kMiB);
    EXPECT_LE(bytes(64), bytes(8) + 8 * kMiB) << "there are rows for nine threads";
    connection.Rollback();
}

TEST_F(Estimate, TellsWhichTablesItReads) {
    const Measured measured = measure("SELECT sum(t.k + length(t.s)) FROM t JOIN mid ON t.k = mid.k");
    ASSERT_EQ(measured.plan.tables.size(), 2u);
    double rows = 0;
    for (const auto &table : measured.plan.tables) {
        EXPECT_EQ(table.catalog, "memory");
        EXPECT_TRUE(table.table == "t" || table.table == "mid") << table.table;
        EXPECT_FALSE(table.written);
        rows += table.rows;
    }
    EXPECT_EQ(rows, 1'050'000);
    EXPECT_EQ(measured.plan.scanned_rows, 1'050'000);
}

}  // namespace
}  // namespace roost
