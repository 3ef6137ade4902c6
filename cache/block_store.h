// Blocks on the disk: which block of which file is in which slot, who gives up room, and whether the disk can be
// trusted. Owned by SegmentCache, used from all its threads. Thread-safe; one mutex over the bookkeeping, never held
// over I/O.
//
// A fault of the disk is no fault of a read: every answer is "here it is, checked" or "I don't have it". What went
// wrong is in state() and the log, once for each change.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache/cache_files.h"
#include "cache/disk.h"
#include "cache/eviction.h"
#include "cache/read_ahead.h"
#include "obs/log.h"

namespace roost::cache {

struct BlockStoreOptions {
    uint64_t max_bytes = 10ULL << 30;        // of blocks on the disk; the index adds 1/8192 of it
    uint64_t free_floor_bytes = 1ULL << 30;  // the volume keeps this much free, or the cache shrinks
    uint32_t block_bytes = 1 << 20;          // a multiple of 8 × 512
    uint64_t blocks_max = 0;                 // 0: four times as many as whole blocks fit
    std::unique_ptr<EvictionPolicy> (*policy)(uint64_t capacity_bytes, uint64_t blocks) = make_tiny_lfu;
};

// How the disk is. `full`: blocks are read but none written. `bypass`: neither.
enum class DiskMode : uint8_t { ok, full, bypass };
std::string_view disk_mode_name(DiskMode mode);

struct DiskState {
    DiskMode mode = DiskMode::ok;
    std::string reason;       // of the last change away from ok
    int64_t since_us = 0;     // wall clock
    Uuid identity;            // nil while there never was a directory
    uint64_t generation = 0;  // openings of this directory
};

// Since the start of the process.
struct StoreCounters {
    uint64_t inserted_blocks = 0, inserted_bytes = 0;
    uint64_t evicted_blocks = 0, evicted_bytes = 0;  // to make room, or by hand
    uint64_t corrupt_blocks = 0;                     // a checksum differed
    uint64_t refused_blocks = 0;                     // not written: the disk, or a file larger than the cache
    uint64_t read_errors = 0, write_errors = 0;
    uint64_t restored_blocks = 0;  // found at the last opening
};

// What is warm of a unit: the files of one tag.
struct UnitWarmth {
    std::string tag;
    uint64_t warm_bytes = 0;
    uint64_t files = 0;          // with at least one block
    uint64_t evicted_bytes = 0;  // since the last take_changes()
};
struct UnitChanges {
    std::vector<UnitWarmth> units;  // as they are now
    bool all = false;               // too many to name: ask for units()
};
struct FileWarmth {
    FileKey key;
    std::string tag;
    uint64_t warm_bytes = 0;
    bool pinned = false;
};

class BlockStore {
public:
    struct Unit;
    struct File;
    struct Entry;
    struct Volume;  // the open files of one mount
    using FileRef = std::shared_ptr<File>;

    // A block that stays where it is while the lease lives.
    class Lease {
    public:
        Lease() = default;
        Lease(Lease &&other) noexcept;
        Lease &operator=(Lease &&other) noexcept;
        ~Lease();
        explicit operator bool() const { return store_ != nullptr; }
        uint32_t length_bytes() const;

    private:
        friend class BlockStore;
        BlockStore *store_ = nullptr;
        Entry *entry_ = nullptr;
        uint32_t slot_ = 0;
        Volume *volume_ = nullptr;  // lives while there is a lease: nothing is mounted meanwhile
    };

    // Never fails for what the disk does: then the state says bypass. Errors: failed_precondition (another process has
    // the directory), invalid_argument (options).
    static Result<std::unique_ptr<BlockStore>> open(std::unique_ptr<Disk> disk, BlockStoreOptions options, Clock &clock,
                                                    obs::Log &log);
    ~BlockStore();

    // The file of this key, known from now on for as long as the reference or a block of it lives. A tag replaces the
    // one it had, unless empty. Null for names too long and sizes no store has.
    FileRef file(const FileKey &key, std::string_view tag);
    static const FileKey &key(const FileRef &file);
    uint32_t block_bytes() const { return options_.block_bytes; }

    // A block that is here. `statement`: uses by the same one in a row count once; 0 counts none.
    Lease lease(const FileRef &file, uint32_t block, uint64_t statement, BlockKind kind);
    bool holds(const FileRef &file, uint32_t block);
    // All blocks of these ranges.
    bool holds_all(const FileRef &file, const std::vector<ByteRange> &ranges);
    // An eighth of a block that was read and found whole, of which a caller wanted a part: kept for its next part.
    struct Grain {
        uint32_t block = 0, grain = 0;
        std::string bytes;
    };
    // Bytes of the leased block into `buffer`, checked. Errors mean that it isn't here after all (and it is not, from
    // now on). `last`: of the same file, may be null; set when a part of a grain was read.
    Status read(const Lease &lease, uint32_t offset, size_t length, char *buffer, std::shared_ptr<const Grain> &last);
    // Keeps a whole block (the file's last may be short). False when it is not kept, for whatever reason.
    // REQUIRES: `data` is exactly what the file holds there.
    bool put(const FileRef &file, uint32_t block, std::string_view data, BlockKind kind);

    // A block of a file that is being written: on the disk, in no file yet. Thread-safe as all of this, but one owner:
    // commit() or discard() has to follow.
    struct Staged {
        uint32_t slot = 0;
        BlockRecord record;
    };
    std::optional<Staged> stage(std::string_view data);
    // The staged block is this one. False when it is not kept.
    bool commit(const FileRef &file, uint32_t block, Staged staged, BlockKind kind);
    void discard(const std::vector<Staged> &staged);

    // By hand. A pinned file's blocks don't leave; they count against at most half of the room, further ones are
    // ordinary. Returns how many bytes left, or files were pinned.
    uint64_t evict_file(std::string_view path);  // all versions
    uint64_t evict_unit(std::string_view tag);
    uint64_t pin(std::string_view path, bool pinned);  // all versions that are known

    // Probes a disk that failed when it is time, shrinks for the free-space floor. Called now and then, and by put().
    void tick();

    DiskState state();
    StoreCounters counters();
    uint64_t warm_bytes();
    uint64_t warm_blocks();
    uint64_t room_bytes();  // what warm_bytes may become now
    std::vector<FileWarmth> files(size_t most, std::string_view tag = {});
    std::vector<UnitWarmth> units();
    uint64_t unit_bytes(std::string_view tag);  // warm of that unit
    bool has_changes();                         // take_changes() would tell something
    // Units that changed since the last call, at most so many.
    UnitChanges take_changes(size_t most);

private:
    struct Room;
    using VolumeRef = std::shared_ptr<Volume>;

    BlockStore(std::unique_ptr<Disk> disk, BlockStoreOptions options, Clock &clock, obs::Log &log);

    // --- opening (block_store_open.cc)
    Status mount();
    Result<DirectoryIdentity> take_identity();
    Status load(const VolumeRef &volume);
    void adopt_files(const std::string &log, uint64_t seed) ROOST_REQUIRES(mutex_);
    void adopt_blocks(std::string_view records, uint32_t first_slot, uint64_t seed) ROOST_REQUIRES(mutex_);
    void adopt(const BlockRecord &record, uint32_t slot) ROOST_REQUIRES(mutex_);
    void restore_order() ROOST_REQUIRES(mutex_);
    Status rewrite_log(const VolumeRef &volume);
    void forget_all() ROOST_REQUIRES(mutex_);

    // --- the files' log (block_store_open.cc)
    bool log_file(const VolumeRef &volume, const FileRef &file);
    void compact_log(const VolumeRef &volume);
    std::string logged(File &file, uint64_t seed) ROOST_REQUIRES(mutex_);

    // --- the disk's health (block_store_open.cc)
    void failed(const Status &status, bool writing);
    void damaged();
    void set_mode(DiskMode mode, const std::string &reason) ROOST_REQUIRES(mutex_);
    void probe_if_due();
    bool may_mount();
    void refresh_capacity();
    void shrink();

