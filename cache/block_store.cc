#include "cache/block_store.h"

#include <algorithm>

#include "cache/block_entries.h"

namespace roost::cache {
namespace {

// What a volume hands out at a time.
constexpr uint64_t kPageBytes = 4096;
constexpr int kVictimTries = 64;
constexpr uint64_t kFileMaxBytes = 16ULL << 40;
constexpr uint64_t kFreeSpaceEveryBytes = 32ULL << 20;
constexpr uint32_t kReadErrorsMax = 3;
constexpr uint32_t kWritesOfAHealthyDisk = 64;

uint64_t charge_of(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

std::string_view disk_mode_name(DiskMode mode) {
    switch (mode) {
        case DiskMode::ok:
            return "ok";
        case DiskMode::full:
            return "full";
        case DiskMode::bypass:
            return "bypass";
    }
    return "unknown";
}

// ---- leases

BlockStore::Lease::Lease(Lease &&other) noexcept
    : store_(std::exchange(other.store_, nullptr)), entry_(other.entry_), slot_(other.slot_), volume_(other.volume_) {}
BlockStore::Lease &BlockStore::Lease::operator=(Lease &&other) noexcept {
    std::swap(store_, other.store_);
    std::swap(entry_, other.entry_);
    std::swap(slot_, other.slot_);
    std::swap(volume_, other.volume_);
    return *this;
}
BlockStore::Lease::~Lease() {
    if (store_ != nullptr) store_->release(entry_, slot_);
}
uint32_t BlockStore::Lease::length_bytes() const { return entry_->length_bytes; }

BlockStore::Lease BlockStore::lease(const FileRef &file, uint32_t block, uint64_t statement, BlockKind kind) {
    Lease lease;
    if (!file || block >= file->blocks) return lease;
    MutexLock lock(mutex_);
    if (state_.mode == DiskMode::bypass) return lease;
    const uint32_t slot = file->slot(block);
    if (slot == kNoSlot) return lease;
    Entry &entry = entries_[slot];
    if (statement != 0 && entry.statement != statement && !entry.pinned) policy_->touch(slot, kind);
    if (statement != 0) entry.statement = statement;
    ++entry.leases;
    ++busy_;
    lease.store_ = this;
    lease.entry_ = &entry;
    lease.slot_ = slot;
    lease.volume_ = volume_.get();
    return lease;
}

bool BlockStore::holds(const FileRef &file, uint32_t block) {
    if (!file || block >= file->blocks) return false;
    MutexLock lock(mutex_);
    return state_.mode != DiskMode::bypass && file->slot(block) != kNoSlot;
}

bool BlockStore::holds_all(const FileRef &file, const std::vector<ByteRange> &ranges) {
    if (!file) return false;
    MutexLock lock(mutex_);
    if (state_.mode == DiskMode::bypass) return false;
    if (file->warm_blocks == file->blocks) return true;
    return std::ranges::all_of(ranges, [&](const ByteRange &range) {
        const uint64_t end = std::min(range.end(), file->key.size_bytes);
        for (uint64_t at = range.offset; at < end; at = (at / options_.block_bytes + 1) * options_.block_bytes) {
            if (file->slot(static_cast<uint32_t>(at / options_.block_bytes)) == kNoSlot) return false;
        }
        return true;
    });
}

void BlockStore::release(Entry *entry, uint32_t slot) {
    VolumeRef volume;
    {
        MutexLock lock(mutex_);
        --entry->leases;
        if (entry->leases > 0 || entry->file) {
            --busy_;
            return;
        }
        volume = volume_;
    }
    // The block was given up while it was leased.
    settle(volume, {slot});
    MutexLock lock(mutex_);
    --busy_;
}

void BlockStore::drop(const Lease &lease) {
    MutexLock lock(mutex_);
    // Another reader may have dropped it before; the lease keeps the slot from a new block.
    if (lease.entry_->file) leave(lease.slot_);
}

// Whole grains that follow each other, by one read.
Status BlockStore::read_grains(const Lease &lease, uint32_t first, char *buffer, size_t length) {
    Volume &volume = *lease.volume_;
    const size_t grain_bytes = options_.block_bytes / kGrains;
    Status status = volume.data(lease.slot_).read_at(volume.offset(lease.slot_) + first * grain_bytes, buffer, length);
    uint8_t checked = 0;
    for (size_t at = 0; status.ok() && at < length; at += grain_bytes) {
        const size_t grain = first + at / grain_bytes;
        if (checksum({buffer + at, std::min(grain_bytes, length - at)}) != lease.entry_->sums[grain]) {
            status = Status(Code::data_loss, "a cached block is damaged");
        }
        checked |= static_cast<uint8_t>(1 << grain);
    }
    if (status.ok()) {
        lease.entry_->checked.fetch_or(checked, std::memory_order_relaxed);
        return status;
    }
    drop(lease);
    if (status.code() == Code::data_loss) {
        damaged();
    } else {
        failed(status, false);
    }
    return status;
}

Status BlockStore::read(const Lease &lease, uint32_t offset, size_t length, char *buffer,
                        std::shared_ptr<const Grain> &last) {
    const Entry &entry = *lease.entry_;
    if (offset > entry.length_bytes || length > entry.length_bytes - offset) {
        return Status(Code::internal, "a read past the end of a block");
    }
    if (length == 0) return Status();
    Volume &volume = *lease.volume_;
    const uint32_t grain_bytes = options_.block_bytes / kGrains;
    const uint64_t end = offset + length;
    const auto upto_grain = static_cast<uint32_t>((end + grain_bytes - 1) / grain_bytes);
    const uint32_t touched = ((1U << upto_grain) - 1) & ~((1U << (offset / grain_bytes)) - 1);
    if ((entry.checked.load(std::memory_order_relaxed) & touched) == touched &&
        volume.data(lease.slot_).read_in_memory(volume.offset(lease.slot_) + offset, buffer, length)) {
        return Status();
    }
    for (uint64_t at = offset; at < end;) {
        const auto grain = static_cast<uint32_t>(at / grain_bytes);
        const uint64_t start = uint64_t{grain} * grain_bytes;
        const uint64_t grain_end = std::min<uint64_t>(start + grain_bytes, entry.length_bytes);
        uint64_t upto = std::min(grain_end, end);
        if (at == start && grain_end <= end) {
            upto = end == entry.length_bytes ? end : end / grain_bytes * grain_bytes;
            ROOST_RETURN_IF_ERROR(read_grains(lease, grain, buffer + (at - offset), upto - at));
        } else {
            if (!last || last->block != entry.block || last->grain != grain) {
                auto read = std::make_shared<Grain>(Grain{entry.block, grain, std::string(grain_end - start, '\0')});
                ROOST_RETURN_IF_ERROR(read_grains(lease, grain, read->bytes.data(), read->bytes.size()));
                last = std::move(read);
            }
            std::copy_n(last->bytes.data() + (at - start), upto - at, buffer + (at - offset));
        }
        at = upto;
    }
    return Status();
}

// ---- files

BlockStore::FileRef BlockStore::file(const FileKey &key, std::string_view tag) {
    if (key.path.size() > kNameMaxBytes || key.version.size() > kNameMaxBytes || tag.size() > kNameMaxBytes ||
        key.size_bytes > kFileMaxBytes) {
        return nullptr;
    }
    auto made = std::make_shared<File>(key, options_.block_bytes);
    MutexLock lock(mutex_);
    if (files_.size() >= sweep_at_files_) sweep_files();
    FileRef &file = files_[made->id];
    if (!file) {
        file = std::move(made);
        move_to_unit(*file, tag);
    } else if (!tag.empty() && file->unit->tag != tag) {
        move_to_unit(*file, tag);
        file->logged = false;  // anew, with its tag, at the next block
    }
    return file;
}

const FileKey &BlockStore::key(const FileRef &file) { return file->key; }

void BlockStore::move_to_unit(File &file, std::string_view tag) {
    Unit &target = unit(tag);
    ++target.known;
    target.warm_bytes += file.warm_bytes;
    target.files += file.warm_blocks > 0;
    if (file.unit != nullptr) {
        --file.unit->known;
        file.unit->warm_bytes -= file.warm_bytes;
        file.unit->files -= file.warm_blocks > 0;
    }
    if (file.warm_blocks > 0) {
        changed(*file.unit);
        changed(target);
    }
    file.unit = &target;
}

void BlockStore::sweep_files() {
    for (auto it = files_.begin(); it != files_.end();) {
        const FileRef &file = it->second;
        // References are made of those in the table, under the mutex: one that is alone stays alone.
        if (file->warm_blocks > 0 || file->pinned || file.use_count() > 1) {
            ++it;
            continue;
        }
        --file->unit->known;
        it = files_.erase(it);
    }
    std::erase_if(units_, [](const auto &unit) { return unit.second.known == 0 && !unit.second.changed; });
    sweep_at_files_ = 2 * files_.size() + 1024;
}

BlockStore::Unit &BlockStore::unit(std::string_view tag) {
    auto it = units_.find(tag);
    if (it == units_.end()) {
        it = units_.try_emplace(std::string(tag)).first;
        it->second.tag = tag;
    }
    return it->second;
}

void BlockStore::changed(Unit &unit) {
    if (unit.changed) return;
    unit.changed = true;
    changed_.push_back(&unit);
}

// ---- room

std::optional<uint32_t> BlockStore::evict_one() {
    std::vector<uint32_t> leased;
    std::optional<uint32_t> found;
    for (int i = 0; i < kVictimTries && !found; ++i) {
        const auto victim = policy_->victim();
        if (!victim) break;
        if (entries_[*victim].leases > 0) {
            leased.push_back(*victim);
        } else {
            found = victim;
        }
    }
    for (const uint32_t slot : leased) {
        const Entry &entry = entries_[slot];
        policy_->keep(slot, entry.file->block_key(entry.block), entry.length_bytes, entry.kind);
    }
    if (found) {
        ++counters_.evicted_blocks;
        counters_.evicted_bytes += entries_[*found].length_bytes;
        leave(*found);
    }
    return found;
}

std::optional<uint32_t> BlockStore::take_slot(uint64_t charge_bytes, bool may_evict) {
    if (!free_slots_.empty()) {
        const uint32_t slot = free_slots_.back();
        free_slots_.pop_back();
        return slot;
    }
    const bool room = used_bytes_ + charge_bytes <= capacity_bytes_ && entries_.size() < options_.blocks_max;
    if (!room && !may_evict) return std::nullopt;
    if (!room) {
        const auto slot = evict_one();
        if (slot || entries_.size() >= options_.blocks_max) return slot;
    }
    entries_.emplace_back();
    return static_cast<uint32_t>(entries_.size() - 1);
}

BlockStore::Room BlockStore::make_room(uint64_t charge_bytes, bool may_evict) {
    Room room;
    room.slot = take_slot(charge_bytes, may_evict);
    if (!room.slot) return room;
    Entry &entry = entries_[*room.slot];
    const auto more = [&] { return charge_bytes - std::min<uint64_t>(charge_bytes, entry.on_disk_bytes); };
    while (used_bytes_ + more() > capacity_bytes_) {
        const auto victim = may_evict ? evict_one() : std::nullopt;
        if (!victim) {
            room.limbo.push_back(*room.slot);
            room.slot.reset();
            return room;
        }
        room.limbo.push_back(*victim);
        used_bytes_ -= std::exchange(entries_[*victim].on_disk_bytes, 0);
    }
    room.punch_first = entry.on_disk_bytes > charge_bytes;
    used_bytes_ += more();
    entry.on_disk_bytes = std::max<uint32_t>(entry.on_disk_bytes, static_cast<uint32_t>(charge_bytes));
    return room;
}

void BlockStore::settle(const VolumeRef &volume, const std::vector<uint32_t> &slots) {
    for (const uint32_t slot : slots) {
        bool punched = false;
        if (volume) {
            punched = volume->data(slot).punch(volume->offset(slot), options_.block_bytes).ok();
            // The record of zeros says "nothing here"; after a failure the old one does no harm, its data is checked.
            if (punched) (void)volume->index->write_at(Volume::record_offset(slot), std::string(kRecordBytes, '\0'));
        }
        MutexLock lock(mutex_);
        Entry &entry = entries_[slot];
        const uint32_t now = punched ? 0 : options_.block_bytes;
        used_bytes_ = used_bytes_ - entry.on_disk_bytes + now;
        entry.on_disk_bytes = now;
        free_slots_.push_back(slot);
    }
}

// ---- blocks come and go

std::optional<uint32_t> BlockStore::claim(uint64_t bytes, uint64_t file_bytes, VolumeRef &volume) {
    const uint64_t charge = charge_of(bytes);
    Room room;
    bool look_at_volume = false;
    {
        MutexLock lock(mutex_);
        if (state_.mode != DiskMode::ok) return std::nullopt;
        volume = volume_;
        room = make_room(charge, file_bytes <= capacity_bytes_);
        ++busy_;
        unchecked_bytes_ += charge;
        look_at_volume = unchecked_bytes_ >= kFreeSpaceEveryBytes;
        if (look_at_volume) unchecked_bytes_ = 0;
    }
    if (room.slot && room.punch_first &&
        volume->data(*room.slot).punch(volume->offset(*room.slot), options_.block_bytes).ok()) {
        MutexLock lock(mutex_);
        Entry &entry = entries_[*room.slot];
        used_bytes_ = used_bytes_ - entry.on_disk_bytes + charge;
        entry.on_disk_bytes = static_cast<uint32_t>(charge);
    }
    settle(volume, room.limbo);
    if (look_at_volume) {
        refresh_capacity();
        shrink();
    }
    if (!room.slot) unclaim(volume, std::nullopt);
    return room.slot;
}

void BlockStore::unclaim(const VolumeRef &volume, std::optional<uint32_t> slot) {
    if (slot) settle(volume, {*slot});
    MutexLock lock(mutex_);
    --busy_;
}

bool BlockStore::write_record(const VolumeRef &volume, const FileRef &file, const BlockRecord &record, uint32_t slot) {
    if (!log_file(volume, file)) return false;
    const RecordBytes bytes = encode_block(record, slot, volume->seed);
    const Status status = volume->index->write_at(Volume::record_offset(slot), {bytes.data(), bytes.size()});
    if (!status.ok()) failed(status, true);
    return status.ok();
}

bool BlockStore::put(const FileRef &file, uint32_t block, std::string_view data, BlockKind kind) {
    if (!file || block >= file->blocks || data.size() != file->length_of(block)) return false;
    if (holds(file, block)) return true;
    VolumeRef volume;
    const auto slot = claim(data.size(), file->key.size_bytes, volume);
    BlockRecord record{file->id, block, static_cast<uint32_t>(data.size()), kind, 0, {}};
    bool written = slot.has_value();
    if (written) {
        record.sums = checksums_of(data, options_.block_bytes);
        const Status status = volume->data(*slot).write_at(volume->offset(*slot), data);
        if (!status.ok()) failed(status, true);
        {
            MutexLock lock(mutex_);
            record.sequence = ++sequence_;
        }
        written = status.ok() && write_record(volume, file, record, *slot);
    }
    bool kept = false, here = false;
    {
        MutexLock lock(mutex_);
        kept = written && publish(file, record, *slot);
        here = file->slot(block) != kNoSlot;
        if (!here) ++counters_.refused_blocks;
    }
    if (slot) unclaim(volume, kept ? std::nullopt : slot);
    return here;
}

std::optional<BlockStore::Staged> BlockStore::stage(std::string_view data) {
    VolumeRef volume;
    {
        // What is staged can't be evicted: it must not become most of the cache.
        MutexLock lock(mutex_);
        if (staged_bytes_ + data.size() > capacity_bytes_ / 4) return std::nullopt;
        staged_bytes_ += data.size();
    }
    const auto slot = claim(data.size(), 0, volume);
    if (slot) {
        const Status status = volume->data(*slot).write_at(volume->offset(*slot), data);
        if (status.ok()) {
            Staged staged{*slot, {}};
            staged.record.length_bytes = static_cast<uint32_t>(data.size());
            staged.record.sums = checksums_of(data, options_.block_bytes);
            return staged;
        }
        failed(status, true);
        unclaim(volume, slot);
    }
    MutexLock lock(mutex_);
    staged_bytes_ -= data.size();
    return std::nullopt;
}

bool BlockStore::commit(const FileRef &file, uint32_t block, Staged staged, BlockKind kind) {
    staged.record.block = block;
    staged.record.kind = kind;
    VolumeRef volume;
    {
        MutexLock lock(mutex_);
        volume = volume_;
        staged.record.sequence = ++sequence_;
        staged_bytes_ -= staged.record.length_bytes;
    }
    const bool fits = file && block < file->blocks && staged.record.length_bytes == file->length_of(block);
    if (fits) staged.record.file = file->id;
    bool kept = fits && write_record(volume, file, staged.record, staged.slot);
    {
        MutexLock lock(mutex_);
        kept = kept && publish(file, staged.record, staged.slot);
    }
    unclaim(volume, kept ? std::nullopt : std::optional(staged.slot));
    return kept;
}

void BlockStore::discard(const std::vector<Staged> &staged) {
    for (const Staged &one : staged) {
        VolumeRef volume;
        {
            MutexLock lock(mutex_);
            volume = volume_;
            staged_bytes_ -= one.record.length_bytes;
        }
        unclaim(volume, one.slot);
    }
}

bool BlockStore::publish(const FileRef &file, const BlockRecord &record, uint32_t slot) {
    // Somebody else may have put the same block meanwhile, or the disk was given up.
    if (file->slot(record.block) != kNoSlot || state_.mode != DiskMode::ok) return false;
    enter(file, record, slot);
    Entry &entry = entries_[slot];
    entry.checked.store(UINT8_MAX, std::memory_order_relaxed);
    if (!entry.pinned) policy_->insert(slot, file->block_key(record.block), record.length_bytes, record.kind);
    ++counters_.inserted_blocks;
    counters_.inserted_bytes += record.length_bytes;
    if (++writes_in_a_row_ >= kWritesOfAHealthyDisk) probe_wait_us_ = 0;
    return true;
}

void BlockStore::enter(const FileRef &file, const BlockRecord &record, uint32_t slot) {
    Entry &entry = entries_[slot];
    entry.file = file;
    entry.block = record.block;
    entry.length_bytes = record.length_bytes;
    entry.kind = record.kind;
    entry.statement = 0;
    entry.sequence = record.sequence;
    entry.sums = record.sums;
    entry.checked.store(0, std::memory_order_relaxed);
    entry.pinned = file->pinned && pinned_bytes_ + record.length_bytes <= capacity_bytes_ / 2;
    if (entry.pinned) pinned_bytes_ += record.length_bytes;
    file->set_slot(record.block, slot);
    if (file->warm_blocks++ == 0) ++file->unit->files;
    file->warm_bytes += record.length_bytes;
    file->unit->warm_bytes += record.length_bytes;
    changed(*file->unit);
    warm_bytes_ += record.length_bytes;
    ++warm_blocks_;
}

bool BlockStore::leave(uint32_t slot) {
    Entry &entry = entries_[slot];
    File &file = *entry.file;
    file.set_slot(entry.block, kNoSlot);
    file.warm_bytes -= entry.length_bytes;
    if (--file.warm_blocks == 0) --file.unit->files;
    file.unit->warm_bytes -= entry.length_bytes;
    file.unit->evicted_bytes += entry.length_bytes;
    changed(*file.unit);
    warm_bytes_ -= entry.length_bytes;
    --warm_blocks_;
    policy_->erase(slot);
    if (entry.pinned) pinned_bytes_ -= entry.length_bytes;
    entry.pinned = false;
    entry.file = nullptr;
    return entry.leases == 0;
}

uint64_t BlockStore::evict(const std::vector<FileRef> &files) {
    std::vector<uint32_t> limbo;
    uint64_t bytes = 0;
    VolumeRef volume;
    {
        MutexLock lock(mutex_);
        if (mounting_) return 0;
        volume = volume_;
        std::vector<uint32_t> slots;
        for (const FileRef &file : files) {
            bytes += file->warm_bytes;
            file->pinned = false;
            file->for_each_slot([&](uint32_t slot) { slots.push_back(slot); });
        }
        for (const uint32_t slot : slots) {
            if (leave(slot)) limbo.push_back(slot);
        }
        counters_.evicted_blocks += slots.size();
        counters_.evicted_bytes += bytes;
        ++busy_;
    }
    settle(volume, limbo);
    MutexLock lock(mutex_);
    --busy_;
    return bytes;
}

uint64_t BlockStore::evict_file(std::string_view path) {
    std::vector<FileRef> found;
    {
        MutexLock lock(mutex_);
        for (const auto &[id, file] : files_) {
            if (file->key.path == path) found.push_back(file);
        }
    }
    return evict(found);
}

uint64_t BlockStore::evict_unit(std::string_view tag) {
    std::vector<FileRef> found;
    {
        MutexLock lock(mutex_);
        for (const auto &[id, file] : files_) {
            if (file->unit->tag == tag) found.push_back(file);
        }
    }
    return evict(found);
}

uint64_t BlockStore::pin(std::string_view path, bool pinned) {
    std::vector<FileRef> found;
    VolumeRef volume;
    {
        MutexLock lock(mutex_);
        if (mounting_) return 0;
        volume = volume_;
        ++busy_;
        for (const auto &[id, file] : files_) {
            if (file->key.path != path) continue;
            found.push_back(file);
            file->pinned = pinned;
            file->logged = false;
            file->for_each_slot([&](uint32_t slot) ROOST_NO_THREAD_SAFETY {
                Entry &entry = entries_[slot];
                if (entry.pinned == pinned) return;
                if (pinned && pinned_bytes_ + entry.length_bytes > capacity_bytes_ / 2) return;
                entry.pinned = pinned;
                pinned_bytes_ += pinned ? entry.length_bytes : -static_cast<uint64_t>(entry.length_bytes);
                if (pinned) policy_->erase(slot);
                if (!pinned) policy_->keep(slot, file->block_key(entry.block), entry.length_bytes, entry.kind);
            });
        }
    }
    for (const FileRef &file : found) {
        if (volume) log_file(volume, file);
    }
    MutexLock lock(mutex_);
    --busy_;
    return found.size();
}

// ---- looking in

DiskState BlockStore::state() {
    MutexLock lock(mutex_);
    return state_;
}
StoreCounters BlockStore::counters() {
    MutexLock lock(mutex_);
    return counters_;
}
uint64_t BlockStore::warm_bytes() {
    MutexLock lock(mutex_);
    return warm_bytes_;
}
uint64_t BlockStore::warm_blocks() {
    MutexLock lock(mutex_);
    return warm_blocks_;
}
uint64_t BlockStore::room_bytes() {
    MutexLock lock(mutex_);
    return capacity_bytes_;
}

std::vector<FileWarmth> BlockStore::files(size_t most, std::string_view tag) {
    std::vector<FileWarmth> found;
    MutexLock lock(mutex_);
    for (const auto &[id, file] : files_) {
        if (found.size() >= most) break;
        if (file->warm_blocks == 0 || (!tag.empty() && file->unit->tag != tag)) continue;
        found.push_back({file->key, file->unit->tag, file->warm_bytes, file->pinned});
    }
    return found;
}

std::vector<UnitWarmth> BlockStore::units() {
    std::vector<UnitWarmth> found;
    MutexLock lock(mutex_);
    for (const auto &[tag, unit] : units_) {
        if (unit.files > 0) found.push_back({tag, unit.warm_bytes, unit.files, unit.evicted_bytes});
    }
    return found;
}

uint64_t BlockStore::unit_bytes(std::string_view tag) {
    MutexLock lock(mutex_);
    const auto found = units_.find(tag);
    return found == units_.end() ? 0 : found->second.warm_bytes;
}

bool BlockStore::has_changes() {
    MutexLock lock(mutex_);
    return !changed_.empty();
}

UnitChanges BlockStore::take_changes(size_t most) {
    UnitChanges changes;
    MutexLock lock(mutex_);
    changes.all = changed_.size() > most;
    for (Unit *unit : changed_) {
        if (!changes.all) changes.units.push_back({unit->tag, unit->warm_bytes, unit->files, unit->evicted_bytes});
        unit->changed = false;
        unit->evicted_bytes = 0;
    }
    changed_.clear();
    return changes;
}

void BlockStore::damaged() {
    MutexLock lock(mutex_);
    ++counters_.corrupt_blocks;
}

void BlockStore::failed(const Status &status, bool writing) {
    MutexLock lock(mutex_);
    ++(writing ? counters_.write_errors : counters_.read_errors);
    writes_in_a_row_ = 0;
    if (writing && status.code() == Code::resource_exhausted) {
        set_mode(DiskMode::full, status.message());
    } else if (writing || ++read_errors_in_a_row_ >= kReadErrorsMax) {
        set_mode(DiskMode::bypass, status.message());
    }
}

}  // namespace roost::cache
