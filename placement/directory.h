// The placement directory: which node gets a statement, from what is warm where. One a gateway, in memory, shared with
// nobody: first claims go by rank, so gateways that never talk agree on them, and a restart forgets nothing that
// matters. See docs/placement.md.
//
// The caller (routing/, on the gateway's loop; sim/) passes the nodes as they are at that moment, charges the load to
// the node that decide() names before anything else is decided, asks the candidates in their order with no_wait, and
// says where the statement went and how it ended. Warmth comes from what nodes report, never from hope: a failed
// statement warms nothing. Pure; not synchronised.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "placement/decision.h"
#include "placement/home_table.h"
#include "placement/load_cap.h"
#include "placement/read_cost.h"
#include "placement/rendezvous.h"

namespace roost::placement {

struct DirectoryOptions {
    Mode mode = Mode::automatic;
    CapOptions cap;
    // First claims of the least loaded and homes that move on overflow instead of being added, as seed 000 has it.
    bool as_seed = false;
    uint64_t segment_threshold_bytes = uint64_t{512} << 20;  // a table is small below it, and again below half of it
    size_t units_max = 65'536;                               // a catalog
    // What a byte that is there but written since, or is only on its way, counts, in eighths of a fresh one.
    uint32_t stale_eighths = 6, coming_eighths = 4;
    // A unit whose owner by rank has changed, while the one before is still there, moves at its next read: by so much
    // the new owner is preferred to a fresh home. 0: homes stay where they are.
    uint32_t moved_eighths = 10;
    // Homes whose scores differ by less than this part of the best share by load.
    double equal_within = 0.125;
    // How long a statement waits for memory at its home before it reads cold elsewhere, in what that reading would
    // take: at 1 it loses no more by waiting in vain than it would have by not waiting. Beside a node that has nothing
    // at all to do, so much of that. 0: not at all.
    double patience = 1, patience_beside_idle = 1;

    // Seed 000 exactly: its cap, its claims, its moves.
    static DirectoryOptions seed();
};

// What a node has of a unit now: with a completion, a heartbeat, an eviction (0 bytes: nothing left).
struct UnitReport {
    UnitId unit;
    uint64_t warm_bytes = 0;
    uint64_t epoch = 0;  // newest snapshot it was read at there; 0: not known
};

struct Ended {
    bool ok = false;
    std::span<const UnitReport> reports;  // of a node that reports bytes; others pass none
    uint64_t committed_epoch = 0;         // the snapshot that it made; 0: none, or not known
};

class Directory {
public:
    explicit Directory(DirectoryOptions options) : options_(std::move(options)) {}

    // Decides, counts the outcome and enters the statement's claim at the first candidate.
    Decision decide(std::span<const NodeView> nodes, const Request &request);
    // The same answer without a trace: for explain-route, and for what is only described.
    Decision explain(std::span<const NodeView> nodes, const Request &request) const;
    // The statement went to another candidate: the claim moves with it.
    void dispatched(Claim &claim, const NodeView &node);
    // Closes the claim; the second time nothing happens.
    void ended(Claim &claim, const Ended &end);

    // A transaction of that node has committed what its statements wrote of these: its homes there have the change.
    void committed(const Uuid &node, uint64_t incarnation, std::span<const UnitId> units, uint64_t epoch);

    // From a heartbeat, an eviction, or a node's inventory after a start. Of an earlier incarnation than known:
    // ignored.
    void report(const Uuid &node, uint64_t incarnation, std::span<const UnitReport> reports);
    // A statement fetched so many bytes from the store, and ran so long for it.
    void note_cold_read(uint64_t bytes, double us) { read_cost_.note(bytes, us); }
    const ReadCost &read_cost() const { return read_cost_; }
    // A snapshot changed the table, whoever made it.
    void changed(uint64_t catalog, uint64_t table, uint64_t epoch);
    void drop_table(uint64_t catalog, uint64_t table);
    // The identity is gone for good (a replaced volume). A node that merely left keeps its homes.
    void forget_node(const Uuid &node);

    const DirectoryOptions &options() const { return options_; }
    const OutcomeCounts &counts() const { return counts_; }
    uint64_t passed_on() const { return passed_on_; }  // statements that went past their first candidate
    uint64_t dropped() const;                          // units forgotten for want of room
    size_t size() const;
    const Unit *find(const UnitId &unit) const;
    template <class See>
    void for_each(See &&see) const {
        for (const auto &[catalog, table] : catalogs_) table.for_each(see);
    }

private:
    struct Look;  // one decision under way
    struct Owners {
        uint64_t epoch = 0, ring = 0;
        uint64_t bytes = 0;
        std::vector<std::pair<Uuid, uint64_t>> owned_bytes;
    };

    HomeTable &table_of(uint64_t catalog);
    Unit *known(const UnitId &unit);
    bool is_large(const TableUse &use, const Unit *known) const;
    Decision look(std::span<const NodeView> nodes, const Request &request) const;
    void look_at_table(Look &look, const TableUse &use) const;
    void look_at_homes(Look &look, const Unit &unit, uint64_t epoch, uint64_t bytes, std::optional<size_t> owner) const;
    void look_at_owners(Look &look, const TableUse &use) const;
    void score(Look &look) const;
    void order(Look &look) const;
    void weigh_waiting(Look &look) const;
    Outcome outcome_of(const Look &look, bool names_tables) const;
    void know_ring(std::span<const NodeView> nodes) const;
    const Owners &owners_of(const TableUse &use) const;
    void enter(Claim &claim, bool takes);
    void follow_rank(Unit &unit);
    bool may_move(const Unit &unit, const Uuid &owner) const;
    void leave(const Claim &claim);
    void end_part(const Claim &claim, const Claim::Part &part, const Ended &end);

    DirectoryOptions options_;
    std::unordered_map<uint64_t, HomeTable> catalogs_;
    OutcomeCounts counts_{};
    uint64_t passed_on_ = 0;
    uint64_t turn_ = 0;  // round robin
    ReadCost read_cost_;

    // Computed, never decided by: the rank of the routable nodes, and what each owns of the large tables asked for.
    mutable Rendezvous ring_;
    mutable std::vector<Member> ring_members_;
    mutable uint64_t ring_version_ = 0;
    mutable std::unordered_map<UnitId, Owners> owners_;
};

}  // namespace roost::placement
