#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "engine/engine.h"
#include "engine/json_encoder.h"
#include "engine/result_file.h"
#include "engine/test_rows.h"

namespace roost {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kDayMs = 86'400'000;
constexpr uint64_t kPlenty = uint64_t{1} << 40;

class TempDir {
public:
    TempDir() {
        std::string pattern = fs::temp_directory_path() / "roost_results_XXXXXX";
        path_ = ::mkdtemp(pattern.data());
    }
    ~TempDir() { fs::remove_all(path_); }
    std::string path() const { return path_ + "/results"; }

private:
    std::string path_;
};

std::unique_ptr<ResultStore> open_store(const TempDir &dir, uint64_t max_bytes = kPlenty,
                                        int64_t retention_ms = kDayMs) {
    auto store = ResultStore::open(dir.path(), retention_ms, max_bytes);
    EXPECT_TRUE(store.ok()) << store.status().to_string();
    return std::move(store).value();
}

Status save(ResultStore &store, const Uuid &id, const TestRows &rows, const std::string &zone = "UTC") {
    ROOST_ASSIGN_OR_RETURN(auto writer, store.create(id, rows.names, rows.types, zone));
    for (const auto &chunk : rows.chunks) ROOST_RETURN_IF_ERROR(writer->append(*chunk));
    return writer->finish();
}

std::string file_of(const TempDir &dir, const Uuid &id) { return dir.path() + "/" + id.to_string() + ".rows"; }

std::string read_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string &path, const std::string &bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class CollectingSink final : public ResultSink {
public:
    void header(const ResultHeader &header) override {
        ++headers;
        columns = header.columns;
    }
    bool rows(uint32_t count, std::string bytes) override {
        row_count += count;
        stream += bytes;
        ++pieces;
        return false;
    }
    int headers = 0, pieces = 0;
    uint64_t row_count = 0;
    std::vector<Column> columns;
    std::string stream;
};

std::shared_ptr<arrow::Table> read_arrow(ResultStore &store, const Uuid &id, CollectingSink &sink) {
    auto reader = store.open_arrow(id);
    EXPECT_TRUE(reader.ok()) << reader.status().to_string();
    if (!reader.ok()) return nullptr;
    for (;;) {
        auto more = (*reader)->step(sink);
        EXPECT_TRUE(more.ok()) << more.status().to_string();
        if (!more.ok() || !*more) break;
    }
    auto stream = arrow::ipc::RecordBatchStreamReader::Open(
        std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(sink.stream)));
    EXPECT_TRUE(stream.ok()) << stream.status().ToString();
    auto table = (*stream)->ToTable();
    EXPECT_TRUE(table.ok()) << table.status().ToString();
    EXPECT_TRUE((*table)->Validate().ok());
    return *table;
}

TEST(ResultStore, PagesGiveEveryRowOnceAtAnyPageSize) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    for (const uint64_t count : {0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 100'000}) {
        const Uuid id = Uuid::make();
        const auto rows = db.rows("SELECT i, 'row ' || i AS s FROM range(" + std::to_string(count) + ") t(i)");
        ASSERT_TRUE(save(*store, id, rows).ok());
        for (const uint32_t limit : {999U, 1000U, 1024U, 4096U}) {
            uint64_t next = 0;
            for (;;) {
                auto page = store->read_page(id, next, limit);
                ASSERT_TRUE(page.ok()) << page.status().to_string();
                const auto document = json::parse(*page);
                ASSERT_EQ(document.size(), std::min<uint64_t>(limit, count - next));
                if (document.empty()) break;
                for (const auto &row : document) {
                    ASSERT_EQ(row["i"], next);
                    ASSERT_EQ(row["s"], "row " + std::to_string(next));
                    ++next;
                }
            }
            ASSERT_EQ(next, count);
        }
        EXPECT_EQ(*store->read_page(id, count + 5, 10), "[]");
        EXPECT_EQ(*store->read_page(id, UINT64_MAX, 10), "[]");
        EXPECT_EQ(*store->read_page(id, 0, 0), "[]");
    }
}