    // --- room
    // Room for this many bytes, settled and counted in busy_; none when there isn't.
    std::optional<uint32_t> claim(uint64_t bytes, uint64_t file_bytes, VolumeRef &volume);
    void unclaim(const VolumeRef &volume, std::optional<uint32_t> slot);
    Room make_room(uint64_t charge_bytes, bool may_evict) ROOST_REQUIRES(mutex_);
    std::optional<uint32_t> take_slot(uint64_t charge_bytes, bool may_evict) ROOST_REQUIRES(mutex_);
    std::optional<uint32_t> evict_one() ROOST_REQUIRES(mutex_);
    // Gives the room of these slots back to the volume; then they are free.
    void settle(const VolumeRef &volume, const std::vector<uint32_t> &slots);
    bool write_record(const VolumeRef &volume, const FileRef &file, const BlockRecord &record, uint32_t slot);

    // --- bookkeeping
    bool publish(const FileRef &file, const BlockRecord &record, uint32_t slot) ROOST_REQUIRES(mutex_);
    void enter(const FileRef &file, const BlockRecord &record, uint32_t slot) ROOST_REQUIRES(mutex_);
    // The block is found no more. True: its slot is for the caller to settle; else whoever leases it does.
    bool leave(uint32_t slot) ROOST_REQUIRES(mutex_);
    uint64_t evict(const std::vector<FileRef> &files);
    void release(Entry *entry, uint32_t slot);
    Status read_grains(const Lease &lease, uint32_t first, char *buffer, size_t length);
    void drop(const Lease &lease);
    void sweep_files() ROOST_REQUIRES(mutex_);
    Unit &unit(std::string_view tag) ROOST_REQUIRES(mutex_);
    void move_to_unit(File &file, std::string_view tag) ROOST_REQUIRES(mutex_);
    void changed(Unit &unit) ROOST_REQUIRES(mutex_);

    const std::unique_ptr<Disk> disk_;
    const BlockStoreOptions options_;
    Clock &clock_;
    obs::Log &log_;

    Mutex mutex_;
    VolumeRef volume_ ROOST_GUARDED_BY(mutex_);  // null: never mounted
    std::unordered_map<Uuid, FileRef> files_ ROOST_GUARDED_BY(mutex_);
    size_t sweep_at_files_ ROOST_GUARDED_BY(mutex_) = 1024;
    std::map<std::string, Unit, std::less<>> units_ ROOST_GUARDED_BY(mutex_);
    std::vector<Unit *> changed_ ROOST_GUARDED_BY(mutex_);
    std::deque<Entry> entries_ ROOST_GUARDED_BY(mutex_);  // by slot
    std::vector<uint32_t> free_slots_ ROOST_GUARDED_BY(mutex_);
    std::unique_ptr<EvictionPolicy> policy_ ROOST_GUARDED_BY(mutex_);
    uint64_t used_bytes_ ROOST_GUARDED_BY(mutex_) = 0;  // on the volume; more than warm by what is not punched yet
    uint64_t warm_bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t warm_blocks_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t pinned_bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t capacity_bytes_ ROOST_GUARDED_BY(mutex_) = 0;   // max_bytes, or less for the floor
    uint64_t unchecked_bytes_ ROOST_GUARDED_BY(mutex_) = 0;  // written since the volume's free space was looked at
    uint64_t sequence_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t staged_bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t busy_ ROOST_GUARDED_BY(mutex_) = 0;  // leases, writes and settlements that use the volume now
    DiskState state_ ROOST_GUARDED_BY(mutex_);
    int64_t probe_at_us_ ROOST_GUARDED_BY(mutex_) = 0;
    int64_t probe_wait_us_ ROOST_GUARDED_BY(mutex_) = 0;
    bool probing_ ROOST_GUARDED_BY(mutex_) = false;
    bool mounting_ ROOST_GUARDED_BY(mutex_) = false;  // the books are being written anew: hands off
    uint32_t read_errors_in_a_row_ ROOST_GUARDED_BY(mutex_) = 0;
    uint32_t writes_in_a_row_ ROOST_GUARDED_BY(mutex_) = 0;
    StoreCounters counters_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost::cache
