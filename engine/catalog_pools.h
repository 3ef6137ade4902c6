// The pools of instances of a node: one for each catalog, and, made when they are asked for, one for each set of
// catalogs that a statement names together. Thread-safe. Owned by the engine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/instance_pool.h"
#include "engine/instance_shares.h"
#include "engine/statement.h"

namespace roost {

class CatalogPools {
public:
    // `common`: what all pools have the same; lake, others, keys, frozen_dir and shares are filled in.
    CatalogPools(InstancePoolOptions common, std::unique_ptr<InstanceShares> shares, obs::Log &log)
        : common_(std::move(common)), shares_(std::move(shares)), log_(log) {}

    // `frozen_dir`: empty: none are used.
    void add(LakeLocation lake, std::shared_ptr<StoreKeys> keys, std::shared_ptr<ObjectCache> cache,
             std::string frozen_dir);

    // not_found (3D000): the node has no such catalog.
    Result<std::shared_ptr<InstancePool>> find(const std::string &catalog) const;
    // Of the catalogs that the statement names, and its active one.
    Result<std::shared_ptr<InstancePool>> find(const StatementSpec &spec) ROOST_EXCLUDES(mutex_);

    const std::map<std::string, std::shared_ptr<InstancePool>> &each() const { return pools_; }
    uint64_t used_bytes() const ROOST_EXCLUDES(mutex_);
    // The instance that has the slot, in whichever pool; null: there is none.
    std::shared_ptr<Instance> instance_of_slot(uint32_t slot) const ROOST_EXCLUDES(mutex_);
    void drop_idle_slot(uint32_t slot) ROOST_EXCLUDES(mutex_);

private:
    struct Joint {
        std::shared_ptr<InstancePool> pool;
        uint64_t last_used = 0;
    };
    static constexpr size_t kJointMax = 8;

    std::vector<std::shared_ptr<InstancePool>> all() const ROOST_EXCLUDES(mutex_);
    Result<std::shared_ptr<InstancePool>> make_joint(const std::vector<std::string> &catalogs) const;

    const InstancePoolOptions common_;
    const std::unique_ptr<InstanceShares> shares_;  // outlives the pools
    obs::Log &log_;
    std::map<std::string, std::shared_ptr<InstancePool>> pools_;  // constant once the engine is open
    mutable Mutex mutex_;
    std::map<std::vector<std::string>, Joint> joints_ ROOST_GUARDED_BY(mutex_);
    uint64_t uses_ ROOST_GUARDED_BY(mutex_) = 0;
};

}  // namespace roost
