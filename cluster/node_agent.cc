#include "cluster/node_agent.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>

#include "cluster/node_task.h"

namespace roost::cluster {

using net::FrameLink;
using net::FrameType;

namespace {

constexpr int64_t kDrainLinger_us = 250'000;

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

// The gateway runs what it can again elsewhere.
Status stopping() {
    return Status(Code::unavailable, "the node is shutting down")
        .with_name(std::string(kNodeStopping))
        .with_sqlstate("57P01")
        .with_retryable(true);
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
      admission_({.budget_bytes = options_.hello.budget_bytes,
                  .profile = options_.profile,
                  .threads = options_.hello.cpus,
                  .max_bucket_fraction = options_.max_bucket_fraction,
                  .groups = options_.groups},
                 engine_, clock_, log_, [this](const admission::Outcome &outcome) { take(outcome); }),
      sizes_(options_.shapes),
      memory_watch_(options_.hello.memory_bytes),
      small_pool_("small", options_.small_workers),
      slot_pool_("slot", admission_.running_max()),
      cancel_pool_("cancel", 1),
      memory_pool_("memory", 1) {
    if (!options_.resident_bytes) options_.resident_bytes = resident_bytes;
}

NodeAgent::~NodeAgent() { stop(); }

void NodeAgent::hang_up() {
    draining_ = true;
    if (control_) control_->close();
    result_links_.close_all();
}

void NodeAgent::stop() {
    hang_up();
    cancel_all(stopping());
    memory_pool_.stop();
    small_pool_.stop();
    slot_pool_.stop();
    cancel_pool_.stop();
    admission_.stop();
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
    }
    beat.waiting = admission_.waiting();
    beat.granted_bytes = admission_.granted_bytes();
    beat.memory = admission_.report();
    beat.queued = static_cast<uint32_t>(small_pool_.queued() + slot_pool_.queued());
    beat.used_bytes = engine_.used_bytes();
    beat.resident_bytes = options_.resident_bytes();
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
    take(admission_.close_kept());
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
        {
            MutexLock lock(mutex_);
            for (const auto &[stream, task] : tasks_) {
                if (task->deadline_us != 0 && now_us >= task->deadline_us) late.push_back(task);
            }
        }
        take(admission_.tick());
        if (!watching_.exchange(true)) memory_pool_.push([this] { watch_memory(); });
        for (const TaskPtr &task : late) {
            cancel(task, Status(Code::timeout, "canceling statement due to statement timeout: it ran longer than " +
                                                   std::to_string(task->spec.timeout_ms) + " ms"));
        }
        report_progress(n % 10 == 0);
        if (n % 1200 == 0) small_pool_.push([this] { engine_.sweep(); });
    }
}

void NodeAgent::watch_memory() {
    for (bool trimmed = false;;) {
        const auto verdict = memory_watch_.look(options_.resident_bytes(), trimmed, clock_.monotonic_us());
        take(admission_.set_pressure(verdict.pressure));
        if (verdict.end_one) end_furthest_over();
        if (!verdict.trim) break;
        engine_.trim();
        trimmed = true;
    }
    watching_ = false;
}

// The process is about to be more than the machine gives it: better one statement than all of them.
void NodeAgent::end_furthest_over() {
    const auto overruns = admission_.overruns();
    TaskPtr furthest;
    int64_t over_bytes = 0;
    {
        MutexLock lock(mutex_);
        for (const auto &[bytes, account] : overruns) {
            const auto found = by_holder_.find(account);
            if (found == by_holder_.end() || !found->second->cancel_reason.ok()) continue;
            furthest = found->second;
            over_bytes = bytes;
            break;
        }
        const bool known = furthest != nullptr;
        // Of those without a limit of their own nobody knows: the one that runs longest.
        for (const auto &[stream, task] : tasks_) {
            if (known) break;
            if (!task->started || !task->cancel_reason.ok()) continue;
            if (!furthest || task->stage_since_us < furthest->stage_since_us) furthest = task;
        }
    }
    if (!furthest) return;
    admission_.count_cancelled_for_memory();
    log_.error("ended_for_memory", {{"statement_id", furthest->spec.id}, {"over_bytes", over_bytes}});
    cancel(furthest,
           Status(Code::resource_exhausted,
                  "the statement was ended because its node was about to run out of memory: of those that ran "
                  "there it was furthest over its grant")
               .with_name("ended_for_memory")
               .with_sqlstate("53200")
               .with_hint("run it again; aggregates like list() hold memory that no limit counts"));
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
                progress.place = admission_.place(task->holder);
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
        case FrameType::set_profile:
            on_set_profile(control, frame);
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

void NodeAgent::on_set_profile(const std::shared_ptr<FrameLink> &control, const net::Frame &frame) {
    const auto message = decode_set_profile(frame.payload);
    const auto profile = message.ok() ? admission::parse_profile(message->profile) : std::nullopt;
    Completion done;
    if (profile) {
        take(admission_.set_profile(*profile));
        log_.info("admission_profile_set", {{"profile", message->profile}});
        send_heartbeat(*control, false);  // who asked sees it at once; a closed link is noticed by its reader
    } else {
        done.status = message.ok() ? Status(Code::invalid_argument, "there is no admission profile of that name")
                                   : message.status();
    }
    (void)ResultOutput(control, result_links_, frame.stream).end(done);  // false: nobody is left to tell
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
    admission::Outcome next;
    bool idle = false;
    {
        MutexLock lock(mutex_);
        if (!task->cancel_reason.ok() || task->phase == Phase::ended) return;
        task->cancel_reason = reason;
        task->deadline_us = 0;
        execution = task->execution;
        // Nothing happens when the ledger itself has ended the wait.
        if (task->phase == Phase::waiting) next = admission_.abandon(task->holder);
        // Nobody is at it: it ends on a thread that is not busy with other statements. Whoever has it in his queue
        // finds it taken.
        idle = task->phase != Phase::running;
        if (idle) task->phase = Phase::queued;
    }
    take(next);
    if (execution) execution->cancel(std::move(reason));
    if (idle) cancel_pool_.push([this, task] { advance(task); });
}

Status NodeAgent::cancel_reason(const TaskPtr &task) {
    MutexLock lock(mutex_);
    return task->cancel_reason;
}

}  // namespace roost::cluster
