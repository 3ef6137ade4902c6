// The meta store: users, tokens, workspaces, catalogs, members, statement history. SQLite here; Postgres comes behind
// the same interface. Reads and small writes block (they are for start-up, logins and listing; callers on a loop use
// their own worker thread for the listings); record_statement() never blocks: a writer thread commits what has
// gathered, as one transaction. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "meta/access.h"
#include "meta/audit.h"

namespace roost::meta {

struct User {
    Uuid id;
    std::string name;
    std::string role;  // "admin" | "user"
    // SCRAM-SHA-256 verifier: "SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey" (PostgreSQL's form)
    std::string scram_verifier;
    int64_t created_us = 0;
    std::string email{};
    bool active = true;  // false: may not log in, by no password and no token
};

struct Workspace {
    Uuid id;
    std::string slug, name, default_catalog;
    int64_t created_us = 0;
};

struct Catalog {
    Uuid id;
    std::string slug;      // the name SQL uses
    std::string metadata;  // "sqlite:/path"
    std::string data_path;
    Uuid workspace;
    bool is_default = false;
    int64_t created_us = 0;
    std::string access_mode = "open";  // open: members have their role's rights; scoped: only what grants give
};

enum class StatementStatus : uint8_t { queued, running, done, failed, cancelled };
std::string_view status_name(StatementStatus status);
std::optional<StatementStatus> parse_status(std::string_view name);

// One row of the history. Written when the statement is accepted and again when it ends.
struct StatementRecord {
    Uuid id;
    Uuid workspace, user, session, node;  // nil where none
    std::string user_name, workspace_slug, catalog;
    std::string front;   // "http" | "pg" | "internal"
    std::string origin;  // interactive | session | scheduled | import
    std::string sql;
    std::string kind;  // sql::kind_name
    StatementStatus status = StatementStatus::queued;
    std::string error, error_code, sqlstate;
    bool has_result = false;
    std::optional<uint64_t> row_count;  // rows of the grid, or rows affected
    uint64_t result_bytes = 0;
    std::string column_schema;  // JSON array of {"name","type"}, empty where none
    std::string profile;        // JSON, empty where none
    int64_t started_us = 0;     // accepted
    int64_t running_us = 0;     // execution began; 0 if it never did
    int64_t finished_us = 0;    // 0 while it runs
    bool writes = false;
};

struct StatementFilter {
    std::optional<Uuid> workspace, session, user, node;
    std::vector<StatementStatus> statuses;
    std::vector<std::string> kinds;
    std::string origin, text;            // text: case-insensitive substring, % and _ literal
    int64_t since_us = 0, until_us = 0;  // 0: open
    int64_t slower_than_ms = 0;
    bool by_duration = false, ascending = false;
    uint32_t limit = 100;
    std::string cursor;  // what an earlier page gave
};

struct StatementPage {
    std::vector<StatementRecord> items;
    std::string cursor;  // empty: the end
    bool has_more = false;
};

struct Member {
    Uuid id;  // the node's identity
    std::string name, pool, version;
    uint32_t cpus = 0;
    uint64_t memory_bytes = 0;
    std::string dir;
    int64_t first_seen_us = 0, last_seen_us = 0;
    bool drained = false;  // by an operator: gets no statements until it is resumed
};

class Store {
public:
    virtual ~Store() = default;
    // `location`: "sqlite:PATH". Makes the schema, or brings an older one up to date.
    static Result<std::unique_ptr<Store>> open(const std::string &location);

    virtual Result<std::optional<User>> find_user(std::string_view name) = 0;
    virtual Status put_user(const User &user) = 0;
    // Tokens are kept as SHA-256 only.
    virtual Result<std::optional<User>> find_token(std::string_view token) = 0;
    virtual Status put_token(const Uuid &user, std::string_view token, int64_t expires_us) = 0;  // 0: never
    virtual Result<std::vector<User>> users() = 0;

    virtual Result<AccessTables> access() = 0;
    virtual Status put_membership(const Membership &membership) = 0;
    // Grants on the workspace's catalogs go with it. Fine when there is none.
    virtual Status drop_membership(const Uuid &workspace, const Uuid &user) = 0;
    // Takes the place of what the user has on the same object, whose id stays.
    virtual Status put_grant(const Grant &grant) = 0;
    virtual Status drop_grant(const Uuid &id) = 0;

    virtual Result<std::vector<Workspace>> workspaces() = 0;
    virtual Status put_workspace(const Workspace &workspace) = 0;
    virtual Result<std::vector<Catalog>> catalogs() = 0;
    virtual Status put_catalog(const Catalog &catalog) = 0;

    virtual Status put_member(const Member &member) = 0;
    virtual Result<std::vector<Member>> members() = 0;

    // Queues the record. A later one of the same id brings it up to date; who ran what, from where and when it came in
    // stays as first written. `durable` (may be empty) is called on the writer thread once it is committed, or with an
    // error: resource_exhausted when too many wait to be written (of statements that begin; those that end have room
    // kept for them).
    virtual void record_statement(StatementRecord record, std::function<void(Status)> durable) = 0;
    // Everything queued so far is committed when it returns.
    virtual Status flush() = 0;
    virtual Result<std::optional<StatementRecord>> find_statement(const Uuid &id) = 0;
    virtual Result<StatementPage> list_statements(const StatementFilter &filter) = 0;
    // What an earlier run of the gateway left queued or running; for recovery at start.
    virtual Result<std::vector<StatementRecord>> unfinished_statements() = 0;
    // Deletes the history of statements that have ended and came in before; returns their ids (their results go too).
    virtual Result<std::vector<Uuid>> prune_statements(int64_t before_us) = 0;

    // The audit: it is added to, read, and loses what is old; nothing changes a record. append_audit and prune_audit
    // block until it is committed.
    virtual Status append_audit(std::vector<AuditRecord> records) = 0;
    virtual Result<AuditPage> list_audit(const AuditFilter &filter) = 0;
    // Those before `before_us`, and the oldest beyond `keep_rows`.
    virtual Status prune_audit(int64_t before_us, uint64_t keep_rows) = 0;
};

// "SCRAM-SHA-256$4096:salt$stored:server" for a password (RFC 5802, 7677), as PostgreSQL stores it. The password is
// taken as it is: one beyond ASCII should be in Unicode's NFKC form, which is what clients make of it (SASLprep).
std::string make_scram_verifier(std::string_view password);
std::string make_scram_verifier(std::string_view password, std::string_view salt);

}  // namespace roost::meta
