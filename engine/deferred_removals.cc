#include "engine/deferred_removals.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace roost {

namespace {

// A line: the time, the catalog and the path, tabs between. DuckLake makes the names; one that holds a tab or a line's
// end is not kept across a restart.
std::string line_of(const DeferredRemovals::Entry &entry) {
    return std::to_string(entry.since_us) + '\t' + entry.catalog + '\t' + entry.path + '\n';
}

bool is_plain(const std::string &text) {
    return !text.empty() && text.find_first_of(std::string_view("\t\n\0", 3)) == std::string::npos;
}

bool parse(const std::string &line, DeferredRemovals::Entry &entry) {
    std::istringstream in(line);
    return in >> entry.since_us && in.get() == '\t' && std::getline(in, entry.catalog, '\t') &&
           std::getline(in, entry.path) && is_plain(entry.catalog) && is_plain(entry.path);
}

}  // namespace

DeferredRemovals::DeferredRemovals(std::string journal, obs::Log &log) : journal_(std::move(journal)), log_(log) {
    std::ifstream in(journal_);
    std::string line;
    MutexLock lock(mutex_);
    while (std::getline(in, line) && entries_.size() < kEntriesMax) {
        Entry entry;
        if (parse(line, entry)) entries_.push_back(std::move(entry));
    }
}

void DeferredRemovals::put_off(Entry entry) {
    log_.warn("removal_deferred", {{"catalog", entry.catalog}, {"path", entry.path}});
    MutexLock lock(mutex_);
    if (entries_.size() >= kEntriesMax) return;
    if (is_plain(entry.catalog) && is_plain(entry.path)) {
        std::ofstream out(journal_, std::ios::app);
        out << line_of(entry);
        out.flush();
        if (!out) log_.error("removals_journal_not_written", {{"path", journal_}});
    }
    entries_.push_back(std::move(entry));
}

size_t DeferredRemovals::settle(int64_t before_us, const Settle &settle) {
    MutexLock one_at_a_time(settling_mutex_);
    std::vector<Entry> due;
    {
        MutexLock lock(mutex_);
        std::ranges::copy_if(entries_, std::back_inserter(due),
                             [before_us](const Entry &entry) { return entry.since_us < before_us; });
    }
    std::vector<Entry> settled;
    for (const Entry &entry : due) {
        const auto done = settle(entry);
        if (!done.ok()) {
            log_.warn("removal_not_settled",
                      {{"catalog", entry.catalog}, {"path", entry.path}, {"error", done.status().to_string()}});
        } else if (*done) {
            settled.push_back(entry);
        }
    }
    if (settled.empty()) return 0;
    MutexLock lock(mutex_);
    std::erase_if(entries_,
                  [&settled](const Entry &entry) { return std::ranges::find(settled, entry) != settled.end(); });
    write_journal();
    return settled.size();
}

size_t DeferredRemovals::size() const {
    MutexLock lock(mutex_);
    return entries_.size();
}

void DeferredRemovals::write_journal() {
    const std::string fresh = journal_ + ".new";
    {
        std::ofstream out(fresh, std::ios::trunc);
        for (const Entry &entry : entries_) {
            if (is_plain(entry.catalog) && is_plain(entry.path)) out << line_of(entry);
        }
        out.flush();
        if (!out) {
            log_.error("removals_journal_not_written", {{"path", fresh}});
            return;
        }
    }
    std::error_code error;
    std::filesystem::rename(fresh, journal_, error);
    if (error) log_.error("removals_journal_not_written", {{"path", journal_}, {"error", error.message()}});
}

}  // namespace roost
