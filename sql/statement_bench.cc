#include <benchmark/benchmark.h>

#include <string_view>

#include "sql/complexity.h"
#include "sql/statement.h"
#include "sql/statement_cache.h"
#include "sql/tree.h"

namespace roost::sql {
namespace {

constexpr std::string_view select_one = "SELECT 1";
constexpr std::string_view point_query = "SELECT o_id, amount FROM lake.main.orders WHERE o_id = $1";
// The one that bench/run.py times through a pool: what these take is given as a share of that.
constexpr std::string_view point_query_of_bench =
    "SELECT o_totalprice, o_orderdate FROM orders WHERE o_orderkey = 253407";
// TPC-H query 5.
constexpr std::string_view tpch_five = R"(
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
  AND o_orderdate >= CAST('1994-01-01' AS date) AND o_orderdate < CAST('1995-01-01' AS date)
GROUP BY n_name ORDER BY revenue DESC;)";
constexpr std::string_view begin = "BEGIN";

GuardPolicy bench_policy() {
    GuardPolicy policy;
    policy.catalogs = {"lake"};
    return policy;
}

void run_front(benchmark::State &state, std::string_view text) {
    const GuardPolicy policy = bench_policy();
    for (auto _ : state) {
        const auto statements = parse(text);
        for (const Statement &statement : *statements) {
            const Status status = check(statement, Context::session, policy);
            if (!status.ok()) state.SkipWithError(status.message().c_str());
            benchmark::DoNotOptimize(fingerprint(statement.text));
        }
    }
}

void run_parse(benchmark::State &state, std::string_view text) {
    for (auto _ : state) benchmark::DoNotOptimize(parse(text));
}

void run_tree(benchmark::State &state, std::string_view text) {
    for (auto _ : state) benchmark::DoNotOptimize(Tree::parse(text, 1000));
}

void run_check(benchmark::State &state, std::string_view text) {
    const GuardPolicy policy = bench_policy();
    const auto statements = parse(text);
    for (auto _ : state) benchmark::DoNotOptimize(check((*statements)[0], Context::session, policy));
}

void run_fingerprint(benchmark::State &state, std::string_view text) {
    for (auto _ : state) benchmark::DoNotOptimize(fingerprint(text));
}

void run_complexity(benchmark::State &state, std::string_view text) {
    for (auto _ : state) benchmark::DoNotOptimize(check_complexity(text, 1000));
}

// What the service does for a text it has seen before.
void run_cached(benchmark::State &state, std::string_view text) {
    const GuardPolicy policy = bench_policy();
    StatementCache cache;
    for (auto _ : state) {
        const auto parsed = cache.parse(text);
        for (const Statement &statement : (*parsed)->statements) {
            const Status status = check(statement, Context::session, policy);
            if (!status.ok()) state.SkipWithError(status.message().c_str());
        }
    }
}

BENCHMARK_CAPTURE(run_cached, select_one, select_one);
BENCHMARK_CAPTURE(run_cached, tpch_five, tpch_five);
BENCHMARK_CAPTURE(run_complexity, select_one, select_one);
BENCHMARK_CAPTURE(run_complexity, tpch_five, tpch_five);
BENCHMARK_CAPTURE(run_front, select_one, select_one);
BENCHMARK_CAPTURE(run_front, point_query, point_query);
BENCHMARK_CAPTURE(run_front, tpch_five, tpch_five);
BENCHMARK_CAPTURE(run_front, begin, begin);
BENCHMARK_CAPTURE(run_parse, select_one, select_one);
BENCHMARK_CAPTURE(run_parse, tpch_five, tpch_five);
BENCHMARK_CAPTURE(run_tree, select_one, select_one);
BENCHMARK_CAPTURE(run_tree, tpch_five, tpch_five.substr(0, tpch_five.size() - 1));
BENCHMARK_CAPTURE(run_check, select_one, select_one);
BENCHMARK_CAPTURE(run_check, point_query, point_query);
BENCHMARK_CAPTURE(run_check, point_query_of_bench, point_query_of_bench);
BENCHMARK_CAPTURE(run_front, point_query_of_bench, point_query_of_bench);
BENCHMARK_CAPTURE(run_check, tpch_five, tpch_five);
BENCHMARK_CAPTURE(run_fingerprint, select_one, select_one);
BENCHMARK_CAPTURE(run_fingerprint, tpch_five, tpch_five);

}  // namespace
}  // namespace roost::sql
