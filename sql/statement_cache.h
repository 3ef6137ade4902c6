// Texts parsed lately, by the text: drivers send the same few texts again and again, and a long one costs 50 µs and
// more to parse. Holds what does not depend on who asks: statements (their trees included) and fingerprints; a verdict
// depends on the policy and is asked of check() each time (5 µs at most). Bounded by bytes, least recently used goes
// first. Thread-safe; the lock is held for a lookup, not while parsing. Built by app/, used by service/.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "sql/statement.h"

namespace roost::sql {

struct ParsedText {
    std::string text;
    std::vector<Statement> statements;
    std::vector<uint64_t> fingerprints;  // of each statement
};

struct StatementCacheLimits {
    uint64_t total_bytes = 32 * 1024 * 1024;
    uint32_t text_max_bytes = 64 * 1024;  // longer texts are parsed and not kept
};

class StatementCache {
public:
    explicit StatementCache(StatementCacheLimits limits = {}, ParseLimits parse_limits = {});

    // parse() and fingerprint() of the text, from the cache when it is there. Errors are not kept.
    Result<std::shared_ptr<const ParsedText>> parse(std::string_view text);

    struct Counts {
        uint64_t hits = 0, misses = 0, entries = 0, bytes = 0;
    };
    Counts counts() const;

private:
    using Entry = std::shared_ptr<const ParsedText>;
    struct Kept {
        Entry parsed;
        uint64_t bytes = 0;
    };

    Entry find(std::string_view text);
    void keep(Entry parsed);

    const StatementCacheLimits limits_;
    const ParseLimits parse_limits_;
    mutable Mutex mutex_;
    std::list<Kept> recent_ ROOST_GUARDED_BY(mutex_);  // most recent first
    // Keys point into the entries' texts.
    std::unordered_map<std::string_view, std::list<Kept>::iterator> by_text_ ROOST_GUARDED_BY(mutex_);
    Counts counts_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost::sql
