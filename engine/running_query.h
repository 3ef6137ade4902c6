// One statement on one connection: parsed, bound and optimised, then run chunk by chunk without ever being
// materialised. The connection must have an open transaction from prepare() on. Used by one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "duckdb/common/types/data_chunk.hpp"
#include "duckdb/main/pending_query_result.hpp"
#include "duckdb/main/prepared_statement_data.hpp"
#include "duckdb/main/query_result.hpp"
#include "duckdb/main/stream_query_result.hpp"
#include "engine/cancellation.h"
#include "engine/engine.h"
#include "engine/instance.h"
#include "engine/plan_estimate.h"
#include "engine/statement.h"
#include "engine/statement_reads.h"

namespace roost {

enum class ResultShape : uint8_t {
    grid,     // rows for the client
    changes,  // one row with the number of changed rows
    nothing,  // DDL
};

// Where result chunks come from.
class ChunkSource {
public:
    virtual ~ChunkSource() = default;
    // The next chunk, or null at the end. Blocks until there is one, the statement fails or is cancelled.
    virtual Result<duckdb::unique_ptr<duckdb::DataChunk>> next() = 0;
};

class RunningQuery final : public ChunkSource {
public:
    // All references outlive this object.
    RunningQuery(Instance &instance, LakeConnection &connection, Cancellation &cancellation);
    ~RunningQuery() override;
    RunningQuery(const RunningQuery &) = delete;
    RunningQuery &operator=(const RunningQuery &) = delete;

    // Binds and optimises. Refuses what may not run on a node whatever the gateway let through: settings, attach,
    // pragmas …, and a statement that writes without `spec.writes`.
    Status prepare(const StatementSpec &spec);
    bool prepared() const { return data_ != nullptr; }
    // REQUIRES: prepared()
    ResultShape shape() const;
    const duckdb::vector<std::string> &names() const { return data_->names; }
    const duckdb::vector<duckdb::LogicalType> &types() const { return data_->types; }
    // For a run with so many threads.
    PlanEstimate estimate(uint32_t threads) const;
    // What the plan says of itself, by this estimate; whether it fits a lane is not for it to say.
    PlanInfo plan_info(const PlanEstimate &estimate) const;

    enum class Watch : uint8_t {
        not_at_all,
        closely,  // operator tree with rows and times, progress
    };
    // Hands the plan to the executor. In an instance with several threads it runs from here on.
    Status start(Watch watch);
    Result<duckdb::unique_ptr<duckdb::DataChunk>> next() override;
    // The connection is busy with this query: another one would end it.
    bool active() const { return active_; }
    // Ends it before its end; fine at any time.
    void close();
    // The transaction ends below it: closed, next() fails from now on, the connection is not touched any more.
    void abandon();
    // Most that the instance's buffer manager held while this ran beyond what it held before, caches not counted, and
    // most that was in the spill directory, bytes, sampled after each task. Others in the same instance count too.
    uint64_t peak_bytes() const { return peak_bytes_; }
    uint64_t spilled_bytes() const { return spilled_bytes_; }
    // What it read through the segment cache so far; nothing where there is none.
    std::vector<UnitRead> reads() const { return reads_ ? reads_->report() : std::vector<UnitRead>(); }
    // DuckDB's operator tree, when it was watched closely and came to its end; otherwise empty.
    const std::string &profile_json() const { return profile_json_; }

private:
    Status prepare_with_rights(const StatementSpec &spec);
    void plan(const duckdb::SQLStatement &statement, const StatementSpec &spec);
    Status run_to_first_chunk();
    duckdb::StreamExecutionResult execute_task(duckdb::StreamQueryResult &stream);
    void wait_for_chunk(duckdb::StreamQueryResult &stream);
    Status failed(const duckdb::ErrorData &error);
    void end();
    void drop_plan();
    // The connection's files are this query's from now on.
    void account() {
        if (reads_) account_reads(connection_.context(), reads_);
    }
    void sample_memory();

    Instance &instance_;
    LakeConnection &connection_;
    Cancellation &cancellation_;
    const std::shared_ptr<StatementReads> reads_;  // null: no cache
    std::string sql_;
    duckdb::shared_ptr<duckdb::PreparedStatementData> data_;
    duckdb::unique_ptr<duckdb::PendingQueryResult> pending_;
    duckdb::unique_ptr<duckdb::QueryResult> result_;
    std::vector<std::string> filtered_tables_;  // see AlteredTables::spare
    std::string written_catalog_;
    std::string bound_to_;  // PlanInfo::bound_to
    bool creates_table_as_ = false;
    bool active_ = false;
    bool ended_ = false;
    bool abandoned_ = false;
    Instance::MemoryUse idle_;  // before it ran
    uint64_t peak_bytes_ = 0, spilled_bytes_ = 0;
    Watch watch_ = Watch::not_at_all;
    std::string profile_json_;
};

}  // namespace roost
