// What seeing costs a statement. Bars: a log line under 3 µs, a metric under 1 µs.
#include <benchmark/benchmark.h>

#include "obs/log.h"
#include "obs/metrics.h"
#include "obs/process_stats.h"

namespace roost::obs {
namespace {

// To a real file, at the pace that the writer keeps up with and above it.
void BM_log_line(benchmark::State &state) {
    auto log = make_log("gateway", "/dev/null", Level::info);
    const Uuid id = Uuid::make();
    for (auto _ : state) {
        log->info("statement_done",
                  {{"statement", id}, {"front", "pg"}, {"rows", 100}, {"seconds", 0.00123}, {"status", "done"}});
    }
}
BENCHMARK(BM_log_line);

void BM_log_line_below_level(benchmark::State &state) {
    auto log = make_log("gateway", "/dev/null", Level::info);
    for (auto _ : state) log->debug("statement_done", {{"rows", 100}});
}
BENCHMARK(BM_log_line_below_level);

void BM_statement_done(benchmark::State &state) {
    const auto metrics = Metrics::make();
    for (auto _ : state) metrics->statement_done("pg", "select", "done");
}
BENCHMARK(BM_statement_done);

void BM_stage(benchmark::State &state) {
    const auto metrics = Metrics::make();
    for (auto _ : state) metrics->stage("execute", 0.00123);
}
BENCHMARK(BM_stage);

void BM_node_heartbeat(benchmark::State &state) {
    const auto metrics = Metrics::make();
    for (auto _ : state) metrics->node("0190a5c7-8abc-7def-8123-456789abcdef", {});
}
BENCHMARK(BM_node_heartbeat);

void BM_expose(benchmark::State &state) {
    const auto metrics = Metrics::make();
    for (const char *stage :
         {"parse", "route", "dispatch", "queue", "plan", "admission", "execute", "encode", "total"}) {
        metrics->stage(stage, 0.1);
    }
    for (auto _ : state) benchmark::DoNotOptimize(metrics->expose());
}
BENCHMARK(BM_expose);

void BM_resident_bytes(benchmark::State &state) {
    for (auto _ : state) benchmark::DoNotOptimize(resident_bytes());
}
BENCHMARK(BM_resident_bytes);

}  // namespace
}  // namespace roost::obs
