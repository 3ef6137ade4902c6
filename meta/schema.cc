#include "meta/schema.h"

#include <array>

namespace roost::meta {
namespace {

// "roos" as SQLite's application id: tells our file from anybody else's.
constexpr int64_t kApplicationId = 0x726F6F73;

// Element i leads from version i to i + 1; PRAGMA user_version is the version. Add to the end, change nothing.
//
// statements: small columns stand first, because a filter that reads one behind a long text has to walk the text's
// pages.
constexpr std::array<const char *, 4> kSteps = {R"(
CREATE TABLE users(
    id BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, scram_verifier TEXT NOT NULL,
    created_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tokens(
    sha256 BLOB PRIMARY KEY, user BLOB NOT NULL, expires_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE workspaces(
    id BLOB PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL, default_catalog TEXT NOT NULL,
    created_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE catalogs(
    id BLOB PRIMARY KEY, slug TEXT NOT NULL, metadata TEXT NOT NULL, data_path TEXT NOT NULL, workspace BLOB,
    is_default INTEGER NOT NULL, created_us INTEGER NOT NULL, UNIQUE(workspace, slug)) WITHOUT ROWID;
CREATE TABLE members(
    id BLOB PRIMARY KEY, name TEXT NOT NULL, pool TEXT NOT NULL, version TEXT NOT NULL, cpus INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL, dir TEXT NOT NULL, first_seen_us INTEGER NOT NULL, last_seen_us INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE TABLE statements(
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE,
    started_us INTEGER NOT NULL, running_us INTEGER NOT NULL, finished_us INTEGER NOT NULL,
    status INTEGER NOT NULL, writes INTEGER NOT NULL, has_result INTEGER NOT NULL, row_count INTEGER,
    result_bytes INTEGER NOT NULL, workspace BLOB, user BLOB, session BLOB, node BLOB,
    front TEXT NOT NULL, origin TEXT NOT NULL, kind TEXT NOT NULL,
    user_name TEXT NOT NULL, workspace_slug TEXT NOT NULL, catalog TEXT NOT NULL,
    error_code TEXT NOT NULL, sqlstate TEXT NOT NULL, error TEXT NOT NULL,
    sql TEXT NOT NULL, column_schema TEXT NOT NULL, profile TEXT NOT NULL);
CREATE INDEX statements_by_start ON statements(started_us, id);
CREATE INDEX statements_by_session ON statements(session, started_us, id) WHERE session IS NOT NULL;
CREATE INDEX statements_unfinished ON statements(status) WHERE status < 2;
)",
                                                R"(
CREATE TABLE audit(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at_us INTEGER NOT NULL, position INTEGER NOT NULL, count INTEGER NOT NULL, shape INTEGER NOT NULL,
    event TEXT NOT NULL, front TEXT NOT NULL, peer TEXT NOT NULL, user BLOB, user_name TEXT NOT NULL,
    workspace TEXT NOT NULL, session BLOB, statement BLOB, rule TEXT NOT NULL, sqlstate TEXT NOT NULL,
    message TEXT NOT NULL, sql TEXT NOT NULL);
CREATE INDEX audit_by_time ON audit(at_us);
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
)",
                                                R"(
ALTER TABLE users ADD COLUMN email TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN active INTEGER NOT NULL DEFAULT 1;
ALTER TABLE catalogs ADD COLUMN access_mode TEXT NOT NULL DEFAULT 'open';
CREATE TABLE memberships(
    workspace BLOB NOT NULL, user BLOB NOT NULL, role TEXT NOT NULL, created_us INTEGER NOT NULL,
    PRIMARY KEY(workspace, user)) WITHOUT ROWID;
CREATE TABLE grants(
    id BLOB PRIMARY KEY, user BLOB NOT NULL, catalog BLOB NOT NULL, schema_name TEXT NOT NULL,
    table_name TEXT NOT NULL, tier TEXT NOT NULL, granted_by BLOB, created_us INTEGER NOT NULL,
    UNIQUE(user, catalog, schema_name, table_name)) WITHOUT ROWID;
)",
                                                R"(
ALTER TABLE members ADD COLUMN drained INTEGER NOT NULL DEFAULT 0;
)"};

Status step_from(Db &db, int64_t version) {
    ROOST_RETURN_IF_ERROR(db.execute(kSteps[static_cast<size_t>(version)]));
    return db.execute("PRAGMA user_version = " + std::to_string(version + 1) +
                      "; PRAGMA application_id = " + std::to_string(kApplicationId));
}

Status bring_up_to_date(Db &db, const std::string &path) {
    ROOST_ASSIGN_OR_RETURN(int64_t version, db.integer("PRAGMA user_version"));
    ROOST_ASSIGN_OR_RETURN(const int64_t application, db.integer("PRAGMA application_id"));
    ROOST_ASSIGN_OR_RETURN(const int64_t tables, db.integer("SELECT count(*) FROM sqlite_master"));
    const bool is_new = version == 0 && application == 0 && tables == 0;
    if (!is_new && application != kApplicationId) {
        return Status(Code::failed_precondition, path + " is a SQLite database of something else than roost")
            .with_hint("name another file for the meta store");
    }
    const auto newest = static_cast<int64_t>(kSteps.size());
    if (version < 0 || version > newest) {
        return Status(Code::failed_precondition, path + " has version " + std::to_string(version) +
                                                     " of the meta store; this roost knows versions up to " +
                                                     std::to_string(newest))
            .with_hint("it was written by a newer roost; use that one, or another file");
    }
    for (; version < newest; ++version) ROOST_RETURN_IF_ERROR(step_from(db, version));
    return {};
}

}  // namespace

Status bring_schema_up_to_date(Db &db, const std::string &path) {
    // Taken before the version is read: of two processes that start at once the second finds the tables made.
    ROOST_RETURN_IF_ERROR(db.execute("BEGIN IMMEDIATE"));
    Status status = bring_up_to_date(db, path);
    if (status.ok()) status = db.execute("COMMIT");
    // Its own failure adds nothing to the one that led here.
    if (!status.ok() && db.in_transaction()) (void)db.execute("ROLLBACK");
    return status;
}

}  // namespace roost::meta
