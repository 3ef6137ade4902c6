#include "engine/execution.h"
#include "engine/stopwatch.h"

namespace roost {

namespace {

// One thread takes no more than this much longer than two would: rows that a small scan may read, and rows that a
// product of small tables may make.
constexpr double kSmallScannedRows = 500'000;
constexpr double kSmallMadeRows = 2'000'000;

bool fits_small(const PlanEstimate &estimate, uint64_t small_bytes) {
    return estimate.peak_bytes <= static_cast<double>(small_bytes) / 2 && estimate.scanned_rows <= kSmallScannedRows &&
           estimate.largest_rows <= kSmallMadeRows;
}

}  // namespace

Status AutocommitExecution::enter(std::shared_ptr<Instance> instance) {
    instance_ = std::move(instance);
    const Stopwatch watch;
    ROOST_ASSIGN_OR_RETURN(connection_, instance_->connect());
    cancellation_.watch(connection_->shared_context());
    try {
        connection_->apply(spec_.settings);
        connection_->begin(spec_.read_only);
    } catch (const std::exception &error) {
        return instance_->error(duckdb::ErrorData(error), spec_.sql);
    }
    query_ = std::make_unique<RunningQuery>(*instance_, *connection_, cancellation_);
    Status status = query_->prepare(spec_);
    completion_.timings.plan_us += watch.elapsed_us();
    return status;
}

void AutocommitExecution::leave() {
    cancellation_.watch(nullptr);
    query_.reset();  // before its connection, which may end here
    if (connection_) instance_->give_back(std::move(connection_));
    if (slot_ && instance_) {
        if (const auto pool = catalog(); pool.ok()) (*pool)->give_back_slot(*slot_, std::move(instance_), keeps_);
    }
    slot_.reset();
    instance_.reset();
}

Result<PlanInfo> AutocommitExecution::plan() {
    ROOST_RETURN_IF_ERROR(fail(cancellation_.reason()));
    // Roost's own statements read uploaded files, which the small instance can't.
    if (spec_.internal) return PlanInfo{};
    auto pool = catalog();
    if (!pool.ok()) return fail(pool.status());
    ROOST_RETURN_IF_ERROR(fail(enter_small(**pool)));
    PlanEstimate estimate = query_->estimate(1);  // the small lane's threads
    scanned_rows_ = estimate.scanned_rows;
    const bool fits = fits_small(estimate, (*pool)->small_lane_bytes());
    if (!fits) estimate = query_->estimate((*pool)->threads());
    PlanInfo info = query_->plan_info(estimate);
    info.fits_small = fits;
    if (!info.fits_small) leave();
    return info;
}

// Tried by a frozen catalog first. What can't be bound there (the lake's past, a table made a moment ago) is tried by
// the live one, whose word counts.
Status AutocommitExecution::enter_small(InstancePool &pool) {
    if (!spec_.writes && !spec_.internal) {
        if (auto frozen = pool.frozen()) {
            completion_.frozen = enter(std::move(frozen)).ok();
            if (completion_.frozen) return Status();
            leave();
            ROOST_RETURN_IF_ERROR(cancellation_.reason());
        }
    }
    ROOST_ASSIGN_OR_RETURN(auto small, pool.small());
    return enter(std::move(small));
}

Status AutocommitExecution::enter_slot(const Grant &grant) {
    leave();
    completion_.frozen = false;
    ROOST_ASSIGN_OR_RETURN(const auto pool, catalog());
    if (spec_.internal) {
        ROOST_ASSIGN_OR_RETURN(auto instance, pool->make_internal(grant.bytes));
        return enter(std::move(instance));
    }
    ROOST_ASSIGN_OR_RETURN(auto instance, pool->take_slot(grant.slot, grant.bytes + grant.elastic_bytes));
    slot_ = grant.slot;
    keeps_ = grant.keeps;
    return enter(std::move(instance));
}

// An operator tree costs a statement like SELECT 1 more than its work; a read of the lake takes a hundred times as
// long.
RunningQuery::Watch AutocommitExecution::watch_of(const Grant &grant) const {
    const bool small = grant.lane == Grant::Lane::small && scanned_rows_ == 0 && !spec_.writes;
    return small ? RunningQuery::Watch::not_at_all : RunningQuery::Watch::closely;
}

Status AutocommitExecution::start(const Grant &grant) {
    ROOST_RETURN_IF_ERROR(fail(cancellation_.reason()));
    completion_.granted_bytes = grant.bytes;
    completion_.ran_large = grant.lane != Grant::Lane::small;
    if (grant.lane == Grant::Lane::small) {
        if (!query_) {
            ROOST_ASSIGN_OR_RETURN(const auto pool, catalog());
            ROOST_RETURN_IF_ERROR(fail(enter_small(*pool)));
        }
    } else {
        ROOST_RETURN_IF_ERROR(fail(enter_slot(grant)));
    }
    const Stopwatch watch;
    output_.emplace(*parts_.results);
    ROOST_RETURN_IF_ERROR(fail(output_->open(spec_, *query_, connection_->context())));
    ROOST_RETURN_IF_ERROR(fail(query_->start(watch_of(grant))));
    completion_.timings.execute_us += watch.elapsed_us();
    return Status();
}

Result<bool> AutocommitExecution::step(ResultSink &sink) {
    const Stopwatch watch;
    auto more = output_->drain(*query_, sink);
    completion_.timings.execute_us += watch.elapsed_us();
    if (!more.ok()) return fail(more.status());
    if (*more) return true;
    if (spec_.writes) ROOST_RETURN_IF_ERROR(fail(commit()));
    return false;
}

Status AutocommitExecution::commit() {
    ROOST_RETURN_IF_ERROR(cancellation_.reason());
    return commit_marked(*instance_, *connection_, written_catalog(spec_), spec_.id, completion_);
}

Completion AutocommitExecution::finish(Status status) {
    Completion completion = account(std::move(status), output_ ? &*output_ : nullptr, query_.get());
    leave();
    return completion;
}

}  // namespace roost