TEST(ResultStore, RandomPagesOfSeveralResultsAtOnceFromSeveralThreads) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    std::vector<Uuid> ids;
    for (int r = 0; r < 40; ++r) {
        ids.push_back(Uuid::make());
        ASSERT_TRUE(save(*store, ids.back(),
                         db.rows("SELECT i + " + std::to_string(r) + " * 1000000 AS v FROM range(10000) t(i)"))
                        .ok());
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int k = 0; k < 300; ++k) {
                const uint64_t r = random() % ids.size(), offset = random() % 10'000;
                const auto page = store->read_page(ids[r], offset, 3);
                const std::string first = "[{\"v\":" + std::to_string(r * 1'000'000 + offset) + "}";
                if (!page.ok() || !page->starts_with(first)) ++wrong;
            }
        });
    }
    for (auto &thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST(ResultStore, EveryTypeSurvivesLosslessly) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    for (const auto &column : random_columns()) {
        const Uuid id = Uuid::make();
        const auto rows = db.rows(random_select(column, 3000));
        ASSERT_TRUE(save(*store, id, rows).ok()) << column.type;
        auto file = ResultFile::open(file_of(dir, id));
        ASSERT_TRUE(file.ok()) << file.status().to_string();
        ASSERT_EQ((*file)->schema().types, rows.types);
        std::string buffer;
        for (uint64_t c = 0; c < (*file)->chunks(); ++c) {
            duckdb::DataChunk chunk;
            ASSERT_TRUE((*file)->read(c, chunk, buffer).ok());
            for (duckdb::idx_t i = 0; i < chunk.size(); ++i) {
                ASSERT_TRUE(duckdb::Value::NotDistinctFrom(chunk.GetValue(0, i), rows.chunks[c]->GetValue(0, i)))
                    << column.type;
            }
        }
    }
}

TEST(ResultStore, VectorsOfEveryKindComeBackAlike) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    // Constant, sequence, dictionary (a filter) and nested ones.
    const auto rows = db.rows(
        "SELECT 'constant' AS c, NULL::DATE AS n, i, s, e, {'a': s, 'i': i} AS st, [s, s] AS l, [{'n': i}] AS ls, MAP "
        "{s: i} AS m FROM "
        "(SELECT i, (i % 5)::VARCHAR || ' a value of more than twelve bytes' AS s, (['x', 'y'])[(i % 2 + "
        "1)::INTEGER]::ENUM('x', 'y') AS e "
        "FROM range(20000) t(i)) WHERE i % 3 = 1");
    JsonPageEncoder encoder(rows.names, rows.types, ZoneOffsets::utc());
    std::string want = "[";
    for (const auto &chunk : rows.chunks) encoder.append(*chunk, 0, chunk->size(), want);
    ASSERT_TRUE(save(*store, id, rows).ok());
    EXPECT_EQ(*store->read_page(id, 0, 100'000), want + "]");
    CollectingSink sink;
    const auto table = read_arrow(*store, id, sink);
    EXPECT_EQ(table->num_rows(), 6667);
    EXPECT_EQ((*table->GetColumnByName("s")->GetScalar(6666))->ToString(), "4 a value of more than twelve bytes");
}

TEST(ResultStore, TestAllTypesCanBePaged) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    const auto rows = db.rows("SELECT *, 42::VARIANT AS var, {'a': 1}::VARIANT AS var2 FROM test_all_types()");
    ASSERT_TRUE(save(*store, id, rows, "Europe/Berlin").ok());
    const auto page = store->read_page(id, 0, 3);
    ASSERT_TRUE(page.ok()) << page.status().to_string();
    EXPECT_NE(page->find("\"var2\":{\"a\":1}"), std::string::npos);
    auto file = ResultFile::open(file_of(dir, id));
    ASSERT_TRUE(file.ok());
    EXPECT_EQ((*file)->schema().time_zone, "Europe/Berlin");
}

TEST(ResultStore, NamesAreMadeUniqueInPagesAndArrow) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    ASSERT_TRUE(save(*store, id, db.rows("SELECT 1 AS a, 2 AS a, 3 AS \"A\"")).ok());
    EXPECT_EQ(*store->read_page(id, 0, 10), R"([{"a":1,"a_1":2,"A_2":3}])");
    CollectingSink sink;
    const auto table = read_arrow(*store, id, sink);
    EXPECT_EQ(table->ColumnNames(), (std::vector<std::string>{"a", "a_1", "A_2"}));
}

