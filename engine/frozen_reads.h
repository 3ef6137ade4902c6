// Reads by a frozen catalog (lake/frozen_catalog.h): a copy of the lake's metadata in a DuckDB file on this node, which
// plans a statement in about half the time of the live catalog. A thread of its own writes a copy when the lake has
// been read and left alone for a while; a statement uses it only while it is the newest snapshot, which costs one query
// of the catalog to know. Whatever goes wrong, statements read by the live catalog. Thread-safe. Owned by InstancePool.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/instance.h"
#include "lake/mirror.h"

namespace roost {

struct FrozenReadsOptions {
    InstanceOptions instance;  // of the instances that are made; frozen_path is filled in
    std::string dir;           // for the copies; emptied at the start
    // How long nothing must have been committed before a copy is written. 0, for tests: no rest between copies either.
    int64_t quiet_ms = 2'000;
    // Called before the first copy is used: makes room for its instance. Not ok: none is used.
    std::function<Status()> make_room;
};

class FrozenReads {
public:
    FrozenReads(FrozenReadsOptions options, obs::Log &log);
    ~FrozenReads();
    FrozenReads(const FrozenReads &) = delete;
    FrozenReads &operator=(const FrozenReads &) = delete;

    // The instance whose lake is the newest snapshot; null: read by the live catalog. A commit that the caller has seen
    // is in it.
    std::shared_ptr<Instance> current() ROOST_EXCLUDES(mutex_);

private:
    struct Copy {
        std::shared_ptr<const LakeState> state;
        std::shared_ptr<Instance> instance;
    };

    void run(const std::stop_token &stop);
    // True: it was written and is used from now on.
    bool freeze(const std::shared_ptr<const LakeState> &state, const std::stop_token &stop);
    bool wait(std::chrono::milliseconds time, const std::stop_token &stop) ROOST_EXCLUDES(mutex_);

    const FrozenReadsOptions options_;
    obs::Log &log_;
    LakeMirror mirror_;
    Mutex mutex_;
    CondVar changed_;
    std::shared_ptr<const Copy> copy_ ROOST_GUARDED_BY(mutex_);
    uint64_t live_reads_ ROOST_GUARDED_BY(mutex_) = 0;  // that a copy would have served
    bool has_room_ = false;                             // its thread's own
    uint64_t copies_ = 0;                               // its thread's own
    std::jthread thread_;                               // last: it uses the rest
};

}  // namespace roost
