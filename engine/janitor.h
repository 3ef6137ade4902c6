// Finds the files that killed nodes left: written below the data path for a commit that never came, named by no
// snapshot. A thread of its own looks now and then; what is old enough and named by nobody is removed. Nobody can
// commit such a file any more: a transaction that is older than half of the age is refused its COMMIT
// (InstanceOptions::commit_within_ms). Also settles the pins of files of others. Thread-safe. Owned by the engine;
// calls back into it.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/instance_pool.h"
#include "obs/log.h"

namespace roost {

struct JanitorOptions {
    int64_t orphan_grace_ms = 0;  // age by the store's clock from which a file that nobody names goes; 0: none goes
};

class Janitor {
public:
    // Removes the file unless the catalog names it after all. True: it is settled.
    using Remove = std::function<Result<bool>(const std::string &catalog, const std::string &path)>;

    // `pools` outlive this.
    Janitor(JanitorOptions options, std::vector<InstancePool *> pools, Remove remove, obs::Log &log);
    ~Janitor();
    Janitor(const Janitor &) = delete;
    Janitor &operator=(const Janitor &) = delete;

private:
    void run(const std::stop_token &stop) ROOST_EXCLUDES(mutex_);
    Status sweep(InstancePool &pool, const std::stop_token &stop);

    const JanitorOptions options_;
    const std::vector<InstancePool *> pools_;
    const Remove remove_;
    obs::Log &log_;
    Mutex mutex_;
    CondVar changed_;
    std::jthread thread_;  // last: it uses the rest
};

// The data files below the lake's data path that have a name of DuckLake's and were written before `before_us` (wall
// clock; the store's). Nothing is opened. Errors: of the store.
Status for_each_old_file(Instance &instance, int64_t before_us,
                         const std::function<void(const std::string &path)> &found);

}  // namespace roost
