// What a node promises: the ledger of its memory. Pure: bytes, integers, injected time and randomness; no threads, no
// I/O, no engine. The caller holds its lock around every call, starts what is granted, carries out the ledger's orders
// to the engine and reports what came of them. docs/admission.md says what is promised; docs/design.md who calls.
//
// An account is a statement, or a session that keeps something between its statements. It has one instance of the
// engine, with a limit of its own. Under a ladder an account has a fixed slot. Under `auto` it has `required` bytes,
// never taken from a running statement, and `elastic` ones, lent from what is free and called back as soon as somebody
// waits.
//
// Memory counts as lent (`counted`) until the engine has confirmed a lower limit AND uses no more than that. Only what
// is not counted is ever granted, so nothing is lent twice while it is on its way back. An account that gives nothing
// back within 2 s is reported and not reckoned with; what it has stays counted.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "admission/line.h"
#include "admission/profile.h"
#include "base/ids.h"
#include "base/random.h"

namespace roost::admission {

// What the ledger asks of the engine. Called inside a transition, under the caller's lock: an implementation notes the
// order down and carries it out after the lock is free. It must not call the ledger.
class EngineOrders {
public:
    virtual ~EngineOrders() = default;
    // Set the limit of the account's instance; 0: close it. Answered by limit_confirmed or limit_failed with the same
    // number. Of several orders for one account the last holds.
    virtual void set_limit(const Uuid &account, uint64_t order, uint64_t bytes) = 0;
    // `bytes` that were called back have not come within 2 s. For people: the ledger goes on without them.
    virtual void cant_shrink(const Uuid &account, uint64_t bytes) = 0;
};

struct LedgerOptions {
    uint64_t budget_bytes = 0;  // all that statements may use
    Profile profile = Profile::equal_2;
    // Of `auto`.
    uint32_t threads = 1;  // of each statement
    uint64_t thread_bytes = 8 * kMiB;
    double max_bucket_fraction = 1.0 / 3;
    double floor_fraction = 0.5;
    int64_t shrink_wait_us = 2'000'000;
    std::vector<GroupOptions> groups{};
    EngineOrders *engine = nullptr;  // null: limits can't be changed, so no elastic is lent
    Random *random = nullptr;        // of the waits' jitter; null: none
    bool always_audit = false;       // every account at every transition, not now and then: for tests
};

struct Request {
    Uuid account;
    bool no_wait = false;           // would_wait instead of a place in the line
    uint64_t wanted_bytes = 0;      // by estimate or by what was measured; 0: unknown, bucket M
    int64_t admission_wait_us = 0;  // 0: at once, at whatever size is free
    int64_t timeout_us = 0;         // of the statement, bounds its wait too; 0: none
    std::string user{};
    std::string group{};
    bool fixed = false;  // nothing is lent to it on top of what it is granted: its limit can't be changed
};

// A statement may start.
struct SlotGrant {
    Uuid statement;      // the account
    uint32_t slot = 0;   // number of the instance's place: no two accounts have the same at one time
    uint64_t bytes = 0;  // required
    int64_t waited_us = 0;
    uint64_t elastic_bytes = 0;  // to begin with: the instance's limit is bytes + elastic_bytes
    // Orders for the account with a lower number are void. Of a session that ran before, to be confirmed like an order.
    uint64_t order = 0;
    bool overdue = false;  // its admission wait had ended: it runs with its floor or more, out of turn
};

// A wait ended without a grant.
struct WaitEnd {
    enum class Why : uint8_t { admission_timeout, own_timeout, would_wait };
    Uuid statement;
    Why why = Why::admission_timeout;
};

// What a transition brought about.
struct Outcome {
    std::vector<SlotGrant> grants{};  // in the order of their turns
    std::vector<WaitEnd> ends{};
};

// What an account keeps when its statement has ended.
enum class Keep : uint8_t {
    nothing,
    elastic,  // under auto its elastic memory, until somebody needs it; under a ladder its slot
    slot,     // all that was required: its instance has something that must live on
};

// The process nears what it may have of the machine's memory.
enum class Pressure : uint8_t {
    none,
    shed,    // no elastic is lent, what was lent is called back
    refuse,  // nobody is granted anything either
};

class Ledger {
public:
    explicit Ledger(LedgerOptions options);

    struct Answer {
        // refused: it would not wait (admission_wait 0), and there is nothing for it. would_wait: it asked for no_wait.
        enum class Kind : uint8_t { granted, waiting, would_wait, refused } kind = Kind::would_wait;
        SlotGrant grant{};  // granted
        // would_wait: by what was given back lately; nothing: nothing was yet.
        std::optional<int64_t> expected_wait_us{};
    };
    // Asks for memory to run. A no_wait asker is told to wait only when what it needs has been called back from others
    // and is on its way. REQUIRES: `account` neither runs, waits nor gives back; it may be idle.
    Answer request(const Request &request, int64_t now_us);

    // The statement ended, or the idle session: its memory is not back, and nothing of it is lent before the engine
    // says so. Of an account that holds nothing, or is ending: no effect.
    Outcome end(const Uuid &account, Keep keep, int64_t now_us);
    // All of the account's memory is back and its instance is no longer its own. Of one that holds nothing: no effect.
    Outcome release(const Uuid &account, int64_t now_us);
    // Leaves the line (cancelled, disconnected). Not in line: no effect.
    Outcome abandon(const Uuid &account, int64_t now_us);

    // Reports of the engine. `used_bytes` as the buffer manager says after the limit was set. Late ones, of accounts
    // that are gone or orders that were followed by others, do no harm.
    Outcome limit_confirmed(const Uuid &account, uint64_t order, uint64_t used_bytes, int64_t now_us);
    void limit_failed(const Uuid &account, uint64_t order, int64_t now_us);  // told again by tick()
    Outcome used(const Uuid &account, uint64_t used_bytes, int64_t now_us);

    // Waits that are over, orders that failed or were not followed. To be called at next_event_us(), or often.
    Outcome tick(int64_t now_us);
    // When tick() has something to do; nothing: not before something else happens.
    std::optional<int64_t> next_event_us() const;

    // Running statements keep what is required for them; ladders open slots as the memory for them is free.
    Outcome set_profile(Profile profile, int64_t now_us);
    Outcome set_pressure(Pressure pressure, int64_t now_us);

    // The small lane, one instance for all: statements that fit beside those that are in it, whatever else waits.
    // False: there is no room, or its estimate is not small. Given back with leave_lane.
    bool enter_lane(const Uuid &statement, uint64_t estimate_bytes);
    void leave_lane(const Uuid &statement);

    // What a statement that wants so much is to get, and waits for, under auto.
    Size sizes_of(uint64_t wanted_bytes) const { return size_of(sizing_, wanted_bytes); }
    // 1-based place in line, 0 when not waiting.
    uint32_t place(const Uuid &account) const { return line_.place(account); }
    std::vector<Uuid> line() const { return line_.order(); }

    uint64_t budget_bytes() const { return options_.budget_bytes; }
    uint64_t granted_bytes() const { return counted_bytes_; }  // lent and not known to be back, lanes not counted
    uint64_t required_bytes() const { return required_bytes_; }
    uint64_t elastic_bytes() const { return elastic_bytes_; }
    uint64_t lendable_bytes() const { return sizing_.lendable_bytes; }
    uint64_t lane_bytes() const { return lane_bytes_; }
    uint32_t running() const { return running_; }
    uint32_t waiting() const { return static_cast<uint32_t>(line_.size()); }
    Profile profile() const { return options_.profile; }

    // Of one account; zeros when it has nothing.
    struct View {
        uint64_t required_bytes = 0, elastic_bytes = 0;
        uint64_t counted_bytes = 0;  // what may not be lent to others
        uint64_t told_bytes = 0;     // the limit that the engine was told last
        uint64_t order = 0;          // with which it was told
        bool running = false, stuck = false;
    };
    View view(const Uuid &account) const;
    // Every account whose engine has still to give something back, or uses more than is counted for it.
    std::vector<Uuid> giving_back() const;
    std::vector<GroupOptions> groups() const { return line_.groups(); }
    Line::Standing group_standing(size_t group) const { return line_.standing(group); }

