// What the product does, for every front alike: authenticate, parse and guard, route, run, follow, cancel, read rows
// again, list. Gateway loop thread only. Fronts translate a protocol to these calls and have no SQL logic of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/register_files.h"
#include "engine/statement.h"
#include "meta/store.h"
#include "net/async.h"
#include "service/result_stream.h"
#include "service/session.h"
#include "sql/statement.h"

namespace roost::service {

struct ExecuteRequest {
    sql::Statement statement;  // from Service::parse, or made of one of its pieces
    std::vector<Param> params;
    std::vector<int16_t> result_formats;  // pg_rows only
    int64_t timeout_ms = 0;               // 0: the session's, else the pool's default
};

// A statement as the HTTP front shows it.
struct StatementInfo {
    meta::StatementRecord record;
    std::vector<Column> columns;  // names already unique
    std::string first_page;       // JSON array of row objects; empty when there is none
    bool is_terminal() const {
        return record.status != meta::StatementStatus::queued && record.status != meta::StatementStatus::running;
    }
    double progress = -1;
    std::string wait;  // "waiting for memory, 3rd in line"; empty when it does not wait
};

struct SubmitRequest {
    Principal principal;
    std::string workspace, catalog;  // catalog empty: the workspace's default
    std::string sql;
    std::vector<Param> params;  // typed_json form
    int64_t timeout_ms = 600'000;
    int64_t wait_ms = 0;  // hold the answer this long for the statement to finish
    uint32_t first_page_rows = 200;
    std::optional<Uuid> node;  // the one that must run it; unset: routing decides
    std::string client_name, peer;
};

struct RowsPage {
    std::vector<Column> columns;
    std::string rows_json;  // JSON array of row objects
    uint64_t offset_rows = 0;
    uint32_t count_rows = 0;
    uint64_t total_rows = 0;
};

struct NodeInfo {
    Uuid id;
    std::string name, pool, version, dir, status;  // status: "online" | "offline" | "draining"
    int64_t pid = 0;
    uint32_t cpus = 0;
    uint64_t memory_bytes = 0, budget_bytes = 0, granted_bytes = 0, used_bytes = 0, resident_bytes = 0;
    std::string profile;  // of its admission
    uint64_t required_bytes = 0, elastic_bytes = 0;
    uint32_t pressure = 0;  // as in cluster::MemoryReport
    struct Group {
        std::string name;
        uint32_t running = 0, waiting = 0;
        uint64_t required_bytes = 0;
    };
    std::vector<Group> groups;  // of the workload; none where none are set
    uint32_t running = 0, waiting = 0;
    double load = 0;
    int64_t last_seen_us = 0, first_seen_us = 0;
    uint64_t incarnation = 0;
    bool routable = false;      // it gets new statements
    std::string state, why;     // online and not routable: "drained", "stopping", "silent", …; and in words
    uint32_t transactions = 0;  // open there
    // Of its segment cache, since its start; unset: it has none, or has not said so yet.
    std::optional<obs::CacheGauges> cache;
};

struct SchemaInfo {
    std::string name;
    size_t tables = 0, views = 0;
};

// A table or view. Counts are those of the newest snapshot; a view has none.
struct TableInfo {
    std::string schema, name;
    bool is_view = false;
    uint64_t rows = 0, segments = 0, bytes = 0;  // live rows; data files and their size
    size_t columns = 0;
};

// Where a table is warm, as its nodes say, and what placement makes of that.
struct PlacementHome {
    Uuid node;
    std::string name;
    bool online = false;
    uint64_t warm_bytes = 0, files = 0;  // of live files and of those that were live
    uint64_t epoch = 0;                  // newest snapshot it was read or written at there; 0: not known
    std::string state;                   // "fresh" | "stale" | "coming"; empty: no home of placement
    uint32_t reading = 0;                // statements under way there that name the table
};
struct TablePlacement {
    std::string catalog, schema, name;
    uint64_t bytes = 0, segments = 0;
    uint64_t epoch = 0;                // snapshot that changed it last, as far as placement knows
    std::string owner;                 // the node that gets it first while it is warm nowhere
    std::vector<PlacementHome> homes;  // warmest first
};

// Work on the nodes' caches by hand.
struct CacheRequest {
    std::string workspace, table;  // table: T, SCHEMA.T or CATALOG.SCHEMA.T
    std::string node;              // its id or name; empty: where the table is warm, else its owner; evict, unpin: all
    CacheWork::Action action = CacheWork::Action::warm;
};
struct CacheDone {
    Uuid node;
    std::string name;
    uint64_t bytes = 0;  // warm of the table now; evict: that went
};

struct RouteExplanation {
    std::string kind;
    std::string policy, reason;  // why this node
    std::string node;
    struct Candidate {
        std::string node;
        double load = 0;
        std::string note;
    };
    std::vector<Candidate> candidates;
};

// A file being uploaded for `roost import`, and the import itself.
struct ImportRequest {
    Principal principal;
    std::string workspace;
    std::string catalog;  // slug; empty: the workspace's default
    Uuid import_id;       // groups the uploaded files
    std::string schema, table;
    struct File {
        std::string name;      // as stored in staging
        std::string original;  // what the person called it, for messages
        std::string format;    // "parquet" | "csv"
    };
    std::vector<File> files;
    // Instead of uploaded files: files, globs and folders (they end with a slash) that the nodes read below the folders
    // of `external`, and copy. For admins.
    std::vector<std::string> sources;
    // Instead of uploaded files: files of others that the table shall read where they lie. For admins. `commit` is
    // filled in.
    std::optional<RegisterFiles> in_place;
};

class AccessAdmin;
class SqlSessions;

class Service {
public:
    virtual ~Service() = default;

