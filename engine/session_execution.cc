#include "engine/execution.h"
#include "engine/stopwatch.h"

namespace roost {

SessionExecution::SessionExecution(EngineParts &parts, StatementSpec spec)
    : BaseExecution(parts, std::move(spec)), session_(parts.sessions.open(spec_.session)) {}

// REQUIRES: inside. The grant's bytes are lent before anything is bound: binding a staged CSV file reads its first
// megabytes.
Status SessionExecution::prepare(SessionVisit &visit, uint64_t grant_bytes) {
    const Stopwatch watch;
    ROOST_ASSIGN_OR_RETURN(const auto pool, catalog());
    ROOST_RETURN_IF_ERROR(visit.ready(spec_, *pool, this, grant_bytes));
    instance_ = session_->instance;
    if (!spec_.internal && lent_bytes_ == 0 && grant_bytes > 0) {
        ROOST_RETURN_IF_ERROR(instance_->lend(grant_bytes));
        lent_bytes_ = grant_bytes;
    }
    // A statement that ran since plan() may have changed what this one means.
    if (planned_in_ != session_->statements) query_.reset();
    planned_in_ = session_->statements;
    if (!query_) {
        query_ = std::make_unique<RunningQuery>(*instance_, *session_->connection, cancellation_);
        ROOST_RETURN_IF_ERROR(query_->prepare(spec_));
    }
    completion_.timings.plan_us += watch.elapsed_us();
    return Status();
}

Result<PlanInfo> SessionExecution::plan() {
    // An import reads and writes whole files: it takes its grant first.
    if (spec_.internal) return PlanInfo{};
    SessionVisit visit(*session_, cancellation_);
    if (!visit.status().ok()) return fail(visit.status());
    ROOST_RETURN_IF_ERROR(fail(visit.fail(prepare(visit, 0))));
    const PlanEstimate estimate = query_->estimate(instance_->options().threads);
    PlanInfo info = query_->plan_info(estimate);
    info.fits_small = estimate.peak_bytes <= static_cast<double>(instance_->options().memory_bytes) / 2;
    return info;
}

Status SessionExecution::start(const Grant &grant) {
    completion_.granted_bytes = grant.bytes;
    completion_.ran_large = grant.bytes > 0;
    SessionVisit visit(*session_, cancellation_);
    if (!visit.status().ok()) return fail(visit.status());
    return fail(visit.fail(run(visit, grant)));
}

// REQUIRES: inside.
Status SessionExecution::run(SessionVisit &visit, const Grant &grant) {
    ROOST_RETURN_IF_ERROR(prepare(visit, grant.bytes));
    const Stopwatch watch;
    output_.emplace(*parts_.results);
    ROOST_RETURN_IF_ERROR(output_->open(spec_, *query_, session_->connection->context()));
    ROOST_RETURN_IF_ERROR(query_->start(RunningQuery::Watch::closely));
    planned_in_ = ++session_->statements;
    chunks_ = std::make_unique<SpooledChunks>(*query_, *instance_, cancellation_);
    session_->set_stream(this);
    if (spec_.writes) {
        session_->wrote = true;
        session_->write_catalog = written_catalog(spec_);
    }
    completion_.timings.execute_us += watch.elapsed_us();
    return Status();
}

Result<bool> SessionExecution::step(ResultSink &sink) {
    SessionVisit visit(*session_, cancellation_);
    if (!visit.status().ok()) return fail(visit.status());
    if (query_->active()) cancellation_.watch(session_->connection->shared_context());
    const Stopwatch watch;
    auto more = output_->drain(*chunks_, sink);
    completion_.timings.execute_us += watch.elapsed_us();
    if (!more.ok()) return fail(visit.fail(more.status()));
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

Status SessionExecution::failure() const { return chunks_->failure(); }

void SessionExecution::abandon() {
    if (query_) query_->abandon();
}

}  // namespace roost
