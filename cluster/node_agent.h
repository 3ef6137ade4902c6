// A node's life: dials the gateway, says hello, heartbeats, and runs what is dispatched to it: plan, admission,
// execution, encoded results back. One per process. run() is called on the loop's thread before the loop runs;
// everything public is for that thread. Statements run on worker threads; what they share is guarded by mutex_.
//
// When the control link breaks, everything that came over it is cancelled and rolled back before the node says hello
// again, so that a gateway never meets the half-done work of its predecessor.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "admission/ledger.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/memory_watch.h"
#include "cluster/messages.h"
#include "cluster/node_admission.h"
#include "cluster/result_output.h"
#include "cluster/statement_sizes.h"
#include "cluster/worker_pool.h"
#include "engine/engine.h"
#include "net/link.h"
#include "obs/log.h"

namespace roost::cluster {

struct NodeAgentOptions {
    net::Endpoint gateway;
    std::string join_token;
    Hello hello;  // what the node says of itself
    // Its effective CPUs now; empty: as in hello. Called on the loop with each heartbeat.
    std::function<uint32_t()> cpus;
    std::function<uint64_t()> resident_bytes{};  // of the process; empty: what the system says
    admission::Profile profile = admission::Profile::equal_2;
    double max_bucket_fraction = 1.0 / 3;  // of the budget, required for one statement: under auto
    admission::ShapeMemoryOptions shapes{};
    std::vector<admission::GroupOptions> groups{};
    uint32_t small_workers = 8;  // planning and small lane
    uint32_t queue_max = 100;    // statements beyond those that run
    int64_t dial_timeout_ms = 5'000;
};

class NodeAgent {
public:
    NodeAgent(NodeAgentOptions options, Engine &engine, const Clock &clock, obs::Log &log, net::asio::io_context &loop);
    ~NodeAgent();

    // Starts the agent's coroutines on the loop.
    void run();
    // Tells the gateway and takes nothing new but from sessions with a transaction here; cancels what is left after
    // `grace_ms`; then stops the loop.
    void drain(int64_t grace_ms);
    // Closes the links: the gateway takes the node for lost, and tries its reads elsewhere.
    void hang_up();
    // Hangs up, cancels everything and ends the workers. Called when the loop runs no more, before it is ended.
    void stop();

private:
    enum class Phase : uint8_t { queued, running, waiting, parked, ended };
    enum class Stage : uint8_t { plan, admit, start, step };
    struct Task;
    using TaskPtr = std::shared_ptr<Task>;
    struct Read;
    using ReadPtr = std::shared_ptr<Read>;

    // Loop.
    net::Task<void> stay_connected();
    net::Task<Status> serve(std::shared_ptr<net::FrameLink> control);
    net::Task<void> heartbeat(std::shared_ptr<net::FrameLink> control, uint32_t every_ms);
    bool send_heartbeat(net::FrameLink &control, bool whole_cache);
    net::Task<void> tick();
    net::Task<void> watch(std::shared_ptr<net::FrameLink> result_link);
    net::Task<void> abandon_all(Status why);
    void on_frame(const std::shared_ptr<net::FrameLink> &control, net::Frame frame);
    void on_dispatch(const std::shared_ptr<net::FrameLink> &control, net::Frame frame);
    void on_read(const std::shared_ptr<net::FrameLink> &control, net::Frame frame);
    void on_cancel(const net::Frame &frame);
    void on_set_profile(const std::shared_ptr<net::FrameLink> &control, const net::Frame &frame);
    void report_progress(bool all);
    Result<std::shared_ptr<net::FrameLink>> dial(bool result_link);

    // Workers.
    void advance(const TaskPtr &task);
    bool do_plan(const TaskPtr &task);
    bool do_admit(const TaskPtr &task);
    bool enter_lane(Task &task);
    void leave_lane(Task &task);
    NodeAdmission::Ask ask_of(Task &task) const;
    bool do_start(const TaskPtr &task);
    void do_step(const TaskPtr &task);
    void fail(const TaskPtr &task, Status status);
    bool start_again_in_slot(const TaskPtr &task, const Status &status);
    void finish(const TaskPtr &task, Status status);
    bool park(const TaskPtr &task);
    Status cancel_reason(const TaskPtr &task);
    void end_session(const Uuid &session);
    void give_back_session(const Uuid &session);
    void read(const ReadPtr &read);
    void advance_read(const ReadPtr &read);
    void work_on_cache(const ReadPtr &read);
    // `affected`: of work on the cache, bytes.
    void end_read(const ReadPtr &read, Status status, std::optional<uint64_t> affected = {});

    // One at a time, on its own thread.
    void watch_memory();
    void end_furthest_over();

    // Any thread.
    void cancel(const TaskPtr &task, Status reason);
    void cancel_all(const Status &reason);
    void enqueue(const TaskPtr &task);
    void take(const admission::Outcome &outcome);
    Status end_of_wait(admission::WaitEnd::Why why, const StatementSpec &spec);
    bool keeps_slot(const Task &task) const;
    bool keeps_cache(const Task &task) const;
    admission::Outcome release_session(const Uuid &session) ROOST_REQUIRES(mutex_);
    admission::Outcome release(Task &task) ROOST_REQUIRES(mutex_);

    NodeAgentOptions options_;
    Engine &engine_;
    const Clock &clock_;
    obs::Log &log_;
    net::asio::io_context &loop_;
    ResultLinks result_links_;
    std::shared_ptr<net::FrameLink> control_;  // loop
    bool draining_ = false;                    // loop
    std::atomic<bool> clearing_ = false;       // somebody waits for tasks to end: finish() notifies all_done_
    net::Event all_done_;                      // loop

    Mutex mutex_;
    std::unordered_map<uint64_t, TaskPtr> tasks_ ROOST_GUARDED_BY(mutex_);
    std::unordered_map<uint64_t, ReadPtr> reads_ ROOST_GUARDED_BY(mutex_);
    std::unordered_map<Uuid, TaskPtr> by_holder_ ROOST_GUARDED_BY(mutex_);  // those that asked the ledger
    std::unordered_set<Uuid> sessions_ ROOST_GUARDED_BY(mutex_);
    // An import reads staged files in an instance of its own, which lives as long as its transaction and holds the slot
    // of its first statement until then.
    std::unordered_map<Uuid, Grant> session_slots_ ROOST_GUARDED_BY(mutex_);
    std::unordered_set<Uuid> ending_sessions_ ROOST_GUARDED_BY(mutex_);  // hold a slot; a last statement still runs

    NodeAdmission admission_;  // may be called under mutex_
    StatementSizes sizes_;
    MemoryWatch memory_watch_;  // of memory_pool_'s thread
    std::atomic<bool> watching_ = false;
    WorkerPool small_pool_;
    WorkerPool slot_pool_;
    WorkerPool cancel_pool_;  // ends what was cancelled, when the others are busy
    WorkerPool memory_pool_;  // looks at the process's size, and trims it
};

}  // namespace roost::cluster
