// The instances of one catalog: the shared small one (one thread, point reads), the shared pinned one (sessions with an
// open transaction), and one for each slot of the ladder, taken for a statement and kept warm between. Broken instances
// are replaced by the next caller. Thread-safe. Owned by the engine.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/frozen_reads.h"
#include "engine/instance.h"
#include "engine/instance_shares.h"

namespace roost {

struct InstancePoolOptions {
    LakeLocation lake;
    std::vector<LakeLocation> others;  // attached beside it, for statements that name several
    InstanceShares *shares = nullptr;  // null: the lanes are this pool's alone
    std::string extension_dir;
    std::string spill_root;
    uint32_t threads = 1;
    uint64_t small_bytes = 0;
    uint64_t pinned_bytes = 0;
    uint64_t spill_max_bytes = 0;
    Redactions redactions;
    DeferredRemovals *removals = nullptr;
    std::shared_ptr<StoreKeys> keys;              // with a lake that is in a store
    std::shared_ptr<ObjectCache> cache;           // for that store; null: none
    std::vector<std::shared_ptr<FilePins>> pins;  // of each lake, with `external`
    int64_t commit_within_ms = 0;                 // as of InstanceOptions
    std::string frozen_dir;                       // for frozen catalogs; empty: none are used
    int64_t frozen_quiet_ms = 2'000;
};

class InstancePool final : public ShareHolder {
public:
    InstancePool(InstancePoolOptions options, obs::Log &log);
    ~InstancePool() override;
    InstancePool(const InstancePool &) = delete;
    InstancePool &operator=(const InstancePool &) = delete;

    const InstancePoolOptions &options() const { return options_; }

    Result<std::shared_ptr<Instance>> small() ROOST_EXCLUDES(mutex_);
    // For a statement that only reads: an instance by a frozen catalog that is the lake's newest snapshot; null: there
    // is none, small() will do. What such an instance can't bind may be fine in small().
    std::shared_ptr<Instance> frozen() { return frozen_ ? frozen_->current() : nullptr; }
    // The limit of the small instance now; a frozen one has as much.
    uint64_t small_lane_bytes() const ROOST_EXCLUDES(mutex_);
    Result<std::shared_ptr<Instance>> pinned() ROOST_EXCLUDES(mutex_);
    // The slot's own instance with its limit set to `bytes`; the caller has it alone until give_back_slot.
    Result<std::shared_ptr<Instance>> take_slot(uint32_t slot, uint64_t bytes) ROOST_EXCLUDES(mutex_);
    // `keep`: it keeps its limit, and what it has cached; otherwise its memory is back when this returns.
    void give_back_slot(uint32_t slot, std::shared_ptr<Instance> instance, bool keep = false) ROOST_EXCLUDES(mutex_);
    // The slot's instance, taken or kept; null: there is none here.
    std::shared_ptr<Instance> instance_of_slot(uint32_t slot) const ROOST_EXCLUDES(mutex_);
    // Makes the slot's instance when it is neither there nor taken, for whoever takes it next.
    void warm_slot(uint32_t slot) ROOST_EXCLUDES(mutex_);
    // For one statement of roost's own, which may read the staging directory.
    Result<std::shared_ptr<Instance>> make_internal(uint64_t bytes);

    uint32_t threads() const { return options_.threads; }  // of a statement outside the small lane
    uint64_t used_bytes() const ROOST_EXCLUDES(mutex_);

    bool drop_idle(SharedLane lane) override ROOST_EXCLUDES(mutex_);
    void drop_idle_slot(uint32_t slot) override ROOST_EXCLUDES(mutex_);

private:
    InstanceOptions instance_options(uint32_t threads, uint64_t bytes) const;
    Result<std::shared_ptr<Instance>> shared(SharedLane lane, InstanceOptions options) ROOST_EXCLUDES(mutex_);
    std::shared_ptr<Instance> &instance_of(SharedLane lane) ROOST_REQUIRES(mutex_) {
        return lane == SharedLane::small ? small_ : pinned_;
    }
    uint64_t lane_bytes(SharedLane lane) const;
    void remember(const std::shared_ptr<Instance> &instance) ROOST_REQUIRES(mutex_);
    Status share_small_lane() ROOST_EXCLUDES(mutex_);

    const InstancePoolOptions options_;
    obs::Log &log_;
    mutable Mutex mutex_;
    std::shared_ptr<Instance> small_ ROOST_GUARDED_BY(mutex_);
    std::shared_ptr<Instance> pinned_ ROOST_GUARDED_BY(mutex_);
    std::set<uint32_t> seen_slots_ ROOST_GUARDED_BY(mutex_);  // that had an instance once
    std::map<uint32_t, std::shared_ptr<Instance>> idle_slots_ ROOST_GUARDED_BY(mutex_);
    std::map<uint32_t, std::weak_ptr<Instance>> taken_slots_ ROOST_GUARDED_BY(mutex_);
    std::vector<std::weak_ptr<Instance>> made_ ROOST_GUARDED_BY(mutex_);  // all that may still hold memory
    bool small_lane_shared_ ROOST_GUARDED_BY(mutex_) = false;
    const std::shared_ptr<AlteredTables> altered_ = std::make_shared<AlteredTables>();
    std::unique_ptr<FrozenReads> frozen_;  // last: its thread uses the rest
};

}  // namespace roost