    // --- who
    virtual Result<Principal> authenticate_token(std::string_view token) = 0;
    // nullopt: no such user. The front goes through the same exchange with a mock verifier then.
    virtual Result<std::optional<meta::User>> find_user(std::string_view name) = 0;
    // Errors: not_found with name "workspace_not_found"/"catalog_not_found" (3D000).
    virtual Result<std::shared_ptr<Session>> open_session(const OpenSession &request) = 0;
    // Cancels what runs in it, rolls its transaction back on its node, gives the write lease back. Idempotent.
    virtual void close_session(const std::shared_ptr<Session> &session) = 0;

    // --- run (streaming fronts)
    // Parses the whole text and lets the guard judge all of it: all statements or an error. A short text is parsed at
    // once; a long one on another thread, while the loop goes on.
    // `session` (may be null): whose text it is; a refusal is audited as theirs.
    virtual net::Task<Result<std::vector<sql::Statement>>> parse(std::string_view text, sql::Context context,
                                                                 std::shared_ptr<Session> session) = 0;
    // Runs one statement. Engine kinds go to a node; of the session commands it takes begin, commit, rollback and use
    // (the front keeps variables, prepared statements and cursors). Failures of the statement itself come through the
    // stream or as the error here; either way the session's transaction state is right when the front sees it.
    virtual net::Task<Result<std::unique_ptr<ResultStream>>> execute(std::shared_ptr<Session> session,
                                                                     ExecuteRequest request) = 0;
    // Columns and parameter types without running anything.
    virtual net::Task<Result<ResultHeader>> describe(std::shared_ptr<Session> session, const sql::Statement &statement,
                                                     std::vector<uint32_t> param_oids) = 0;

