// What the audit keeps: each statement that a wall refused and each login that failed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace roost::meta {

struct AuditRecord {
    uint64_t sequence = 0;  // given by the store
    int64_t at_us = 0;
    std::string event;           // statement_refused | login_failed | left_out, or an act: user_created, grant_set …
    std::string front;           // http | pg | internal
    std::string peer;            // "address:port" of the caller, where the front knows it
    Uuid user;                   // nil: nobody's
    std::string user_name;       // login_failed: as the caller wrote it
    std::string workspace;       // slug
    Uuid session, statement;     // statement: where a node refused; it is in the history then
    uint64_t shape = 0;          // sql::fingerprint of the text
    std::string rule, sqlstate;  // statement_refused
    uint32_t position = 0;       // 1-based character of the text; 0: the whole
    uint64_t count = 1;          // left_out: how many records that came too fast
    std::string message, sql;    // bounded; literals of texts that speak of secrets are masked
};

struct AuditFilter {
    std::string event, rule, user_name;  // empty: all. rule: the whole, or its part before ':'
    int64_t since_us = 0, until_us = 0;  // 0: open
    uint64_t before = 0;                 // sequence of the last record of the page before; 0: the newest
    uint32_t limit = 100;                // at most 1,000
};

struct AuditPage {
    std::vector<AuditRecord> items;  // newest first
    bool has_more = false;
};

}  // namespace roost::meta
