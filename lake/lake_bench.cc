// What the mirror and frozen catalogs cost, on synthetic SQLite catalogs: 50,000 files of one table with three columns
// for most, 1,000,000 files for the start of a gateway. Only the file that the point read needs is there.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sqlite3.h>

#include "lake/frozen_catalog.h"
#include "lake/mirror.h"
#include "lake/pruning.h"
#include "lake/test_lake.h"

namespace roost {
namespace {

using testing::LakeClient;
using testing::TestLake;

constexpr uint64_t kRowsPerFile = 1'000;

void execute(const std::string &path, const std::string &sql) {
    sqlite3 *database = nullptr;
    char *error = nullptr;
    if (sqlite3_open(path.c_str(), &database) != SQLITE_OK ||
        sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error) != SQLITE_OK) {
        fprintf(stderr, "%s\n", error == nullptr ? "can't open" : error);
        abort();
    }
    sqlite3_close(database);
}

CallLimits long_enough() { return CallLimits::in(std::chrono::minutes(5)); }

class BigLake {
public:
    explicit BigLake(uint64_t files) : files_(files) {
        auto client = lake_.client();
        client->must("CALL lake.set_option('data_inlining_row_limit', 0)");
        client->must("CREATE TABLE t (id BIGINT, name VARCHAR, ts TIMESTAMP)");
        client->must(
            "INSERT INTO t SELECT i, 'name' || lpad(i::VARCHAR, 12, '0'), TIMESTAMP '2020-01-01' + INTERVAL 1 "
            "SECOND * i FROM range(" +
            std::to_string(kRowsPerFile) + ") r(i)");
        const std::string rows = std::to_string(kRowsPerFile);
        execute(path(),
                "CREATE TEMP TABLE n AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < " +
                    std::to_string(files - 1) +
                    ") SELECT i FROM c; BEGIN;"
                    "INSERT INTO ducklake_data_file SELECT i, 1, 2, NULL, NULL, " +
                    kPath + ", 1, 'parquet', " + rows + ", 20000 + i % 999, 500 + i % 90, i * " + rows +
                    ", NULL, NULL, NULL, NULL FROM n;" + stats("n", rows) +
                    "UPDATE ducklake_snapshot SET next_file_id = " + std::to_string(files) +
                    " WHERE snapshot_id = 2; COMMIT");
    }
    std::string path() const { return lake_.address().where; }
    TestLake &lake() { return lake_; }
    uint64_t files() const { return files_; }
    // One commit of one file.
    void commit() {
        const std::string id = std::to_string(files_), snapshot = std::to_string(++snapshot_),
                          rows = std::to_string(kRowsPerFile);
        execute(path(), "BEGIN; INSERT INTO ducklake_snapshot SELECT " + snapshot +
                            ", snapshot_time, schema_version, next_catalog_id, " + std::to_string(files_ + 1) +
                            " FROM ducklake_snapshot WHERE snapshot_id = 2;"
                            "INSERT INTO ducklake_snapshot_changes VALUES (" +
                            snapshot +
                            ", 'inserted_into_table:1', NULL, NULL, NULL);"
                            "CREATE TEMP TABLE n AS SELECT " +
                            id +
                            " AS i;"
                            "INSERT INTO ducklake_data_file SELECT i, 1, " +
                            snapshot + ", NULL, NULL, " + kPath + ", 1, 'parquet', " + rows + ", 20000, 500, i * " +
                            rows + ", NULL, NULL, NULL, NULL FROM n;" + stats("n", rows) + "COMMIT");
        files_++;
    }
    static BigLake &of_50k() {
        static BigLake lake(50'000);
        return lake;
    }

private:
    static std::string stats(const std::string &from, const std::string &rows) {
        const std::string head = "INSERT INTO ducklake_file_column_stats SELECT i, 1, ", tail = " FROM " + from + ";";
        const std::string low = "(i * " + rows + ")", high = "(i * " + rows + " + " + rows + " - 1)";
        return head + "1, 4000, " + rows + ", 0, CAST(" + low + " AS TEXT), CAST(" + high + " AS TEXT), NULL, NULL" +
               tail + head + "2, 9000, " + rows + ", 0, printf('name%012d', " + low + "), printf('name%012d', " + high +
               "), NULL, NULL" + tail + head + "3, 5000, " + rows + ", 0, datetime(1577836800 + " + low +
               ", 'unixepoch'), datetime(1577836800 + " + high + ", 'unixepoch'), NULL, NULL" + tail;
    }
    static inline const std::string kPath =
        "'ducklake-' || printf('%08x', i) || '-aaaa-7bbb-8ccc-' || printf('%012x', i * 7919) || '.parquet'";

    TestLake lake_;
    uint64_t files_;
    uint64_t snapshot_ = 2;
};

void LoadMillionFiles(benchmark::State &bench) {
    BigLake lake(1'000'000);
    for (auto _ : bench) {
        malloc_trim(0);
        const size_t before = mallinfo2().uordblks;
        LakeMirror mirror(lake.lake().address());
        const auto state = mirror.refresh(long_enough());
        if (!state.ok()) bench.SkipWithError(state.status().to_string().c_str());
        const auto files = static_cast<double>((*state)->tables()[0]->data->segments.size());
        bench.counters["bytes_a_file"] = static_cast<double>((*state)->memory_bytes()) / files;
        bench.counters["heap_bytes_a_file"] = static_cast<double>(mallinfo2().uordblks - before) / files;
        bench.counters["files"] = files;
    }
}
BENCHMARK(LoadMillionFiles)->Unit(benchmark::kMillisecond)->Iterations(2);

void RefreshUnchanged(benchmark::State &bench) {
    LakeMirror mirror(BigLake::of_50k().lake().address());
    benchmark::DoNotOptimize(mirror.refresh(long_enough()));
    for (auto _ : bench) benchmark::DoNotOptimize(mirror.refresh(long_enough()));
}
BENCHMARK(RefreshUnchanged)->Unit(benchmark::kMicrosecond);

void RefreshAfterCommit(benchmark::State &bench) {
    BigLake &lake = BigLake::of_50k();
    LakeMirror mirror(lake.lake().address());
    benchmark::DoNotOptimize(mirror.refresh(long_enough()));
    for (auto _ : bench) {
        bench.PauseTiming();
        lake.commit();
        bench.ResumeTiming();
        const auto state = mirror.refresh(long_enough());
        if (!state.ok() || (*state)->tables()[0]->data->segments.size() != lake.files())
            bench.SkipWithError("wrong state");
    }
    if (mirror.counts().loads != 1) bench.SkipWithError("loaded anew");
}
BENCHMARK(RefreshAfterCommit)->Unit(benchmark::kMicrosecond)->Iterations(200);

void LoadOf50k(benchmark::State &bench) {
    for (auto _ : bench) {
        LakeMirror mirror(BigLake::of_50k().lake().address());
        benchmark::DoNotOptimize(mirror.refresh(long_enough()));
    }
}
BENCHMARK(LoadOf50k)->Unit(benchmark::kMillisecond);

void PrunePointOf50k(benchmark::State &bench) {
    LakeMirror mirror(BigLake::of_50k().lake().address());
    const auto state = *mirror.refresh(long_enough());
    const auto predicate = Predicate::compare(1, Comparison::eq, "500");
    for (auto _ : bench) {
        if (prune(*state->tables()[0], predicate).data_file_ids != std::vector<uint64_t>{0})
            bench.SkipWithError("wrong");
    }
}
BENCHMARK(PrunePointOf50k)->Unit(benchmark::kMicrosecond);

// What a statement attaches.
enum Way { live = 0, whole = 1, filtered = 2 };

struct Frozen {
    Frozen() {
        BigLake &lake = BigLake::of_50k();
        LakeMirror mirror(lake.lake().address());
        state = *mirror.refresh(long_enough());
        writer = std::move(FrozenCatalogWriter::open({.address = lake.lake().address(),
                                                      .extension_dir = std::string(deps::kBuildTreeExtensionDir)}))
                     .value();
        whole_path = lake.lake().dir() + "/whole.ducklake";
        filtered_path = lake.lake().dir() + "/filtered.ducklake";
        write(whole);
        write(filtered);
    }
    FrozenStats write(Way way) {
        const std::vector<FrozenTable> cut{
            {.table_id = 1,
             .data_file_ids = prune(*state->tables()[0], Predicate::compare(1, Comparison::eq, "500")).data_file_ids}};
        const auto written = writer->write(*state, way == whole ? std::nullopt : std::optional(cut),
                                           way == whole ? whole_path : filtered_path, long_enough());
        if (!written.ok()) abort();
        return *written;
    }
    std::string attach(Way way) const {
        if (way == live) return BigLake::of_50k().lake().attach_sql();
        return "ATTACH 'ducklake:" + (way == whole ? whole_path : filtered_path) + "' AS lake (READ_ONLY)";
    }
    static Frozen &get() {
        // Never destroyed: DuckDB keeps state in thread locals, which are gone in exit handlers.
        static Frozen &frozen = *new Frozen;
        return frozen;
    }
    std::shared_ptr<const LakeState> state;
    std::unique_ptr<FrozenCatalogWriter> writer;
    std::string whole_path, filtered_path;
};

void WriteFrozen(benchmark::State &bench) {
    FrozenStats stats;
    for (auto _ : bench) stats = Frozen::get().write(static_cast<Way>(bench.range(0)));
    bench.counters["file_bytes"] = static_cast<double>(stats.file_bytes);
}
BENCHMARK(WriteFrozen)->Arg(whole)->Arg(filtered)->Unit(benchmark::kMillisecond);

void Attach(benchmark::State &bench) {
    LakeClient client("");
    const std::string sql = Frozen::get().attach(static_cast<Way>(bench.range(0)));
    for (auto _ : bench) {
        client.must(sql);
        bench.PauseTiming();
        client.must("DETACH lake");
        bench.ResumeTiming();
    }
}
BENCHMARK(Attach)->Arg(live)->Arg(whole)->Arg(filtered)->Unit(benchmark::kMillisecond);

void query(benchmark::State &bench, const std::string &sql, bool attach_each_time) {
    LakeClient client("");
    const std::string attach = Frozen::get().attach(static_cast<Way>(bench.range(0)));
    client.must(attach);
    for (auto _ : bench) {
        if (attach_each_time) {
            client.must("DETACH lake");
            client.must(attach);
        }
        client.must(sql);
    }
}
void PlanPointRead(benchmark::State &bench) { query(bench, "EXPLAIN SELECT * FROM lake.t WHERE id = 500", false); }
void PointRead(benchmark::State &bench) { query(bench, "SELECT * FROM lake.t WHERE id = 500", false); }
void AttachAndPointRead(benchmark::State &bench) { query(bench, "SELECT * FROM lake.t WHERE id = 500", true); }
BENCHMARK(PlanPointRead)->Arg(live)->Arg(whole)->Arg(filtered)->Unit(benchmark::kMillisecond);
BENCHMARK(PointRead)->Arg(live)->Arg(whole)->Arg(filtered)->Unit(benchmark::kMillisecond);
BENCHMARK(AttachAndPointRead)->Arg(live)->Arg(whole)->Arg(filtered)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace roost
