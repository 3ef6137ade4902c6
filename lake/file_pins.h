// The versions of somebody else's files that a lake reads in place. DuckLake knows such a file by its path alone; roost
// notes with it what was registered, and a node that opens the file compares. The notes are a table of roost's own,
// roost_pinned_file, beside DuckLake's metadata tables: it travels with the catalog, and DuckLake ignores it.
//
// A pin is written before the commit that registers its file and bears that commit's mark, so it counts only when the
// commit happened, and only for the data files of that commit: a file that was registered, changed and registered again
// has two pins, and an older snapshot that names it is refused, not answered with other rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/status.h"
#include "lake/call_limits.h"
#include "lake/lake_location.h"
#include "lake/metadata_reader.h"

namespace roost {

struct FileVersion {
    uint64_t size_bytes = 0;
    int64_t modified_ns = 0;  // since 1970; 0 in an object store
    std::string etag;         // without quotes; empty in a directory
    bool operator==(const FileVersion &) const = default;
};

struct FilePin {
    std::string path;
    FileVersion version;
};

// Which data file of the catalog: DuckLake gives these with each file that a table scan opens, and gives no pair of
// them twice for one path.
struct DataFileKey {
    std::string path;
    uint64_t mapping_id = 0;
    uint64_t row_id_start = 0;
};

// Adds the pins of the commit that `statement` is about to make, in one transaction of the catalog. REQUIRES: no
// transaction of this caller has read a SQLite catalog and means to write it (it could not any more). Errors:
// unavailable (locked, not to be reached; retryable), io_error, timeout, cancelled.
Status write_pins(const LakeLocation &lake, const Uuid &statement, const std::vector<FilePin> &pins,
                  const CallLimits &limits);

// Notes for pins whose commit is in the catalog which snapshot it made, so that they outlive its record there, and
// drops pins older than `keep_us` whose commit is not, nor a file of it. Returns how many were dropped. Called now and
// then. Errors: as of write_pins.
Result<uint64_t> settle_pins(const LakeLocation &lake, int64_t now_us, int64_t keep_us, const CallLimits &limits);

// The pins of one lake as a node uses them: read from the catalog when a file is first met, all those of its
// registration at once, and kept (some 100 bytes each; forgotten together when there are too many). Thread-safe.
class FilePins {
public:
    explicit FilePins(const LakeLocation &lake) : reader_(make_metadata_reader(metadata_address(lake))) {}

    // Nothing: roost did not register that file. Errors: of reading the catalog.
    Result<std::optional<FileVersion>> find(const DataFileKey &file, const CallLimits &limits) ROOST_EXCLUDES(mutex_);

private:
    static constexpr size_t kKeptMax = 2'000'000;

    // Of a path and its ids, so that a path costs no memory. Two of 2^64 may collide: then a file is refused.
    static uint64_t hash_of(const DataFileKey &file);
    Status load(const std::string &path, const CallLimits &limits) ROOST_REQUIRES(mutex_);

    Mutex mutex_;  // held over the catalog's answer, on purpose: whoever waits finds its pin loaded
    std::unique_ptr<MetadataReader> reader_ ROOST_GUARDED_BY(mutex_);
    std::unordered_map<uint64_t, FileVersion> kept_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost
