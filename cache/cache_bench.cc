// What the cache costs beside a plain local file, on a real directory (BENCH_DIRECTORY, else the temporary one; its
// pages are in the kernel's cache unless it is larger than memory): the hit path by block size and by size of a read,
// keeping a block, the record of one, and opening a directory of a million blocks.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/random.h"
#include "cache/segment_cache.h"

namespace roost::cache {
namespace {

constexpr uint64_t kFileBytes = 256ULL << 20;

std::string directory() {
    const char *named = getenv("BENCH_DIRECTORY");
    const std::string base = named != nullptr ? named : std::filesystem::temp_directory_path().string();
    return base + "/roost_cache_bench." + std::to_string(getpid());
}

struct Directory {
    Directory() { std::filesystem::remove_all(path); }
    ~Directory() { std::filesystem::remove_all(path); }
    const std::string path = directory();
};

std::string noise(size_t bytes) {
    SeededRandom random(1);
    std::string text(bytes, '\0');
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        const uint64_t word = random.next();
        std::copy_n(reinterpret_cast<const char *>(&word), 8, text.begin() + static_cast<int64_t>(i));
    }
    return text;
}

// Answers from memory: what is measured is the cache.
class MemoryStore final : public Store {
public:
    Status fetch(const FileKey &, uint64_t offset, size_t length, char *buffer, const Patience &, Source &) override {
        std::copy_n(bytes_.begin() + static_cast<int64_t>(offset % (bytes_.size() / 2)), length, buffer);
        return Status();
    }

private:
    const std::string bytes_ = noise(32 << 20);
};

std::unique_ptr<SegmentCache> open_cache(const std::string &path, uint32_t block_bytes, uint64_t max_bytes,
                                         Clock &clock, obs::Log &log) {
    SegmentCacheOptions options;
    options.blocks.block_bytes = block_bytes;
    options.blocks.max_bytes = max_bytes;
    options.blocks.free_floor_bytes = 0;
    options.fetch_threads = 0;
    return std::move(*SegmentCache::open(make_posix_disk(path), options, clock, log));
}

// --- the hit path: range(0) is the block, range(1) the read

void BM_hit(benchmark::State &state) {
    const auto block_bytes = static_cast<uint32_t>(state.range(0));
    const auto length = static_cast<size_t>(state.range(1));
    Directory directory;
    SystemClock clock;
    auto log = obs::make_null_log();
    auto cache = open_cache(directory.path, block_bytes, 2 * kFileBytes, clock, *log);
    auto reader =
        cache->reader({"file", std::string(kImmutable), kFileBytes}, "t", std::make_shared<MemoryStore>(), nullptr);
    if (!reader->warm(0, kFileBytes, {}).ok()) abort();
    std::string buffer(length, '\0');
    uint64_t at = 0;
    for (auto _ : state) {
        if (!reader->read(at, length, buffer.data(), {}).ok()) abort();
        at = (at + length) % kFileBytes;
    }
    if (cache->totals().fetches > kFileBytes / (8 << 20) + 1) abort();
    state.SetBytesProcessed(state.iterations() * state.range(1));
}

void BM_plain_file(benchmark::State &state) {
    const auto length = static_cast<size_t>(state.range(0));
    Directory directory;
    std::filesystem::create_directory(directory.path);
    const int fd = open((directory.path + "/file").c_str(), O_RDWR | O_CREAT, 0600);
    const std::string piece = noise(1 << 20);
    for (uint64_t at = 0; at < kFileBytes; at += piece.size()) {
        if (pwrite(fd, piece.data(), piece.size(), static_cast<off_t>(at)) < 0) abort();
    }
    std::string buffer(length, '\0');
    uint64_t at = 0;
    for (auto _ : state) {
        if (pread(fd, buffer.data(), length, static_cast<off_t>(at)) != static_cast<ssize_t>(length)) abort();
        benchmark::DoNotOptimize(buffer.data());
        at = (at + length) % kFileBytes;
    }
    close(fd);
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

// --- what a miss adds to the request: one block kept, with an eviction each once the cache is full

void BM_keep_a_block(benchmark::State &state) {
    const auto block_bytes = static_cast<uint32_t>(state.range(0));
    Directory directory;
    SystemClock clock;
    auto log = obs::make_null_log();
    auto cache = open_cache(directory.path, block_bytes, 64ULL << 20, clock, *log);
    const std::string data = noise(block_bytes);
    uint64_t files = 0;
    for (auto _ : state) {
        const FileKey key{"file " + std::to_string(files++), "1", block_bytes};
        if (!cache->blocks().put(cache->blocks().file(key, "t"), 0, data, BlockKind::data)) abort();
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

// --- the index alone: one record written in place

void BM_index_update(benchmark::State &state) {
    Directory directory;
    std::filesystem::create_directory(directory.path);
    auto disk = make_posix_disk(directory.path);
    if (!disk->mount().ok()) abort();
    auto index = std::move(*disk->open("index"));
    BlockRecord record{Uuid::make(), 1, 1 << 20, BlockKind::data, 0, {}};
    uint32_t slot = 0;
    for (auto _ : state) {
        ++record.sequence;
        const auto bytes = encode_block(record, slot, 7);
        if (!index->write_at(uint64_t{slot} * kRecordBytes, {bytes.data(), bytes.size()}).ok()) abort();
        slot = (slot + 7919) % 1'000'000;
    }
}

// --- opening: range(0) blocks, of files of 100 each

void BM_open(benchmark::State &state) {
    const auto blocks = static_cast<uint32_t>(state.range(0));
    constexpr uint32_t kBlock = 1 << 20, kPerFile = 100;
    Directory directory;
    SystemClock clock;
    auto log = obs::make_null_log();
    const uint64_t max_bytes = 2 * uint64_t{blocks} * kBlock;
    open_cache(directory.path, kBlock, max_bytes, clock, *log).reset();
    auto disk = make_posix_disk(directory.path);
    if (!disk->mount().ok()) abort();
    const uint64_t seed = checksum(decode_identity(*disk->read_whole("identity", 4096))->identity.raw());
    std::string files, index;
    for (uint32_t block = 0; block < blocks; ++block) {
        const FileKey key{
            "s3://bucket/lake/main/table/ducklake-0198c0de-" + std::to_string(block / kPerFile) + ".parquet",
            std::string(kImmutable), uint64_t{kPerFile} * kBlock};
        if (block % kPerFile == 0) files += encode_file({key, "main.table", false, block}, seed);
        const auto record = encode_block({key.id(), block % kPerFile, kBlock, BlockKind::data, block, {}}, block, seed);
        index.append(record.data(), record.size());
    }
    if (!disk->replace("files.a", files).ok() || !disk->replace("index", index).ok()) abort();
    disk.reset();
    for (auto _ : state) {
        auto cache = open_cache(directory.path, kBlock, max_bytes, clock, *log);
        if (cache->blocks().warm_blocks() != blocks) abort();
        state.PauseTiming();
        cache.reset();
        state.ResumeTiming();
    }
}

constexpr int64_t kKiB = 1024;

BENCHMARK(BM_plain_file)->Arg(4 * kKiB)->Arg(64 * kKiB)->Arg(1024 * kKiB)->Arg(4096 * kKiB);
BENCHMARK(BM_hit)->ArgsProduct({{256 * kKiB, 512 * kKiB, 1024 * kKiB, 2048 * kKiB, 4096 * kKiB},
                                {4 * kKiB, 64 * kKiB, 1024 * kKiB, 4096 * kKiB}});
BENCHMARK(BM_keep_a_block)->Arg(256 * kKiB)->Arg(1024 * kKiB)->Arg(4096 * kKiB)->Iterations(500);
BENCHMARK(BM_index_update);
BENCHMARK(BM_open)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace roost::cache
