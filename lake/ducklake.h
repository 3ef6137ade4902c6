// DuckLake's own language: the ATTACH of a lake, the message that marks a commit as roost's, and finding a commit again
// by that mark in the catalog. Stateless, thread-safe. Called by engine/ (attach, commits) and by the gateway
// (find_commit, after a reply was lost).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "lake/lake_location.h"

namespace roost {

// SQL text of a name or a string, quoted.
std::string quote_identifier(std::string_view name);
std::string quote_literal(std::string_view text);

struct AttachMode {
    bool create = false;  // make the lake where there is none; otherwise a missing one is an error
    // How long a statement waits for another writer of the SQLite file. DuckLake's commit can't be interrupted
    // meanwhile, so it is near the bound that a cancellation has.
    int64_t busy_timeout_ms = 2'000;
    // The name of the catalog that holds DuckLake's metadata; empty: DuckLake's own, which everybody knows.
    std::string metadata_catalog;
};

// ATTACH of the lake under its catalog name.
std::string attach_sql(const LakeLocation &lake, const AttachMode &mode);

// ATTACH, for reading only, of the frozen catalog at `path` (lake/frozen_catalog.h) under a lake's name.
std::string attach_frozen_sql(std::string_view catalog, std::string_view path, const AttachMode &mode);

// What a commit of this statement says in ducklake_snapshot_changes.commit_extra_info.
std::string commit_mark(const Uuid &statement);
// CALL that sets author, message and mark of the open transaction's commit.
std::string commit_message_sql(std::string_view catalog, const Uuid &statement);

// A statement for a connection that has the lake attached: the newest snapshot that its instance committed, or NULL.
std::string last_committed_snapshot_sql(std::string_view catalog);

// Counts the rows of the catalog that name the file at `path`, as data, as deletes, or as to be removed by DuckLake: a
// statement for a connection that has the lake attached, its metadata as `metadata_catalog`. Goes by the file's own
// name, which DuckLake makes unique.
std::string names_file_sql(std::string_view metadata_catalog, std::string_view path);

// The snapshot that `statement` made, or nothing if it made none. Fine beside an engine because roost links libsqlite3
// dynamically: the engine's extension then uses the same one. (Two SQLite libraries in one process would drop each
// other's file locks.)
// Errors: io_error (no such file, not a lake), unavailable (locked for longer than a second; a Postgres that can't be
// reached).
Result<std::optional<uint64_t>> find_commit(const LakeLocation &lake, const Uuid &statement);

}  // namespace roost
