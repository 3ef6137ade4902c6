// A routing decision with 10,000 units known, from decide to the end of the statement. Bar: 2 % of a point query, which
// takes some 280 µs through gateway and node.
#include <benchmark/benchmark.h>

#include "placement/directory.h"

namespace roost::placement {
namespace {

void decisions(benchmark::State &state, Mode mode, size_t tables_each) {
    constexpr uint64_t kUnits = 10'000;
    DirectoryOptions options;
    options.mode = mode;
    Directory directory(options);
    std::vector<NodeView> nodes;
    for (int i = 0; i < 8; ++i) nodes.push_back({Uuid::from_name(std::to_string(i)), 1, 4, 0, 0, 0, true, true});
    std::vector<TableUse> uses;
    std::vector<UnitReport> reports;
    uint64_t next = 0;
    const auto run = [&](uint64_t table) {
        uses.clear();
        reports.clear();
        for (size_t i = 0; i < tables_each; ++i) {
            uses.push_back({1, (table + i * 37) % kUnits, 1, 1 << 20, false, nullptr});
            reports.push_back({{1, uses.back().table, 0}, 1 << 20, 1});
        }
        Decision decision = directory.decide(nodes, {uses, std::nullopt, std::nullopt});
        directory.ended(decision.claim, {true, reports, 0});
        benchmark::DoNotOptimize(decision.candidates.data());
    };
    for (uint64_t i = 0; i < kUnits; ++i) run(i);
    for (auto _ : state) run(next = (next * 6364136223846793005u + 1442695040888963407u) % kUnits);
    state.counters["units"] = static_cast<double>(directory.size());
}
void BM_decide(benchmark::State &state) { decisions(state, Mode::automatic, static_cast<size_t>(state.range(0))); }
BENCHMARK(BM_decide)->ArgName("tables")->Arg(1)->Arg(5);
void BM_decide_least_loaded(benchmark::State &state) { decisions(state, Mode::least_loaded, 1); }
BENCHMARK(BM_decide_least_loaded);

}  // namespace
}  // namespace roost::placement
