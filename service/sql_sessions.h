// Sessions over HTTP: opened, used by one statement after the other, closed by their client or by a limit. What they
// keep is the Session's (service/session.h); like a Postgres connection they are bound to a node only while a
// transaction is open there. Kept in memory: a gateway that starts anew knows none of them. Loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "service/service.h"
#include "service/session.h"
#include "service/session_variables.h"

namespace roost::service {

struct SqlSessionInfo {
    Uuid id;
    std::string status = "open";  // "open" | "closed" | "expired"
    std::string close_reason;     // "client" | "idle" | "max_lifetime" | "failed"; empty while it is open
    Uuid workspace_id, user_id;
    std::string workspace, user_name;
    std::string active_catalog;
    std::string client_name, client_version;
    Uuid node;  // where its transaction is open, else the one it was opened with; nil: none
    int64_t created_us = 0, last_active_us = 0, closed_us = 0;  // wall clock; 0: not yet
    uint64_t statements = 0;
    bool is_open() const { return status == "open"; }
};

struct SqlSessionPage {
    std::vector<SqlSessionInfo> items;
    std::string cursor;  // of the next page; empty: this is the last
};

class SqlSessions {
public:
    virtual ~SqlSessions() = default;
    // `node`: where its statements shall run while none pins it. Errors: not_found (workspace, catalog, node);
    // unavailable while roost stops, or when there are as many as there may be.
    virtual Result<SqlSessionInfo> open_sql_session(const OpenSession &request, std::optional<Uuid> node) = 0;
    virtual Result<SqlSessionInfo> sql_session(const Principal &who, const Uuid &id) = 0;
    // Newest first. `statuses` empty: all.
    virtual Result<SqlSessionPage> list_sql_sessions(const Principal &who, std::string_view workspace,
                                                     const std::vector<std::string> &statuses, std::string_view cursor,
                                                     size_t limit) = 0;
    // Its transaction is rolled back, what runs is cancelled, what waits is not run. Of one that is closed: no effect.
    virtual net::Task<Status> close_sql_session(Principal who, Uuid id) = 0;
    // As Service::submit, after what was submitted to the session before. Several statements run in their order; the
    // answer is the last one's. A closed session: failed_precondition, `session_not_open`.
    virtual net::Task<Result<StatementInfo>> submit_in_session(SubmitRequest request, Uuid session) = 0;
};

// The name and the version of "dh/0.4.0"; no version without a slash.
inline std::pair<std::string, std::string> split_product(const std::string &product) {
    const size_t slash = product.find('/');
    if (slash == std::string::npos) return {product, ""};
    return {product.substr(0, slash), product.substr(slash + 1)};
}

}  // namespace roost::service
