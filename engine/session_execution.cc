#include "engine/execution.h"
#include "engine/stopwatch.h"

namespace roost {

// One visit of a session: inside from construction to destruction, if ok().
class SessionExecution::Visit {
public:
    explicit Visit(SessionExecution &execution) : execution_(execution) {
        status_ = execution.session_->enter(execution.cancellation_);
    }
    ~Visit() {
        if (!status_.ok()) return;
        execution_.cancellation_.watch(nullptr);
        execution_.session_->leave();
    }
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;
    const Status &status() const { return status_; }
    // Any failure inside a transaction leaves only its rollback.
    Status fail(Status status) {
        if (status.ok()) return status;
        execution_.session_->failed = true;
        return execution_.fail(std::move(status));
    }

private:
    SessionExecution &execution_;
    Status status_;
};

SessionExecution::SessionExecution(EngineParts &parts, StatementSpec spec)
    : BaseExecution(parts, std::move(spec)), session_(parts.sessions.open(spec_.session)) {}

// REQUIRES: inside.
Status SessionExecution::open_transaction() {
    if (session_->failed) {
        return Status(Code::failed_precondition,
                      "current transaction is aborted, commands ignored until end of transaction block")
            .with_sqlstate("25P02");
    }
    if (!session_->connection) {
        ROOST_ASSIGN_OR_RETURN(InstancePool *pool, catalog());
        ROOST_ASSIGN_OR_RETURN(session_->instance, pool->pinned());
        ROOST_ASSIGN_OR_RETURN(session_->connection, session_->instance->connect());
        // What a session leaves in its connection is nobody else's.
        session_->connection->spoil();
        try {
            session_->connection->begin(spec_.read_only);
        } catch (const std::exception &error) {
            return session_->instance->error(duckdb::ErrorData(error), spec_.sql);
        }
    }
    instance_ = session_->instance;
    return Status();
}

// REQUIRES: inside.
Status SessionExecution::prepare() {
    const Stopwatch watch;
    ROOST_RETURN_IF_ERROR(open_transaction());
    if (Stream *open = session_->stream(); open && open != this) {
        ROOST_RETURN_IF_ERROR(open->take_off(cancellation_));
        session_->set_stream(nullptr);
    }
    cancellation_.watch(session_->connection->shared_context());
    try {
        session_->connection->apply(spec_.settings);
    } catch (const std::exception &error) {
        return instance_->error(duckdb::ErrorData(error), spec_.sql);
    }
    query_ = std::make_unique<RunningQuery>(*instance_, *session_->connection, cancellation_);
    Status status = query_->prepare(spec_);
    completion_.timings.plan_us += watch.elapsed_us();
    return status;
}

Result<PlanInfo> SessionExecution::plan() {
    Visit visit(*this);
    if (!visit.status().ok()) return fail(visit.status());
    ROOST_RETURN_IF_ERROR(visit.fail(prepare()));
    const PlanEstimate estimate = query_->estimate();
    return PlanInfo{.fits_small = estimate.held_bytes <= static_cast<double>(instance_->options().memory_bytes) / 2,
                    .estimated_bytes = static_cast<uint64_t>(estimate.held_bytes),
                    .header = header_of(*query_)};
}

Status SessionExecution::start(const Grant &grant) {
    completion_.granted_bytes = grant.bytes;
    completion_.ran_large = grant.bytes > 0;
    Visit visit(*this);
    if (!visit.status().ok()) return fail(visit.status());
    // Another statement of the session may have run since plan(): its own plan is of the same transaction, still good.
    if (!query_) ROOST_RETURN_IF_ERROR(visit.fail(prepare()));
    const Stopwatch watch;
    if (Stream *open = session_->stream(); open && open != this) {
        ROOST_RETURN_IF_ERROR(visit.fail(open->take_off(cancellation_)));
        session_->set_stream(nullptr);
    }
    cancellation_.watch(session_->connection->shared_context());
    ROOST_RETURN_IF_ERROR(visit.fail(instance_->lend(grant.bytes)));
    lent_bytes_ = grant.bytes;
    output_.emplace(*parts_.results);
    ROOST_RETURN_IF_ERROR(visit.fail(output_->open(spec_, *query_, session_->connection->context())));
    ROOST_RETURN_IF_ERROR(visit.fail(query_->start()));
    chunks_ = std::make_unique<SpooledChunks>(*query_, *instance_, cancellation_);
    session_->set_stream(this);
    session_->wrote = session_->wrote || spec_.writes;
    completion_.timings.execute_us += watch.elapsed_us();
    return Status();
}

Result<bool> SessionExecution::step(ResultSink &sink) {
    Visit visit(*this);
    if (!visit.status().ok()) return fail(visit.status());
    if (query_->active()) cancellation_.watch(session_->connection->shared_context());
    const Stopwatch watch;
    auto more = output_->drain(*chunks_, sink);
    completion_.timings.execute_us += watch.elapsed_us();
    if (!more.ok()) return visit.fail(more.status());
    return more;
}

Completion SessionExecution::finish(Status status) {
    Completion completion = account(std::move(status), output_ ? &*output_ : nullptr, query_.get());
    if (session_->enter_as(*this)) {
        if (query_) query_->close();
        session_->set_stream(nullptr);
        session_->leave();
    }
    chunks_.reset();
    query_.reset();
    if (instance_ && lent_bytes_ > 0) {
        if (Status back = instance_->take_back(lent_bytes_); !back.ok()) {
            parts_.log->error("pinned_memory_not_returned",
                              {{"statement", spec_.id}, {"bytes", lent_bytes_}, {"error", back.to_string()}});
        }
    }
    return completion;
}

Status SessionExecution::take_off(const Cancellation &wish) { return chunks_->take_off(wish); }

void SessionExecution::abandon() {
    if (query_) query_->abandon();
}

}  // namespace roost
