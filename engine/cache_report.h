// What a node says of its segment cache, and of what statements read through it. Plain values that cross the seam
// between node and gateway; no DuckDB types. A folder is where a table's files are: the catalog knows it as the table's
// path, and all of a table's partitions count to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "obs/metrics.h"

namespace roost {

// Limits of what is told; the wire's too.
inline constexpr size_t kUnitReadsMax = 64;       // folders of one statement
inline constexpr size_t kSegmentReadsMax = 64;    // files of one statement
inline constexpr size_t kWarmFoldersMax = 4'096;  // of one heartbeat
inline constexpr size_t kFolderMaxBytes = 1'024;
inline constexpr size_t kCacheFilesMax = 100'000;  // of one CacheWork

// Bytes by where they came from.
struct ReadBytes {
    uint64_t store_bytes = 0, peer_bytes = 0;  // fetched
    uint64_t cache_bytes = 0;                  // found on the node's disk
    uint64_t requests = 0;                     // of the store and of peers

    ReadBytes &operator+=(const ReadBytes &more) {
        store_bytes += more.store_bytes;
        peer_bytes += more.peer_bytes;
        cache_bytes += more.cache_bytes;
        requests += more.requests;
        return *this;
    }
    uint64_t total_bytes() const { return store_bytes + peer_bytes + cache_bytes; }
    friend bool operator==(const ReadBytes &, const ReadBytes &) = default;
};

// One file that a statement read.
struct SegmentRead {
    std::string file;  // its path below the folder
    ReadBytes bytes;
    friend bool operator==(const SegmentRead &, const SegmentRead &) = default;
};

// What one statement read, or wrote, of one folder.
struct UnitRead {
    std::string folder;  // whole, with a slash at its end
    ReadBytes bytes;
    uint64_t files = 0;
    uint64_t warm_bytes = 0;  // of the folder on this node now
    bool written = false;
    std::vector<SegmentRead> segments;  // those with the most bytes of all the statement's
    friend bool operator==(const UnitRead &, const UnitRead &) = default;
};

struct WarmFolder {
    std::string folder;
    uint64_t warm_bytes = 0;  // 0: nothing is left
    uint64_t files = 0;
    friend bool operator==(const WarmFolder &, const WarmFolder &) = default;
};

struct CacheReport {
    bool on = false;                  // the node has a cache
    bool all = false;                 // these are all that are warm, not only those that changed
    std::vector<WarmFolder> folders;  // the largest, when there are too many
    obs::CacheGauges gauges;
};

// By hand: what is to be done to the files of one table.
struct CacheWork {
    enum class Action : uint8_t { warm, pin, unpin, evict } action = Action::warm;
    std::string catalog;
    std::string folder;
    struct File {
        std::string path;  // whole
        uint64_t size_bytes = 0;
    };
    std::vector<File> files;  // evict: all that is warm of the folder goes, whatever they are
};

}  // namespace roost
