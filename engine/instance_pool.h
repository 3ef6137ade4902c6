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
#include "engine/instance.h"

namespace roost {

struct InstancePoolOptions {
    LakeLocation lake;
    std::string extension_dir;
    std::string spill_root;
    uint32_t threads = 1;
    uint64_t small_bytes = 0;
    uint64_t pinned_bytes = 0;
    uint64_t spill_max_bytes = 0;
    Redactions redactions;
    DeferredRemovals *removals = nullptr;
    std::shared_ptr<StoreKeys> keys;  // with lake.store
};

class InstancePool {
public:
    InstancePool(InstancePoolOptions options, obs::Log &log) : options_(std::move(options)), log_(log) {}

    const InstancePoolOptions &options() const { return options_; }

    Result<std::shared_ptr<Instance>> small() ROOST_EXCLUDES(mutex_);
    Result<std::shared_ptr<Instance>> pinned() ROOST_EXCLUDES(mutex_);
    // The slot's own instance with its limit set to `bytes`; the caller has it alone until give_back_slot.
    Result<std::shared_ptr<Instance>> take_slot(uint32_t slot, uint64_t bytes) ROOST_EXCLUDES(mutex_);
    void give_back_slot(uint32_t slot, std::shared_ptr<Instance> instance) ROOST_EXCLUDES(mutex_);
    // Makes the slot's instance when it is neither there nor taken, for whoever takes it next.
    void warm_slot(uint32_t slot) ROOST_EXCLUDES(mutex_);
    // For one statement of roost's own, which may read the staging directory.
    Result<std::shared_ptr<Instance>> make_internal(uint64_t bytes);

    uint64_t used_bytes() const ROOST_EXCLUDES(mutex_);

private:
    InstanceOptions instance_options(uint32_t threads, uint64_t bytes) const;
    Result<std::shared_ptr<Instance>> shared(std::shared_ptr<Instance> InstancePool::*which, InstanceOptions options)
        ROOST_EXCLUDES(mutex_);
    void remember(const std::shared_ptr<Instance> &instance) ROOST_REQUIRES(mutex_);

    const InstancePoolOptions options_;
    obs::Log &log_;
    mutable Mutex mutex_;
    std::shared_ptr<Instance> small_ ROOST_GUARDED_BY(mutex_);
    std::shared_ptr<Instance> pinned_ ROOST_GUARDED_BY(mutex_);
    std::set<uint32_t> seen_slots_ ROOST_GUARDED_BY(mutex_);  // that had an instance once
    std::map<uint32_t, std::shared_ptr<Instance>> idle_slots_ ROOST_GUARDED_BY(mutex_);
    std::vector<std::weak_ptr<Instance>> made_ ROOST_GUARDED_BY(mutex_);  // all that may still hold memory
};

}  // namespace roost
