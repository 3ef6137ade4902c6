// What the engine adds to DuckDB: the same statement through Connection::Query and through an Execution, on one lake.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "deps/duckdb_extensions.h"
#include "duckdb/main/config.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "engine/engine.h"
#include "engine/sample.h"
#include "lake/ducklake.h"
#include "obs/log.h"

namespace roost {
namespace {

constexpr uint64_t kSlotBytes = 1ull << 30;

class CountingSink final : public ResultSink {
public:
    void header(const ResultHeader &) override {}
    bool rows(uint32_t count, std::string) override {
        rows_ += count;
        return true;
    }
    uint64_t rows_ = 0;
};

class Lake {
public:
    static Lake &get() {
        static Lake &lake = make();
        return lake;
    }
    Engine &engine() { return *engine_; }
    duckdb::Connection &raw(int threads) { return threads == 1 ? *one_ : *two_; }
    duckdb::Connection &raw_uncached() { return *uncached_; }

    Completion run(const std::string &sql, const Grant *grant = nullptr, bool writes = false) {
        StatementSpec spec;
        spec.id = Uuid::make();
        spec.sql = sql;
        spec.settings.catalog = "lake";
        spec.writes = writes;
        auto execution = std::move(engine_->create(std::move(spec))).value();
        Status status;
        CountingSink sink;
        if (grant) {
            status = execution->start(*grant);
        } else {
            auto plan = execution->plan();
            status = plan.ok() ? execution->start(Grant{}) : plan.status();
        }
        while (status.ok()) {
            auto more = execution->step(sink);
            status = more.status();
            if (!more.ok() || !*more) break;
        }
        Completion completion = execution->finish(status);
        if (!completion.status.ok()) abort();
        return completion;
    }

private:
    // Ends with the main thread, before DuckDB's own thread-local state, which was made earlier.
    static Lake &make() {
        auto lake = std::unique_ptr<Lake>(new Lake);
        static thread_local std::unique_ptr<Lake> owner;
        owner = std::move(lake);
        return *owner;
    }
    Lake() {
        char name[] = "/tmp/roost-bench-XXXXXX";
        const std::string dir = mkdtemp(name);
        const LakeLocation lake{.catalog = "lake",
                                .metadata_path = dir + "/lake/catalog.sqlite",
                                .data_path = dir + "/lake/data/",
                                .staging_path = dir + "/staging"};
        const std::string extensions(deps::kBuildTreeExtensionDir);
        if (!create_lake(lake, {.extension_dir = extensions, .spill_dir = dir + "/scratch"}).ok()) abort();
        log_ = obs::make_null_log();
        auto engine = Engine::open({.dir = dir + "/node",
                                    .extension_dir = extensions,
                                    .lakes = {lake},
                                    .threads = 2,
                                    .small_bytes = 256ull << 20,
                                    .pinned_bytes = 256ull << 20,
                                    .spill_max_bytes = 1ull << 30},
                                   *log_);
        if (!engine.ok()) abort();
        engine_ = std::move(engine).value();
        const Grant slot{.lane = Grant::Lane::slot, .slot = 0, .bytes = kSlotBytes};
        run("CREATE TABLE points AS SELECT i AS id, 'name ' || i AS name, i * 1.5 AS price FROM range(100000) t(i)",
            &slot, true);
        run("CREATE TABLE wide AS SELECT i AS a, i * 3 AS b, 'some text of row ' || i AS c, i / 7.0 AS d, DATE "
            "'2020-01-01' + (i % 1000)::INTEGER AS e, hash(i)::VARCHAR AS f FROM range(2000000) t(i)",
            &slot, true);
        one_ = attach(lake, extensions, 1, first_);
        two_ = attach(lake, extensions, 2, second_);
        uncached_ = attach(lake, extensions, 2, third_);
        uncached_->Query("SET enable_external_file_cache = false");
    }
    static std::unique_ptr<duckdb::Connection> attach(const LakeLocation &lake, const std::string &extensions,
                                                      int threads, std::unique_ptr<duckdb::DuckDB> &database) {
        duckdb::DBConfig config;
        config.options.maximum_threads = static_cast<duckdb::idx_t>(threads);
        config.SetOptionByName("allow_unsigned_extensions", duckdb::Value::BOOLEAN(true));
        database = std::make_unique<duckdb::DuckDB>(nullptr, &config);
        auto connection = std::make_unique<duckdb::Connection>(*database);
        for (const std::string extension : {"sqlite_scanner", "ducklake"}) {
            connection->Query("LOAD '" + extensions + "/" + extension + ".duckdb_extension'");
        }
        if (connection->Query(attach_sql(lake, {}))->HasError()) abort();
        connection->Query("USE lake");
        return connection;
    }

    std::unique_ptr<obs::Log> log_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<duckdb::DuckDB> first_;
    std::unique_ptr<duckdb::DuckDB> second_;
    std::unique_ptr<duckdb::DuckDB> third_;
    std::unique_ptr<duckdb::Connection> one_;
    std::unique_ptr<duckdb::Connection> uncached_;
    std::unique_ptr<duckdb::Connection> two_;
};

constexpr const char *kOne = "SELECT 1";
constexpr const char *kFunction = "SELECT abs(-1), now(), version()";
constexpr const char *kPoint = "SELECT name, price FROM points WHERE id = 4711";
constexpr const char *kWide = "SELECT * FROM wide";
constexpr const char *kSum = "SELECT sum(a), max(c) FROM wide";

void raw(benchmark::State &state, const char *sql, int threads) {
    auto &connection = Lake::get().raw(threads);
    for (auto _ : state) {
        auto result = connection.SendQuery(sql);
        if (result->HasError()) abort();
        while (auto chunk = result->Fetch()) benchmark::DoNotOptimize(chunk->size());
    }
}
void small(benchmark::State &state, const char *sql) {
    Lake &lake = Lake::get();
    int64_t plan_us = 0;
    int64_t execute_us = 0;
    for (auto _ : state) {
        const Completion completion = lake.run(sql);
        plan_us += completion.timings.plan_us;
        execute_us += completion.timings.execute_us;
    }
    const auto runs = static_cast<double>(state.iterations());
    state.counters["plan_us"] = static_cast<double>(plan_us) / runs;
    state.counters["execute_us"] = static_cast<double>(execute_us) / runs;
}
void slot(benchmark::State &state, const char *sql) {
    Lake &lake = Lake::get();
    const Grant grant{.lane = Grant::Lane::slot, .slot = 0, .bytes = kSlotBytes};
    for (auto _ : state) benchmark::DoNotOptimize(lake.run(sql, &grant).rows);
}

// With DuckDB's own cache of file blocks in memory, and without.
void file_cache(benchmark::State &state, const char *sql, bool cached) {
    auto &connection = cached ? Lake::get().raw(2) : Lake::get().raw_uncached();
    for (auto _ : state) benchmark::DoNotOptimize(connection.Query(sql)->RowCount());
}
// Both ways in turn, so that they meet the same noise: medians and what the engine adds.
void overhead(benchmark::State &state, const char *sql) {
    Lake &lake = Lake::get();
    auto &connection = lake.raw(1);
    std::vector<double> raw_us;
    std::vector<double> engine_us;
    const auto timed = [](std::vector<double> &into, const auto &work) {
        const auto start = std::chrono::steady_clock::now();
        work();
        into.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    };
    for (auto _ : state) {
        timed(raw_us, [&] { benchmark::DoNotOptimize(connection.Query(sql)->RowCount()); });
        timed(engine_us, [&] { benchmark::DoNotOptimize(lake.run(sql).rows); });
    }
    const auto median = [](std::vector<double> &values) {
        std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
        return values[values.size() / 2];
    };
    state.counters["raw_us"] = median(raw_us);
    state.counters["engine_us"] = median(engine_us);
    state.counters["added_us"] = median(engine_us) - median(raw_us);
}

BENCHMARK_CAPTURE(overhead, one, kOne)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(overhead, function, kFunction)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(overhead, point, kPoint)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(file_cache, sum_2m_on, kSum, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(file_cache, sum_2m_off, kSum, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(file_cache, point_on, kPoint, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(file_cache, point_off, kPoint, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(raw, one_1_thread, kOne, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(raw, one_2_threads, kOne, 2)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(small, one, kOne)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(slot, one, kOne)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(raw, point_1_thread, kPoint, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(raw, point_2_threads, kPoint, 2)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(small, point, kPoint)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(slot, point, kPoint)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(raw, sum_2m_1_thread, kSum, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(raw, sum_2m_2_threads, kSum, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(raw, rows_2m_not_encoded, kWide, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(slot, rows_2m_encoded, kWide)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace roost
