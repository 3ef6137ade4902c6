// Ranking a segment on 8 nodes against the straightforward loop (hash, logarithm, compare), and a membership change of
// 100,000 segments against ranking them anew (bar: 0.2). The ratio is a counter.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "placement/ownership.h"

namespace roost::placement {
namespace {

constexpr uint64_t kSegments = 100'000;

std::vector<Member> eight(bool equal) {
    std::vector<Member> members;
    for (int i = 0; i < 8; ++i) {
        members.push_back({Uuid::from_name("node " + std::to_string(i)), equal ? 16u : 8u << (i % 3)});
    }
    return members;
}

// As the formula reads: the pair is hashed whole, the score is a double.
size_t straightforward_owner(const std::vector<Member> &members, const UnitId &unit) {
    size_t best = 0;
    double best_score = -HUGE_VAL;
    for (size_t i = 0; i < members.size(); ++i) {
        const uint64_t hash = mix64(hash_bytes(members[i].identity.raw()) ^ unit_key(unit));
        const double x = (static_cast<double>(hash >> 11) + 0.5) / 9007199254740992.0;
        const double score = -static_cast<double>(members[i].weight) / std::log(x);
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

void BM_owner_straightforward(benchmark::State &state) {
    const auto members = eight(state.range(0));
    uint64_t i = 0;
    for (auto _ : state) benchmark::DoNotOptimize(straightforward_owner(members, {1, 2, ++i}));
}
BENCHMARK(BM_owner_straightforward)->ArgName("equal")->Arg(1)->Arg(0);

void BM_owner(benchmark::State &state) {
    const Rendezvous rendezvous(eight(state.range(0)));
    uint64_t i = 0;
    for (auto _ : state) benchmark::DoNotOptimize(rendezvous.owner(UnitId{1, 2, ++i}));
}
BENCHMARK(BM_owner)->ArgName("equal")->Arg(1)->Arg(0);

void BM_rank_all_eight(benchmark::State &state) {
    const Rendezvous rendezvous(eight(state.range(0)));
    std::vector<size_t> order;
    uint64_t i = 0;
    for (auto _ : state) {
        rendezvous.rank(unit_key({1, 2, ++i}), order);
        benchmark::DoNotOptimize(order.data());
    }
}
BENCHMARK(BM_rank_all_eight)->ArgName("equal")->Arg(1)->Arg(0);

Ownership tracked(bool equal) {
    Ownership pool;
    for (const Member &member : eight(equal)) pool.set_member(member);
    for (uint64_t i = 0; i < kSegments; ++i) pool.add({1, 2, i + 1});
    return pool;
}

// Of this thread: what else runs on the machine is not counted.
int64_t cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// Every owner computed again, from keys that are at hand: the quickest way there is without keeping anything.
int64_t rank_anew_ns(const Rendezvous &rendezvous, const std::vector<uint64_t> &keys, std::vector<uint16_t> &owners) {
    const int64_t since_ns = cpu_ns();
    for (size_t i = 0; i < keys.size(); ++i) owners[i] = static_cast<uint16_t>(rendezvous.owner(keys[i]));
    benchmark::DoNotOptimize(owners.data());
    return cpu_ns() - since_ns;
}

// By turns: two changes (`change` does and undoes), and all ranked anew. Counters: medians of the µs of one change, of
// ranking anew, and of their ratio.
template <class Change>
void against_ranking_anew(benchmark::State &state, bool equal, Change change) {
    Ownership pool = tracked(equal);
    const Rendezvous rendezvous(eight(equal));
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < kSegments; ++i) keys.push_back(unit_key({1, 2, i + 1}));
    std::vector<uint16_t> owners(kSegments);
    std::vector<double> changes_us, anews_us, ratios;
    for (auto _ : state) {
        const int64_t since_ns = cpu_ns();
        change(pool);
        changes_us.push_back(static_cast<double>(cpu_ns() - since_ns) / 2e3);
        anews_us.push_back(static_cast<double>(rank_anew_ns(rendezvous, keys, owners)) / 1e3);
        ratios.push_back(changes_us.back() / anews_us.back());
    }
    state.counters["change_us"] = median(changes_us);
    state.counters["anew_us"] = median(anews_us);
    state.counters["ratio"] = median(ratios);
}

// One of average weight leaves and comes back.
void BM_leave_and_join_against_anew(benchmark::State &state) {
    const bool equal = state.range(0) != 0;
    const Member member = eight(equal)[4];
    against_ranking_anew(state, equal, [&](Ownership &pool) {
        benchmark::DoNotOptimize(pool.remove_member(member.identity).size());
        benchmark::DoNotOptimize(pool.set_member(member).size());
    });
}
BENCHMARK(BM_leave_and_join_against_anew)->ArgName("equal")->Arg(1)->Arg(0);

void BM_weight_up_and_down_against_anew(benchmark::State &state) {
    Member member = eight(false)[4];
    against_ranking_anew(state, false, [&](Ownership &pool) {
        member.weight += 4;
        benchmark::DoNotOptimize(pool.set_member(member).size());
        member.weight -= 4;
        benchmark::DoNotOptimize(pool.set_member(member).size());
    });
}
BENCHMARK(BM_weight_up_and_down_against_anew);

}  // namespace
}  // namespace roost::placement