    // Stops the process when a promise is broken. Every transition checks the sums and what it touched; this looks at
    // every account.
    void audit() const;

private:
    enum class State : uint8_t { running, idle, leaving };
    struct Account {
        Uuid id;
        State state = State::running;
        uint64_t required = 0, elastic = 0;
        uint64_t counted = 0;  // ≥ required + elastic, ≥ told
        uint64_t told = 0;
        uint64_t used = 0;
        uint64_t granted = 0;  // required, as it was granted: it must not sink while the statement runs
        uint64_t order = 0;
        bool confirmed = true;  // of the order `order`
        bool stuck = false;
        bool keeps_slot = false;         // idle with all that is required (Keep::slot)
        int64_t shrinking_since_us = 0;  // when the limit was lowered first of those not confirmed
        uint32_t slot = 0;
        uint32_t group = 0;
        bool in_ladder = false;  // has a slot of a ladder, maybe of an earlier one
        bool fixed = false;      // Request::fixed
    };
    // A slot of the ladder in use. Its number is the instance's.
    struct Slot {
        uint32_t number = 0;
        uint64_t bytes = 0;
        bool retired = false;  // of an earlier profile: closes when its holder leaves
        std::optional<Uuid> holder;
    };

    bool automatic() const { return options_.profile == Profile::automatic; }
    uint64_t free_bytes() const;  // not counted, and not eaten by those that use more than their limit

    // Granting.
    Waiter waiter_of(const Request &request, int64_t now_us);
    Answer wait_or_refuse(const Request &request, Waiter waiter, int64_t now_us);
    std::optional<int64_t> expected_wait_us(const Waiter &waiter) const;
    bool is_next(const Waiter &waiter) const;
    bool grantable_with_what_is_lent(const Waiter &waiter, int64_t now_us);
    bool grantable(const Waiter &waiter, bool overdue);
    std::optional<uint64_t> bytes_for(const Waiter &waiter, bool overdue) const;
    SlotGrant grant(const Waiter &waiter, bool overdue, int64_t now_us);
    uint64_t coming_from_others_bytes(const Uuid &account) const;
    void serve(Outcome &outcome, int64_t now_us);
    void end_waits(Outcome &outcome, int64_t now_us);
    void give_up_on_stuck(int64_t now_us);
    void call_back(uint64_t newcomer_bytes, int64_t now_us);
    void lend(int64_t now_us);
    uint64_t growth_of(const Account &account) const;
    uint64_t elastic_target(const Account &account) const;

    // Accounts.
    Account *find(const Uuid &account);
    Account &open_account(const Uuid &id, Slot *slot);
    void tell(Account &account, uint64_t bytes, int64_t now_us);
    void told_at_grant(Account &account, uint64_t bytes);
    void settle(const Uuid &account, int64_t now_us);
    void set_promise(Account &account, uint64_t required, uint64_t elastic);
    void set_counted(Account &account, uint64_t counted);
    void set_used(Account &account, uint64_t used);
    void index(const Account &account);
    void unindex(const Account &account);
    void watch_shrink(Account &account, int64_t now_us);
    void erase(Account &account);
    void note_return(uint64_t bytes, int64_t now_us);

    // Ladders.
    void fill_ladder();
    void open_slots();
    Slot *largest_free();
    void give_back_slot(const Uuid &account);
    uint64_t slots_free_bytes() const;  // of open slots that nobody holds

    void check();
    void check_line();

    LedgerOptions options_;
    SizingOptions sizing_;
    Line line_;
    uint64_t arrivals_ = 0;
    Pressure pressure_ = Pressure::none;

    std::unordered_map<Uuid, Account> accounts_;
    uint32_t running_ = 0;  // statements that run, and accounts that keep their slot
    uint64_t required_bytes_ = 0, elastic_bytes_ = 0, counted_bytes_ = 0;
    uint64_t overrun_bytes_ = 0;  // used beyond what is counted
    uint64_t coming_bytes_ = 0;   // told to come back, not back yet, of accounts that are not stuck
    uint64_t orders_ = 0;
    // Who could give elastic memory back: idle accounts and running ones, by its size.
    std::set<std::pair<uint64_t, Uuid>> idle_, lent_;
    std::set<std::pair<int64_t, Uuid>> shrinking_;  // since when
    std::set<Uuid> failed_;                         // orders to repeat
    int64_t repeat_at_us_ = 0;

    std::vector<Slot> slots_;
    std::vector<uint64_t> pending_slots_;  // of the ladder, not open yet for want of memory
    std::set<uint32_t> spare_numbers_;     // instances that accounts under auto had
    uint32_t next_slot_number_ = 0;

    std::unordered_map<Uuid, uint64_t> in_lane_;
    uint64_t lane_bytes_ = 0;

    // What came back lately: mean time between two returns and their mean size, moving.
    int64_t returned_at_us_ = 0;
    double return_every_us_ = 0, return_bytes_ = 0;

    uint32_t transitions_ = 0;  // since the last audit
};

}  // namespace roost::admission
