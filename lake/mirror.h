// The gateway's copy of one lake's metadata, brought forward by snapshot. refresh() asks the catalog once whether there
// is a newer snapshot, and reads only what the commits since then say they changed; whatever it can't prove to be
// complete (an unknown kind of change, snapshots that expired unseen, a catalog made anew) is read from scratch, so a
// state is never a guess. Thread-safe. The gateway calls refresh() on a look-up thread and current() on its loop.
//
// Why there is no change notice on Postgres: LISTEN needs someone to NOTIFY, which other DuckLake clients don't do; a
// trigger would be a change of the catalog's schema, and logical decoding needs a server setting and a slot that keeps
// WAL. The check costs a round trip, and is what holds for every client.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "lake/call_limits.h"
#include "lake/lake_state.h"
#include "lake/metadata_reader.h"

namespace roost {

struct TableName {
    std::string schema, name;
};

struct MirrorCounts {
    uint64_t checks = 0;      // newest-snapshot queries
    uint64_t advances = 0;    // states made from the one before
    uint64_t loads = 0;       // states read from scratch
    uint64_t past_loads = 0;  // reads for at()
};

class LakeMirror {
public:
    explicit LakeMirror(MetadataAddress address);
    ~LakeMirror();
    LakeMirror(const LakeMirror &) = delete;
    LakeMirror &operator=(const LakeMirror &) = delete;

    // A state no older than this call: a commit that its caller has seen is in it. Callers that come while another's
    // check is under way share the next one. Errors: those of MetadataReader; the state known before stays current().
    Result<std::shared_ptr<const LakeState>> refresh(const CallLimits &limits);
    // The newest state known; null before the first refresh. No I/O.
    std::shared_ptr<const LakeState> current() const;

    // The lake as it was at a snapshot: all names and definitions, and the contents of `tables` (of other tables `data`
    // is null or there by chance). Asks the catalog each time whether the snapshot is still there; keeps a few states
    // until a commit touches the past. Errors also: not_found.
    Result<std::shared_ptr<const LakeState>> at(uint64_t snapshot, std::span<const TableName> tables,
                                                const CallLimits &limits);
    // At the newest snapshot that is not younger than `time_us` (microseconds since 1970 UTC).
    Result<std::shared_ptr<const LakeState>> at_time(int64_t time_us, std::span<const TableName> tables,
                                                     const CallLimits &limits);

    MirrorCounts counts() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace roost
