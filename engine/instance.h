// One in-memory DuckDB database with one lake attached, walled: its extensions, limits, spill directory, file wall, and
// a pool of connections. Made by InstancePool, shared by the executions that run in it. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/altered_tables.h"
#include "engine/deferred_removals.h"
#include "engine/duckdb_errors.h"
#include "engine/file_system.h"
#include "engine/lake_connection.h"
#include "engine/object_store.h"
#include "lake/lake_location.h"
#include "obs/log.h"

namespace duckdb {
class BufferManager;
class Connection;
class DuckDB;
}  // namespace duckdb

namespace roost {

struct InstanceOptions {
    LakeLocation lake;
    std::vector<LakeLocation> others;  // attached beside it
    std::string extension_dir;
    std::string spill_root;  // the instance makes a directory of its own below it
    uint32_t threads = 1;
    uint64_t memory_bytes = 0;
    uint64_t spill_max_bytes = 0;
    bool internal = false;    // may read the staging directory
    std::string frozen_path;  // not empty: reads by this frozen catalog of the lake, and can't write
    Redactions redactions;
    DeferredRemovals *removals = nullptr;         // told of files whose removal is put off
    std::shared_ptr<StoreKeys> keys;              // with a lake that is in a store
    std::shared_ptr<ObjectCache> cache;           // for that store; null: none
    std::vector<std::shared_ptr<FilePins>> pins;  // of each lake, with `external`
    int64_t commit_within_ms = 0;                 // an older transaction may not commit what it wrote; 0: any may
    uint32_t catalog_connections_max = 4;         // to a Postgres catalog
    std::shared_ptr<AlteredTables> altered = std::make_shared<AlteredTables>();  // of all instances of a pool
};

// Checks the extension files that instances load unsigned against the pinned SHA-256 sums.
Status verify_extensions(const std::string &extension_dir);

class Instance {
public:
    static Result<std::shared_ptr<Instance>> make(InstanceOptions options, obs::Log &log);
    ~Instance();
    Instance(const Instance &) = delete;
    Instance &operator=(const Instance &) = delete;

    const InstanceOptions &options() const { return options_; }
    FileWall &wall() { return *wall_; }
    CommitGate &commit_gate() { return commit_gate_; }
    // The name under which this instance has the lake's metadata attached.
    const std::string &metadata_catalog() const { return metadata_catalog_; }
    // The names of the lakes that are attached.
    const std::vector<std::string> &catalogs() const { return catalogs_; }
    duckdb::BufferManager &buffer_manager();

    // A connection with no transaction; from the pool when one is there.
    Result<std::unique_ptr<LakeConnection>> connect() ROOST_EXCLUDES(mutex_);
    // Back to the pool, or closed when it is spoiled. REQUIRES: no stream of it is read any more.
    void give_back(std::unique_ptr<LakeConnection> connection) ROOST_EXCLUDES(mutex_);

    // Lets one statement at a time load the lake's schema after it changed. DuckLake loads it for each statement that
    // comes meanwhile, and each load takes tens of megabytes (35 MiB at 100 tables). Also drops the statistics that
    // DuckLake keeps of the tables: it would merge those of a column's former type with what is inserted next, and keep
    // the outcome, in which old rows are missing (lake_statistics.h). REQUIRES: the connection has an open transaction.
    // Throws DuckDB's exceptions.
    void load_schema(LakeConnection &connection) ROOST_EXCLUDES(schema_mutex_);

    // Of each lake, as the connection's transaction sees it: the same text, the same tables and columns. REQUIRES and
    // throws as load_schema.
    std::string schema_versions(LakeConnection &connection);

    // Memory limit, bytes. Lowering evicts, and fails (resource_exhausted) while running statements pin more than that.
    Status set_memory_limit(uint64_t bytes);
    uint64_t used_bytes() const;
    struct MemoryUse {
        uint64_t held_bytes = 0;     // without what DuckDB only caches: file contents, footers
        uint64_t spilled_bytes = 0;  // that is in the spill directory now
    };
    MemoryUse memory_use() const;
    // Raises the limit by `bytes` for a statement, above what options() say, until take_back.
    Status lend(uint64_t bytes) ROOST_EXCLUDES(limit_mutex_);
    // Lowers it again. When this returns ok the limit is lower and no more than that is in use. Retries while others
    // unpin.
    Status take_back(uint64_t bytes) ROOST_EXCLUDES(limit_mutex_);

    // No new statement gets this instance; those that run go on.
    void mark_broken() { broken_.store(true); }
    bool broken() const { return broken_.load(); }
    // A commit failed here. DuckLake keeps the transaction of a failed commit, with what it holds in memory, until its
    // catalog is detached: after many of them the instance is to be replaced.
    void note_failed_commit();
    // As status_of, with this node's redactions; marks the instance broken and logs the engine's words when they say
    // so.
    Status error(const duckdb::ErrorData &error, std::string_view sql);

private:
    Instance(InstanceOptions options, obs::Log &log);
    void set_up();  // throws
    void attach_lakes(duckdb::Connection &connection);
    FileWallOptions wall_options() const;
    std::string make_spill_dir();

    static constexpr size_t kPooledConnections = 16;
    static constexpr uint32_t kFailedCommitsMax = 32;  // about 0.3 MiB each

    const InstanceOptions options_;
    obs::Log &log_;
    std::vector<std::string> catalogs_;
    std::string spill_dir_;
    // The beginning is what the guard knows such catalogs by.
    static constexpr const char *kMetadataPrefix = "__ducklake_metadata_";
    const std::string metadata_catalog_ = kMetadataPrefix + random_hex(12);
    std::shared_ptr<FileWall> wall_;
    std::unique_ptr<duckdb::DuckDB> database_;
    std::atomic<bool> broken_{false};
    std::atomic<uint32_t> failed_commits_{0};
    CommitGate commit_gate_;
    // Held over the load, on purpose: whoever waits for it finds the schema loaded.
    Mutex schema_mutex_;
    std::atomic<int64_t> loaded_schema_{-1};  // the sum of the lakes' schema versions, which only grow
    // Held over the engine's change of a limit, on purpose: two changes must not overtake each other, and nothing else
    // waits.
    Mutex limit_mutex_;
    uint64_t lent_bytes_ ROOST_GUARDED_BY(limit_mutex_) = 0;
    Mutex mutex_;
    std::vector<std::unique_ptr<LakeConnection>> idle_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost
