// A node as admission sees it: the ledger and the memory by shape themselves, over a modelled engine. A statement
// scans, builds (its use grows to its peak), caches what it scans in what its limit leaves, spills what its limit
// lacks, and gives its memory back some time after it ended. The engine follows an order after a delay; memory that a
// statement has pinned does not shrink. Running statements share the CPUs. Deterministic by seed; time goes in steps.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "admission/ledger.h"
#include "admission/shape_memory.h"
#include "base/random.h"

namespace roost::sim {

struct AdmissionNodeOptions {
    uint64_t memory_bytes = uint64_t{8} << 30;  // effective; the budget is taken from it as on a node
    uint32_t cpus = 8;
    admission::Profile profile = admission::Profile::automatic;
    bool admits = true;  // false: no admission, each statement has 80 % of the memory
    bool feedback = true;
    double floor_fraction = 0.5;
    bool sessions_keep_slots = false;  // under a ladder, as in seed 003
    std::vector<admission::GroupOptions> groups{};
    int64_t admission_wait_us = 300'000'000;
    int64_t step_us = 10'000;
    double order_delay_us = 20'000;  // mean, until a limit is set
    double give_back_us = 50'000;    // mean, from a statement's end until its memory is back
    double pinned_share = 0.5;       // of statements: what they built can't shrink
    double alone_share = 0.5;        // of the CPUs, that a statement can use alone: the rest of its time it waits
    double same_tables = 0.5;        // of what an instance has cached, the part that its next statement reads too
    double spill_cost = 3;           // time on all memory spilled ÷ time on none, less one
    double cold_cost = 2;            // the same for a scan with nothing cached when it began
    uint64_t seed = 1;
};

struct AdmissionStatement {
    std::string user{};
    std::string group{};
    std::string shape{};
    uint64_t estimate_bytes = 0;  // by the plan
    uint64_t peak_bytes = 0;      // what it builds
    uint64_t scan_bytes = 0;      // what it could cache
    double cpu_us = 0;            // with all its memory and a warm cache
    bool is_small = false;        // goes to the small lane if it fits there
    uint64_t overrun_bytes = 0;   // aggregates that no limit holds: used beyond it
    int64_t give_back_us = -1;    // instead of the node's
    std::optional<bool> pinned{};
    Uuid session{};                  // not nil: keeps its elastic memory when it ends
    int64_t admission_wait_us = -1;  // instead of the node's
    int64_t timeout_us = 0;
    bool no_wait = false;
};

struct AdmissionRecord {
    enum class End : uint8_t { none, done, timed_out, out_of_memory, refused, cancelled, killed } end = End::none;
    AdmissionStatement statement;
    int64_t at_us = 0, started_us = -1, ended_us = -1;
    uint64_t granted_bytes = 0;  // required at its start
    uint64_t floor_bytes = 0;    // it must not run with less
    bool spilled = false, in_lane = false, overdue = false;
    int64_t wait_us() const { return (started_us >= 0 ? started_us : ended_us) - at_us; }
};

class AdmissionNode final : public admission::EngineOrders {
public:
    explicit AdmissionNode(AdmissionNodeOptions options);

    // Returns its number in records().
    size_t submit(AdmissionStatement statement);
    void cancel(size_t number);
    // One step of time: the engine, the statements, the ledger's waits.
    void step();
    // Until nothing runs or waits, `within_us` at most. False: something still does.
    bool run_until_idle(int64_t within_us);

    int64_t now_us() const { return now_us_; }
    const std::vector<AdmissionRecord> &records() const { return records_; }
    admission::Ledger &ledger() { return ledger_; }
    uint64_t budget_bytes() const { return ledger_.budget_bytes(); }
    uint32_t live() const { return static_cast<uint32_t>(running_.size() + waiting_.size()); }
    // Ended since the last call.
    std::vector<size_t> take_ended();

    struct Totals {
        uint64_t oversubscribed_bytes = 0;  // the most by which real limits or real use passed what there is
        uint64_t used_max_bytes = 0;
        uint64_t kills = 0;  // the process used more than the memory
        uint64_t stuck = 0;
        uint64_t parked_us = 0;  // statement-µs in line while nothing ran and nothing was coming back
    };
    const Totals &totals() const { return totals_; }

    void set_limit(const Uuid &account, uint64_t order, uint64_t bytes) override;
    void cant_shrink(const Uuid &account, uint64_t bytes) override;

private:
    // What an account's instance really has.
    struct Instance {
        uint64_t limit = 0, pinned = 0, cached = 0, overrun = 0, order = 0;
        std::optional<size_t> statement;  // that runs on it
        int64_t back_at_us = -1;          // when what a statement left is given back
        uint64_t used() const { return pinned + cached + overrun; }
    };
    struct Running {
        size_t number = 0;
        Uuid account;
        uint32_t slot = 0;
        bool pinned = false;
        uint64_t warm_bytes = 0;  // of what it scans, cached when it began
        double done_cpu_us = 0;
        uint64_t lane_bytes = 0;
    };
    struct Order {
        int64_t at_us = 0;
        Uuid account;
        uint64_t number = 0, bytes = 0;
    };

    double exponential(double mean);
    Uuid new_id();
    bool keeps(const AdmissionStatement &statement) const;
    void start(size_t number, const Uuid &account, uint32_t slot, uint64_t limit_bytes);
    void take(const admission::Outcome &outcome);
    void give_up(size_t number, AdmissionRecord::End end);
    void obey(const Order &order);
    void work();
    void advance(Running &running, double cpu_us);
    void finish(size_t index, AdmissionRecord::End end);
    void give_back();
    void measure();
    void kill_all();

    AdmissionNodeOptions options_;
    SeededRandom random_;
    int64_t now_us_ = 1'000'000;
    uint64_t ids_ = 0;
    admission::ShapeMemory shapes_;
    std::vector<AdmissionRecord> records_;
    std::vector<size_t> ended_;
    std::unordered_map<Uuid, Instance> instances_;
    std::unordered_map<Uuid, size_t> waiting_;  // by account
    std::vector<Running> running_;
    std::unordered_map<uint32_t, uint64_t> slot_cached_;  // a ladder's instances stay, with what they cached
    std::vector<Order> orders_;
    Totals totals_;
    int64_t up_again_us_ = 0;
    admission::Ledger ledger_;
};

}  // namespace roost::sim
