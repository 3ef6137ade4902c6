// A statement's way on the node, on its workers: plan, admission, start, steps, end.
#include "cluster/node_agent.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "cluster/node_task.h"

namespace roost::cluster {

using net::FrameType;

namespace {

// It may wait so long, and then another node is asked: no error.
bool is_patient(const StatementSpec &spec) { return spec.no_wait && spec.patience_us > 0; }

Status would_wait() {
    return Status(Code::resource_exhausted, "it would wait for memory").with_name(std::string(kWouldWait));
}

Status no_memory(const StatementSpec &spec) {
    return Status(Code::resource_exhausted, "the statement waited " + std::to_string(spec.admission_wait_ms) +
                                                " ms for memory on this node and got none")
        .with_name("admission_timeout")
        .with_sqlstate("53200")
        .with_hint("run it again when fewer large statements run, or raise statement_admission_wait_ms");
}

Status timed_out_in_line(const StatementSpec &spec) {
    return Status(Code::timeout, "canceling statement due to statement timeout: it waited longer than its " +
                                     std::to_string(spec.timeout_ms) + " ms for memory");
}

}  // namespace

void NodeAgent::advance(const TaskPtr &task) {
    {
        MutexLock lock(mutex_);
        if (task->phase != Phase::queued) return;  // another thread has taken it
        task->phase = Phase::running;
    }
    const int64_t now_us = clock_.monotonic_us();
    if (task->stage == Stage::plan) task->timings.queued_us += now_us - task->stage_since_us;
    if (task->parked_since_us != 0) {
        task->timings.blocked_us += now_us - task->parked_since_us;
        task->parked_since_us = 0;
    }
    if (Status reason = cancel_reason(task); !reason.ok()) return finish(task, reason);
    if (task->stage == Stage::plan && !do_plan(task)) return;
    if (task->stage == Stage::admit && !do_admit(task)) return;
    if (task->stage == Stage::start && !do_start(task)) return;
    do_step(task);
}

// False: the task has ended or was handed on.
bool NodeAgent::do_plan(const TaskPtr &task) {
    const StatementSpec &spec = task->spec;
    auto created = engine_.create(spec);
    if (!created.ok()) {
        finish(task, created.status());
        return false;
    }
    {
        MutexLock lock(mutex_);
        task->execution = std::move(*created);
    }
    if (Status reason = cancel_reason(task); !reason.ok()) {
        finish(task, reason);
        return false;
    }
    const bool pinned = spec.transaction != TransactionAction::autocommit;
    const bool ends_transaction =
        spec.transaction == TransactionAction::commit || spec.transaction == TransactionAction::rollback;
    if (ends_transaction) {
        task->grant = {Grant::Lane::pinned, 0, 0};
        task->stage = Stage::start;
        return true;
    }
    // Under auto it is planned all the same, for its estimate.
    if (spec.shape_is_large && spec.work == Work::execute && !admission_.automatic()) {
        task->stage = Stage::admit;
        return true;
    }
    const int64_t since_us = clock_.monotonic_us();
    // Planning is bounded by the statement's own time limit as well.
    if (spec.timeout_ms > 0) {
        MutexLock lock(mutex_);
        task->deadline_us = since_us + spec.timeout_ms * 1000;
    }
    auto plan = task->execution->plan();
    task->timings.plan_us = clock_.monotonic_us() - since_us;
    if (!plan.ok()) {
        fail(task, plan.status());
        return false;
    }
    if (spec.work == Work::describe) {
        task->out.header(plan->header);
        finish(task, Status());
        return false;
    }
    task->memory.estimate_bytes = plan->estimated_bytes;
    plan->header = {};
    task->plan = std::move(*plan);
    task->known = sizes_.planned(spec, task->plan, clock_.monotonic_us());
    if (task->plan.fits_small && (pinned || enter_lane(*task))) {
        task->grant.lane = pinned ? Grant::Lane::pinned : Grant::Lane::small;
        task->memory.why = "lane";
        task->stage = Stage::start;
    } else {
        task->stage = Stage::admit;
    }
    return true;
}

bool NodeAgent::enter_lane(Task &task) {
    const Uuid id = Uuid::make();
    if (!admission_.enter_lane(id, task.memory.estimate_bytes)) return false;
    task.lane = id;
    return true;
}

void NodeAgent::leave_lane(Task &task) {
    if (task.lane.is_nil()) return;
    admission_.leave_lane(task.lane);
    task.lane = Uuid();
}

// What the statement asks the ledger for, and why so much.
NodeAdmission::Ask NodeAgent::ask_of(Task &task) const {
    const StatementSpec &spec = task.spec;
    const bool patient = is_patient(spec);
    NodeAdmission::Ask ask;
    ask.no_wait = spec.no_wait && !patient;
    ask.admission_wait_us = patient ? spec.patience_us : spec.admission_wait_ms * 1000;
    ask.timeout_us = spec.timeout_ms * 1000;
    ask.user = spec.user;
    ask.group = spec.group;
    // Only the limit of a slot's instance can be changed while it is used.
    ask.fixed = spec.internal || spec.transaction != TransactionAction::autocommit;
    const admission::Profile profile = admission_.profile();
    const bool automatic = profile == admission::Profile::automatic;
    if (keeps_slot(task) || keeps_cache(task)) ask.session = spec.session;
    MemoryAccount &memory = task.memory;
    memory.profile = admission::profile_name(profile);
    memory.why = automatic ? "unknown" : "ladder";
    if (!automatic) return ask;
    const auto bucket =
        task.known ? admission::bucket_of(task.known->bytes, admission_.budget_bytes()) : admission::Bucket::m;
    memory.bucket = admission::bucket_name(bucket);
    ask.wanted_bytes = admission::bucket_bytes(bucket, admission_.budget_bytes());
    if (task.known) {
        using Why = admission::ShapeMemory::Known::Why;
        const Why why = task.known->why;
        memory.why = why == Why::planned ? "plan" : why == Why::measured ? "measured" : "spilled";
        // What was measured is not rounded up to a bucket.
        if (why != Why::planned) ask.wanted_bytes = task.known->bytes;
    }
    memory.wanted_bytes = ask.wanted_bytes;
    return ask;
}

// Always hands the task on or ends it: false.
bool NodeAgent::do_admit(const TaskPtr &task) {
    using Kind = admission::Ledger::Answer::Kind;
    task->stage = Stage::start;
    task->stage_since_us = clock_.monotonic_us();
    const NodeAdmission::Ask ask = ask_of(*task);
    admission::Ledger::Answer answer;
    bool has_slot = false;
    Status refusal = would_wait();
    {
        MutexLock lock(mutex_);
        task->deadline_us = 0;  // the wait for memory is not counted
        const auto held = session_slots_.find(task->spec.session);
        if (!task->cancel_reason.ok()) {
            // ends below
        } else if (keeps_slot(*task) && held != session_slots_.end()) {
            task->grant = held->second;
            task->holds_slot = has_slot = true;
            task->phase = Phase::queued;
        } else if (keeps_slot(*task) && by_holder_.contains(task->spec.session)) {
            refusal = Status(Code::failed_precondition, "another statement of this session waits for memory");
        } else {
            NodeAdmission::Asked asked = admission_.request(ask);
            answer = asked.answer;
            const bool holds = answer.kind == Kind::granted || answer.kind == Kind::waiting;
            if (holds) task->holder = asked.account;
            task->keeps = keeps_cache(*task) && asked.account == task->spec.session;
            if (holds) by_holder_[asked.account] = task;
            if (answer.kind == Kind::refused) refusal = no_memory(task->spec);
            if (answer.kind == Kind::waiting) task->phase = Phase::waiting;
        }
    }
    if (has_slot) {
        enqueue(task);
        return false;
    }
    if (answer.kind == Kind::granted) {
        take({.grants = {answer.grant}});
        return false;  // goes on in the slot pool
    }
    if (answer.kind == Kind::waiting) return false;
    if (Status reason = cancel_reason(task); !reason.ok()) {
        finish(task, reason);
        return false;
    }
    finish(task, std::move(refusal));
    return false;
}

// Resumes those that were granted what they asked for, and ends those whose wait is over.
void NodeAgent::take(const admission::Outcome &outcome) {
    if (outcome.grants.empty() && outcome.ends.empty()) return;
    std::vector<TaskPtr> resumed;
    std::vector<std::pair<TaskPtr, Status>> waited;
    {
        MutexLock lock(mutex_);
        for (const admission::SlotGrant &grant : outcome.grants) {
            const auto found = by_holder_.find(grant.statement);
            if (found == by_holder_.end()) continue;
            Task &task = *found->second;
            const bool pinned = task.spec.transaction != TransactionAction::autocommit;
            task.grant = {pinned ? Grant::Lane::pinned : Grant::Lane::slot, grant.slot, grant.bytes};
            task.holds_slot = true;
            if (keeps_slot(task)) session_slots_[grant.statement] = task.grant;
            task.timings.admission_us += grant.waited_us;
            task.memory.overdue = grant.overdue;
            task.phase = Phase::queued;
            resumed.push_back(found->second);
        }
        for (const admission::WaitEnd &end : outcome.ends) {
            const auto found = by_holder_.find(end.statement);
            if (found == by_holder_.end()) continue;
            waited.emplace_back(found->second, end_of_wait(end.why, found->second->spec));
        }
    }
    for (const TaskPtr &task : resumed) enqueue(task);
    for (auto &[task, why] : waited) cancel(task, std::move(why));
}

Status NodeAgent::end_of_wait(admission::WaitEnd::Why why, const StatementSpec &spec) {
    switch (why) {
        case admission::WaitEnd::Why::own_timeout:
            return timed_out_in_line(spec);
        case admission::WaitEnd::Why::would_wait:
            return would_wait();
        case admission::WaitEnd::Why::admission_timeout:
            break;
    }
    if (is_patient(spec)) return would_wait();
    admission_.count_admission_timeout();
    return no_memory(spec);
}

bool NodeAgent::do_start(const TaskPtr &task) {
    const int64_t now_us = clock_.monotonic_us();
    task->stage_since_us = now_us;
    {
        MutexLock lock(mutex_);
        if (task->spec.timeout_ms > 0) task->deadline_us = now_us + task->spec.timeout_ms * 1000;
        task->started = true;
    }
    const bool own_slot = task->grant.lane == Grant::Lane::slot && !task->spec.internal;
    if (own_slot) {
        task->begun = true;
        task->grant = admission_.begin(task->holder);
        task->grant.keeps = task->keeps;
    }
    Status status = task->execution->start(task->grant);
    if (own_slot) admission_.started(task->holder, status.ok());
    if (!status.ok()) {
        fail(task, std::move(status));
        return false;
    }
    task->stage = Stage::step;
    return true;
}

void NodeAgent::do_step(const TaskPtr &task) {
    for (;;) {
        auto more = task->execution->step(task->out);
        if (!more.ok()) return fail(task, more.status());
        if (!task->out.broken().ok()) return finish(task, task->out.broken());
        if (!*more) return finish(task, Status());
        if (park(task)) return;
    }
}

// True: the task is somebody else's now.
bool NodeAgent::park(const TaskPtr &task) {
    {
        MutexLock lock(mutex_);
        task->phase = Phase::parked;
        task->parked_since_us = clock_.monotonic_us();
    }
    const bool parked = task->out.park([this, task] {
        {
            MutexLock lock(mutex_);
            if (task->phase != Phase::parked) return;  // a cancel was first
            task->phase = Phase::queued;
        }
        enqueue(task);
    });
    if (parked) return true;
    MutexLock lock(mutex_);
    if (task->phase != Phase::parked) return true;  // a cancel has queued it
    task->phase = Phase::running;
    task->parked_since_us = 0;
    return false;
}

void NodeAgent::fail(const TaskPtr &task, Status status) {
    if (!start_again_in_slot(task, status)) finish(task, std::move(status));
}

// The small lane is for what an estimate calls small; what ran out of memory there was not, and gets a slot of its own
// if nobody has seen anything of it yet.
bool NodeAgent::start_again_in_slot(const TaskPtr &task, const Status &status) {
    const bool out_of_memory = status.code() == Code::resource_exhausted && status.sqlstate() == "53200";
    // A commit that failed may have been taken all the same.
    if (!out_of_memory || status.name() == kCommitFailed || task->holds_slot ||
        task->spec.transaction != TransactionAction::autocommit || task->spec.work != Work::execute ||
        !cancel_reason(task).ok() || !task->out.restart()) {
        return false;
    }
    (void)task->execution->finish(status);  // rolls back; what it says of the first attempt is of no use to anybody
    log_.info("small_lane_too_small", {{"statement_id", task->spec.id}});
    leave_lane(*task);
    task->memory.estimate_bytes = 0;  // it was wrong
    task->known.reset();
    auto created = engine_.create(task->spec);
    if (!created.ok()) {
        finish(task, created.status());
        return true;
    }
    {
        MutexLock lock(mutex_);
        task->execution = std::move(*created);
        task->deadline_us = 0;
        task->started = false;
    }
    task->stage = Stage::admit;
    (void)do_admit(task);
    return true;
}

void NodeAgent::finish(const TaskPtr &task, Status status) {
    const bool refused = !status.ok() && status.name() == kWouldWait;
    const int64_t now_us = clock_.monotonic_us();
    Completion completion;
    // What is promised to it stays its own until its execution is gone.
    if (task->begun) admission_.finishing(task->holder);
    if (!task->holder.is_nil()) task->memory.elastic = admission_.elastic_of(task->holder);
    if (task->execution) {
        completion = task->execution->finish(status);
    } else {
        completion.status = status;
    }
    // The reason of a cancel is what the client should read, not the interrupt that followed from it.
    if (Status reason = cancel_reason(task); !reason.ok() && !completion.status.ok()) completion.status = reason;
    completion.timings.queued_us = task->timings.queued_us;
    completion.timings.plan_us = task->timings.plan_us;
    completion.timings.admission_us = task->timings.admission_us;
    completion.timings.blocked_us = task->timings.blocked_us;
    if (task->started) completion.timings.execute_us = now_us - task->stage_since_us;
    completion.granted_bytes = task->grant.bytes;
    completion.ran_large = task->holds_slot;
    task->memory.spilled_bytes = completion.memory.spilled_bytes;
    completion.memory = task->memory;
    // What ran in a lane had others beside it.
    if (task->started && task->grant.lane == Grant::Lane::slot && !task->spec.internal) {
        sizes_.ran(task->spec, task->plan, completion, now_us);
    }
    if (task->spec.writes && completion.status.ok()) sizes_.wrote(task->spec, task->plan);
    std::shared_ptr<Execution> execution;
    {
        MutexLock lock(mutex_);
        execution = std::move(task->execution);
    }
    execution.reset();  // what it still held is back before it is lent again
    leave_lane(*task);
    admission::Outcome next;
    {
        MutexLock lock(mutex_);
        next = release(*task);
    }
    take(next);
    if (refused) {
        task->out.single(FrameType::refused, {});
    } else if (!task->out.end(completion)) {
        log_.info("result_undeliverable", {{"statement_id", task->spec.id}});
    }
    const ReadBytes read = completion.read_bytes();
    log_.info("statement", {{"statement_id", task->spec.id},
                            {"status", completion.status.ok() ? std::string_view("done") : completion.status.name()},
                            {"rows", completion.rows},
                            {"queued_us", completion.timings.queued_us},
                            {"plan_us", completion.timings.plan_us},
                            {"admission_us", completion.timings.admission_us},
                            {"execute_us", completion.timings.execute_us},
                            {"granted_bytes", completion.granted_bytes},
                            {"store_bytes", read.store_bytes},
                            {"peer_bytes", read.peer_bytes},
                            {"cache_bytes", read.cache_bytes}});
    if (clearing_) net::asio::post(loop_, [this] { all_done_.notify(); });
}

// Its session goes on, and finds what it cached: under auto, where memory that nobody needs is lent.
bool NodeAgent::keeps_cache(const Task &task) const {
    const StatementSpec &spec = task.spec;
    return spec.session_lasts && !spec.internal && spec.transaction == TransactionAction::autocommit &&
           admission_.automatic();
}

bool NodeAgent::keeps_slot(const Task &task) const {
    return task.spec.internal && task.spec.transaction == TransactionAction::in_session;
}

// The task is out of the tables; what waited for what it held.
admission::Outcome NodeAgent::release(Task &task) {
    task.phase = Phase::ended;
    tasks_.erase(task.stream);
    if (const auto found = by_holder_.find(task.holder); found != by_holder_.end() && found->second.get() == &task) {
        by_holder_.erase(found);
    }
    const TransactionAction action = task.spec.transaction;
    const bool ends = action == TransactionAction::commit || action == TransactionAction::rollback;
    if (ends || (keeps_slot(task) && ending_sessions_.contains(task.spec.session))) {
        return release_session(task.spec.session);
    }
    if (!task.holds_slot || keeps_slot(task)) return {};
    return admission_.ended(task.holder, task.begun && task.keeps);
}

admission::Outcome NodeAgent::release_session(const Uuid &session) {
    ending_sessions_.erase(session);
    if (session_slots_.erase(session) == 0) return {};
    return admission_.ended(session, false);
}

void NodeAgent::end_session(const Uuid &session) {
    engine_.end_session(session);
    give_back_session(session);
}

// What an ended session held of the ledger.
void NodeAgent::give_back_session(const Uuid &session) {
    admission::Outcome next;
    {
        MutexLock lock(mutex_);
        if (!session_slots_.contains(session)) {
            next = admission_.end_session(session);
        } else {
            const bool busy = std::any_of(tasks_.begin(), tasks_.end(),
                                          [&](const auto &entry) { return entry.second->spec.session == session; });
            if (busy) {
                ending_sessions_.insert(session);  // its memory is back when that statement has ended
            } else {
                next = release_session(session);
            }
        }
    }
    take(next);
}

}  // namespace roost::cluster
