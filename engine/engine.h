// The node's DuckDB: pooled instances over one or more lakes, their walls, execution of statements and encoding of
// results. Engine is thread-safe. An Execution is used by one worker thread at a time (plan → start → step… → finish,
// maybe on different threads with a happens-before between), except cancel() and progress(), which any thread may call
// at any time. An engine must be gone before main returns (DuckDB keeps thread-local state that exit handlers no longer
// have). Called by cluster/node_agent; knows nothing of links, queues or admission: the caller decides when and with
// which grant.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/cache_report.h"
#include "engine/statement.h"
#include "lake/lake_location.h"

namespace roost {

namespace obs {
class Log;
}

struct EngineOptions {
    std::string dir;            // the node's own directory; engine uses spill/ and results/ below it
    std::string extension_dir;  // *.duckdb_extension files
    std::vector<LakeLocation> lakes;
    uint32_t threads = 1;       // cores of this node
    uint64_t small_bytes = 0;   // memory limit of the shared small instance of a catalog (one thread)
    uint64_t pinned_bytes = 0;  // base limit of the shared instance of a catalog for sessions with an open transaction
    uint64_t spill_max_bytes = 0;
    uint64_t cache_max_bytes = 0;             // of objects of a store kept in cache/ below `dir`; 0: none are
    uint64_t cache_memory_bytes = 128 << 20;  // of buffers that it may hold beside them
    uint64_t result_max_bytes = 0;            // of all stored results together; 0: as spill_max_bytes
    uint32_t warm_slots = 0;                  // slots 0 … whose instances are made in the background after open
    int64_t result_retention_ms = 86'400'000;
    // Files of a failed commit are kept so long: nobody can still be about to commit them.
    int64_t removal_grace_ms = 600'000;
    // Files that no snapshot names are orphans of killed nodes from this age on, and removed; no transaction of more
    // than half of it may commit. 0: neither.
    int64_t orphan_grace_ms = 0;
    // Statements that only read plan by a copy of the catalog, once nothing was committed for that long. Negative:
    // never.
    int64_t frozen_quiet_ms = 2'000;
};

// Where a statement may run and with how much.
struct Grant {
    enum class Lane : uint8_t {
        small,   // the shared small instance
        slot,    // slot `slot`: its own pooled instance, limit `bytes` + `elastic_bytes`
        pinned,  // the session's connection; `bytes` more than the base limit while it runs. An import's session has an
                 // instance of its own: `bytes` is its limit, from its first statement to the end of its transaction
    };
    Lane lane = Lane::small;
    uint32_t slot = 0;
    uint64_t bytes = 0;          // required
    uint64_t elastic_bytes = 0;  // on top of it to begin with; slot
    // slot: the instance keeps what it has cached when the statement ends, under the limit that it has then, until the
    // slot is taken again or set_slot_limit says otherwise.
    bool keeps = false;
};

struct PlanInfo {
    bool fits_small = false;
    // Most that it will hold at a time, by its plan (engine/plan_estimate.h): in the small lane when it fits, else with
    // all the node's threads. 0: not known.
    uint64_t estimated_bytes = 0;
    // What it reads and writes, catalog.table, and how many rows are in it before.
    struct Table {
        std::string name;
        uint64_t rows = 0;
        bool written = false;
        bool operator==(const Table &) const = default;
    };
    std::vector<Table> tables;
    std::string bound_to;  // catalogs with their schemas' versions, and the search path: the same text means the same
    ResultHeader header;
};

// Receives what an execution produces, on the worker's thread.
class ResultSink {
public:
    virtual ~ResultSink() = default;
    virtual void header(const ResultHeader &header) = 0;
    // A batch of encoded rows (64 to 256 KiB where there is enough). False: enough for now; step() returns soon.
    virtual bool rows(uint32_t rows, std::string bytes) = 0;
};

class Execution {
public:
    virtual ~Execution() = default;
    // Binds and optimises in the small instance (or on the session's connection) without running anything. Errors are
    // the statement's own (syntax, unknown table …).
    virtual Result<PlanInfo> plan() = 0;
    // Begins to run with this grant. After plan() with Lane::small the plan is used as it is. May be called without
    // plan() (spec.shape_is_large).
    virtual Status start(const Grant &grant) = 0;
    // Runs until the sink says enough or the end: true when there is more to do. Writes (commit included) and stored
    // results finish here too.
    virtual Result<bool> step(ResultSink &sink) = 0;
    // Releases the engine's part (connection, instance back to its pool, transaction of an autocommit statement rolled
    // back if it did not commit) and says what happened; `status` is why it ends when that is not the engine's own
    // result. When it returns the memory of the grant is back. Called exactly once.
    virtual Completion finish(Status status) = 0;
    // Makes plan/start/step return `reason` soon. Idempotent; the first reason wins.
    virtual void cancel(Status reason) = 0;
    // 0..100, negative when unknown.
    virtual double progress() const = 0;
};

// Reads a stored result again, from any row.
class StoredResultReader {
public:
    virtual ~StoredResultReader() = default;
    virtual Result<bool> step(ResultSink &sink) = 0;  // as Execution::step; the bytes are an Arrow IPC stream
};

class Engine {
public:
    virtual ~Engine() = default;
    static Result<std::unique_ptr<Engine>> open(EngineOptions options, obs::Log &log);

