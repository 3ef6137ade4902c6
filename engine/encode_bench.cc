// Bytes a second of the encoders on one core, over chunks that are already in memory: rows like TPC-H's lineitem, 16
// columns.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "engine/engine.h"
#include "engine/json_encoder.h"
#include "engine/test_rows.h"

namespace roost {
namespace {

constexpr uint64_t kRows = 200'000;

const char *const kLineitem =
    "SELECT i // 4 AS l_orderkey, (hash(i) % 200000)::BIGINT AS l_partkey, (hash(i + 1) % 10000)::BIGINT AS l_suppkey, "
    "i % 7 + 1 AS l_linenumber, "
    "(hash(i + 2) % 50 + 1)::DECIMAL(15,2) AS l_quantity, (hash(i + 3) % 10000000)::DECIMAL(18,0)::DECIMAL(15,2) / 100 "
    "AS price, "
    "((hash(i + 4) % 11) / 100)::DECIMAL(15,2) AS l_discount, ((hash(i + 5) % 9) / 100)::DECIMAL(15,2) AS l_tax, "
    "(['A', 'N', 'R'])[(hash(i + 6) % 3 + 1)::INTEGER] AS l_returnflag, (['O', 'F'])[(hash(i + 7) % 2 + 1)::INTEGER] "
    "AS l_linestatus, "
    "DATE '1992-01-01' + (hash(i + 8) % 2500)::INTEGER AS l_shipdate, DATE '1992-01-01' + (hash(i + 9) % "
    "2500)::INTEGER AS l_commitdate, "
    "DATE '1992-01-01' + (hash(i + 10) % 2500)::INTEGER AS l_receiptdate, "
    "(['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[(hash(i + 11) % 4 + 1)::INTEGER] AS "
    "l_shipinstruct, "
    "(['TRUCK', 'MAIL', 'SHIP', 'AIR', 'REG AIR', 'FOB', 'RAIL'])[(hash(i + 12) % 7 + 1)::INTEGER] AS l_shipmode, "
    "substr('carefully regular deposits sleep. blithely even requests nag furiously', (hash(i + 13) % 20 + "
    "1)::INTEGER, "
    "(hash(i + 14) % 34 + 10)::INTEGER) AS l_comment FROM range(200000) t(i)";

TestRows &lineitem(TestDb &db) {
    static TestRows rows = [&] {
        // price is a DOUBLE by division: bring it back.
        return db.rows("SELECT * REPLACE (price::DECIMAL(15,2) AS price) FROM (" + std::string(kLineitem) + ")");
    }();
    return rows;
}

TestDb &bench_db() {
    static TestDb db;
    return db;
}

void pg_rows_of(benchmark::State &state, const TestRows &rows, int16_t format, const std::string &zone = "UTC") {
    auto encoder = PgRowEncoder::make(rows.types, {format}, zone, bench_db().context());
    uint64_t bytes = 0, count = 0;
    std::string out;
    for (auto _ : state) {
        for (const auto &chunk : rows.chunks) {
            // As execution does: pieces of some 100 KiB, handed over.
            if (!(*encoder)->append(*chunk, 0, chunk->size(), out).ok()) state.SkipWithError("append");
            if (out.size() < 100'000) continue;
            bytes += out.size();
            benchmark::DoNotOptimize(out.data());
            out = {};
        }
        bytes += out.size();
        out.clear();
        for (const auto &chunk : rows.chunks) count += chunk->size();
    }
    state.SetBytesProcessed(static_cast<int64_t>(bytes));
    state.SetItemsProcessed(static_cast<int64_t>(count));
}

void BM_PgTextLineitem(benchmark::State &state) { pg_rows_of(state, lineitem(bench_db()), 0); }
void BM_PgBinaryLineitem(benchmark::State &state) { pg_rows_of(state, lineitem(bench_db()), 1); }
BENCHMARK(BM_PgTextLineitem)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PgBinaryLineitem)->Unit(benchmark::kMillisecond);

void pg_column(benchmark::State &state, const char *expression) {
    const auto rows = bench_db().rows(std::string("SELECT ") + expression + " FROM range(200000) t(i)");
    pg_rows_of(state, rows, static_cast<int16_t>(state.range(0)), "Europe/Berlin");
}
#define COLUMN_BENCH(name, expression)                                               \
    void BM_Column_##name(benchmark::State &state) { pg_column(state, expression); } \
    BENCHMARK(BM_Column_##name)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)
COLUMN_BENCH(bigint, "hash(i) >> 20");
COLUMN_BENCH(double, "hash(i) / 1e7");
COLUMN_BENCH(price, "((hash(i) % 10000000) / 100)::DOUBLE");
COLUMN_BENCH(decimal, "((hash(i) % 10000000) / 100)::DECIMAL(15,2)");
COLUMN_BENCH(hugeint, "hash(i)::HUGEINT * 1000000007");
COLUMN_BENCH(date, "DATE '1992-01-01' + (hash(i) % 2500)::INTEGER");
COLUMN_BENCH(timestamp, "make_timestamp((hash(i) % 1700000000000000)::BIGINT)");
COLUMN_BENCH(timestamptz, "make_timestamp((hash(i) % 1700000000000000)::BIGINT)::TIMESTAMPTZ");
COLUMN_BENCH(uuid, "md5(i::VARCHAR)::UUID");
COLUMN_BENCH(list, "[i, i + 1, NULL]");
COLUMN_BENCH(strukt, "{'a': i, 'b': 'text'}");

void BM_JsonPagesLineitem(benchmark::State &state) {
    const auto &rows = lineitem(bench_db());
    JsonPageEncoder encoder(rows.names, rows.types, ZoneOffsets::utc());
    uint64_t bytes = 0;
    for (auto _ : state) {
        for (const auto &chunk : rows.chunks) {
            std::string out = "[";
            encoder.append(*chunk, 0, chunk->size(), out);
            bytes += out.size();
        }
    }
    state.SetBytesProcessed(static_cast<int64_t>(bytes));
    state.SetItemsProcessed(static_cast<int64_t>(kRows) * static_cast<int64_t>(state.iterations()));
}
BENCHMARK(BM_JsonPagesLineitem)->Unit(benchmark::kMillisecond);

class CountingSink final : public ResultSink {
public:
    void header(const ResultHeader &) override {}
    bool rows(uint32_t, std::string bytes) override {
        total += bytes.size();
        return true;
    }
    uint64_t total = 0;
};

std::unique_ptr<ResultStore> bench_store(const std::string &dir) {
    std::filesystem::remove_all(dir);
    return std::move(ResultStore::open(dir, 86'400'000, uint64_t{1} << 40)).value();
}

Status save(ResultStore &store, const Uuid &id, const TestRows &rows) {
    ROOST_ASSIGN_OR_RETURN(auto writer, store.create(id, rows.names, rows.types, "UTC"));
    for (const auto &chunk : rows.chunks) ROOST_RETURN_IF_ERROR(writer->append(*chunk));
    return writer->finish();
}

void BM_StoreLineitem(benchmark::State &state) {
    const std::string dir = std::filesystem::temp_directory_path() / "roost_encode_bench";
    auto store = bench_store(dir);
    const Uuid id = Uuid::make();
    for (auto _ : state) {
        if (!save(*store, id, lineitem(bench_db())).ok()) state.SkipWithError("save");
    }
    state.SetItemsProcessed(static_cast<int64_t>(kRows) * static_cast<int64_t>(state.iterations()));
    const auto size = std::filesystem::file_size(dir + "/" + id.to_string() + ".rows");
    state.SetBytesProcessed(static_cast<int64_t>(size) * static_cast<int64_t>(state.iterations()));
    std::filesystem::remove_all(dir);
}
BENCHMARK(BM_StoreLineitem)->Unit(benchmark::kMillisecond);

void BM_ArrowLineitem(benchmark::State &state) {
    const std::string dir = std::filesystem::temp_directory_path() / "roost_encode_bench";
    auto store = bench_store(dir);
    const Uuid id = Uuid::make();
    if (!save(*store, id, lineitem(bench_db())).ok()) state.SkipWithError("save");
    uint64_t bytes = 0;
    for (auto _ : state) {
        auto reader = store->open_arrow(id);
        CountingSink sink;
        if (!(*reader)->step(sink).ok()) state.SkipWithError("step");
        bytes += sink.total;
    }
    state.SetBytesProcessed(static_cast<int64_t>(bytes));
    state.SetItemsProcessed(static_cast<int64_t>(kRows) * static_cast<int64_t>(state.iterations()));
    std::filesystem::remove_all(dir);
}
BENCHMARK(BM_ArrowLineitem)->Unit(benchmark::kMillisecond);

// The cost of a small stored statement: create, one row, finish, first page.
void BM_StoreOneRowAndPage(benchmark::State &state) {
    const std::string dir = std::filesystem::temp_directory_path() / "roost_encode_bench";
    auto store = bench_store(dir);
    const auto rows = bench_db().rows("SELECT 1 AS a, 'x' AS b");
    for (auto _ : state) {
        const Uuid id = Uuid::make();
        if (!save(*store, id, rows).ok() || !store->read_page(id, 0, 200).ok()) state.SkipWithError("save");
        (void)store->drop(id);
    }
    std::filesystem::remove_all(dir);
}
BENCHMARK(BM_StoreOneRowAndPage)->Unit(benchmark::kMicrosecond);

// Making an encoder with a time zone: what a statement with a TIMESTAMP WITH TIME ZONE column pays once.
void BM_MakeZonedEncoder(benchmark::State &state) {
    for (auto _ : state) {
        auto encoder =
            PgRowEncoder::make({duckdb::LogicalType::TIMESTAMP_TZ}, {}, "Europe/Berlin", bench_db().context());
        benchmark::DoNotOptimize(encoder);
    }
}
BENCHMARK(BM_MakeZonedEncoder)->Unit(benchmark::kMicrosecond);

void BM_MakeLineitemEncoder(benchmark::State &state) {
    for (auto _ : state) {
        auto encoder = PgRowEncoder::make(lineitem(bench_db()).types, {}, "Europe/Berlin", bench_db().context());
        benchmark::DoNotOptimize(encoder);
    }
}
BENCHMARK(BM_MakeLineitemEncoder)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace roost
