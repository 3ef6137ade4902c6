// Files of the lake that DuckLake wanted to remove when a commit failed, and that were kept because the commit might
// have reached the catalog all the same (FileWall::DeferRemovals). Once that can't change any more, those that the
// catalog does not name are removed. Kept in a journal in the node's directory, so a restart forgets none. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "obs/log.h"

namespace roost {

class DeferredRemovals {
public:
    struct Entry {
        std::string catalog;
        std::string path;
        int64_t since_us = 0;  // wall clock
        bool operator==(const Entry &) const = default;
    };
    // What became of an entry: true, it needs no more care (removed, gone, or named by the catalog).
    using Settle = std::function<Result<bool>(const Entry &)>;

    // Reads what an earlier run left in `journal`; a damaged line is dropped, which costs a file that stays.
    DeferredRemovals(std::string journal, obs::Log &log);

    // A failing disk costs no more than the memory of it after a restart. Beyond `kEntriesMax` it is logged and
    // forgotten.
    void put_off(Entry entry) ROOST_EXCLUDES(mutex_);
    // Settles those put off before `before_us`; what can't be settled now stays. Returns how many were.
    size_t settle(int64_t before_us, const Settle &settle) ROOST_EXCLUDES(mutex_, settling_mutex_);
    size_t size() const ROOST_EXCLUDES(mutex_);

private:
    static constexpr size_t kEntriesMax = 100'000;
    void write_journal() ROOST_REQUIRES(mutex_);

    const std::string journal_;
    obs::Log &log_;
    Mutex settling_mutex_;  // held over the engine's calls, on purpose: one settles at a time
    mutable Mutex mutex_;
    std::vector<Entry> entries_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost
