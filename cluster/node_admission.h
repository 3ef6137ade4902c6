// A node's admission at work: the ledger under its lock, and the adapter that carries out what it orders. The ledger
// says which instance of the engine gets which limit; a thread of this class tells the engine and reports back what
// came of it. Thread-safe. Owned by the node's agent, which holds its own lock over some calls: nothing here calls the
// agent under a lock.
//
// An account is a statement that asked for memory, or a session that keeps an instance between its statements. Of one
// account the engine hears one thing at a time: an order under way is waited for before its statement starts or
// finishes, and orders that come meanwhile are carried out after that.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "admission/ledger.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "cluster/messages.h"
#include "cluster/worker_pool.h"
#include "engine/engine.h"
#include "obs/log.h"

namespace roost::cluster {

struct NodeAdmissionOptions {
    uint64_t budget_bytes = 0;
    admission::Profile profile = admission::Profile::equal_2;
    uint32_t threads = 1;  // of each statement
    double max_bucket_fraction = 1.0 / 3;
    std::vector<admission::GroupOptions> groups{};
};

class NodeAdmission final : private admission::EngineOrders {
public:
    // What came of the ledger's own accord, or of a report of the engine: called on any thread, with no lock of this
    // class.
    using Take = std::function<void(const admission::Outcome &)>;

    NodeAdmission(NodeAdmissionOptions options, Engine &engine, const Clock &clock, obs::Log &log, Take take);
    ~NodeAdmission() override;
    // Carries out no order any more.
    void stop();

    // What a statement asks for.
    struct Ask {
        Uuid session{};  // whose account it may be; nil: the statement's own
        uint64_t wanted_bytes = 0;
        bool no_wait = false;
        int64_t admission_wait_us = 0;
        int64_t timeout_us = 0;
        std::string user{};
        std::string group{};
        bool fixed = false;  // no elastic memory
    };
    struct Asked {
        Uuid account;
        admission::Ledger::Answer answer;
    };
    // Asks for the session's account if that is free, else for a new one. A grant is to be begun, or ended.
    Asked request(const Ask &ask) ROOST_EXCLUDES(mutex_);
    // It leaves the line. Not in line: no effect.
    admission::Outcome abandon(const Uuid &account) ROOST_EXCLUDES(mutex_);

    // What the account's statement starts with, now; from then on its limit stays until started(). Waits for an order
    // that is under way.
    Grant begin(const Uuid &account) ROOST_EXCLUDES(mutex_);
    // The engine has started with the limit of begin(); or it has failed to, and which limit its instance has, if there
    // is one, nobody knows: it is told once more.
    void started(const Uuid &account, bool well) ROOST_EXCLUDES(mutex_);
    // Its execution is about to finish: no order is carried out before ended(). Waits for one that is under way.
    void finishing(const Uuid &account) ROOST_EXCLUDES(mutex_);
    // The execution is gone. `keeps`: its instance is kept for the session's next statement; else its memory is back.
    admission::Outcome ended(const Uuid &account, bool keeps) ROOST_EXCLUDES(mutex_);
    // The session's account closes, unless a statement has it: that one closes it.
    admission::Outcome end_session(const Uuid &session) ROOST_EXCLUDES(mutex_);

    // Closes what all sessions keep that run nothing.
    admission::Outcome close_kept() ROOST_EXCLUDES(mutex_);

    // The small lane: true when the estimate fits beside what is in it. Of each one leave_lane.
    bool enter_lane(const Uuid &statement, uint64_t estimate_bytes) ROOST_EXCLUDES(mutex_);
    void leave_lane(const Uuid &statement) ROOST_EXCLUDES(mutex_);

    // Waits that are over, orders to repeat, use of what is called back. 20 times a second.
    admission::Outcome tick() ROOST_EXCLUDES(mutex_);
    admission::Outcome set_profile(admission::Profile profile) ROOST_EXCLUDES(mutex_);
    admission::Outcome set_pressure(admission::Pressure pressure) ROOST_EXCLUDES(mutex_);

    bool automatic() const ROOST_EXCLUDES(mutex_);
    admission::Profile profile() const ROOST_EXCLUDES(mutex_);
    uint32_t place(const Uuid &account) const ROOST_EXCLUDES(mutex_);
    uint32_t waiting() const ROOST_EXCLUDES(mutex_);
    uint64_t granted_bytes() const ROOST_EXCLUDES(mutex_);
    uint64_t budget_bytes() const { return options_.budget_bytes; }
    MemoryReport report() const ROOST_EXCLUDES(mutex_);
    void count_admission_timeout() ROOST_EXCLUDES(mutex_);
    void count_cancelled_for_memory() ROOST_EXCLUDES(mutex_);

    // Elastic memory of a running statement over time, since it began.
    std::vector<MemoryAccount::Step> elastic_of(const Uuid &account) const ROOST_EXCLUDES(mutex_);
    // By how much what each running account uses is more than what is required for it, the furthest over first; they
    // may be negative.
    std::vector<std::pair<int64_t, Uuid>> overruns() const ROOST_EXCLUDES(mutex_);

    // Most accounts that can run at once.
    uint32_t running_max() const { return running_max_; }

private:
    struct Order {
        uint64_t number = 0, bytes = 0;
    };
    struct Account {
        uint32_t slot = 0;
        uint64_t required_bytes = 0;
        bool live = false;              // its limit can be changed: it runs, or is kept
        bool busy = false;              // an order is being carried out
        bool has_statement = false;     // from its grant to ended()
        bool closes = false;            // its session ended meanwhile
        std::optional<Order> order{};   // to be carried out
        uint64_t begun_with_order = 0;  // that begin() told
        int64_t since_us = 0;           // its statement's start
        std::vector<MemoryAccount::Step> elastic{};
    };

    void set_limit(const Uuid &account, uint64_t order, uint64_t bytes) override ROOST_NO_THREAD_SAFETY;
    void cant_shrink(const Uuid &account, uint64_t bytes) override ROOST_NO_THREAD_SAFETY;

    void note(const admission::Outcome &outcome) ROOST_REQUIRES(mutex_);
    void note_grant(const admission::SlotGrant &grant) ROOST_REQUIRES(mutex_);
    void note_elastic(const Uuid &id, Account &account) ROOST_REQUIRES(mutex_);
    void await_order(const Uuid &account) ROOST_REQUIRES(mutex_);
    void forget_if_gone(const Uuid &account) ROOST_REQUIRES(mutex_);
    // Has what is due carried out.
    void send_orders() ROOST_REQUIRES(mutex_);
    void carry_out(const Uuid &account) ROOST_EXCLUDES(mutex_);
    std::vector<std::pair<Uuid, uint32_t>> giving_back() const ROOST_EXCLUDES(mutex_);

    const NodeAdmissionOptions options_;
    Engine &engine_;
    const Clock &clock_;
    obs::Log &log_;
    const Take take_;
    uint32_t running_max_ = 1;

    mutable Mutex mutex_;
    CondVar carried_;
    std::unordered_map<Uuid, Account> accounts_ ROOST_GUARDED_BY(mutex_);
    std::vector<Uuid> to_send_ ROOST_GUARDED_BY(mutex_);
    uint64_t not_shrunk_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t admission_timeouts_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t cancelled_for_memory_ ROOST_GUARDED_BY(mutex_) = 0;
    admission::Pressure pressure_ ROOST_GUARDED_BY(mutex_) = admission::Pressure::none;
    SeededRandom jitter_ ROOST_GUARDED_BY(mutex_);
    admission::Ledger ledger_ ROOST_GUARDED_BY(mutex_);
    WorkerPool engine_pool_;  // last: its thread uses the rest
};

}  // namespace roost::cluster
