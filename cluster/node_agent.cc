#include "cluster/node_agent.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>

namespace roost::cluster {

using net::FrameLink;
using net::FrameType;

// One statement on this node.
struct NodeAgent::Task {
    Task(uint64_t stream_no, StatementSpec s, std::shared_ptr<FrameLink> link, ResultLinks &links)
        : stream(stream_no), spec(std::move(s)), control(std::move(link)), out(control, links, stream) {}

    const uint64_t stream;
    const StatementSpec spec;
    const std::shared_ptr<FrameLink> control;

    // Guarded by the agent's mutex.
    Phase phase = Phase::queued;
    std::shared_ptr<Execution> execution;
    Status cancel_reason;
    int64_t deadline_us = 0;  // of execution; 0 before it starts and when there is none
    bool holds_slot = false;
    Uuid holder;  // its name in the ledger, once it has asked
    Progress::Phase reported = Progress::Phase::queued;
    Grant grant;  // set before the task is resumed

    // The worker that advances the task; handed over through the agent's mutex.
    Stage stage = Stage::plan;
    ResultOutput out;
    NodeTimings timings;
    int64_t stage_since_us = 0;
    int64_t parked_since_us = 0;
    bool started = false;
};

namespace {

constexpr int64_t kDrainLinger_us = 250'000;
constexpr std::string_view kWouldWait = "would_wait";

// It may wait so long, and then another node is asked: no error.
bool is_patient(const StatementSpec &spec) { return spec.no_wait && spec.patience_us > 0; }

Status would_wait() {
    return Status(Code::resource_exhausted, "it would wait for memory").with_name(std::string(kWouldWait));
}

uint64_t resident_bytes() {
    FILE *file = std::fopen("/proc/self/statm", "re");
    if (!file) return 0;
    unsigned long long total = 0;
    unsigned long long resident = 0;
    const int read = std::fscanf(file, "%llu %llu", &total, &resident);
    std::fclose(file);
    return read == 2 ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

constexpr uint32_t kCacheReportEveryMs = 500;

uint32_t slot_workers(admission::Profile) {
    return 3;
}  // the longest ladder has three slots; the profile can change at run time

// The gateway runs what it can again elsewhere.
Status stopping() {
    return Status(Code::unavailable, "the node is shutting down")
        .with_name(std::string(kNodeStopping))
        .with_sqlstate("57P01")
        .with_retryable(true);
}

Status no_memory(const StatementSpec &spec) {
    return Status(Code::resource_exhausted, "the statement waited " + std::to_string(spec.admission_wait_ms) +
                                                " ms for memory on this node and got none")
        .with_name("admission_timeout")
        .with_hint("run it again when fewer large statements run, or raise admission_wait_ms");
}

}  // namespace

NodeAgent::NodeAgent(NodeAgentOptions options, Engine &engine, const Clock &clock, obs::Log &log,
                     net::asio::io_context &loop)
    : options_(std::move(options)),
      engine_(engine),
      clock_(clock),
      log_(log),
      loop_(loop),
      result_links_([this] { return dial(true); }),
      all_done_(loop.get_executor()),
      jitter_(std::hash<Uuid>()(Uuid::make())),
      ledger_({.budget_bytes = options_.hello.budget_bytes, .profile = options_.profile, .random = &jitter_}),
      small_pool_("small", options_.small_workers),
      slot_pool_("slot", slot_workers(options_.profile)),
      cancel_pool_("cancel", 1) {}

NodeAgent::~NodeAgent() { stop(); }

void NodeAgent::hang_up() {
    draining_ = true;
    if (control_) control_->close();
    result_links_.close_all();
}

void NodeAgent::stop() {
    hang_up();
    cancel_all(stopping());
    small_pool_.stop();
    slot_pool_.stop();
    cancel_pool_.stop();
    result_links_.close_all();
}

void NodeAgent::run() {
    net::asio::co_spawn(loop_, stay_connected(), net::asio::detached);
    net::asio::co_spawn(loop_, tick(), net::asio::detached);
}

Result<std::shared_ptr<FrameLink>> NodeAgent::dial(bool result_link) {
    const net::LinkRequest request{options_.join_token, result_link, options_.hello.node, options_.hello.incarnation};
    ROOST_ASSIGN_OR_RETURN(const int fd, net::dial_link(options_.gateway, request, options_.dial_timeout_ms));
    ROOST_ASSIGN_OR_RETURN(auto socket, net::adopt_socket(loop_.get_executor(), fd));
    auto link = FrameLink::make(std::move(socket));
    if (result_link) {
        net::asio::post(loop_, [this, link] { net::asio::co_spawn(loop_, watch(link), net::asio::detached); });
    }
    return link;
}

// A gateway sends nothing on a result link; reading notices that it went away.
net::Task<void> NodeAgent::watch(std::shared_ptr<FrameLink> result_link) {
    for (;;) {
        auto frame = co_await result_link->read();
        if (!frame.ok()) break;
    }
}

net::Task<void> NodeAgent::stay_connected() {
    int64_t back_off_ms = 50;
    while (!draining_) {
        auto link = dial(false);
        if (link.ok()) {
            const int64_t since_us = clock_.monotonic_us();
            control_ = *link;
            Status status = co_await serve(*link);
            control_.reset();
            log_.warn("link_lost", {{"gateway", options_.gateway.to_string()}, {"error", status.message()}});
            co_await abandon_all(Status(Code::unavailable, "the node lost its gateway"));
            if (clock_.monotonic_us() - since_us > 5'000'000) back_off_ms = 50;
        } else {
            log_.warn("dial_failed", {{"gateway", options_.gateway.to_string()}, {"error", link.status().message()}});
        }
        if (draining_) break;
        net::asio::steady_timer timer(loop_, std::chrono::milliseconds(back_off_ms));
        co_await timer.async_wait(net::asio::use_awaitable);
        back_off_ms = std::min<int64_t>(back_off_ms * 2, 2000);
    }
}

net::Task<Status> NodeAgent::serve(std::shared_ptr<FrameLink> control) {
    std::string hello;
    net::append_frame(hello, FrameType::hello, 0, encode(options_.hello));
    if (!control->send(std::move(hello))) co_return Status(Code::unavailable, "the gateway closed the link");
    for (bool welcomed = false;;) {
        auto frame = co_await control->read();
        if (!frame.ok()) co_return frame.status();
        if (frame->type == FrameType::welcome && !welcomed) {
            auto welcome = decode_welcome(frame->payload);
            if (!welcome.ok()) co_return welcome.status();
            welcomed = true;
            log_.info("joined", {{"gateway", options_.gateway.to_string()}, {"node_id", options_.hello.node}});
            net::asio::co_spawn(loop_, heartbeat(control, welcome->heartbeat_ms), net::asio::detached);
            continue;
        }
        on_frame(control, std::move(*frame));
    }
}

// False: the link is closed.
bool NodeAgent::send_heartbeat(FrameLink &control, bool whole_cache) {
    Heartbeat beat;
    beat.cache = engine_.cache_report(whole_cache);
    {
        MutexLock lock(mutex_);
        beat.running = static_cast<uint32_t>(tasks_.size());
        beat.waiting = ledger_.waiting();
        beat.granted_bytes = ledger_.granted_bytes();
    }
    beat.queued = static_cast<uint32_t>(small_pool_.queued() + slot_pool_.queued());
    beat.used_bytes = engine_.used_bytes();
    beat.resident_bytes = resident_bytes();
    if (options_.cpus) beat.cpus = options_.cpus();
    beat.stopping = draining_;
    std::string frame;
    net::append_frame(frame, FrameType::heartbeat, 0, encode(beat));
    return control.send(std::move(frame));
}

net::Task<void> NodeAgent::heartbeat(std::shared_ptr<FrameLink> control, uint32_t every_ms) {
    // A gateway that has just met this node knows nothing of its cache.
    for (bool met = false; !control->closed(); met = true) {
        if (!send_heartbeat(*control, !met)) break;
        // Sooner when the cache has changed: where statements go depends on it.
        const int64_t next_us = clock_.monotonic_us() + int64_t{every_ms} * 1000;
        do {
            net::asio::steady_timer timer(loop_, std::chrono::milliseconds(std::min(every_ms, kCacheReportEveryMs)));
            co_await timer.async_wait(net::asio::use_awaitable);
        } while (clock_.monotonic_us() < next_us && !engine_.cache_changed() && !control->closed());
    }
}

// Cancels everything and waits until it is rolled back.
net::Task<void> NodeAgent::abandon_all(Status why) {
    clearing_ = true;
    cancel_all(why);
    std::vector<Uuid> sessions;
    for (;;) {
        {
            MutexLock lock(mutex_);
            if (tasks_.empty()) {
                sessions.assign(sessions_.begin(), sessions_.end());
                sessions_.clear();
                break;
            }
        }
        co_await all_done_.wait_for(std::chrono::milliseconds(100));
    }
    for (const Uuid &session : sessions) end_session(session);
    result_links_.close_all();
    clearing_ = draining_;
}

void NodeAgent::cancel_all(const Status &reason) {
    std::vector<TaskPtr> tasks;
    {
        MutexLock lock(mutex_);
        for (const auto &[stream, task] : tasks_) tasks.push_back(task);
    }
    for (const TaskPtr &task : tasks) cancel(task, reason);
}

void NodeAgent::drain(int64_t grace_ms) {
    draining_ = true;
    clearing_ = true;
    if (control_) send_heartbeat(*control_, false);
    net::asio::co_spawn(
        loop_,
        [](NodeAgent *self, int64_t grace) -> net::Task<void> {
            const int64_t end_us = self->clock_.monotonic_us() + grace * 1000;
            // What was sent before the gateway knew is refused, and so runs elsewhere.
            const int64_t linger_us = std::min(end_us, self->clock_.monotonic_us() + kDrainLinger_us);
            for (bool idle = false; !idle && self->clock_.monotonic_us() < end_us;) {
                {
                    MutexLock lock(self->mutex_);
                    idle = self->tasks_.empty() && self->sessions_.empty() && self->clock_.monotonic_us() >= linger_us;
                }
                if (!idle) co_await self->all_done_.wait_for(std::chrono::milliseconds(100));
            }
            co_await self->abandon_all(stopping());
            if (self->control_) self->control_->close();
            self->loop_.stop();
        }(this, grace_ms),
        net::asio::detached);
}

// Deadlines, waits that ran out, progress; 20 times a second costs nothing and is exact enough for limits in seconds.
net::Task<void> NodeAgent::tick() {
    net::asio::steady_timer timer(loop_);
    for (uint64_t n = 0;; ++n) {
        timer.expires_after(std::chrono::milliseconds(50));
        co_await timer.async_wait(net::asio::use_awaitable);
        const int64_t now_us = clock_.monotonic_us();
        std::vector<TaskPtr> late;
        std::vector<TaskPtr> waited;
        std::vector<admission::SlotGrant> granted;
        {
            MutexLock lock(mutex_);
            for (const auto &[stream, task] : tasks_) {
                if (task->deadline_us != 0 && now_us >= task->deadline_us) late.push_back(task);
            }
            admission::Outcome outcome = ledger_.tick(now_us);
            for (const admission::WaitEnd &end : outcome.ends) {
                if (const auto found = by_holder_.find(end.statement); found != by_holder_.end()) {
                    waited.push_back(found->second);
                }
            }
            granted = std::move(outcome.grants);
        }
        resume_granted(granted);
        for (const TaskPtr &task : late) {
            cancel(task, Status(Code::timeout, "canceling statement due to statement timeout: it ran longer than " +
                                                   std::to_string(task->spec.timeout_ms) + " ms"));
        }
        for (const TaskPtr &task : waited) cancel(task, is_patient(task->spec) ? would_wait() : no_memory(task->spec));
        report_progress(n % 10 == 0);
        if (n % 1200 == 0) small_pool_.push([this] { engine_.sweep(); });
    }
}

// All that run or wait, or those for whom that has changed.
void NodeAgent::report_progress(bool all) {
    std::vector<std::pair<TaskPtr, Progress>> reports;
    {
        MutexLock lock(mutex_);
        for (const auto &[stream, task] : tasks_) {
            Progress progress;
            if (task->phase == Phase::waiting) {
                progress.phase = Progress::Phase::waiting;
                progress.place = ledger_.place(task->holder);
            } else if (task->started) {
                progress.phase = Progress::Phase::running;
            } else {
                continue;
            }
            if (!all && task->reported == progress.phase) continue;
            task->reported = progress.phase;
            if (task->started && task->execution) progress.percent = task->execution->progress();
            reports.emplace_back(task, progress);
        }
    }
    for (const auto &[task, progress] : reports) {
        std::string frame;
        net::append_frame(frame, FrameType::progress, task->stream, encode(progress));
        task->control->send(std::move(frame));  // a closed link is noticed by its reader
    }
}

void NodeAgent::on_frame(const std::shared_ptr<FrameLink> &control, net::Frame frame) {
    switch (frame.type) {
        case FrameType::dispatch:
            on_dispatch(control, std::move(frame));
            return;
        case FrameType::read_page:
        case FrameType::open_arrow:
        case FrameType::cache_work:
            on_read(control, std::move(frame));
            return;
        case FrameType::cancel:
            on_cancel(frame);
            return;
        case FrameType::end_session: {
            if (auto id = decode_id(frame.payload); id.ok()) {
                {
                    MutexLock lock(mutex_);
                    sessions_.erase(*id);
                }
                // At once, on the loop: the session's next statement may be picked up by another worker than this.
                small_pool_.push([this, session = *id, end = engine_.take_session(*id)] {
                    end();
                    give_back_session(session);
                });
            }
            return;
        }
        case FrameType::drop_result: {
            if (auto id = decode_id(frame.payload); id.ok()) {
                small_pool_.push([this, result = *id] {
                    // Unknown means dropped already.
                    (void)engine_.drop_result(result);
                });
            }
            return;
        }
        default:
            log_.warn("unexpected_frame", {{"type", static_cast<int>(frame.type)}});
            return;
    }
}

void NodeAgent::on_dispatch(const std::shared_ptr<FrameLink> &control, net::Frame frame) {
    auto spec = decode_spec(frame.payload);
    if (!spec.ok()) {
        Completion failed;
        failed.status = spec.status();
        (void)ResultOutput(control, result_links_, frame.stream).end(failed);
        return;
    }
    auto task = std::make_shared<Task>(frame.stream, std::move(*spec), control, result_links_);
    task->stage_since_us = clock_.monotonic_us();
    bool full = false;
    {
        MutexLock lock(mutex_);
        // A transaction that is open here can be nowhere else.
        if (draining_ && !sessions_.contains(task->spec.session)) {
            std::string refused;
            net::append_frame(refused, FrameType::refused, frame.stream, "");
            control->send(std::move(refused));
            return;
        }
        full = tasks_.size() >= options_.queue_max + options_.small_workers;
        if (!full) {
            if (!tasks_.emplace(task->stream, task).second) {
                log_.error("stream_in_use", {{"statement_id", task->spec.id}});
                control->close();  // nothing that comes over this link can be told apart any more
                return;
            }
            if (task->spec.transaction == TransactionAction::in_session) sessions_.insert(task->spec.session);
        }
    }
    if (full) {
        Completion refused;
        refused.status = Status(Code::resource_exhausted,
                                "the node's queue is full (" + std::to_string(options_.queue_max) + " statements)")
                             .with_name("queue_full")
                             .with_sqlstate("53300")
                             .with_hint("run the statement again in a moment")
                             .with_retryable(true);
        (void)task->out.end(refused);  // false: the gateway has gone, nobody is waiting
        return;
    }
    enqueue(task);
}

void NodeAgent::enqueue(const TaskPtr &task) {
    WorkerPool &pool = task->grant.lane == Grant::Lane::slot || task->holds_slot ? slot_pool_ : small_pool_;
    pool.push([this, task] { advance(task); });
}

void NodeAgent::cancel(const TaskPtr &task, Status reason) {
    std::shared_ptr<Execution> execution;
    std::vector<admission::SlotGrant> granted;
    bool idle = false;
    {
        MutexLock lock(mutex_);
        if (!task->cancel_reason.ok() || task->phase == Phase::ended) return;
        task->cancel_reason = reason;
        task->deadline_us = 0;
        execution = task->execution;
        // Nothing happens when the ledger itself has ended the wait.
        if (task->phase == Phase::waiting) granted = ledger_.abandon(task->holder, clock_.monotonic_us()).grants;
        // Nobody is at it: it ends on a thread that is not busy with other statements. Whoever has it in his queue
        // finds it taken.
        idle = task->phase != Phase::running;
        if (idle) task->phase = Phase::queued;
    }
    resume_granted(granted);
    if (execution) execution->cancel(std::move(reason));
    if (idle) cancel_pool_.push([this, task] { advance(task); });
}

Status NodeAgent::cancel_reason(const TaskPtr &task) {
    MutexLock lock(mutex_);
    return task->cancel_reason;
}

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
    if (spec.shape_is_large && spec.work == Work::execute) {
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
    if (plan->fits_small) {
        task->grant = {pinned ? Grant::Lane::pinned : Grant::Lane::small, 0, 0};
        task->stage = Stage::start;
    } else {
        task->stage = Stage::admit;
    }
    return true;
}

// Always hands the task on or ends it: false.
bool NodeAgent::do_admit(const TaskPtr &task) {
    using Kind = admission::Ledger::Answer::Kind;
    const int64_t now_us = clock_.monotonic_us();
    task->stage = Stage::start;
    task->stage_since_us = now_us;
    const bool keeps = keeps_slot(*task);
    const Uuid holder = keeps ? task->spec.session : Uuid::make();
    admission::Ledger::Answer answer;
    bool has_slot = false;
    Status refusal = would_wait();
    {
        MutexLock lock(mutex_);
        task->deadline_us = 0;  // the wait for memory is not counted
        const auto held = session_slots_.find(holder);
        if (!task->cancel_reason.ok()) {
            // ends below
        } else if (held != session_slots_.end()) {
            task->grant = held->second;
            task->holds_slot = has_slot = true;
            task->phase = Phase::queued;
        } else if (by_holder_.emplace(holder, task).second) {
            task->holder = holder;
            const bool patient = is_patient(task->spec);
            const int64_t wait_us = patient ? task->spec.patience_us : task->spec.admission_wait_ms * 1000;
            answer = ledger_.request(
                {.account = holder, .no_wait = task->spec.no_wait && !patient, .admission_wait_us = wait_us}, now_us);
            if (answer.kind == Kind::refused) refusal = no_memory(task->spec);
            if (answer.kind == Kind::waiting) task->phase = Phase::waiting;
        } else {
            refusal = Status(Code::failed_precondition, "another statement of this session waits for memory");
        }
    }
    if (has_slot) {
        enqueue(task);
        return false;
    }
    if (answer.kind == Kind::granted) {
        resume_granted({answer.grant});
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

void NodeAgent::resume_granted(const std::vector<admission::SlotGrant> &grants) {
    std::vector<TaskPtr> resumed;
    {
        MutexLock lock(mutex_);
        for (const admission::SlotGrant &grant : grants) {
            const auto found = by_holder_.find(grant.statement);
            if (found == by_holder_.end()) continue;
            Task &task = *found->second;
            const bool pinned = task.spec.transaction != TransactionAction::autocommit;
            task.grant = {pinned ? Grant::Lane::pinned : Grant::Lane::slot, grant.slot, grant.bytes};
            task.holds_slot = true;
            if (keeps_slot(task)) session_slots_[grant.statement] = task.grant;
            task.timings.admission_us = grant.waited_us;
            task.phase = Phase::queued;
            resumed.push_back(found->second);
        }
    }
    for (const TaskPtr &task : resumed) enqueue(task);
}

bool NodeAgent::do_start(const TaskPtr &task) {
    const int64_t now_us = clock_.monotonic_us();
    task->stage_since_us = now_us;
    {
        MutexLock lock(mutex_);
        if (task->spec.timeout_ms > 0) task->deadline_us = now_us + task->spec.timeout_ms * 1000;
        task->started = true;
    }
    Status status = task->execution->start(task->grant);
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
    std::shared_ptr<Execution> execution;
    {
        MutexLock lock(mutex_);
        execution = std::move(task->execution);
    }
    execution.reset();  // what it still held is back before it is lent again
    std::vector<admission::SlotGrant> next;
    {
        MutexLock lock(mutex_);
        next = release(*task);
    }
    resume_granted(next);
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

bool NodeAgent::keeps_slot(const Task &task) const {
    return task.spec.internal && task.spec.transaction == TransactionAction::in_session;
}

// The task is out of the tables; what waited for what it held.
std::vector<admission::SlotGrant> NodeAgent::release(Task &task) {
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
    return ledger_.release(task.holder, clock_.monotonic_us()).grants;
}

std::vector<admission::SlotGrant> NodeAgent::release_session(const Uuid &session) {
    ending_sessions_.erase(session);
    if (session_slots_.erase(session) == 0) return {};
    return ledger_.release(session, clock_.monotonic_us()).grants;
}

void NodeAgent::end_session(const Uuid &session) {
    engine_.end_session(session);
    give_back_session(session);
}

// What an ended session held of the ledger.
void NodeAgent::give_back_session(const Uuid &session) {
    std::vector<admission::SlotGrant> next;
    {
        MutexLock lock(mutex_);
        if (!session_slots_.contains(session)) return;
        const bool busy = std::any_of(tasks_.begin(), tasks_.end(),
                                      [&](const auto &entry) { return entry.second->spec.session == session; });
        if (busy) {
            ending_sessions_.insert(session);  // its memory is back when that statement has ended
        } else {
            next = release_session(session);
        }
    }
    resume_granted(next);
}

}  // namespace roost::cluster
