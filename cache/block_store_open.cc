// BlockStore: opening and reopening its directory, the log of files, the disk's health.
#include <algorithm>
#include <bit>

#include "cache/block_entries.h"
#include "cache/block_store.h"

namespace roost::cache {
namespace {

constexpr size_t kIdentityMaxBytes = 4096;
constexpr size_t kLogMaxBytes = 2ULL << 30;
constexpr size_t kIndexReadBytes = 8192 * kRecordBytes;
constexpr int64_t kProbeFirstUs = 1'000'000, kProbeMostUs = 60'000'000;
constexpr uint64_t kLogSlackMaxRecords = 4096;
const char *const kLogNames[] = {"files.a", "files.b"};

std::string stripe_name(size_t stripe) { return "blocks." + std::to_string(stripe); }

}  // namespace

Result<std::unique_ptr<BlockStore>> BlockStore::open(std::unique_ptr<Disk> disk, BlockStoreOptions options,
                                                     Clock &clock, obs::Log &log) {
    if (!std::has_single_bit(options.block_bytes) || options.block_bytes < 4096 || options.block_bytes > (64U << 20)) {
        return Status(Code::invalid_argument, "a cache block is a power of two from 4 KiB to 64 MiB");
    }
    if (options.blocks_max == 0)
        options.blocks_max = std::max<uint64_t>(1024, 4 * (options.max_bytes / options.block_bytes));
    options.blocks_max = std::min<uint64_t>(options.blocks_max, kNoSlot - 1);
    std::unique_ptr<BlockStore> store(new BlockStore(std::move(disk), options, clock, log));
    if (const Status status = store->mount(); !status.ok()) {
        if (status.code() == Code::failed_precondition) return status;
        store->failed(status, true);
    }
    store->tick();
    return store;
}

BlockStore::BlockStore(std::unique_ptr<Disk> disk, BlockStoreOptions options, Clock &clock, obs::Log &log)
    : disk_(std::move(disk)), options_(options), clock_(clock), log_(log) {
    MutexLock lock(mutex_);
    capacity_bytes_ = options_.max_bytes;
    forget_all();
}
BlockStore::~BlockStore() = default;

void BlockStore::forget_all() {
    for (uint32_t slot = 0; slot < entries_.size(); ++slot) {
        if (entries_[slot].file) leave(slot);
    }
    entries_.clear();
    free_slots_.clear();
    used_bytes_ = 0;
    for (const auto &[id, file] : files_) file->logged = false;
    policy_ = options_.policy(options_.max_bytes, std::max<uint64_t>(64, options_.max_bytes / options_.block_bytes));
}

// ---- mount

Result<DirectoryIdentity> BlockStore::take_identity() {
    DirectoryIdentity identity;
    const auto text = disk_->read_whole("identity", kIdentityMaxBytes);
    const auto known = text.ok() ? decode_identity(*text) : std::nullopt;
    if (known && known->block_bytes == options_.block_bytes) {
        identity = *known;
    } else {
        // Nothing here, or nothing that can be used.
        if (!text.ok() && text.status().code() != Code::not_found && text.status().code() != Code::data_loss) {
            return text.status();
        }
        for (const char *name : kLogNames) ROOST_RETURN_IF_ERROR(disk_->remove(name));
        ROOST_RETURN_IF_ERROR(disk_->remove("index"));
        for (size_t i = 0; i < kStripes; ++i) ROOST_RETURN_IF_ERROR(disk_->remove(stripe_name(i)));
        identity.identity = known ? known->identity : Uuid::make();
        identity.generation = known ? known->generation : 0;
        identity.block_bytes = options_.block_bytes;
    }
    ++identity.generation;
    ROOST_RETURN_IF_ERROR(disk_->replace("identity", encode_identity(identity)));
    return identity;
}

Status BlockStore::mount() {
    ROOST_RETURN_IF_ERROR(disk_->mount());
    ROOST_ASSIGN_OR_RETURN(const DirectoryIdentity identity, take_identity());
    auto volume = std::make_shared<Volume>();
    volume->seed = checksum(identity.identity.raw());
    volume->block_bytes = options_.block_bytes;
    for (size_t i = 0; i < kStripes; ++i) {
        ROOST_ASSIGN_OR_RETURN(volume->stripes[i], disk_->open(stripe_name(i)));
    }
    ROOST_ASSIGN_OR_RETURN(volume->index, disk_->open("index"));
    ROOST_RETURN_IF_ERROR(load(volume));
    ROOST_RETURN_IF_ERROR(rewrite_log(volume));
    {
        MutexLock lock(mutex_);
        volume_ = volume;
        state_.identity = identity.identity;
        state_.generation = identity.generation;
    }
    return Status();
}

Status BlockStore::load(const VolumeRef &volume) {
    std::vector<std::string> logs;
    for (const char *name : kLogNames) {
        auto log = disk_->read_whole(name, kLogMaxBytes);
        if (log.ok()) logs.push_back(std::move(*log));
        if (!log.ok() && log.status().code() != Code::not_found) return log.status();
    }
    {
        MutexLock lock(mutex_);
        forget_all();
        counters_.restored_blocks = 0;
        for (const std::string &log : logs) adopt_files(log, volume->seed);
    }
    ROOST_ASSIGN_OR_RETURN(uint64_t size, volume->index->size_bytes());
    size = std::min(size / kRecordBytes, options_.blocks_max) * kRecordBytes;
    std::string chunk;
    for (uint64_t at = 0; at < size; at += chunk.size()) {
        chunk.resize(std::min<uint64_t>(kIndexReadBytes, size - at));
        ROOST_RETURN_IF_ERROR(volume->index->read_at(at, chunk.data(), chunk.size()));
        MutexLock lock(mutex_);
        adopt_blocks(chunk, static_cast<uint32_t>(at / kRecordBytes), volume->seed);
    }
    MutexLock lock(mutex_);
    restore_order();
    return Status();
}

void BlockStore::adopt_files(const std::string &log, uint64_t seed) {
    for_each_file(log, seed, [this](FileRecord record) ROOST_NO_THREAD_SAFETY {
        if (record.key.size_bytes > (16ULL << 40)) return;
        sequence_ = std::max(sequence_, record.sequence);
        auto made = std::make_shared<File>(std::move(record.key), options_.block_bytes);
        FileRef &file = files_[made->id];
        // A file that a reader holds since before the mount keeps what it has been given there.
        if (!file) {
            file = std::move(made);
            move_to_unit(*file, record.tag);
        } else if (record.sequence < file->sequence) {
            return;
        } else if (file->unit->tag != record.tag) {
            move_to_unit(*file, record.tag);
        }
        file->pinned = record.pinned;
        file->sequence = record.sequence;
    });
}

void BlockStore::adopt_blocks(std::string_view records, uint32_t first_slot, uint64_t seed) {
    static constexpr std::array<char, kRecordBytes> kNothing{};
    for (size_t i = 0; i * kRecordBytes < records.size(); ++i) {
        const uint32_t slot = first_slot + static_cast<uint32_t>(i);
        const std::string_view bytes = records.substr(i * kRecordBytes, kRecordBytes);
        entries_.emplace_back();
        if (bytes == std::string_view(kNothing.data(), kNothing.size())) continue;
        // What is not believed may still take room.
        entries_[slot].on_disk_bytes = options_.block_bytes;
        used_bytes_ += options_.block_bytes;
        if (const auto record = decode_block(bytes, slot, seed)) adopt(*record, slot);
    }
}

void BlockStore::adopt(const BlockRecord &record, uint32_t slot) {
    sequence_ = std::max(sequence_, record.sequence);
    const auto found = files_.find(record.file);
    if (found == files_.end()) return;
    const FileRef &file = found->second;
    if (record.block >= file->blocks || record.length_bytes != file->length_of(record.block)) return;
    const uint32_t rival = file->slot(record.block);
    if (rival != kNoSlot) {
        if (entries_[rival].sequence >= record.sequence) return;
        leave(rival);
    }
    enter(file, record, slot);
    const uint32_t charge = (record.length_bytes + 4095) / 4096 * 4096;
    used_bytes_ = used_bytes_ - entries_[slot].on_disk_bytes + charge;
    entries_[slot].on_disk_bytes = charge;
}

void BlockStore::restore_order() {
    std::vector<std::pair<uint64_t, uint32_t>> order;
    order.reserve(entries_.size());
    for (uint32_t slot = 0; slot < entries_.size(); ++slot) {
        if (entries_[slot].file) {
            order.emplace_back(entries_[slot].sequence, slot);
        } else {
            free_slots_.push_back(slot);
        }
    }
    std::sort(order.begin(), order.end());
    for (const auto &[sequence, slot] : order) {
        const Entry &entry = entries_[slot];
        if (!entry.pinned) policy_->restore(slot, entry.file->block_key(entry.block), entry.length_bytes, entry.kind);
    }
    counters_.restored_blocks = order.size();
}

// ---- the log of files

std::string BlockStore::logged(File &file, uint64_t seed) {
    file.logged = true;
    file.sequence = ++sequence_;
    return encode_file({file.key, file.unit->tag, file.pinned, file.sequence}, seed);
}

Status BlockStore::rewrite_log(const VolumeRef &volume) {
    std::string live;
    uint64_t records = 0;
    {
        MutexLock lock(mutex_);
        for (const auto &[id, file] : files_) {
            if (file->warm_blocks == 0 && !file->pinned) continue;
            live += logged(*file, volume->seed);
            ++records;
        }
        sweep_files();
    }
    ROOST_RETURN_IF_ERROR(disk_->replace(kLogNames[0], live));
    ROOST_RETURN_IF_ERROR(disk_->remove(kLogNames[1]));
    ROOST_ASSIGN_OR_RETURN(std::shared_ptr<DiskFile> log, disk_->open(kLogNames[0]));
    MutexLock lock(volume->log_mutex);
    volume->log = std::move(log);
    volume->log_name = kLogNames[0];
    volume->log_end = live.size();
    volume->log_records = records;
    return Status();
}

bool BlockStore::log_file(const VolumeRef &volume, const FileRef &file) {
    // A small cache has few files, and its log little to lose by being rewritten often.
    const uint64_t slack_records = std::min(kLogSlackMaxRecords, options_.max_bytes / options_.block_bytes / 4);
    std::string record;
    uint64_t live = 0;
    {
        MutexLock lock(mutex_);
        if (file->logged) return true;
        record = logged(*file, volume->seed);
        live = files_.size();
    }
    std::shared_ptr<DiskFile> log;
    uint64_t at = 0;
    bool compact = false;
    {
        MutexLock lock(volume->log_mutex);
        log = volume->log;
        at = std::exchange(volume->log_end, volume->log_end + record.size());
        compact = ++volume->log_records > 2 * live + slack_records && !volume->compacting;
        if (compact) volume->compacting = true;
    }
    const Status status = log->write_at(at, record);
    if (!status.ok()) {
        failed(status, true);
        MutexLock lock(mutex_);
        file->logged = false;
    }
    if (compact) compact_log(volume);
    return status.ok();
}

// New records go to the other log from here on; then what lives is appended to it, and the old one goes. A crash in
// between leaves both, and both are read.
void BlockStore::compact_log(const VolumeRef &volume) {
    std::string old_name;
    {
        MutexLock lock(volume->log_mutex);
        old_name = volume->log_name;
    }
    const std::string name = kLogNames[old_name == kLogNames[0] ? 1 : 0];
    Status status = disk_->remove(name);
    std::shared_ptr<DiskFile> log;
    if (status.ok()) {
        auto opened = disk_->open(name);
        status = opened.status();
        if (opened.ok()) log = std::move(*opened);
    }
    std::string live;
    uint64_t at = 0;
    if (status.ok()) {
        MutexLock lock(mutex_);
        MutexLock log_lock(volume->log_mutex);
        uint64_t records = 0;
        sweep_files();
        for (const auto &[id, file] : files_) {
            if (!file->logged) continue;
            live += logged(*file, volume->seed);
            ++records;
        }
        volume->log = log;
        volume->log_name = name;
        volume->log_end = live.size();
        volume->log_records = records;
    }
    if (status.ok()) status = log->write_at(at, live);
    if (status.ok()) status = disk_->remove(old_name);
    if (!status.ok()) failed(status, true);
    MutexLock lock(volume->log_mutex);
    volume->compacting = false;
}

// ---- health

void BlockStore::set_mode(DiskMode mode, const std::string &reason) {
    if (mode != DiskMode::ok) {
        probe_wait_us_ = std::clamp(2 * probe_wait_us_, kProbeFirstUs, kProbeMostUs);
        probe_at_us_ = clock_.monotonic_us() + probe_wait_us_;
    }
    if (mode == state_.mode || (mode == DiskMode::full && state_.mode == DiskMode::bypass)) return;
    read_errors_in_a_row_ = 0;
    if (mode == DiskMode::ok) {
        log_.info("cache_disk_back", {{"directory", disk_->description()}, {"warm_blocks", warm_blocks_}});
    } else {
        log_.warn("cache_disk_failed", {{"directory", disk_->description()},
                                        {"mode", disk_mode_name(mode)},
                                        {"reason", reason},
                                        {"effect", "reads go to the store until the disk is back"}});
        state_.reason = reason;
    }
    state_.since_us = clock_.wall_us();
    state_.mode = mode;
}

void BlockStore::probe_if_due() {
    bool mounted = false;
    {
        MutexLock lock(mutex_);
        if (state_.mode == DiskMode::ok || probing_ || clock_.monotonic_us() < probe_at_us_) return;
        probing_ = true;
        mounted = volume_ != nullptr;
        // In bypass nothing new is leased or written; once what was is over, nobody minds a new mount.
        mounting_ = busy_ == 0 && state_.mode == DiskMode::bypass;
    }
    Status status = mounted ? disk_->probe() : Status(Code::not_found, "no cache directory");
    // Another directory, or none: all that is known of the old one is void.
    if (status.code() == Code::not_found && may_mount()) status = mount();
    MutexLock lock(mutex_);
    probing_ = mounting_ = false;
    if (status.ok()) {
        set_mode(DiskMode::ok, "");
    } else {
        set_mode(status.code() == Code::resource_exhausted ? state_.mode : DiskMode::bypass, status.message());
    }
}

bool BlockStore::may_mount() {
    MutexLock lock(mutex_);
    return mounting_;
}

void BlockStore::refresh_capacity() {
    const auto free = disk_->free_bytes();
    if (free.status().code() == Code::not_found) failed(free.status(), true);  // its open files would not tell
    if (!free.ok()) return;  // a disk in trouble shows at the next write
    MutexLock lock(mutex_);
    const uint64_t reachable = used_bytes_ + *free;
    const uint64_t above_floor = reachable > options_.free_floor_bytes ? reachable - options_.free_floor_bytes : 0;
    capacity_bytes_ = std::min(options_.max_bytes, above_floor);
}

void BlockStore::shrink() {
    constexpr size_t kAtOnce = 64;
    while (true) {
        std::vector<uint32_t> limbo;
        VolumeRef volume;
        {
            MutexLock lock(mutex_);
            volume = volume_;
            if (state_.mode == DiskMode::bypass) return;
            while (used_bytes_ > capacity_bytes_ && limbo.size() < kAtOnce) {
                const auto victim = evict_one();
                if (!victim) break;
                used_bytes_ -= std::exchange(entries_[*victim].on_disk_bytes, 0);
                limbo.push_back(*victim);
            }
            if (limbo.empty()) return;
            ++busy_;
        }
        settle(volume, limbo);
        MutexLock lock(mutex_);
        --busy_;
    }
}

void BlockStore::tick() {
    probe_if_due();
    if (state().mode == DiskMode::bypass) return;
    refresh_capacity();
    shrink();
}

}  // namespace roost::cache