    // --- run and keep (HTTP one-shot)
    // Errors: not_found (agent_not_found) for a node never seen, invalid_argument (compute_unavailable) for one that is
    // away.
    virtual net::Task<Result<StatementInfo>> submit(SubmitRequest request) = 0;
    virtual net::Task<Result<StatementInfo>> status(const Principal &who, const Uuid &id, int64_t wait_ms) = 0;
    // failed_precondition while it runs or when it failed; not_found when unknown or its result has expired;
    // unavailable when the node that keeps it is away.
    virtual net::Task<Result<RowsPage>> rows(const Principal &who, const Uuid &id, uint64_t offset_rows,
                                             uint32_t limit_rows) = 0;
    // An Arrow IPC stream of the kept result; the frames' bytes are the body.
    virtual net::Task<Result<std::unique_ptr<ResultStream>>> arrow(const Principal &who, const Uuid &id) = 0;
    // Idempotent; ok for finished ones.
    virtual net::Task<Status> cancel(const Principal &who, const Uuid &id) = 0;
    virtual net::Task<Result<meta::StatementPage>> list(const Principal &who, meta::StatementFilter filter) = 0;
    virtual net::Task<Result<std::string>> profile(const Principal &who, const Uuid &id) = 0;  // JSON, "null" when none

    // --- look
    virtual std::vector<NodeInfo> nodes() const = 0;
    // `node`: name or id. Drained: it gets no new statements, what runs there ends by itself, open transactions too;
    // kept over restarts. For admins. Errors: permission_denied, not_found.
    // From now on the node's admission goes by this profile. Errors: permission_denied, not_found, invalid_argument,
    // unavailable.
    virtual net::Task<Result<NodeInfo>> set_profile(Principal who, std::string node, std::string profile) = 0;
    virtual net::Task<Result<NodeInfo>> drain_node(Principal who, std::string node, bool drained) = 0;
    virtual Result<std::vector<meta::Workspace>> workspaces(const Principal &who) = 0;
    virtual Result<std::vector<meta::Catalog>> catalogs(const Principal &who, std::string_view workspace) = 0;
    // Sorted by name; system schemas and temporary objects are not among them. As they are now. Errors: not_found
    // (catalog_not_found), unavailable (the lake's catalog can't be asked). A schema that is not there has no tables.
    virtual net::Task<Result<std::vector<SchemaInfo>>> schemas(const Principal &who, std::string workspace,
                                                               std::string catalog) = 0;
    virtual net::Task<Result<std::vector<TableInfo>>> tables(const Principal &who, std::string workspace,
                                                             std::string catalog, std::string schema) = 0;
    virtual net::Task<Result<RouteExplanation>> explain_route(const Principal &who, std::string_view workspace,
                                                              std::string_view sql) = 0;
    // Tables that the caller sees and where they are warm; all, or one. Errors: not_found (42P01).
    virtual net::Task<Result<std::vector<TablePlacement>>> placement(Principal, std::string, std::string) {
        co_return Status(Code::unimplemented, "nothing is placed here");
    }
    // Admins only (42501). Ends when all nodes have done it.
    virtual net::Task<Result<std::vector<CacheDone>>> cache_work(Principal, CacheRequest) {
        co_return Status(Code::unimplemented, "there are no caches here");
    }
    // Refusals and failed logins, newest first. Admins only (42501).
    virtual net::Task<Result<meta::AuditPage>> audit(const Principal &who, meta::AuditFilter filter) = 0;
    virtual bool ready() const = 0;  // at least one node answers
    virtual std::string metrics_text() = 0;

    // --- import: files are uploaded to staging first, then taken into the table in one transaction
    // Where an uploaded file is to be written; validates the name (no separators, no dot-dot) and makes the folder.
    virtual Result<std::string> staging_path(const Principal &who, const Uuid &import_id, std::string_view name) = 0;
    virtual net::Task<Result<StatementInfo>> run_import(ImportRequest request, int64_t wait_ms) = 0;
    virtual void drop_staging(const Uuid &import_id) = 0;

    // Null where nobody can be managed.
    virtual AccessAdmin *access_admin() { return nullptr; }
    // Sessions over HTTP; null where there are none.
    virtual SqlSessions *sql_sessions() { return nullptr; }

    // --- bookkeeping of fronts
    virtual void connection_opened(std::string_view front) = 0;
    virtual void connection_closed(std::string_view front) = 0;
    virtual void auth_failed(std::string_view front, std::string_view user, std::string_view peer) = 0;
    virtual bool draining() const = 0;  // no new sessions or statements
};

}  // namespace roost::service
