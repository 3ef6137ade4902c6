// The executions that Engine::create makes, one class a kind of statement. Each follows Execution's contract
// (engine.h).
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/clock.h"
#include "cache/segment_cache.h"
#include "engine/cancellation.h"
#include "engine/catalog_pools.h"
#include "engine/deferred_removals.h"
#include "engine/engine.h"
#include "engine/foreign_files.h"
#include "engine/register_files.h"
#include "engine/result_output.h"
#include "engine/session.h"
#include "engine/session_visit.h"
#include "engine/spooled_chunks.h"

namespace roost {

// What executions need of the engine; outlives them.
struct EngineParts {
    SystemClock clock;
    std::unique_ptr<cache::SegmentCache> cache;  // null: no lake has a store, or there is none; outlives the catalogs
    std::unique_ptr<DeferredRemovals> removals;  // outlives the catalogs
    std::unique_ptr<CatalogPools> catalogs;
    std::unique_ptr<ResultStore> results;
    SessionTable sessions;
    obs::Log *log = nullptr;
};

// What all have: the statement, its cancellation, its account.
class BaseExecution : public Execution {
public:
    BaseExecution(EngineParts &parts, StatementSpec spec) : parts_(parts), spec_(std::move(spec)) {}
    void cancel(Status reason) override { cancellation_.cancel(std::move(reason)); }
    double progress() const override { return cancellation_.progress(); }

protected:
    // The instances that have what the statement names.
    Result<std::shared_ptr<InstancePool>> catalog() const { return parts_.catalogs->find(spec_); }
    // Adds what the output and the query say to the account and closes it with the first failure of all.
    Completion account(Status status, const ResultOutput *output, const RunningQuery *query);
    // Remembers the first failure of the execution itself.
    Status fail(Status status);

    EngineParts &parts_;
    const StatementSpec spec_;
    Cancellation cancellation_;
    Completion completion_;
    Status failure_;
};

// Its own transaction, in the small instance or a slot's.
class AutocommitExecution final : public BaseExecution {
public:
    using BaseExecution::BaseExecution;
    Result<PlanInfo> plan() override;
    Status start(const Grant &grant) override;
    Result<bool> step(ResultSink &sink) override;
    Completion finish(Status status) override;

private:
    Status enter(std::shared_ptr<Instance> instance);
    void leave();
    Status enter_small(InstancePool &pool);
    Status enter_slot(const Grant &grant);
    RunningQuery::Watch watch_of(const Grant &grant) const;
    Status commit();

    std::shared_ptr<Instance> instance_;
    std::unique_ptr<LakeConnection> connection_;
    std::unique_ptr<RunningQuery> query_;
    std::optional<uint32_t> slot_;
    bool keeps_ = false;  // the slot's instance keeps its memory when this ends
    double scanned_rows_ = 0;
    std::optional<ResultOutput> output_;
};

// Inside the session's open transaction, in the pinned instance.
class SessionExecution final : public BaseExecution, public Session::Stream {
public:
    SessionExecution(EngineParts &parts, StatementSpec spec);
    Result<PlanInfo> plan() override;
    Status start(const Grant &grant) override;
    Result<bool> step(ResultSink &sink) override;
    Completion finish(Status status) override;

    Status take_off(const Cancellation &wish) override;
    Status failure() const override;
    void abandon() override;

private:
    Status prepare(SessionVisit &visit, uint64_t grant_bytes);
    Status run(SessionVisit &visit, const Grant &grant);

    std::shared_ptr<Session> session_;
    std::shared_ptr<Instance> instance_;
    std::unique_ptr<RunningQuery> query_;
    std::unique_ptr<SpooledChunks> chunks_;
    std::optional<ResultOutput> output_;
    uint64_t lent_bytes_ = 0;
    uint64_t planned_in_ = 0;  // the session's count of statements when query_ was prepared
};

// Files of others become a table's without being copied (register_files.h): listed, looked at, pinned, then added in
// the open transaction of the internal session, a batch a step. The pins are written before the transaction touches the
// lake: it could not write a SQLite catalog after that.
class RegisterExecution final : public BaseExecution {
public:
    RegisterExecution(EngineParts &parts, StatementSpec spec);
    Result<PlanInfo> plan() override { return PlanInfo{}; }  // it takes its grant first
    Status start(const Grant &grant) override;
    Result<bool> step(ResultSink &sink) override;
    Completion finish(Status status) override;
    double progress() const override;

private:
    enum class Stage : uint8_t { list, look, columns, pin, create, add, done };

    Status work();  // a part of the stage
    Status list();
    Status leave_out_registered();
    Status look();
    Status read_columns();
    Status pin();
    Status create();
    Status add();
    Status run(const std::string &sql);
    void next(Stage stage);
    size_t batch_size() const;
    std::string table_arguments() const;

    std::shared_ptr<Session> session_;
    std::shared_ptr<Instance> instance_;
    RegisterFiles request_;
    std::atomic<Stage> stage_{Stage::list};
    std::atomic<size_t> at_{0}, count_{0};  // of the stage's files
    bool exists_ = false;                   // the table
    bool partitions_ = false;
    std::vector<ForeignFile> files_;
    std::vector<FilePin> pins_;  // as files_, once they were looked at
    ForeignColumns columns_;
    uint64_t rows_ = 0;
};

// COMMIT or ROLLBACK of a session's transaction.
class TransactionEndExecution final : public BaseExecution {
public:
    using BaseExecution::BaseExecution;
    Result<PlanInfo> plan() override { return PlanInfo{.fits_small = true, .estimated_bytes = 0, .header = {}}; }
    Status start(const Grant &) override { return cancellation_.reason(); }
    Result<bool> step(ResultSink &sink) override;
    Completion finish(Status status) override { return account(std::move(status), nullptr, nullptr); }

private:
    Status commit(Session &session);
};

// Columns and parameter types; nothing runs.
class DescribeExecution final : public BaseExecution {
public:
    using BaseExecution::BaseExecution;
    Result<PlanInfo> plan() override;
    Status start(const Grant &) override;
    Result<bool> step(ResultSink &) override;
    Completion finish(Status status) override { return account(std::move(status), nullptr, nullptr); }

private:
    Result<ResultHeader> describe();
    Result<ResultHeader> describe_in_session();
};

// Sets the commit's mark and commits what is open on the connection. Ok: the transaction is in the lake.
Status commit_marked(Instance &instance, LakeConnection &connection, const std::string &catalog, const Uuid &statement,
                     Completion &completion);

}  // namespace roost
