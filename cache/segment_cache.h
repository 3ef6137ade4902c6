// The segment cache of a node: reads of the store's files, kept on the node's disk. One object a process, made in app/
// and shared by all instances; thread-safe. A CacheReader is one open file of one reader, a CacheWriter one file that
// is being written; each belongs to one thread at a time and must not outlive the cache.
//
// What it promises: the bytes of the file at the version asked for, or an error of the store. Whatever the disk does
// costs time, never bytes. A missing block is fetched once however many threads want it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache/block_store.h"
#include "cache/read_ahead.h"
#include "cache/store.h"
#include "cache/workers.h"
#include "obs/log.h"
#include "obs/metrics.h"

namespace roost::cache {

struct SegmentCacheOptions {
    BlockStoreOptions blocks;
    uint64_t fetch_max_bytes = 16 << 20;       // of one request; a row group that DuckDB reads at once should fit
    uint64_t read_ahead_max_bytes = 32 << 20;  // ahead of one reader; 0: none
    uint64_t recent_max_bytes = 64 << 20;      // of memory: fetched and not on the disk
    uint32_t fetch_threads = 32;               // beside the readers' own; 0: everything in turn
    uint64_t in_flight_max_bytes = 128 << 20;  // asked for at once by those threads
};

// What reads cost. A statement has its own, the cache one of all. Readers add, anybody looks.
struct ReadStats {
    std::atomic<uint64_t> store_bytes{0}, peer_bytes{0};  // fetched
    std::atomic<uint64_t> cache_bytes{0};                 // read and found here
    std::atomic<uint64_t> hits{0}, misses{0};  // blocks, as often as asked for; a miss is fetched by this reader
    std::atomic<uint64_t> joined{0};           // blocks that another reader was fetching
    std::atomic<uint64_t> fetches{0};          // requests to the store
    std::atomic<uint64_t> ahead_bytes{0};      // of store_bytes and peer_bytes, those nobody had asked for yet
    uint64_t statement = 0;                    // of SegmentCache::make_stats()
};

class SegmentCache;
class CacheReader;
class CacheWriter;

class SegmentCache {
public:
    // Errors: as BlockStore::open.
    static Result<std::unique_ptr<SegmentCache>> open(std::unique_ptr<Disk> disk, SegmentCacheOptions options,
                                                      Clock &clock, obs::Log &log);
    ~SegmentCache();

    // For a statement's readers: its uses of a block count once.
    std::shared_ptr<ReadStats> make_stats();

    // `tag`: the unit that the file belongs to, such as a table. `stats` may be null.
    std::unique_ptr<CacheReader> reader(const FileKey &key, std::string_view tag, std::shared_ptr<Store> store,
                                        std::shared_ptr<ReadStats> stats);
    // A file that will be known by its key once it is closed.
    std::unique_ptr<CacheWriter> writer();

    // What is warm, by file and by unit; pin and evict by hand; probes: see BlockStore.
    BlockStore &blocks() { return *blocks_; }
    // To be called every few seconds: probes a disk that failed, keeps the floor.
    void tick() { blocks_->tick(); }

    const ReadStats &totals() const { return totals_; }
    uint64_t fetches_in_flight();  // blocks
    obs::CacheGauges gauges();     // for obs::Metrics::cache, or a heartbeat that carries them there
    const Clock &clock() const { return clock_; }

private:
    friend class CacheReader;
    friend class CacheWriter;

    // One block on its way from the store.
    struct Flight {
        enum class State : uint8_t { running, done, failed } state = State::running;
        Status status;                        // of a failed one
        std::shared_ptr<const char[]> bytes;  // of a done one: the whole fetch
        size_t at = 0, length = 0;            // of this block in it
        CondVar landed;
    };
    struct FlightKey {
        BlockStore::FileRef file;
        uint32_t block = 0;
        bool operator==(const FlightKey &) const = default;
    };
    struct FlightHash {
        size_t operator()(const FlightKey &key) const {
            return std::hash<const void *>()(key.file.get()) ^ key.block * 0x9E3779B97F4A7C15;
        }
    };
    using FlightRef = std::shared_ptr<Flight>;
    // Adjacent blocks that one request fetches.
    struct Run {
        uint32_t first = 0;
        std::vector<FlightRef> flights;
    };
    // What a fetch works for; outlives the reader.
    struct Job {
        BlockStore::FileRef file;
        std::shared_ptr<Store> store;
        std::shared_ptr<ReadStats> stats;
        Patience patience;
        BlockKind kind = BlockKind::data;
        bool ahead = false;
    };

    SegmentCache(std::unique_ptr<BlockStore> blocks, SegmentCacheOptions options, Clock &clock);

    // The flights that this caller has to fetch among `blocks`, as runs; those of others are added to `joined`. Blocks
    // that are on the disk by now are in neither.
    std::vector<Run> take_off(const BlockStore::FileRef &file, const std::vector<uint32_t> &blocks,
                              std::vector<std::pair<uint32_t, FlightRef>> *joined);
    // Fetches a run, tells who waits, and keeps its blocks. All flights of it have landed afterwards.
    Status fetch(const Job &job, const Run &run);
    // The same by a thread of the cache, once there is memory for it. False: too much waits.
    bool fetch_beside(const Job &job, const Run &run);
    size_t length_of(const Job &job, const Run &run) const;
    void land(const Job &job, const Run &run, const Status &status, std::shared_ptr<const char[]> bytes, size_t length);
    void keep_recent(const FlightKey &key, const FlightRef &flight) ROOST_REQUIRES(flights_mutex_);
    // Waits for a flight. Errors of its fetch, or of the patience.
    Status await(const FlightRef &flight, const Patience &patience);
    void tick_if_due();
    // One way through a file for all handles that a statement has of it: its threads take row groups in turn.
    struct Ahead {
        explicit Ahead(ReadAhead a) : plan(std::move(a)) {}
        Mutex mutex;
        ReadAhead plan ROOST_GUARDED_BY(mutex);
    };
    std::shared_ptr<Ahead> ahead_of(const BlockStore::FileRef &file, uint64_t statement);
    std::shared_ptr<const FileLayout> layout_of(const BlockStore::FileRef &file);
    void keep_layout(const BlockStore::FileRef &file, std::shared_ptr<const FileLayout> layout);

