// A logical session at its gateway: a Postgres connection, an HTTP one-shot, later a Flight or HTTP session. It is
// bound to no node until it holds state there (an open transaction). Loop-thread only; owned by its front through
// shared_ptr, closed by Service::close_session.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/statement.h"
#include "placement/unit.h"

namespace roost::service {

struct Principal {
    Uuid user_id;
    std::string user_name;
    std::string role;  // "admin" | "user"
};

struct OpenSession {
    Principal principal;
    std::string workspace;  // slug or UUID; empty: the default one
    std::string catalog;    // slug; empty: the workspace's default
    std::string front;      // "pg" | "http" | "internal"
    std::string origin = "interactive";
    std::string client_name;  // application_name, User-Agent product
    std::string peer;         // "address:port"; empty where there is none
};

enum class TransactionState : uint8_t { idle, open, failed };  // 'I', 'T', 'E' on Postgres wire

class WriteLease;

struct Session {
    Uuid id;
    Principal principal;
    Uuid workspace_id;
    std::string workspace;
    std::string front, origin, client_name, peer;
    std::vector<std::string> catalogs;  // of its workspace, those that its person may see; SQL may name them
    StatementSettings settings;         // catalog, search_path, time zone: travel with each statement
    int64_t statement_timeout_ms = 0;   // 0: the pool's default
    bool default_read_only = false;

    // Transaction. Changed only by Service (begin, commit, rollback, and a failed statement in an open one).
    TransactionState transaction = TransactionState::idle;
    bool transaction_read_only = false;
    std::optional<Uuid> pinned_node;  // where the open transaction lives; unset until its first statement
    bool transaction_has_read = false;
    bool wrote = false;                               // so its COMMIT makes a snapshot
    std::vector<std::shared_ptr<WriteLease>> leases;  // held to the end of the transaction
    std::vector<std::string> changes;                 // names of the turns that what it changed may need
    std::string write_catalog;                        // that it wrote to
    std::vector<std::string> transaction_catalogs;    // that it was begun with on its node, in order
    std::vector<placement::UnitId> written_units;     // by its statements so far
    std::map<std::string, uint64_t> begin_commits;    // on each catalog, seen when the transaction first read
    Status transaction_failure;                       // why roost itself ended the transaction; told once
    // Turns that its last transaction would have needed: it lost a race. Taken by the next one before it reads.
    std::vector<std::string> lost_turns;
    std::set<Uuid> kept_on;      // nodes that may keep what it cached
    uint32_t active = 0;         // statements under way
    int64_t last_active_us = 0;  // monotonic; a statement began or ended
    bool closed = false;
};

}  // namespace roost::service
