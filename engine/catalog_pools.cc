#include "engine/catalog_pools.h"

#include <algorithm>
#include <utility>

namespace roost {

void CatalogPools::add(LakeLocation lake, std::shared_ptr<StoreKeys> keys, std::shared_ptr<ObjectCache> cache,
                       std::string frozen_dir) {
    InstancePoolOptions options = common_;
    const std::string name = lake.catalog;
    options.lake = std::move(lake);
    options.keys = std::move(keys);
    options.cache = std::move(cache);
    if (!options.lake.external.empty()) options.pins = {std::make_shared<FilePins>(options.lake)};
    options.shares = shares_.get();
    options.frozen_dir = std::move(frozen_dir);
    pools_[name] = std::make_shared<InstancePool>(std::move(options), log_);
}

Result<std::shared_ptr<InstancePool>> CatalogPools::find(const std::string &catalog) const {
    const auto found = pools_.find(catalog);
    if (found != pools_.end()) return found->second;
    return Status(Code::not_found, "there is no catalog \"" + catalog + "\" on this node").with_sqlstate("3D000");
}

Result<std::shared_ptr<InstancePool>> CatalogPools::make_joint(const std::vector<std::string> &catalogs) const {
    InstancePoolOptions options = common_;
    options.shares = shares_.get();
    for (const std::string &catalog : catalogs) {
        ROOST_ASSIGN_OR_RETURN(const auto pool, find(catalog));
        if (pool->options().keys) {  // the same for all
            options.keys = pool->options().keys;
            options.cache = pool->options().cache;
        }
        options.pins.insert(options.pins.end(), pool->options().pins.begin(), pool->options().pins.end());
        if (catalog == catalogs.front()) {
            options.lake = pool->options().lake;
        } else {
            options.others.push_back(pool->options().lake);
        }
    }
    return std::make_shared<InstancePool>(std::move(options), log_);
}

Result<std::shared_ptr<InstancePool>> CatalogPools::find(const StatementSpec &spec) {
    if (spec.catalogs.empty()) return find(spec.settings.catalog);
    std::vector<std::string> catalogs = spec.catalogs;
    catalogs.push_back(spec.settings.catalog);
    std::ranges::sort(catalogs);
    catalogs.erase(std::ranges::unique(catalogs).begin(), catalogs.end());
    if (catalogs.size() == 1) return find(catalogs.front());
    std::shared_ptr<InstancePool> dropped;  // destroyed after the lock
    MutexLock lock(mutex_);
    if (const auto found = joints_.find(catalogs); found != joints_.end()) {
        found->second.last_used = ++uses_;
        return found->second.pool;
    }
    ROOST_ASSIGN_OR_RETURN(auto made, make_joint(catalogs));
    if (joints_.size() >= kJointMax) {
        const auto oldest =
            std::ranges::min_element(joints_, {}, [](const auto &entry) { return entry.second.last_used; });
        dropped = std::move(oldest->second.pool);
        joints_.erase(oldest);
    }
    joints_[catalogs] = {made, ++uses_};
    return made;
}

std::vector<std::shared_ptr<InstancePool>> CatalogPools::all() const {
    std::vector<std::shared_ptr<InstancePool>> pools;
    for (const auto &[name, pool] : pools_) pools.push_back(pool);
    MutexLock lock(mutex_);
    for (const auto &[names, joint] : joints_) pools.push_back(joint.pool);
    return pools;
}

uint64_t CatalogPools::used_bytes() const {
    uint64_t bytes = 0;
    for (const auto &pool : all()) bytes += pool->used_bytes();
    return bytes;
}

std::shared_ptr<Instance> CatalogPools::instance_of_slot(uint32_t slot) const {
    for (const auto &pool : all()) {
        if (auto instance = pool->instance_of_slot(slot)) return instance;
    }
    return nullptr;
}

void CatalogPools::drop_idle_slot(uint32_t slot) {
    for (const auto &pool : all()) pool->drop_idle_slot(slot);
}

}  // namespace roost