    // REQUIRES: spec.work == execute, or describe (then only plan() and finish() are called).
    virtual Result<std::unique_ptr<Execution>> create(StatementSpec spec) = 0;
    // Rolls back and forgets a session's state on this node; fine when there is none. Cancels what runs in it.
    virtual void end_session(const Uuid &session) = 0;
    // The same in two steps: from now on the session is not known here, so that a statement of the same session that
    // comes next begins anew; what it was is ended by the function, which may take its time.
    virtual std::function<void()> take_session(const Uuid &session) {
        return [this, session] { end_session(session); };
    }
    // True while the session has an open transaction here.
    virtual bool has_session(const Uuid &session) const = 0;

    // Rows [offset, offset+limit) of a stored result as a JSON array of row objects, values as the HTTP contract says.
    // not_found when the result is unknown or expired.
    virtual Result<std::string> read_page(const Uuid &statement, uint64_t offset_rows, uint32_t limit_rows) = 0;
    virtual Result<std::unique_ptr<StoredResultReader>> open_arrow(const Uuid &statement) = 0;
    virtual Status drop_result(const Uuid &statement) = 0;
    // Drops results past their retention and files of commits that failed; called now and then.
    virtual void sweep() = 0;

    // Sets the memory limit of the instance that has the slot, running or kept, and returns what its buffer manager
    // uses then, bytes; 0 where there is none. 0 bytes: a kept one is closed. resource_exhausted: more is pinned by
    // what runs in it, and the limit stays what it was. Blocks while the engine evicts. Of one slot one call at a time,
    // and none while an execution with that slot starts or finishes.
    virtual Result<uint64_t> set_slot_limit(uint32_t /*slot*/, uint64_t /*bytes*/) { return uint64_t{0}; }
    virtual uint64_t slot_used_bytes(uint32_t /*slot*/) const { return 0; }
    // Gives memory that was freed and is still the process's back to the system. May take some milliseconds.
    virtual void trim() {}

    // Memory that DuckDB's buffer managers hold now, all instances, bytes.
    virtual uint64_t used_bytes() const = 0;
    // The segment cache: what is warm, all of it or what changed since the last call. At most kWarmFoldersMax folders.
    virtual CacheReport cache_report(bool) { return {}; }
    // cache_report(false) would tell something.
    virtual bool cache_changed() { return false; }
    // Does it for each file, and returns how many bytes are warm of them, or went. Blocks, until `cancelled` says so.
    // Errors: failed_precondition (there is no cache), not_allowed (a path that is not the lake's), those of the store.
    virtual Result<uint64_t> cache_work(const CacheWork &, const std::function<bool()> &) {
        return Status(Code::failed_precondition, "this node has no segment cache");
    }
    virtual std::string version() const = 0;  // DuckDB's, e.g. "v1.5.5"
};

}  // namespace roost
