// Cost of a statement in the ledger: beside so many holders it asks, is granted and gives back; or it waits behind so
// many waiters, and a release grants the head. Bar: at 1,000 at most twice the cost at 10.
#include <benchmark/benchmark.h>

#include <deque>

#include "admission/ledger.h"

namespace roost::admission {
namespace {

constexpr int64_t kLong_us = int64_t{1} << 60;

// Does at once what it is told.
class Obedient final : public EngineOrders {
public:
    void set_limit(const Uuid &account, uint64_t order, uint64_t) override { orders_.emplace_back(account, order); }
    void cant_shrink(const Uuid &, uint64_t) override {}
    void obey(Ledger &ledger, int64_t now_us) {
        while (!orders_.empty()) {
            const auto [account, order] = orders_.back();
            orders_.pop_back();
            benchmark::DoNotOptimize(ledger.limit_confirmed(account, order, 0, now_us));
        }
    }

private:
    std::vector<std::pair<Uuid, uint64_t>> orders_;
};

// `holders` statements run under auto, with elastic memory; one ends, another asks and is granted.
void BM_admit_release_beside_holders(benchmark::State &state) {
    Obedient engine;
    SeededRandom random(1);
    const auto holders = static_cast<size_t>(state.range(0));
    Ledger ledger(
        {.budget_bytes = 256 * kMiB * holders, .profile = Profile::automatic, .engine = &engine, .random = &random});
    std::vector<Uuid> ids;
    for (size_t i = 0; i < 4 * holders; ++i) ids.push_back(Uuid::make());
    int64_t now_us = 0;
    const auto ask = [&](size_t i) {
        ledger.request({.account = ids[i], .wanted_bytes = 64 * kMiB, .admission_wait_us = kLong_us, .user = "a"},
                       ++now_us);
        engine.obey(ledger, now_us);
    };
    for (size_t i = 0; i < holders; ++i) ask(i);
    size_t first = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(ledger.release(ids[first % ids.size()], ++now_us));
        ask((first + holders) % ids.size());
        ++first;
    }
    if (ledger.running() != holders) state.SkipWithError("not all of them run");
}
BENCHMARK(BM_admit_release_beside_holders)->Arg(10)->Arg(1000)->Repetitions(7)->ReportAggregatesOnly();

void BM_admit_release(benchmark::State &state) {
    Ledger ledger({.budget_bytes = uint64_t{8} << 30, .profile = Profile::decaying_3});
    std::deque<Uuid> holders;
    std::vector<Uuid> ids;
    for (int i = 0; i < 4096; ++i) ids.push_back(Uuid::make());
    size_t next = 0;
    for (int64_t i = 0; i < state.range(0) + 3; ++i) {
        const auto answer = ledger.request({.account = ids[next], .no_wait = false, .admission_wait_us = kLong_us}, 0);
        if (answer.kind == Ledger::Answer::Kind::granted) holders.push_back(ids[next]);
        ++next;
    }
    int64_t now_us = 0;
    for (auto _ : state) {
        ledger.request({.account = ids[next++ % ids.size()], .no_wait = false, .admission_wait_us = kLong_us},
                       ++now_us);
        const auto grants = ledger.release(holders.front(), ++now_us).grants;
        holders.pop_front();
        for (const auto &grant : grants) holders.push_back(grant.statement);
    }
}
BENCHMARK(BM_admit_release)->Arg(10)->Arg(1000);

void BM_admit_release_without_a_line(benchmark::State &state) {
    Ledger ledger({.budget_bytes = uint64_t{8} << 30, .profile = Profile::equal_2});
    const Uuid id = Uuid::make();
    for (auto _ : state) {
        benchmark::DoNotOptimize(ledger.request({.account = id, .no_wait = true, .admission_wait_us = kLong_us}, 0));
        benchmark::DoNotOptimize(ledger.release(id, 1));
    }
}
BENCHMARK(BM_admit_release_without_a_line);

void BM_next_event(benchmark::State &state) {
    Ledger ledger({.budget_bytes = uint64_t{8} << 30, .profile = Profile::single});
    for (int64_t i = 0; i <= state.range(0); ++i)
        ledger.request({.account = Uuid::make(), .no_wait = false, .admission_wait_us = 1000 + i}, 0);
    for (auto _ : state) benchmark::DoNotOptimize(ledger.next_event_us());
}
BENCHMARK(BM_next_event)->Arg(10)->Arg(100)->Arg(1000);

}  // namespace
}  // namespace roost::admission
