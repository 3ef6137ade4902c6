#include "engine/statement_reads.h"

#include <algorithm>

#include "duckdb/main/client_context.hpp"
#include "duckdb/main/client_context_state.hpp"

namespace roost {

namespace {

constexpr const char *kState = "roost_reads";

struct ReadsState : duckdb::ClientContextState {
    Mutex mutex;
    std::shared_ptr<StatementReads> reads ROOST_GUARDED_BY(mutex);
};

ReadBytes bytes_of(const cache::ReadStats &stats) {
    return {stats.store_bytes, stats.peer_bytes, stats.cache_bytes, stats.fetches};
}

}  // namespace

std::shared_ptr<cache::ReadStats> StatementReads::make_stats() const {
    auto stats = std::make_shared<cache::ReadStats>();
    stats->statement = statement_;
    return stats;
}

std::shared_ptr<cache::ReadStats> StatementReads::stats_of(const std::string &path, const std::string &folder) {
    MutexLock lock(mutex_);
    Unit &unit = units_[folder];
    std::string file = path.starts_with(folder) ? path.substr(folder.size()) : path;
    if (!unit.files.contains(file) && files_ >= kFilesMax) {
        ++unit.more_files;
        file.clear();
    }
    auto &stats = unit.files[file];
    if (!stats) {
        stats = make_stats();
        ++files_;
    }
    return stats;
}

void StatementReads::wrote(const std::string &folder) {
    MutexLock lock(mutex_);
    units_[folder].written = true;
}

std::vector<UnitRead> StatementReads::report() const {
    std::vector<UnitRead> units;
    std::vector<std::pair<size_t, SegmentRead>> segments;
    {
        MutexLock lock(mutex_);
        for (const auto &[folder, unit] : units_) {
            if (folder.size() > kFolderMaxBytes) continue;  // no table has such a path
            UnitRead read{.folder = folder, .written = unit.written};
            read.files = unit.more_files;
            for (const auto &[file, stats] : unit.files) {
                const ReadBytes bytes = bytes_of(*stats);
                read.bytes += bytes;
                read.files += !file.empty();
                if (!file.empty() && file.size() <= kFolderMaxBytes) segments.push_back({units.size(), {file, bytes}});
            }
            units.push_back(std::move(read));
        }
    }
    std::ranges::stable_sort(segments, std::ranges::greater(),
                             [](const auto &each) { return each.second.bytes.total_bytes(); });
    if (segments.size() > kSegmentReadsMax) segments.resize(kSegmentReadsMax);
    for (auto &[unit, segment] : segments) units[unit].segments.push_back(std::move(segment));
    if (units.size() > kUnitReadsMax) {
        std::ranges::stable_sort(units, std::ranges::greater(), [](const UnitRead &each) {
            return std::pair(each.written, each.bytes.total_bytes());
        });
        units.resize(kUnitReadsMax);
    }
    for (UnitRead &unit : units) unit.warm_bytes = cache_.blocks().unit_bytes(unit.folder);
    return units;
}

void account_reads(duckdb::ClientContext &context, std::shared_ptr<StatementReads> reads) {
    const auto state = context.registered_state->GetOrCreate<ReadsState>(kState);
    MutexLock lock(state->mutex);
    state->reads = std::move(reads);
}

std::shared_ptr<StatementReads> reads_of(duckdb::ClientContext &context) {
    const auto state = context.registered_state->Get<ReadsState>(kState);
    if (!state) return nullptr;
    MutexLock lock(state->mutex);
    return state->reads;
}

}  // namespace roost