    const SegmentCacheOptions options_;
    Clock &clock_;
    std::unique_ptr<BlockStore> blocks_;
    ReadStats totals_;
    std::atomic<uint64_t> statements_{0};
    std::atomic<int64_t> tick_at_us_{0};
    std::shared_ptr<CancelFlag> closing_ = std::make_shared<CancelFlag>();

    Mutex flights_mutex_;
    std::unordered_map<FlightKey, FlightRef, FlightHash> flights_ ROOST_GUARDED_BY(flights_mutex_);
    std::deque<FlightKey> recent_ ROOST_GUARDED_BY(flights_mutex_);  // done, and not on the disk
    uint64_t recent_bytes_ ROOST_GUARDED_BY(flights_mutex_) = 0;
    uint64_t running_ ROOST_GUARDED_BY(flights_mutex_) = 0;
    struct KnownLayout {
        std::weak_ptr<BlockStore::File> file;
        std::shared_ptr<const FileLayout> layout;
    };
    Mutex layouts_mutex_;
    std::unordered_map<const void *, KnownLayout> layouts_ ROOST_GUARDED_BY(layouts_mutex_);  // by file
    std::deque<const void *> layouts_order_ ROOST_GUARDED_BY(layouts_mutex_);
    Mutex aheads_mutex_;
    std::map<std::pair<const void *, uint64_t>, std::weak_ptr<Ahead>> aheads_ ROOST_GUARDED_BY(aheads_mutex_);
    size_t sweep_at_aheads_ ROOST_GUARDED_BY(aheads_mutex_) = 256;
    Mutex in_flight_mutex_;
    CondVar in_flight_less_;
    uint64_t in_flight_bytes_ ROOST_GUARDED_BY(in_flight_mutex_) = 0;  // by workers_
    std::unique_ptr<Workers> workers_;                                 // last: its threads use the rest
};

class CacheReader {
public:
    const FileKey &key() const { return key_; }
    // Exactly this range. Errors: invalid_argument (past the end), cancelled, timeout, and those of the store.
    Status read(uint64_t offset, size_t length, char *buffer, const Patience &patience);
    // All of the file is on the disk now; of a Parquet file, all of its row groups.
    bool all_here();
    // What is missing of these ranges is fetched beside, if nobody does already and not too much waits.
    void fetch_soon(const std::vector<ByteRange> &ranges, const Patience &patience);
    // What will be read, in this order: fetched ahead, as far as options allow.
    void expect(std::vector<ByteRange> ranges);
    // Fetches what is missing of the range, and keeps it.
    Status warm(uint64_t offset, uint64_t length, const Patience &patience);

private:
    friend class SegmentCache;
    CacheReader(SegmentCache &cache, FileKey key, BlockStore::FileRef file, std::shared_ptr<Store> store,
                std::shared_ptr<ReadStats> stats);

    struct Span {  // of the caller's range, what lies in one block
        uint32_t block;
        uint32_t offset;
        size_t length;
        char *target;  // null: only to be kept
    };
    Status read_spans(std::vector<Span> spans, const Patience &patience, BlockKind kind);
    Status fetch_all(const SegmentCache::Job &job, const std::vector<SegmentCache::Run> &runs);
    Span span_at(uint64_t at, uint64_t end, char *target) const;
    bool read_here(const Span &span, BlockKind kind);
    Status read_around(uint64_t offset, size_t length, char *buffer, const Patience &patience);
    void read_ahead(uint64_t offset, size_t length, const Patience &patience);
    BlockKind kind_of(uint64_t offset, size_t length);
    // A read of a Parquet footer says where the column chunks are: for reading ahead and for what to prefer, to all
    // readers of the file from then on.
    void learn_layout(uint64_t offset, size_t length, const char *bytes);
    void count(std::atomic<uint64_t> ReadStats::*counter, uint64_t by);

    SegmentCache &cache_;
    const FileKey key_;
    const BlockStore::FileRef file_;  // null: can't be cached
    const std::shared_ptr<Store> store_;
    const std::shared_ptr<ReadStats> stats_;
    const std::shared_ptr<SegmentCache::Ahead> ahead_;  // with those of the statement that read the same file
    Mutex mutex_;
    std::shared_ptr<const BlockStore::Grain> last_grain_ ROOST_GUARDED_BY(mutex_);
    ByteRange metadata_ ROOST_GUARDED_BY(mutex_);  // of a Parquet file, once its last bytes were read
};

class CacheWriter {
public:
    ~CacheWriter();
    // The next bytes of the file. After a write elsewhere than at the end, or a fault of the disk, nothing is kept.
    void append(uint64_t offset, std::string_view bytes);
    // The file is closed and has this key: its blocks are warm from now on. Returns the bytes kept.
    uint64_t commit(const FileKey &key, std::string_view tag);
    void abandon();

private:
    friend class SegmentCache;
    explicit CacheWriter(SegmentCache &cache) : cache_(cache) {}
    void stage();

    SegmentCache &cache_;
    bool given_up_ = false;
    uint64_t size_bytes_ = 0;
    std::string tail_;  // less than a block
    std::vector<BlockStore::Staged> staged_;
};

}  // namespace roost::cache
