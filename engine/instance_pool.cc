#include "engine/instance_pool.h"

#include <algorithm>

namespace roost {

namespace {

// Of an instance between statements: schemas and footers stay.
constexpr uint64_t kIdleBytes = 16ull << 20;

// To a Postgres catalog, at most: one for each statement of the small lane, one for each session with an open
// transaction (a session more waits, and is told), two for a slot. 20 a node with a ladder of three slots: three nodes
// hold 60 of the 100 that Postgres gives unless told.
constexpr uint32_t kSmallConnections = 6, kPinnedConnections = 8, kSlotConnections = 2;

// Half of the small lane must still hold a lake's schema and a point read.
constexpr uint64_t kSharedLaneMinBytes = 128ull << 20;

}  // namespace

InstancePool::InstancePool(InstancePoolOptions options, obs::Log &log) : options_(std::move(options)), log_(log) {
    // Where catalogs take turns in the lane there is no room for copies.
    if (options_.frozen_dir.empty() || (options_.shares && !options_.shares->roomy())) return;
    if (lane_bytes(SharedLane::small) < kSharedLaneMinBytes) return;
    FrozenReadsOptions frozen;
    frozen.instance = instance_options(1, lane_bytes(SharedLane::small) / 2);
    frozen.dir = options_.frozen_dir;
    frozen.quiet_ms = options_.frozen_quiet_ms;
    frozen.make_room = [this] { return share_small_lane(); };
    frozen_ = std::make_unique<FrozenReads>(std::move(frozen), log_);
}

InstancePool::~InstancePool() {
    frozen_.reset();
    if (options_.shares) options_.shares->forget(*this);
}

uint64_t InstancePool::lane_bytes(SharedLane lane) const {
    if (options_.shares) return options_.shares->share_bytes(lane);
    return lane == SharedLane::small ? options_.small_bytes : options_.pinned_bytes;
}

// From then on the small lane is two instances of half its size.
Status InstancePool::share_small_lane() {
    ROOST_ASSIGN_OR_RETURN(const auto instance, small());
    ROOST_RETURN_IF_ERROR(instance->set_memory_limit(lane_bytes(SharedLane::small) / 2));
    MutexLock lock(mutex_);
    small_lane_shared_ = true;
    return Status();
}

uint64_t InstancePool::small_lane_bytes() const {
    MutexLock lock(mutex_);
    return lane_bytes(SharedLane::small) / (small_lane_shared_ ? 2 : 1);
}

InstanceOptions InstancePool::instance_options(uint32_t threads, uint64_t bytes) const {
    return {
        .lake = options_.lake,
        .others = options_.others,
        .extension_dir = options_.extension_dir,
        .spill_root = options_.spill_root,
        .threads = threads,
        .memory_bytes = bytes,
        .spill_max_bytes = options_.spill_max_bytes,
        .internal = false,
        .redactions = options_.redactions,
        .removals = options_.removals,
        .keys = options_.keys,
        .cache = options_.cache,
        .pins = options_.pins,
        .commit_within_ms = options_.commit_within_ms,
        .catalog_connections_max = kSlotConnections,
        .altered = altered_,
    };
}

void InstancePool::remember(const std::shared_ptr<Instance> &instance) {
    std::erase_if(made_, [](const auto &made) { return made.expired(); });
    made_.push_back(instance);
}

// Two callers may both find none and make one each; the second is dropped. No lock is held while one is made. The
// caller's hold on the instance is what keeps it from making room for another catalog's.
Result<std::shared_ptr<Instance>> InstancePool::shared(SharedLane lane, InstanceOptions options) {
    std::optional<InstanceShares::Seat> seat;
    if (options_.shares) {
        ROOST_ASSIGN_OR_RETURN(auto taken, options_.shares->take_seat(lane, *this));
        seat.emplace(std::move(taken));
    }
    {
        MutexLock lock(mutex_);
        const auto &known = instance_of(lane);
        if (known && !known->broken()) return known;
    }
    ROOST_ASSIGN_OR_RETURN(auto made, Instance::make(std::move(options), log_));
    std::shared_ptr<Instance> replaced;  // destroyed after the lock
    MutexLock lock(mutex_);
    auto &known = instance_of(lane);
    if (known && !known->broken()) {
        replaced = std::move(made);
        return known;
    }
    replaced = std::exchange(known, made);
    remember(made);
    return made;
}

bool InstancePool::drop_idle(SharedLane lane) {
    std::shared_ptr<Instance> dropped;  // destroyed after the lock, and before the caller counts its memory as free
    MutexLock lock(mutex_);
    auto &known = instance_of(lane);
    if (known && known.use_count() > 1) return false;
    dropped = std::move(known);
    return true;
}

void InstancePool::drop_idle_slot(uint32_t slot) {
    std::shared_ptr<Instance> dropped;
    MutexLock lock(mutex_);
    const auto found = idle_slots_.find(slot);
    if (found == idle_slots_.end()) return;
    dropped = std::move(found->second);
    idle_slots_.erase(found);
}

Result<std::shared_ptr<Instance>> InstancePool::small() {
    InstanceOptions options = instance_options(1, small_lane_bytes());
    options.catalog_connections_max = kSmallConnections;
    return shared(SharedLane::small, std::move(options));
}

Result<std::shared_ptr<Instance>> InstancePool::pinned() {
    InstanceOptions options = instance_options(options_.threads, lane_bytes(SharedLane::pinned));
    options.catalog_connections_max = kPinnedConnections;
    return shared(SharedLane::pinned, std::move(options));
}

Result<std::shared_ptr<Instance>> InstancePool::take_slot(uint32_t slot, uint64_t bytes) {
    std::shared_ptr<Instance> instance;
    if (options_.shares) options_.shares->took_slot(slot, *this);
    {
        MutexLock lock(mutex_);
        seen_slots_.insert(slot);
        if (const auto found = idle_slots_.find(slot); found != idle_slots_.end()) {
            instance = std::move(found->second);
            idle_slots_.erase(found);
        }
        if (instance) taken_slots_[slot] = instance;
    }
    // One that can't be brought to the new limit is replaced: the grant must hold.
    if (instance && !instance->broken() && instance->set_memory_limit(bytes).ok()) return instance;
    instance.reset();
    ROOST_ASSIGN_OR_RETURN(instance, Instance::make(instance_options(options_.threads, bytes), log_));
    MutexLock lock(mutex_);
    remember(instance);
    taken_slots_[slot] = instance;
    return instance;
}

void InstancePool::give_back_slot(uint32_t slot, std::shared_ptr<Instance> instance, bool keep) {
    {
        MutexLock lock(mutex_);
        taken_slots_.erase(slot);
    }
    if (!instance || instance->broken()) return;
    // The grant's memory is back when this returns: what is kept warm fits the idle limit, or the instance goes.
    if (!keep && !instance->set_memory_limit(kIdleBytes).ok()) return;
    {
        MutexLock lock(mutex_);
        idle_slots_.try_emplace(slot, std::move(instance));
    }
    if (!keep && options_.shares) options_.shares->stays_warm(slot);
}

std::shared_ptr<Instance> InstancePool::instance_of_slot(uint32_t slot) const {
    MutexLock lock(mutex_);
    if (const auto idle = idle_slots_.find(slot); idle != idle_slots_.end()) return idle->second;
    const auto taken = taken_slots_.find(slot);
    return taken == taken_slots_.end() ? nullptr : taken->second.lock();
}

void InstancePool::warm_slot(uint32_t slot) {
    {
        MutexLock lock(mutex_);
        if (!seen_slots_.insert(slot).second) return;
    }
    auto made = Instance::make(instance_options(options_.threads, kIdleBytes), log_);
    if (!made.ok()) return;  // whoever takes the slot makes it, and reports
    MutexLock lock(mutex_);
    remember(*made);
    idle_slots_.try_emplace(slot, std::move(made).value());
}

Result<std::shared_ptr<Instance>> InstancePool::make_internal(uint64_t bytes) {
    InstanceOptions options = instance_options(options_.threads, bytes);
    options.internal = true;
    ROOST_ASSIGN_OR_RETURN(auto instance, Instance::make(std::move(options), log_));
    MutexLock lock(mutex_);
    remember(instance);
    return instance;
}

uint64_t InstancePool::used_bytes() const {
    std::vector<std::shared_ptr<Instance>> alive;
    {
        MutexLock lock(mutex_);
        for (const auto &made : made_) {
            if (auto instance = made.lock()) alive.push_back(std::move(instance));
        }
    }
    uint64_t bytes = 0;
    for (const auto &instance : alive) bytes += instance->used_bytes();
    return bytes;
}

}  // namespace roost
