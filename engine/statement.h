// Plain data that crosses the seam between gateway and node: what is to be run, and what came of it. No DuckDB types,
// so that service/, cluster/ and the fronts can use it. Values only; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/cache_report.h"
#include "lake/rights.h"

namespace roost {

// One output column. `type` is DuckDB's own spelling (what DESCRIBE prints); the pg_ fields follow contracts' type
// table.
struct Column {
    std::string name;
    std::string type;
    uint32_t pg_oid = 25;
    int16_t pg_typlen = -1;
    int32_t pg_typmod = -1;
    bool operator==(const Column &) const = default;
};

// One bound parameter. `value` unset: NULL.
struct Param {
    enum class Form : uint8_t {
        pg_text = 0,    // PostgreSQL's text input syntax of pg_oid (0: inferred by the engine, else text)
        pg_binary = 1,  // PostgreSQL's binary form of pg_oid
        typed_json =
            2,  // `value` is a JSON value, `type` the DuckDB type it stands for (empty: by the JSON value's own kind)
    };
    Form form = Form::pg_text;
    uint32_t pg_oid = 0;
    std::string type;
    std::optional<std::string> value;
};

enum class ResultFormat : uint8_t {
    pg_rows = 0,  // row frames hold whole PostgreSQL DataRow messages ('D', int32 length, …), in the formats of
                  // result_formats
    stored = 1,  // the node keeps the rows in its result store; the stream has only header and end (and a first page as
                 // JSON)
    value = 2,   // one row of one column: a row frame holds the value as engine/variables.h keeps it
};

// Of a session's variables (SET VARIABLE), which travel with each statement.
constexpr uint64_t kVariableMaxBytes = 256 * 1024;
constexpr uint64_t kVariablesMaxBytes = 1024 * 1024;  // names and values of all of a session
constexpr uint64_t kVariablesMax = 1'000;

// Session settings that travel with each statement.
struct StatementSettings {
    std::string catalog;                   // active catalog, e.g. "lake"
    std::vector<std::string> search_path;  // schema names inside `catalog`; empty: {"main"}
    std::string time_zone = "UTC";
    std::map<std::string, std::string> variables;  // by folded name: values as engine/variables.h keeps them
    bool operator==(const StatementSettings &) const = default;
};

enum class TransactionAction : uint8_t {
    autocommit = 0,  // the statement is its own transaction
    in_session,      // runs inside the open transaction of `session` (begun on the node at the first such statement)
    commit,          // `sql` is ignored: commit the session's transaction
    rollback,        // `sql` is ignored: roll it back (no error when there is none)
};

// What kind of work a dispatch asks for.
enum class Work : uint8_t {
    execute = 0,
    describe,  // prepare only: header with columns and param_oids, nothing runs
};

struct StatementSpec {
    Uuid id;
    Work work = Work::execute;
    std::string sql;  // one statement
    std::vector<Param> params;
    std::vector<uint32_t> param_oids;     // describe: declared types, 0 where unknown
    std::vector<int16_t> result_formats;  // pg_rows: 0 text, 1 binary; empty: all text; one: for all columns
    ResultFormat format = ResultFormat::pg_rows;
    StatementSettings settings;
    std::vector<std::string> catalogs;  // that it names beside the active one, in order
    std::string write_catalog;          // that it changes; empty: the active one
    std::optional<Rights> rights;       // of its caller in those catalogs; nothing: everything
    TransactionAction transaction = TransactionAction::autocommit;
    Uuid session;                  // nil: none
    bool session_lasts = false;    // it has more statements to come: what this one cached may be kept for them
    bool read_only = false;        // the transaction was declared READ ONLY
    bool writes = false;           // changes the lake: runs as BEGIN, statement, commit message with the id, COMMIT
    bool internal = false;         // made by roost itself (import): may read the staging folder
    std::string user;              // whose it is: turns for memory go round users
    std::string group;             // of the workload; empty: none that was set
    uint64_t shape = 0;            // of its text without literals; 0: not known
    bool shape_is_large = false;   // the gateway remembers this shape as larger than XS: skip the small lane's planning
    bool no_wait = false;          // refuse instead of waiting for memory
    int64_t patience_us = 0;       // with no_wait: refuse only when so long has passed
    uint32_t first_page_rows = 0;  // stored: rows of the JSON page sent along with the end
    int64_t timeout_ms = 600'000;  // wall clock from the start of execution, admission wait excluded; 0: none
    int64_t admission_wait_ms = 300'000;
};

inline const std::string &written_catalog(const StatementSpec &spec) {
    return spec.write_catalog.empty() ? spec.settings.catalog : spec.write_catalog;
}

struct ResultHeader {
    bool has_grid = false;  // false: DDL, DML without RETURNING: no rows, `columns` is empty
    std::vector<Column> columns;
    std::vector<uint32_t> param_oids;  // describe only: one pg oid for each parameter
};

// What a statement was given of its node's memory, and why. The grant itself is Completion::granted_bytes.
struct MemoryAccount {
    uint64_t estimate_bytes = 0;  // of its plan; 0: not known
    uint64_t wanted_bytes = 0;    // what it asked for; 0: nothing by itself (a lane, a ladder's slot)
    std::string profile;          // admission's, when it was granted
    std::string bucket;           // "XS" … "XL", of wanted_bytes
    // Where wanted_bytes comes from: "plan", "unknown", "measured", "spilled"; "lane": it fitted the small or the
    // pinned lane; "ladder": it got a slot.
    std::string why;
    bool overdue = false;        // its admission wait was over, and it ran with its floor or more
    uint64_t spilled_bytes = 0;  // written to the spill directory
    // Elastic memory on top of the grant, from its start on; a step when it changes.
    struct Step {
        int64_t at_us = 0;  // since its start
        uint64_t elastic_bytes = 0;
        bool operator==(const Step &) const = default;
    };
    std::vector<Step> elastic;
    bool operator==(const MemoryAccount &) const = default;
};
constexpr size_t kElasticStepsMax = 64;  // of one statement; the last one is overwritten then

// Where a statement's time went on the node, microseconds; 0 where the stage did not happen.
struct NodeTimings {
    int64_t queued_us = 0;     // waiting for a worker
    int64_t plan_us = 0;       // bind, optimise, estimate
    int64_t admission_us = 0;  // waiting for memory
    int64_t execute_us = 0;    // start of execution to the last row
    int64_t encode_us = 0;     // of execute_us: turning rows into bytes
    int64_t blocked_us = 0;    // of execute_us: the reader was slower than the engine
    int64_t commit_us = 0;
};

// Name of a cancel's reason: nobody reads the rest of this read (a closed portal). It stops between two chunks and is
// not interrupted, so that the transaction it runs in goes on.
constexpr std::string_view kReaderLeft = "reader_left";

// Name of the error of what a node ends because it stops: nothing of it has happened.
constexpr std::string_view kNodeStopping = "node_stopping";

// Name of the error of a COMMIT that failed otherwise than by a conflict.
constexpr std::string_view kCommitFailed = "commit_failed";

// How a statement ended. Sent exactly once, last.
struct Completion {
    Status status;
    uint64_t rows = 0;                 // rows of the grid
    std::optional<uint64_t> affected;  // INSERT, UPDATE, DELETE, MERGE, CTAS
    uint64_t result_bytes = 0;
    uint64_t peak_memory_bytes = 0;
    uint64_t granted_bytes = 0;
    bool ran_large = false;  // did not fit the small lane; the gateway remembers it by shape
    // It failed in its COMMIT and not by a conflict: whether the catalog took it is for the catalog to say.
    bool commit_in_doubt = false;
    bool frozen = false;  // read by a frozen catalog
    NodeTimings timings;
    MemoryAccount memory;
    std::vector<UnitRead> reads;  // through the segment cache; of a table that it only wrote, too
    uint64_t committed_snapshot =
        0;                     // the newest one of its catalog once it had committed; 0: it did not, or nobody knows
    std::string first_page;    // stored: JSON array of row objects, see ResultStore
    std::string profile_json;  // DuckDB's operator tree as JSON; empty when there is none

    ReadBytes read_bytes() const {  // of all it read
        ReadBytes sum;
        for (const UnitRead &read : reads) sum += read.bytes;
        return sum;
    }
};

}  // namespace roost
