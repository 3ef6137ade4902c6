// What history costs: records a second through group commit, a durable record alone, look-ups and listings.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <future>

#include "meta/sqlite_store.h"

namespace roost::meta {
namespace {

struct Place {
    Place() {
        std::string pattern = std::filesystem::temp_directory_path() / "roost_meta_bench_XXXXXX";
        dir = mkdtemp(pattern.data());
        store = std::move(SqliteStore::open(dir + "/meta.sqlite")).value();
    }
    Place(Place &&) = default;
    ~Place() {
        if (!store) return;
        store.reset();
        std::filesystem::remove_all(dir);
    }
    std::string dir;
    std::unique_ptr<SqliteStore> store;
};

StatementRecord make_record(int64_t started_us) {
    StatementRecord record;
    record.id = Uuid::make();
    record.workspace = Uuid::from_name("workspace");
    record.user = Uuid::from_name("user");
    record.session = Uuid::from_name("s" + std::to_string(started_us % 100));
    record.user_name = "ada";
    record.workspace_slug = "main";
    record.catalog = "lake";
    record.front = "pg";
    record.origin = "session";
    record.sql = "SELECT o_orderkey, o_totalprice FROM orders WHERE o_custkey = " + std::to_string(started_us);
    record.kind = "select";
    record.status = StatementStatus::running;
    record.started_us = started_us;
    return record;
}

StatementRecord ended(StatementRecord record) {
    record.status = StatementStatus::done;
    record.finished_us = record.started_us + 1'000;
    return record;
}

// A statement that begins and ends: two records, the way the service writes them.
void BM_statement_begin_and_end(benchmark::State &state) {
    Place place;
    int64_t at = 0;
    for (auto _ : state) {
        StatementRecord record = make_record(++at);
        place.store->record_statement(record, {});
        place.store->record_statement(ended(std::move(record)), {});
        if (at % 5'000 == 0) (void)place.store->flush();
    }
    (void)place.store->flush();
    state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(BM_statement_begin_and_end)->MeasureProcessCPUTime()->UseRealTime()->Iterations(50'000);

// One caller that waits for each record: the latency that acknowledging adds.
void BM_durable_record(benchmark::State &state) {
    Place place;
    int64_t at = 0;
    for (auto _ : state) {
        std::promise<void> done;
        place.store->record_statement(make_record(++at), [&done](const Status &) { done.set_value(); });
        done.get_future().wait();
    }
}
BENCHMARK(BM_durable_record)->MeasureProcessCPUTime()->UseRealTime()->Iterations(5'000);

// The call alone, on the caller's thread.
void BM_record_call(benchmark::State &state) {
    Place place;
    StatementRecord record = make_record(1);
    int64_t calls = 0;
    for (auto _ : state) {
        place.store->record_statement(record, {});
        if (++calls % 10'000 == 0) {
            state.PauseTiming();
            (void)place.store->flush();
            state.ResumeTiming();
        }
    }
}
BENCHMARK(BM_record_call)->Iterations(50'000);

void BM_find_token(benchmark::State &state) {
    Place place;
    const User user{Uuid::make(), "ada", "admin", "", 0};
    (void)place.store->put_user(user);
    (void)place.store->put_token(user.id, "token", 0);
    for (auto _ : state) benchmark::DoNotOptimize(place.store->find_token("token"));
}
BENCHMARK(BM_find_token);

// A history of 200,000 statements, made once; the shapes that a person asks for.
SqliteStore &history() {
    static const Place place = [] {
        Place made;
        for (int64_t i = 0; i < 200'000; ++i) {
            made.store->record_statement(ended(make_record(i)), {});
            if (i % 10'000 == 0) (void)made.store->flush();
        }
        (void)made.store->flush();
        return made;
    }();
    return *place.store;
}

void BM_list(benchmark::State &state, const StatementFilter &filter) {
    SqliteStore &store = history();
    for (auto _ : state) benchmark::DoNotOptimize(store.list_statements(filter));
}
BENCHMARK_CAPTURE(BM_list, newest, StatementFilter{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_list, of_a_session, StatementFilter{.session = Uuid::from_name("s7")})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_list, slowest, StatementFilter{.by_duration = true})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_list, text_that_is_nowhere, StatementFilter{.text = "lineitem"})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace roost::meta
