// What one statement reads through the segment cache, by file: the account that its completion tells of. The file
// layer finds it by the connection that opens a file. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cache/segment_cache.h"
#include "engine/cache_report.h"
#include "engine/files_ahead.h"

namespace duckdb {
class ClientContext;
}

namespace roost {

class StatementReads {
public:
    // `cache` outlives it.
    explicit StatementReads(cache::SegmentCache &cache) : cache_(cache), statement_(cache.make_stats()->statement) {}

    // Where the reads of this file of the statement are counted. Past some thousand files the rest of a folder counts
    // as one.
    std::shared_ptr<cache::ReadStats> stats_of(const std::string &path, const std::string &folder);
    void wrote(const std::string &folder);
    FilesAhead &files_ahead() { return files_ahead_; }

    // What was read and written so far, and how much of it is warm. Reads ahead that nobody waited for may still come.
    std::vector<UnitRead> report() const;

private:
    struct Unit {
        std::map<std::string, std::shared_ptr<cache::ReadStats>> files;  // "": the rest
        uint64_t more_files = 0;
        bool written = false;
    };
    static constexpr size_t kFilesMax = 4'096;

    std::shared_ptr<cache::ReadStats> make_stats() const;

    cache::SegmentCache &cache_;
    const uint64_t statement_;  // its uses of a block count once
    FilesAhead files_ahead_;
    mutable Mutex mutex_;
    std::map<std::string, Unit> units_ ROOST_GUARDED_BY(mutex_);
    size_t files_ ROOST_GUARDED_BY(mutex_) = 0;
};

// From now on what this connection opens counts there; null: nowhere.
void account_reads(duckdb::ClientContext &context, std::shared_ptr<StatementReads> reads);
std::shared_ptr<StatementReads> reads_of(duckdb::ClientContext &context);

}  // namespace roost
