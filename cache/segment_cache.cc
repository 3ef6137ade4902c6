#include "cache/segment_cache.h"

#include <algorithm>
#include <cstring>

#include "cache/parquet_layout.h"

namespace roost::cache {
namespace {

constexpr int64_t kTickEveryUs = 1'000'000;
constexpr std::chrono::milliseconds kLookUp(10);  // how long a wait goes on before it looks at its patience
constexpr size_t kWaitingTasksMax = 256;
constexpr uint64_t kFooterMaxBytes = 16 << 20;
constexpr size_t kLayoutsMax = 4096;
constexpr size_t kSpansAtOnce = 256;  // blocks of one read that are leased or fetched together

// The fetch of another caller ended for a reason that is not ours.
bool reason_of_its_own(Code code) { return code == Code::cancelled || code == Code::timeout; }

// Both wishes.
class EitherCancelled final : public Cancellation {
public:
    EitherCancelled(std::shared_ptr<const Cancellation> a, std::shared_ptr<const Cancellation> b)
        : a_(std::move(a)), b_(std::move(b)) {}
    bool requested() const override { return (a_ && a_->requested()) || b_->requested(); }

private:
    const std::shared_ptr<const Cancellation> a_, b_;
};

}  // namespace

Result<std::unique_ptr<SegmentCache>> SegmentCache::open(std::unique_ptr<Disk> disk, SegmentCacheOptions options,
                                                         Clock &clock, obs::Log &log) {
    ROOST_ASSIGN_OR_RETURN(auto blocks, BlockStore::open(std::move(disk), options.blocks, clock, log));
    return std::unique_ptr<SegmentCache>(new SegmentCache(std::move(blocks), options, clock));
}

SegmentCache::SegmentCache(std::unique_ptr<BlockStore> blocks, SegmentCacheOptions options, Clock &clock)
    : options_(options),
      clock_(clock),
      blocks_(std::move(blocks)),
      workers_(std::make_unique<Workers>(options.fetch_threads, kWaitingTasksMax)) {}

SegmentCache::~SegmentCache() {
    closing_->cancel();
    workers_.reset();
}

std::shared_ptr<ReadStats> SegmentCache::make_stats() {
    auto stats = std::make_shared<ReadStats>();
    stats->statement = ++statements_;
    return stats;
}

std::unique_ptr<CacheReader> SegmentCache::reader(const FileKey &key, std::string_view tag,
                                                  std::shared_ptr<Store> store, std::shared_ptr<ReadStats> stats) {
    if (!stats) stats = make_stats();
    return std::unique_ptr<CacheReader>(
        new CacheReader(*this, key, blocks_->file(key, tag), std::move(store), std::move(stats)));
}

std::unique_ptr<CacheWriter> SegmentCache::writer() { return std::unique_ptr<CacheWriter>(new CacheWriter(*this)); }

uint64_t SegmentCache::fetches_in_flight() {
    MutexLock lock(flights_mutex_);
    return running_;
}

obs::CacheGauges SegmentCache::gauges() {
    const StoreCounters blocks = blocks_->counters();
    obs::CacheGauges gauges;
    gauges.store_bytes = totals_.store_bytes;
    gauges.peer_bytes = totals_.peer_bytes;
    gauges.cache_bytes = totals_.cache_bytes;
    gauges.hits = totals_.hits;
    gauges.misses = totals_.misses;
    gauges.joined = totals_.joined;
    gauges.fetches = totals_.fetches;
    gauges.inserted = blocks.inserted_blocks;
    gauges.evicted = blocks.evicted_blocks;
    gauges.refused = blocks.refused_blocks;
    gauges.corrupt = blocks.corrupt_blocks;
    gauges.fetches_in_flight = fetches_in_flight();
    gauges.warm_bytes = blocks_->warm_bytes();
    gauges.room_bytes = blocks_->room_bytes();
    gauges.disk_mode = static_cast<uint64_t>(blocks_->state().mode);
    return gauges;
}

void SegmentCache::tick_if_due() {
    const int64_t now = clock_.monotonic_us();
    int64_t due = tick_at_us_.load(std::memory_order_relaxed);
    if (now < due || !tick_at_us_.compare_exchange_strong(due, now + kTickEveryUs)) return;
    blocks_->tick();
}

// ---- flights

std::vector<SegmentCache::Run> SegmentCache::take_off(const BlockStore::FileRef &file,
                                                      const std::vector<uint32_t> &blocks,
                                                      std::vector<std::pair<uint32_t, FlightRef>> *joined) {
    const size_t run_max = std::max<size_t>(1, options_.fetch_max_bytes / blocks_->block_bytes());
    std::vector<Run> runs;
    MutexLock lock(flights_mutex_);
    for (const uint32_t block : blocks) {
        const auto [it, first] = flights_.try_emplace({file, block});
        if (!first) {
            if (joined != nullptr) joined->emplace_back(block, it->second);
            continue;
        }
        // Whoever fetched it puts it on the disk before its flight goes.
        if (blocks_->holds(file, block)) {
            flights_.erase(it);
            continue;
        }
        it->second = std::make_shared<Flight>();
        ++running_;
        const bool adjacent = !runs.empty() && runs.back().first + runs.back().flights.size() == block;
        if (!adjacent || runs.back().flights.size() >= run_max) runs.push_back({block, {}});
        runs.back().flights.push_back(it->second);
    }
    return runs;
}

size_t SegmentCache::length_of(const Job &job, const Run &run) const {
    const uint64_t block_bytes = blocks_->block_bytes();
    return std::min<uint64_t>(run.flights.size() * block_bytes,
                              BlockStore::key(job.file).size_bytes - run.first * block_bytes);
}

bool SegmentCache::fetch_beside(const Job &job, const Run &run) {
    return workers_->post([this, job, run] {
        const size_t length = length_of(job, run);
        {
            MutexLock lock(in_flight_mutex_);
            while (in_flight_bytes_ > 0 && in_flight_bytes_ + length > options_.in_flight_max_bytes) {
                in_flight_less_.wait(in_flight_mutex_);
            }
            in_flight_bytes_ += length;
        }
        (void)fetch(job, run);
        {
            MutexLock lock(in_flight_mutex_);
            in_flight_bytes_ -= length;
        }
        in_flight_less_.notify_all();
    });
}

Status SegmentCache::fetch(const Job &job, const Run &run) {
    const FileKey &key = BlockStore::key(job.file);
    const uint64_t offset = run.first * uint64_t{blocks_->block_bytes()};
    const size_t length = length_of(job, run);
    std::shared_ptr<char[]> bytes(new char[length]);
    Source from = Source::store;
    Patience patience = job.patience;
    patience.cancellation = std::make_shared<EitherCancelled>(patience.cancellation, closing_);
    Status status = patience.left(clock_);
    if (status.ok()) {
        for (ReadStats *stats : {job.stats.get(), &totals_}) ++stats->fetches;
        status = job.store->fetch(key, offset, length, bytes.get(), patience, from);
    }
    if (status.ok()) {
        for (ReadStats *stats : {job.stats.get(), &totals_}) {
            (from == Source::peer ? stats->peer_bytes : stats->store_bytes) += length;
            if (job.ahead) stats->ahead_bytes += length;
        }
    }
    land(job, run, status, std::move(bytes), length);
    return status;
}

void SegmentCache::land(const Job &job, const Run &run, const Status &status, std::shared_ptr<const char[]> bytes,
                        size_t length) {
    const uint64_t block_bytes = blocks_->block_bytes();
    {
        MutexLock lock(flights_mutex_);
        for (size_t i = 0; i < run.flights.size(); ++i) {
            Flight &flight = *run.flights[i];
            flight.state = status.ok() ? Flight::State::done : Flight::State::failed;
            flight.status = status;
            flight.bytes = bytes;
            flight.at = i * block_bytes;
            flight.length = std::min<uint64_t>(block_bytes, length - flight.at);
            --running_;
            if (!status.ok()) flights_.erase({job.file, run.first + static_cast<uint32_t>(i)});
            flight.landed.notify_all();
        }
    }
    if (!status.ok()) return;
    for (size_t i = 0; i < run.flights.size(); ++i) {
        const auto block = run.first + static_cast<uint32_t>(i);
        const FlightRef &flight = run.flights[i];
        const bool kept = blocks_->put(job.file, block, {bytes.get() + flight->at, flight->length}, job.kind);
        MutexLock lock(flights_mutex_);
        if (kept) {
            flights_.erase({job.file, block});
        } else {
            keep_recent({job.file, block}, flight);
        }
    }
}

void SegmentCache::keep_recent(const FlightKey &key, const FlightRef &flight) {
    recent_.push_back(key);
    recent_bytes_ += flight->length;
    while (recent_bytes_ > options_.recent_max_bytes && !recent_.empty()) {
        const auto oldest = flights_.find(recent_.front());
        recent_bytes_ -= oldest->second->length;
        flights_.erase(oldest);
        recent_.pop_front();
    }
}

Status SegmentCache::await(const FlightRef &flight, const Patience &patience) {
    MutexLock lock(flights_mutex_);
    while (flight->state == Flight::State::running) {
        ROOST_RETURN_IF_ERROR(patience.left(clock_));
        flight->landed.wait_for(flights_mutex_, kLookUp);
    }
    return flight->status;
}

// ---- layouts

std::shared_ptr<SegmentCache::Ahead> SegmentCache::ahead_of(const BlockStore::FileRef &file, uint64_t statement) {
    MutexLock lock(aheads_mutex_);
    if (aheads_.size() >= sweep_at_aheads_) {
        std::erase_if(aheads_, [](const auto &entry) { return entry.second.expired(); });
        sweep_at_aheads_ = 2 * aheads_.size() + 256;
    }
    std::weak_ptr<Ahead> &known = aheads_[{file.get(), statement}];
    auto ahead = known.lock();
    if (ahead) return ahead;
    const uint64_t bytes = file ? BlockStore::key(file).size_bytes : 0;
    ReadAhead plan(bytes, options_.fetch_threads > 0 ? options_.read_ahead_max_bytes : 0);
    if (file) plan.learn(layout_of(file));
    ahead = std::make_shared<Ahead>(std::move(plan));
    known = ahead;
    return ahead;
}

std::shared_ptr<const FileLayout> SegmentCache::layout_of(const BlockStore::FileRef &file) {
    MutexLock lock(layouts_mutex_);
    const auto found = layouts_.find(file.get());
    // Another file may live where a forgotten one did.
    if (found == layouts_.end() || found->second.file.lock() != file) return nullptr;
    return found->second.layout;
}

void SegmentCache::keep_layout(const BlockStore::FileRef &file, std::shared_ptr<const FileLayout> layout) {
    MutexLock lock(layouts_mutex_);
    if (!layouts_.contains(file.get())) layouts_order_.push_back(file.get());
    layouts_[file.get()] = {file, std::move(layout)};
    while (layouts_order_.size() > kLayoutsMax) {
        layouts_.erase(layouts_order_.front());
        layouts_order_.pop_front();
    }
}

// ---- reading

CacheReader::CacheReader(SegmentCache &cache, FileKey key, BlockStore::FileRef file, std::shared_ptr<Store> store,
                         std::shared_ptr<ReadStats> stats)
    : cache_(cache),
      key_(std::move(key)),
      file_(std::move(file)),
      store_(std::move(store)),
      stats_(std::move(stats)),
      ahead_(cache.ahead_of(file_, stats_->statement)) {}

void CacheReader::count(std::atomic<uint64_t> ReadStats::*counter, uint64_t by) {
    (*stats_).*counter += by;
    cache_.totals_.*counter += by;
}

void CacheReader::expect(std::vector<ByteRange> ranges) {
    MutexLock lock(ahead_->mutex);
    ahead_->plan.expect(std::move(ranges));
}

void CacheReader::learn_layout(uint64_t offset, size_t length, const char *bytes) {
    {
        MutexLock lock(ahead_->mutex);
        if (ahead_->plan.layout() != nullptr) return;
    }
    ByteRange metadata;
    {
        MutexLock lock(mutex_);
        if (offset + length == key_.size_bytes && length >= 8) {
            const auto range = parquet_metadata_range({bytes + length - 8, 8}, key_.size_bytes);
            if (range) metadata_ = *range;
        }
        metadata = metadata_;
    }
    if (metadata.length == 0 || offset > metadata.offset || offset + length < metadata.end()) return;
    auto layout = parse_parquet_layout({bytes + (metadata.offset - offset), metadata.length}, key_.size_bytes);
    if (!layout) return;
    cache_.keep_layout(file_, layout);
    MutexLock lock(ahead_->mutex);
    ahead_->plan.learn(std::move(layout));
}

BlockKind CacheReader::kind_of(uint64_t offset, size_t length) {
    const uint64_t end = offset + length;
    // A read that reaches the last eight bytes is one of a footer: no column chunk is there.
    if (end + 8 > key_.size_bytes && length <= kFooterMaxBytes) return BlockKind::index;
    {
        MutexLock lock(mutex_);
        if (metadata_.length > 0 && offset >= metadata_.offset) return BlockKind::index;
    }
    MutexLock lock(ahead_->mutex);
    const FileLayout *layout = ahead_->plan.layout();
    return layout != nullptr && layout->is_index({offset, length}) ? BlockKind::index : BlockKind::data;
}

// The part of [at, end) that lies in the block of `at`.
CacheReader::Span CacheReader::span_at(uint64_t at, uint64_t end, char *target) const {
    const uint64_t block_bytes = cache_.blocks_->block_bytes(), block = at / block_bytes;
    return {static_cast<uint32_t>(block), static_cast<uint32_t>(at % block_bytes),
            static_cast<size_t>(std::min(end, (block + 1) * block_bytes) - at), target};
}

Status CacheReader::read(uint64_t offset, size_t length, char *buffer, const Patience &patience) {
    if (offset > key_.size_bytes || length > key_.size_bytes - offset) {
        return Status(Code::invalid_argument, "a read past the end of " + key_.path);
    }
    cache_.tick_if_due();
    if (!file_) return read_around(offset, length, buffer, patience);
    const BlockKind kind = kind_of(offset, length);
    const uint64_t end = offset + length;
    uint64_t at = offset;
    // What is here up to the first block that is not; most reads end with it.
    while (at < end) {
        ROOST_RETURN_IF_ERROR(patience.left(cache_.clock_));
        const Span span = span_at(at, end, buffer + (at - offset));
        if (!read_here(span, kind)) break;
        at += span.length;
    }
    std::vector<Span> spans;
    while (at < end) {
        spans.push_back(span_at(at, end, buffer + (at - offset)));
        at += spans.back().length;
        if (spans.size() < kSpansAtOnce && at < end) continue;
        ROOST_RETURN_IF_ERROR(read_spans(std::move(spans), patience, kind));
        spans.clear();
    }
    if (kind == BlockKind::index) learn_layout(offset, length, buffer);
    read_ahead(offset, length, patience);
    return Status();
}

Status CacheReader::warm(uint64_t offset, uint64_t length, const Patience &patience) {
    if (offset > key_.size_bytes || length > key_.size_bytes - offset) {
        return Status(Code::invalid_argument, "nothing to warm past the end of " + key_.path);
    }
    if (!file_ || length == 0) return Status();
    const uint64_t block_bytes = cache_.blocks_->block_bytes();
    const uint64_t last = (offset + length - 1) / block_bytes;
    for (uint64_t block = offset / block_bytes; block <= last;) {
        std::vector<Span> spans;
        for (; block <= last && spans.size() < kSpansAtOnce; ++block) {
            spans.push_back({static_cast<uint32_t>(block), 0, 0, nullptr});
        }
        ROOST_RETURN_IF_ERROR(read_spans(std::move(spans), patience, BlockKind::data));
    }
    return Status();
}

// A file that can't be cached.
Status CacheReader::read_around(uint64_t offset, size_t length, char *buffer, const Patience &patience) {
    Source from = Source::store;
    ROOST_RETURN_IF_ERROR(patience.left(cache_.clock_));
    count(&ReadStats::fetches, 1);
    ROOST_RETURN_IF_ERROR(store_->fetch(key_, offset, length, buffer, patience, from));
    count(from == Source::peer ? &ReadStats::peer_bytes : &ReadStats::store_bytes, length);
    return Status();
}

bool CacheReader::read_here(const Span &span, BlockKind kind) {
    auto lease = cache_.blocks_->lease(file_, span.block, stats_->statement, kind);
    if (!lease) return false;
    if (span.target != nullptr) {
        std::shared_ptr<const BlockStore::Grain> grain;
        {
            MutexLock lock(mutex_);
            grain = last_grain_;
        }
        const auto before = grain;
        if (!cache_.blocks_->read(lease, span.offset, span.length, span.target, grain).ok()) return false;
        if (grain != before) {
            MutexLock lock(mutex_);
            last_grain_ = std::move(grain);
        }
    }
    count(&ReadStats::hits, 1);
    count(&ReadStats::cache_bytes, span.length);
    return true;
}

Status CacheReader::read_spans(std::vector<Span> spans, const Patience &patience, BlockKind kind) {
    const SegmentCache::Job job{file_, store_, stats_, patience, kind, false};
    while (true) {
        ROOST_RETURN_IF_ERROR(patience.left(cache_.clock_));
        std::erase_if(spans, [&](const Span &span) { return read_here(span, kind); });
        if (spans.empty()) return Status();

        std::vector<uint32_t> missing;
        for (const Span &span : spans) missing.push_back(span.block);
        std::vector<std::pair<uint32_t, SegmentCache::FlightRef>> flights;
        const auto runs = cache_.take_off(file_, missing, &flights);
        count(&ReadStats::joined, flights.size());
        const size_t joined = flights.size();
        for (const auto &run : runs) {
            count(&ReadStats::misses, run.flights.size());
            for (size_t i = 0; i < run.flights.size(); ++i) {
                flights.emplace_back(run.first + static_cast<uint32_t>(i), run.flights[i]);
            }
        }
        ROOST_RETURN_IF_ERROR(fetch_all(job, runs));
        for (size_t i = 0; i < flights.size(); ++i) {
            const auto &[block, flight] = flights[i];
            const Status status = cache_.await(flight, patience);
            // Another reader gave up, we don't: the block stays in `spans`, and whoever comes first fetches it.
            if (!status.ok() && i < joined && reason_of_its_own(status.code()) && patience.left(cache_.clock_).ok())
                continue;
            ROOST_RETURN_IF_ERROR(status);
            const auto span = std::find_if(spans.begin(), spans.end(), [&](const Span &s) { return s.block == block; });
            if (span->target != nullptr)
                std::memcpy(span->target, flight->bytes.get() + flight->at + span->offset, span->length);
            if (i < joined) count(&ReadStats::cache_bytes, span->length);
            spans.erase(span);
        }
        if (spans.empty()) return Status();
    }
}

// The first run in this thread, the others beside it as far as there are threads. All have landed, or will without us.
Status CacheReader::fetch_all(const SegmentCache::Job &job, const std::vector<SegmentCache::Run> &runs) {
    std::vector<const SegmentCache::Run *> mine;
    for (size_t i = 0; i < runs.size(); ++i) {
        const bool given_away = i > 0 && cache_.fetch_beside(job, runs[i]);
        if (!given_away) mine.push_back(&runs[i]);
    }
    Status first_error;
    for (const SegmentCache::Run *run : mine) {
        // After an error the rest need not be fetched, but whoever waits for them has to be told.
        if (first_error.ok()) {
            first_error = cache_.fetch(job, *run);
        } else {
            cache_.land(job, *run, Status(Code::cancelled, "given up after an error"), nullptr, 0);
        }
    }
    return first_error;
}

void CacheReader::read_ahead(uint64_t offset, size_t length, const Patience &patience) {
    std::vector<ByteRange> ranges;
    {
        MutexLock lock(ahead_->mutex);
        ranges = ahead_->plan.after(offset, length);
    }
    fetch_soon(ranges, patience);
}

bool CacheReader::all_here() {
    std::shared_ptr<const FileLayout> layout;
    {
        MutexLock lock(ahead_->mutex);
        layout = ahead_->plan.shared_layout();
    }
    std::vector<ByteRange> ranges;
    if (layout) {
        for (const auto &chunks : layout->row_groups) {
            if (chunks.empty()) continue;
            const uint64_t begin = chunks.front().offset, end = std::max(begin, chunks.back().end());
            ranges.push_back({begin, end - begin});
        }
    }
    if (ranges.empty()) ranges.push_back({0, key_.size_bytes});
    return cache_.blocks_->holds_all(file_, ranges);
}

void CacheReader::fetch_soon(const std::vector<ByteRange> &ranges, const Patience &patience) {
    if (!file_ || cache_.options_.fetch_threads == 0) return;
    const uint64_t block_bytes = cache_.blocks_->block_bytes();
    std::vector<uint32_t> blocks;
    for (const ByteRange &range : ranges) {
        if (range.length == 0 || range.offset >= key_.size_bytes || range.length > key_.size_bytes - range.offset)
            continue;
        for (uint64_t block = range.offset / block_bytes; block <= (range.end() - 1) / block_bytes; ++block) {
            blocks.push_back(static_cast<uint32_t>(block));
        }
    }
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    std::erase_if(blocks, [&](uint32_t block) { return cache_.blocks_->holds(file_, block); });
    if (blocks.empty()) return;
    const SegmentCache::Job job{file_, store_, stats_, patience, BlockKind::data, true};
    for (const auto &run : cache_.take_off(file_, blocks, nullptr)) {
        if (cache_.fetch_beside(job, run)) continue;
        cache_.land(job, run, Status(Code::cancelled, "too much is read ahead"), nullptr, 0);
    }
}

// ---- writing

CacheWriter::~CacheWriter() { abandon(); }

void CacheWriter::abandon() {
    if (!staged_.empty()) cache_.blocks_->discard(staged_);
    staged_.clear();
    tail_.clear();
    given_up_ = true;
}

void CacheWriter::stage() {
    const size_t block_bytes = cache_.blocks_->block_bytes();
    size_t at = 0;
    for (; tail_.size() - at >= block_bytes; at += block_bytes) {
        auto staged = cache_.blocks_->stage(std::string_view(tail_).substr(at, block_bytes));
        if (!staged) return abandon();
        staged_.push_back(*staged);
    }
    tail_.erase(0, at);
}

void CacheWriter::append(uint64_t offset, std::string_view bytes) {
    if (given_up_) return;
    if (offset != size_bytes_) return abandon();
    size_bytes_ += bytes.size();
    while (!bytes.empty() && !given_up_) {
        // No more than a block and what was left: a large write is not copied as a whole.
        const auto piece = bytes.substr(0, cache_.blocks_->block_bytes());
        tail_ += piece;
        bytes.remove_prefix(piece.size());
        stage();
    }
}

uint64_t CacheWriter::commit(const FileKey &key, std::string_view tag) {
    if (given_up_ || key.size_bytes != size_bytes_) {
        abandon();
        return 0;
    }
    given_up_ = true;
    const auto file = cache_.blocks_->file(key, tag);
    uint64_t kept_bytes = 0;
    uint32_t block = 0;
    for (const BlockStore::Staged &staged : staged_) {
        const bool last = staged_.size() == block + 1 && tail_.empty();
        const uint64_t bytes = staged.record.length_bytes;
        if (cache_.blocks_->commit(file, block++, staged, last ? BlockKind::index : BlockKind::data))
            kept_bytes += bytes;
    }
    staged_.clear();
    if (!tail_.empty() && cache_.blocks_->put(file, block, tail_, BlockKind::index)) kept_bytes += tail_.size();
    tail_.clear();
    return kept_bytes;
}

}  // namespace roost::cache
