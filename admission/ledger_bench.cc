// Cost of a statement in the ledger: it asks, waits behind `waiters`, and its release grants the head. Bar: at 1,000
// waiters at most twice the cost at 10.
#include <benchmark/benchmark.h>

#include "admission/ledger.h"

namespace roost::admission {
namespace {

void BM_admit_release(benchmark::State &state) {
    Ledger ledger({uint64_t{8} << 30, Profile::decaying_3});
    std::deque<Uuid> holders;
    std::vector<Uuid> ids;
    for (int i = 0; i < 4096; ++i) ids.push_back(Uuid::make());
    size_t next = 0;
    for (int64_t i = 0; i < state.range(0) + 3; ++i) {
        const auto answer = ledger.request(ids[next], false, 0, INT64_MAX);
        if (answer.kind == Ledger::Answer::Kind::granted) holders.push_back(ids[next]);
        ++next;
    }
    int64_t now_us = 0;
    for (auto _ : state) {
        ledger.request(ids[next++ % ids.size()], false, ++now_us, INT64_MAX);
        const auto grants = ledger.release(holders.front(), ++now_us);
        holders.pop_front();
        for (const auto &grant : grants) holders.push_back(grant.statement);
    }
}
BENCHMARK(BM_admit_release)->Arg(10)->Arg(1000);

void BM_admit_release_without_a_line(benchmark::State &state) {
    Ledger ledger({uint64_t{8} << 30, Profile::equal_2});
    const Uuid id = Uuid::make();
    for (auto _ : state) {
        benchmark::DoNotOptimize(ledger.request(id, true, 0, INT64_MAX));
        benchmark::DoNotOptimize(ledger.release(id, 1));
    }
}
BENCHMARK(BM_admit_release_without_a_line);

void BM_next_deadline(benchmark::State &state) {
    Ledger ledger({uint64_t{8} << 30, Profile::single});
    for (int64_t i = 0; i <= state.range(0); ++i) ledger.request(Uuid::make(), false, 0, 1000 + i);
    for (auto _ : state) benchmark::DoNotOptimize(ledger.next_deadline_us());
}
BENCHMARK(BM_next_deadline)->Arg(10)->Arg(100)->Arg(1000);

}  // namespace
}  // namespace roost::admission