TEST(ResultStore, PagesTooLargeForMemoryAreRefused) {
    TempDir dir;
    auto store = open_store(dir);
    const Uuid id = Uuid::make();
    // A constant vector: 300 MB of rows, 3 MB on disk.
    TestRows rows{{"s"}, {duckdb::LogicalType::VARCHAR}, {}};
    rows.chunks.push_back(std::make_unique<duckdb::DataChunk>());
    rows.chunks[0]->InitializeEmpty({duckdb::LogicalType::VARCHAR});
    rows.chunks[0]->data[0].Reference(duckdb::Value(std::string(3'000'000, 'x')));
    rows.chunks[0]->SetCardinality(100);
    ASSERT_TRUE(save(*store, id, rows).ok());
    const auto page = store->read_page(id, 0, 100);
    ASSERT_FALSE(page.ok());
    EXPECT_EQ(page.status().sqlstate(), "54000");
    EXPECT_EQ(store->read_page(id, 99, 1)->size(), std::string(R"([{"s":""}])").size() + 3'000'000);
    // As Arrow they come in many batches, whatever the size on disk says.
    auto reader = store->open_arrow(id);
    ASSERT_TRUE(reader.ok());
    size_t largest = 0;
    for (bool more = true; more;) {
        CollectingSink sink;
        auto step = (*reader)->step(sink);
        ASSERT_TRUE(step.ok());
        more = *step;
        largest = std::max(largest, sink.stream.size());
    }
    EXPECT_GT(largest, 3'000'000U);
    EXPECT_LT(largest, 10'000'000U);
}

TEST(ResultStore, TimeZoneOfTheResultShowsInPages) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    ASSERT_TRUE(save(*store, id, db.rows("SELECT TIMESTAMPTZ '2024-07-01 00:00:00+00' AS t"), "America/New_York").ok());
    EXPECT_EQ(*store->read_page(id, 0, 1), R"([{"t":"2024-06-30 20:00:00-04"}])");
}

TEST(ResultStore, SurvivesAReopenAndDropsUnfinishedFiles) {
    TempDir dir;
    TestDb db;
    const Uuid done = Uuid::make(), half = Uuid::make(), torn = Uuid::make();
    {
        auto store = open_store(dir);
        ASSERT_TRUE(save(*store, done, db.rows("SELECT 42 AS v")).ok());
        ASSERT_TRUE(save(*store, torn, db.rows("SELECT i FROM range(10000) t(i)")).ok());
        auto writer = store->create(half, {"v"}, {duckdb::LogicalType::INTEGER}, "UTC");
        ASSERT_TRUE(writer.ok());
        // As after a crash: the file stays behind.
        fs::copy(fs::directory_entry(dir.path()).path(), dir.path() + "2");
        EXPECT_EQ(store->read_page(half, 0, 1).status().code(), Code::not_found);
    }
    fs::remove_all(dir.path());
    fs::rename(dir.path() + "2", dir.path());
    ASSERT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 3);
    fs::resize_file(file_of(dir, torn), fs::file_size(file_of(dir, torn)) - 100);
    auto store = open_store(dir);
    EXPECT_EQ(*store->read_page(done, 0, 1), R"([{"v":42}])");
    EXPECT_EQ(store->read_page(half, 0, 1).status().code(), Code::not_found);
    EXPECT_EQ(store->read_page(torn, 0, 1).status().code(), Code::not_found);
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

TEST(ResultStore, UnknownAndDroppedAreNotFound) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    EXPECT_EQ(store->read_page(id, 0, 1).status().code(), Code::not_found);
    EXPECT_EQ(store->open_arrow(id).status().code(), Code::not_found);
    EXPECT_TRUE(store->drop(id).ok());
    ASSERT_TRUE(save(*store, id, db.rows("SELECT 1 AS v")).ok());
    ASSERT_TRUE(store->read_page(id, 0, 1).ok());
    EXPECT_TRUE(store->drop(id).ok());
    EXPECT_EQ(store->read_page(id, 0, 1).status().code(), Code::not_found);
    EXPECT_FALSE(fs::exists(file_of(dir, id)));
}

TEST(ResultStore, SecondResultReplacesTheFirstAndItsPages) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    ASSERT_TRUE(save(*store, id, db.rows("SELECT 1 AS v")).ok());
    EXPECT_EQ(*store->read_page(id, 0, 1), R"([{"v":1}])");
    ASSERT_TRUE(save(*store, id, db.rows("SELECT 'two' AS w")).ok());
    EXPECT_EQ(*store->read_page(id, 0, 1), R"([{"w":"two"}])");
}

TEST(ResultStore, ArrowReadsToItsEndAfterADrop) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    ASSERT_TRUE(save(*store, id, db.rows("SELECT i FROM range(200000) t(i)")).ok());
    auto reader = store->open_arrow(id);
    ASSERT_TRUE(reader.ok());
    CollectingSink sink;
    ASSERT_TRUE((*reader)->step(sink).ok());
    ASSERT_TRUE(store->drop(id).ok());
    for (;;) {
        auto more = (*reader)->step(sink);
        ASSERT_TRUE(more.ok());
        if (!*more) break;
    }
    EXPECT_EQ(sink.row_count, 200'000U);
}

TEST(ResultStore, FullStoreRefusesNewRowsAndKeepsTheOld) {
    TempDir dir;
    auto store = open_store(dir, 400'000);
    TestDb db;
    const Uuid first = Uuid::make(), second = Uuid::make();
    const auto rows = db.rows("SELECT hash(i) AS h FROM range(30000) t(i)");  // about 240 kB
    ASSERT_TRUE(save(*store, first, rows).ok());
    const Status full = save(*store, second, rows);
    EXPECT_EQ(full.sqlstate(), "53100");
    EXPECT_EQ(full.code(), Code::resource_exhausted);
    EXPECT_TRUE(store->read_page(first, 29'999, 1).ok());
    EXPECT_EQ(store->read_page(second, 0, 1).status().code(), Code::not_found);
    // What the refused one had written is given back, and so is what a dropped one held.
    ASSERT_TRUE(store->drop(first).ok());
    EXPECT_TRUE(save(*store, second, rows).ok());
}

void age_file(const std::string &path, int64_t seconds) {
    struct timespec times[2] = {{::time(nullptr) - seconds, 0}, {::time(nullptr) - seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(ResultStore, SweepDropsWhatIsPastItsRetention) {
    TempDir dir;
    auto store = open_store(dir, kPlenty, 3'600'000);
    TestDb db;
    const Uuid old_id = Uuid::make(), new_id = Uuid::make();
    ASSERT_TRUE(save(*store, old_id, db.rows("SELECT 1 AS v")).ok());
    ASSERT_TRUE(save(*store, new_id, db.rows("SELECT 2 AS v")).ok());
    age_file(file_of(dir, old_id), 3'700);
    age_file(file_of(dir, new_id), 3'500);
    store->sweep();
    EXPECT_EQ(store->read_page(old_id, 0, 1).status().code(), Code::not_found);
    EXPECT_FALSE(fs::exists(file_of(dir, old_id)));
    EXPECT_TRUE(store->read_page(new_id, 0, 1).ok());
}

TEST(ResultStore, ExpiredResultsMakeRoomForNewOnes) {
    TempDir dir;
    auto store = open_store(dir, 400'000, 3'600'000);
    TestDb db;
    const Uuid first = Uuid::make(), second = Uuid::make();
    const auto rows = db.rows("SELECT hash(i) AS h FROM range(30000) t(i)");
    ASSERT_TRUE(save(*store, first, rows).ok());
    age_file(file_of(dir, first), 4'000);
    EXPECT_TRUE(save(*store, second, rows).ok());
    EXPECT_EQ(store->read_page(first, 0, 1).status().code(), Code::not_found);
}

// Whatever happens to the bytes of a file: an error, or the rows it had.
TEST(ResultStore, DamageIsAnErrorAndNeverOtherRows) {
    TempDir dir;
    TestDb db;
    const Uuid id = Uuid::make();
    std::string original, expected;
    {
        auto store = open_store(dir);
        ASSERT_TRUE(
            save(*store, id, db.rows("SELECT i, 'text ' || i AS s, i % 3 = 0 AS b FROM range(5000) t(i)")).ok());
        original = read_file(file_of(dir, id));
        expected = *store->read_page(id, 0, 5000);
    }
    std::mt19937 random(7);
    int detected = 0;
    for (int k = 0; k < 150; ++k) {
        std::string bytes = original;
        const size_t at = random() % bytes.size();
        switch (k % 4) {
            case 0:
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
                break;
            case 1:
                bytes.resize(at);
                break;
            case 2: {  // one piece over another
                const size_t from = random() % bytes.size(), length = 1 + random() % 4000;
                bytes.replace(at, length, original, from, length);
                break;
            }
            default:
                bytes.insert(at, 1 + random() % 20, '\0');
                break;
        }
        write_file(file_of(dir, id), bytes);
        auto file = ResultFile::open(file_of(dir, id));
        bool sound = file.ok();
        uint64_t seen = 0;
        std::string buffer;
        for (uint64_t c = 0; sound && c < (*file)->chunks(); ++c) {
            duckdb::DataChunk chunk;
            const Status read = (*file)->read(c, chunk, buffer);
            if (!read.ok()) {
                EXPECT_EQ(read.code(), Code::data_loss);
                sound = false;
                break;
            }
            for (duckdb::idx_t i = 0; i < chunk.size(); ++i, ++seen) {
                ASSERT_EQ(chunk.GetValue(0, i).GetValue<int64_t>(), static_cast<int64_t>(seen));
                ASSERT_EQ(chunk.GetValue(1, i).ToString(), "text " + std::to_string(seen));
            }
        }
        if (!sound) ++detected;
        if (sound) ASSERT_EQ(seen, 5000U);
        if (sound) ASSERT_EQ(bytes, original);
    }
    EXPECT_GT(detected, 100);
}

TEST(ResultStore, DamageFoundWhileServingIsDataLoss) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    ASSERT_TRUE(save(*store, id, db.rows("SELECT i FROM range(5000) t(i)")).ok());
    std::string bytes = read_file(file_of(dir, id));
    bytes[bytes.size() / 2] ^= 1;
    write_file(file_of(dir, id), bytes);
    const auto page = store->read_page(id, 0, 5000);
    ASSERT_FALSE(page.ok());
    EXPECT_EQ(page.status().code(), Code::data_loss);
    EXPECT_EQ(page.status().message().find(dir.path()), std::string::npos);
}

TEST(ResultStore, ArrowHasEveryRowInOrder) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    for (const uint64_t count : {0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 100'000}) {
        const Uuid id = Uuid::make();
        ASSERT_TRUE(
            save(*store, id, db.rows("SELECT i, 'row ' || i AS s FROM range(" + std::to_string(count) + ") t(i)"))
                .ok());
        CollectingSink sink;
        const auto table = read_arrow(*store, id, sink);
        ASSERT_EQ(table->num_rows(), static_cast<int64_t>(count));
        EXPECT_EQ(sink.row_count, count);
        EXPECT_EQ(sink.headers, 1);
        ASSERT_EQ(sink.columns.size(), 2U);
        EXPECT_EQ(sink.columns[1].type, "VARCHAR");
        int64_t next = 0;
        for (const auto &piece : table->column(0)->chunks()) {
            const auto &numbers = static_cast<const arrow::Int64Array &>(*piece);
            for (int64_t i = 0; i < numbers.length(); ++i) ASSERT_EQ(numbers.Value(i), next++);
        }
    }
}

std::shared_ptr<arrow::Table> arrow_of(const std::string &expression) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    EXPECT_TRUE(save(*store, id, db.rows("SELECT " + expression + " AS v"), "Europe/Berlin").ok());
    CollectingSink sink;
    return read_arrow(*store, id, sink);
}

TEST(ResultStore, ArrowTypesFollowTheContract) {
    const struct {
        const char *expression, *type, *value;
    } cases[] = {
        {"12345678901234567890123456789012345678::HUGEINT", "decimal128(38, 0)",
         "12345678901234567890123456789012345678"},
        {"7::UHUGEINT", "decimal128(38, 0)", "7"},
        {"1.50::DECIMAL(9,2)", "decimal128(9, 2)", "1.50"},
        {"DATE '2024-02-29'", "date32[day]", "2024-02-29"},
        {"TIME '01:02:03'", "time64[us]", "01:02:03.000000"},
        {"TIMESTAMP '2024-01-02 03:04:05'", "timestamp[us]", "2024-01-02 03:04:05.000000"},
        {"TIMESTAMPTZ '2024-01-02 03:04:05+00'", "timestamp[us, tz=Europe/Berlin]", "2024-01-02 03:04:05.000000Z"},
        {"'ab'::BLOB", "binary", "ab"},
        {"'0101'::BIT", "string", "0101"},
        {"'-12345678901234567890123456789012345678901234567890'::BIGNUM", "string",
         "-12345678901234567890123456789012345678901234567890"},
        {"{'a': [1, 'x'::VARIANT]}::VARIANT", "string", "{\"a\":[1,\"x\"]}"},
        {"['550e8400-e29b-41d4-a716-446655440000'::UUID]", "list<l: string>", nullptr},
        {"'[1]'::JSON", "string", "[1]"},
        {"'b'::ENUM('a', 'b')", "dictionary<values=string, indices=uint8, ordered=0>", nullptr},
        {"MAP {'k': 1}", "map<string, int32>", nullptr},
        {"{'a': 1}", "struct<a: int32>", nullptr},
        {"[1, 2]::INTEGER[2]", "fixed_size_list<: int32>[2]", nullptr},
    };
    for (const auto &[expression, type, value] : cases) {
        const auto table = arrow_of(expression);
        ASSERT_NE(table, nullptr) << expression;
        EXPECT_EQ(table->field(0)->type()->ToString(), type) << expression;
        if (value) EXPECT_EQ((*table->GetColumnByName("v")->GetScalar(0))->ToString(), value) << expression;
    }
}

TEST(ResultStore, ArrowTakesEveryTypeOfTheEngine) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const auto rows = db.rows("SELECT *, 42::VARIANT AS var FROM test_all_types()");
    for (size_t c = 0; c < rows.names.size(); ++c) {
        if (rows.names[c] == "uhugeint") continue;  // its largest value is refused, see below
        const Uuid id = Uuid::make();
        TestRows one =
            db.rows("SELECT \"" + rows.names[c] + "\" FROM (SELECT *, 42::VARIANT AS var FROM test_all_types())");
        ASSERT_TRUE(save(*store, id, one).ok());
        CollectingSink sink;
        const auto table = read_arrow(*store, id, sink);
        ASSERT_NE(table, nullptr) << rows.names[c];
        EXPECT_EQ(table->num_rows(), 3) << rows.names[c];
    }
}

TEST(ResultStore, ArrowUuidsAreTheCanonicalExtension) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    const auto rows =
        db.rows("SELECT i, CASE WHEN i % 3 > 0 THEN md5(i::VARCHAR)::UUID END AS u FROM range(70000) t(i)");
    ASSERT_TRUE(save(*store, id, rows).ok());
    CollectingSink sink;
    const auto table = read_arrow(*store, id, sink);
    EXPECT_EQ(table->field(1)->type()->ToString(), "extension<arrow.uuid>");
    ASSERT_EQ(table->num_rows(), 70'000);
    for (const int64_t row : {int64_t{0}, int64_t{1}, int64_t{65'535}, int64_t{65'536}, int64_t{69'998}}) {
        const auto want = rows.chunks[static_cast<size_t>(row / 2048)]->GetValue(1, static_cast<uint64_t>(row % 2048));
        const auto got = *table->column(1)->GetScalar(row);
        ASSERT_EQ(got->is_valid, !want.IsNull());
        if (want.IsNull()) continue;
        const auto &storage = static_cast<const arrow::ExtensionScalar &>(*got).value;
        EXPECT_EQ(to_hex(static_cast<const arrow::FixedSizeBinaryScalar &>(*storage).value->ToString()),
                  duckdb::StringUtil::Replace(want.ToString(), "-", ""));
    }
}

TEST(ResultStore, ArrowRefusesUhugeintsItWouldTurnNegative) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    for (const std::string expression : {"340282366920938463463374607431768211455::UHUGEINT",
                                         "[{'a': 170141183460469231731687303715884105728::UHUGEINT}]"}) {
        const Uuid id = Uuid::make();
        ASSERT_TRUE(save(*store, id, db.rows("SELECT " + expression + " AS big")).ok());
        auto reader = store->open_arrow(id);
        ASSERT_TRUE(reader.ok());
        CollectingSink sink;
        const auto step = (*reader)->step(sink);
        ASSERT_FALSE(step.ok());
        EXPECT_EQ(step.status().sqlstate(), "22003");
        EXPECT_NE(step.status().message().find("\"big\""), std::string::npos);
    }
}

TEST(ResultStore, ArrowCutsWideRowsByBytes) {
    TempDir dir;
    auto store = open_store(dir);
    TestDb db;
    const Uuid id = Uuid::make();
    ASSERT_TRUE(save(*store, id, db.rows("SELECT i, repeat('x', 200000) AS s FROM range(300) t(i)")).ok());
    CollectingSink sink;
    const auto table = read_arrow(*store, id, sink);
    EXPECT_EQ(table->num_rows(), 300);
    EXPECT_GT(table->column(0)->num_chunks(), 3);
    EXPECT_GT(sink.pieces, 3);
}

}  // namespace
}  // namespace roost
