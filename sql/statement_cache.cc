#include "sql/statement_cache.h"

#include <utility>

namespace roost::sql {
namespace {

// What an entry holds, about: a parse tree takes some twenty times its text, and no text less than a kilobyte or two.
uint64_t estimate_bytes(const ParsedText &parsed) { return 2048 + parsed.text.size() * 24; }

}  // namespace

StatementCache::StatementCache(StatementCacheLimits limits, ParseLimits parse_limits)
    : limits_(limits), parse_limits_(parse_limits) {}

StatementCache::Entry StatementCache::find(std::string_view text) {
    const MutexLock lock(mutex_);
    const auto found = by_text_.find(text);
    if (found == by_text_.end()) {
        ++counts_.misses;
        return nullptr;
    }
    ++counts_.hits;
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->parsed;
}

void StatementCache::keep(Entry parsed) {
    const uint64_t bytes = estimate_bytes(*parsed);
    if (parsed->text.size() > limits_.text_max_bytes || bytes > limits_.total_bytes) return;
    std::list<Kept> evicted;  // freed after the lock
    const MutexLock lock(mutex_);
    if (by_text_.count(parsed->text) != 0) return;  // another thread parsed it meanwhile
    while (counts_.bytes + bytes > limits_.total_bytes && !recent_.empty()) {
        by_text_.erase(recent_.back().parsed->text);
        counts_.bytes -= recent_.back().bytes;
        evicted.splice(evicted.begin(), recent_, std::prev(recent_.end()));
    }
    recent_.push_front(Kept{std::move(parsed), bytes});
    by_text_.emplace(recent_.front().parsed->text, recent_.begin());
    counts_.bytes += bytes;
    counts_.entries = recent_.size();
}

Result<std::shared_ptr<const ParsedText>> StatementCache::parse(std::string_view text) {
    if (Entry found = find(text)) return found;
    auto parsed = std::make_shared<ParsedText>();
    ROOST_ASSIGN_OR_RETURN(parsed->statements, sql::parse(text, parse_limits_));
    parsed->text = std::string(text);
    parsed->fingerprints.reserve(parsed->statements.size());
    for (Statement &statement : parsed->statements) {
        statement.shape = fingerprint(statement.text);
        parsed->fingerprints.push_back(statement.shape);
    }
    Entry entry = std::move(parsed);
    keep(entry);
    return entry;
}

StatementCache::Counts StatementCache::counts() const {
    const MutexLock lock(mutex_);
    return counts_;
}

}  // namespace roost::sql
