#include "placement/directory.h"

#include <algorithm>

namespace roost::placement {
namespace {

// Of one unit; more is a pool with many dead identities, of which the one that is worth least goes.
constexpr size_t kHomesMax = 64;
// How far past the cap a home may win for a unit that no statement reads there at this moment, and for one that one
// does.
constexpr double kUnreadFactor = 4, kLoneFactor = 2;
// And for one that several read.
constexpr double kSharedFactor = 0.75;
// So few statements at a node make no unit hot, however few CPUs it has.
constexpr double kSharedMinStatements = 4;
// Nobody waits longer than this for what reading elsewhere might cost, whatever was learned.
constexpr double kPatienceMaxUs = 10e6;
// Large tables whose owners' bytes are kept; all are computed again when there are more.
constexpr size_t kOwnersMax = 4'096;

// A table without files (all its rows inlined) is a unit like any other.
uint64_t counted(uint64_t bytes) { return std::max<uint64_t>(bytes, 1); }

}  // namespace

DirectoryOptions DirectoryOptions::seed() {
    DirectoryOptions options;
    options.mode = Mode::affinity;
    options.cap = {CapRule::seed, 2, 0, false};
    options.as_seed = true;
    options.coming_eighths = 8;  // its notebook knows no difference
    options.equal_within = 0;
    options.patience = 0;
    options.moved_eighths = 0;
    return options;
}

struct Directory::Look {
    std::span<const NodeView> nodes;
    Caps caps;
    std::vector<Candidate> of_node;       // in the order of nodes
    std::vector<uint64_t> claim_bytes;    // of units that nobody has, by their owner
    std::vector<uint64_t> segment_bytes;  // of large tables, by their owners
    size_t homes = 0;                     // of the units named, at routable nodes
    std::vector<uint32_t> order;          // of routable nodes, best first
    std::vector<uint32_t> reading;        // statements that read the same there now, the most of any unit
    Decision decision;

    std::optional<size_t> find(const Uuid &node) const {
        for (size_t i = 0; i < nodes.size(); ++i) {
            if (nodes[i].id == node) return i;
        }
        return std::nullopt;
    }
};

HomeTable &Directory::table_of(uint64_t catalog) {
    return catalogs_.try_emplace(catalog, options_.units_max).first->second;
}

const Unit *Directory::find(const UnitId &unit) const {
    const auto table = catalogs_.find(unit.catalog);
    return table == catalogs_.end() ? nullptr : table->second.find(unit);
}

Unit *Directory::known(const UnitId &unit) { return const_cast<Unit *>(find(unit)); }

size_t Directory::size() const {
    size_t size = 0;
    for (const auto &[catalog, table] : catalogs_) size += table.size();
    return size;
}

uint64_t Directory::dropped() const {
    uint64_t dropped = 0;
    for (const auto &[catalog, table] : catalogs_) dropped += table.dropped();
    return dropped;
}

bool Directory::is_large(const TableUse &use, const Unit *known) const {
    if (use.segments == nullptr) return false;
    if (options_.mode == Mode::segments) return true;
    if (options_.mode != Mode::automatic) return false;
    const uint64_t threshold = options_.segment_threshold_bytes;
    return use.bytes >= threshold || (known != nullptr && known->large && use.bytes >= threshold / 2);
}

// Unroutable members are left out, so a missing owner's units go to their next standbys.
void Directory::know_ring(std::span<const NodeView> nodes) const {
    size_t i = 0;
    bool same = true;
    for (const NodeView &node : nodes) {
        if (!node.routable) continue;
        same = same && i < ring_members_.size() && ring_members_[i] == Member{node.id, node.weight};
        ++i;
    }
    if (same && i == ring_members_.size()) return;
    ring_members_.clear();
    for (const NodeView &node : nodes) {
        if (node.routable) ring_members_.push_back({node.id, node.weight});
    }
    ring_ = Rendezvous(ring_members_);
    ++ring_version_;
}

const Directory::Owners &Directory::owners_of(const TableUse &use) const {
    if (owners_.size() >= kOwnersMax) owners_.clear();
    Owners &owners = owners_[{use.catalog, use.table, 0}];
    if (owners.ring == ring_version_ && owners.epoch == use.epoch && use.epoch != 0) return owners;
    owners = {use.epoch, ring_version_, 0, {}};
    std::vector<uint64_t> by_member(ring_.size());
    (*use.segments)([&](const SegmentBytes &segment) {
        by_member[ring_.owner(UnitId{use.catalog, use.table, segment.segment + 1})] += counted(segment.bytes);
        owners.bytes += counted(segment.bytes);
    });
    for (size_t i = 0; i < by_member.size(); ++i) {
        if (by_member[i] > 0) owners.owned_bytes.emplace_back(ring_.members()[i].identity, by_member[i]);
    }
    return owners;
}

void Directory::look_at_owners(Look &look, const TableUse &use) const {
    if (ring_.empty()) return;
    const Owners &owners = owners_of(use);
    for (const auto &[node, bytes] : owners.owned_bytes) {
        if (const auto i = look.find(node)) look.segment_bytes[*i] += bytes;
    }
}

void Directory::look_at_table(Look &look, const TableUse &use) const {
    const UnitId id{use.catalog, use.table, 0};
    const Unit *known = find(id);
    look.decision.units++;
    look.decision.bytes += use.bytes;
    if (is_large(use, known)) return look_at_owners(look, use);
    const uint64_t epoch = std::max(use.epoch, known ? known->epoch : 0), bytes = counted(use.bytes);
    look.decision.claim.parts.push_back({id, epoch, bytes, use.written});
    std::optional<size_t> owner;
    if (!options_.as_seed && !ring_.empty()) owner = look.find(ring_.members()[ring_.owner(id)].identity);
    const size_t homes_before = look.homes;
    if (known != nullptr && options_.mode != Mode::segments) look_at_homes(look, *known, epoch, bytes, owner);
    if (owner && look.homes == homes_before) look.claim_bytes[*owner] += bytes;
}

// What the unit's homes have of it, and whether it is on its way from them to a new owner.
void Directory::look_at_homes(Look &look, const Unit &unit, uint64_t epoch, uint64_t bytes,
                              std::optional<size_t> owner) const {
    const size_t homes_before = look.homes;
    const Uuid owner_id = owner ? look.nodes[*owner].id : Uuid();
    const bool moves = owner && may_move(unit, owner_id);
    const Home *at_owner = owner ? unit.home(owner_id) : nullptr;
    // It has arrived there: its other homes have been left, and follow_rank will note it.
    const bool arrived = moves && at_owner != nullptr && at_owner->warm_bytes > 0;
    bool owner_has_it = false;
    for (const Home &home : unit.homes) {
        const auto i = look.find(home.node);
        if (!i || look.nodes[*i].incarnation != home.incarnation) continue;
        Candidate &candidate = look.of_node[*i];
        const uint64_t warm_bytes = std::min(home.warm_bytes, bytes);
        const bool left = home.node != owner_id && (arrived || home.left);
        if (Unit::is_fresh(home, epoch, bytes) && !left) {
            candidate.fresh_bytes += warm_bytes;
        } else {
            candidate.stale_bytes += warm_bytes;
        }
        look.reading[*i] = std::max(look.reading[*i], home.reading);
        if (home.reading > 0) candidate.coming_bytes += bytes - warm_bytes;
        look.homes += look.nodes[*i].routable;
        // The first one fetches it there; until it is done the others read it where it is.
        owner_has_it = owner_has_it || (owner == *i && (warm_bytes > 0 || home.reading > 0));
    }
    if (moves && !owner_has_it && look.homes > homes_before) look.of_node[*owner].moved_bytes += bytes;
}

// Whose owner is gone stays where it is, or is claimed: nothing has become another node's for good.
bool Directory::may_move(const Unit &unit, const Uuid &owner) const {
    return options_.moved_eighths > 0 && !unit.owner.is_nil() && unit.owner != owner &&
           ring_.find(unit.owner).has_value();
}

// The owner of a unit that is placed now, and what becomes of its homes when that is another one than before.
void Directory::follow_rank(Unit &unit) {
    if (options_.moved_eighths == 0 || ring_.empty()) return;
    const Uuid &owner = ring_.members()[ring_.owner(unit.id)].identity;
    if (unit.owner == owner) return;
    const Home *home = unit.home(owner);
    const bool first = unit.owner.is_nil() || unit.homes.empty();
    if (!first && (home == nullptr || home->warm_bytes == 0)) return;
    if (!first && ring_.find(unit.owner)) {
        for (Home &each : unit.homes) each.left = each.node != owner;
    }
    unit.owner = owner;
}

void Directory::score(Look &look) const {
    for (size_t i = 0; i < look.nodes.size(); ++i) {
        Candidate &candidate = look.of_node[i];
        const bool is_home = candidate.there_bytes() > 0;
        if (is_home && options_.cap.rule == CapRule::others && options_.cap.by_demand) {
            const uint32_t reading = look.reading[i];
            double &cap = look.caps.cap[i];
            if (reading > 1) {
                cap = std::max(cap * kSharedFactor, kSharedMinStatements / std::max(look.nodes[i].weight, 1u));
            } else {
                cap *= reading == 0 ? kUnreadFactor : kLoneFactor;
            }
            candidate.cap = look.caps.cap[i];
            candidate.over_cap = look.caps.over(i);
        }
        candidate.owned_bytes = look.claim_bytes[i] + look.segment_bytes[i];
        // In eighths, so that a byte is never rounded away; scores of exabytes would wrap, and lakes of them don't
        // exist.
        candidate.score =
            8 * (candidate.fresh_bytes + look.segment_bytes[i]) + options_.stale_eighths * candidate.stale_bytes +
            options_.moved_eighths * candidate.moved_bytes + options_.coming_eighths * candidate.coming_bytes;
        // In this mode what nobody has is its owner's as much as anything.
        if (options_.mode == Mode::segments) candidate.score += 8 * look.claim_bytes[i];
    }
}

// Best first: homes under their caps, then homes as good that are over them, then the rest under their caps (a claim's
// owner, else the least loaded), then those over their caps, the warmest first.
void Directory::order(Look &look) const {
    uint64_t best_score = 0;
    for (const uint32_t i : look.order) {
        if (!look.caps.over(i)) best_score = std::max(best_score, look.of_node[i].score);
    }
    const auto equal_from = static_cast<uint64_t>(static_cast<double>(best_score) * (1 - options_.equal_within));
    const auto group = [&](uint32_t i) {
        const uint64_t score = look.of_node[i].score;
        const bool best = best_score > 0 && score >= equal_from;
        if (look.caps.over(i)) return best && options_.patience > 0 ? 1 : 4;
        return score == 0 ? 3 : best ? 0 : 2;
    };
    const bool claims = best_score == 0;
    const auto before = [&](uint32_t a, uint32_t b) {
        const int group_a = group(a), group_b = group(b);
        if (group_a != group_b) return group_a < group_b;
        const Candidate &x = look.of_node[a], &y = look.of_node[b];
        if (group_a != 0 && x.score != y.score) return x.score > y.score;
        if (claims && look.claim_bytes[a] != look.claim_bytes[b]) return look.claim_bytes[a] > look.claim_bytes[b];
        if (look.caps.load[a] != look.caps.load[b]) return look.caps.load[a] < look.caps.load[b];
        if (look.nodes[a].last_used != look.nodes[b].last_used)
            return look.nodes[a].last_used < look.nodes[b].last_used;
        return look.nodes[a].id < look.nodes[b].id;
    };
    std::sort(look.order.begin(), look.order.end(), before);
    if (best_score == 0) return;
    for (const uint32_t i : look.order) look.decision.near += group(i) <= 1;
}

// A statement that finds no memory at its homes may wait there, or go where the data must be read first. What it can
// lose by waiting is bounded by what it is sure to lose by going.
void Directory::weigh_waiting(Look &look) const {
    const size_t near = look.decision.near;
    if (options_.patience <= 0 || near == 0 || near == look.order.size()) return;
    if (options_.mode != Mode::automatic && options_.mode != Mode::affinity) return;
    uint64_t elsewhere_bytes = 0;
    bool idle = false;
    for (size_t i = near; i < look.order.size(); ++i) {
        elsewhere_bytes = std::max(elsewhere_bytes, look.of_node[look.order[i]].there_bytes());
        idle = idle || look.nodes[look.order[i]].work() == 0;
    }
    const uint64_t here_bytes = look.of_node[look.order[0]].there_bytes();
    if (here_bytes <= elsewhere_bytes) return;
    const double cost_us = read_cost_.us(here_bytes - elsewhere_bytes);
    const double patience = options_.patience * (idle ? options_.patience_beside_idle : 1);
    look.decision.patience_us = static_cast<int64_t>(std::min(cost_us * patience, kPatienceMaxUs));
}

Outcome Directory::outcome_of(const Look &look, bool names_tables) const {
    if (look.order.empty()) return Outcome::no_members;
    if (options_.mode == Mode::least_loaded) return Outcome::by_load;
    if (options_.mode == Mode::round_robin) return Outcome::by_turn;
    if (!names_tables) return Outcome::no_refs;
    if (options_.mode == Mode::segments) return Outcome::owner;
    const Candidate &winner = look.of_node[look.order.front()];
    uint64_t best = 0;
    bool warm_anywhere = false;
    for (const uint32_t i : look.order) {
        best = std::max(best, look.of_node[i].score);
        warm_anywhere = warm_anywhere || look.of_node[i].score > 8 * look.segment_bytes[i];
    }
    if (best == 0) return Outcome::claim;
    // Passed over for the cap, and the winner lacks what the best one has.
    const uint64_t there_bytes = winner.there_bytes();
    const bool lesser = static_cast<double>(winner.score) < static_cast<double>(best) * (1 - options_.equal_within);
    if (lesser && look.decision.passed_over) return Outcome::overflow;
    if (winner.moved_bytes > there_bytes) return Outcome::moved;
    if (there_bytes == 0) return Outcome::owner;
    return winner.stale_bytes == 0 && winner.coming_bytes == 0 ? Outcome::sticky_fresh : Outcome::sticky_stale;
}

Decision Directory::look(std::span<const NodeView> nodes, const Request &request) const {
    Look look;
    look.nodes = nodes;
    look.decision.mode = options_.mode;
    CapOptions cap = options_.cap;
    if (options_.mode != Mode::automatic && options_.mode != Mode::affinity) cap.rule = CapRule::none;
    look.caps = caps_of(nodes, cap);
    look.of_node.resize(nodes.size());
    look.claim_bytes.resize(nodes.size());
    look.reading.resize(nodes.size());
    look.segment_bytes.resize(nodes.size());
    for (uint32_t i = 0; i < nodes.size(); ++i) {
        Candidate &candidate = look.of_node[i];
        candidate.node = nodes[i].id;
        candidate.incarnation = nodes[i].incarnation;
        candidate.load = look.caps.load[i];
        candidate.cap = look.caps.cap[i];
        candidate.over_cap = look.caps.over(i);
        const bool chosen = request.pinned ? nodes[i].id == *request.pinned
                                           : nodes[i].routable && (!request.avoid || nodes[i].id != *request.avoid);
        if (chosen) look.order.push_back(i);
    }
    if (look.order.empty() && !request.pinned) {
        // The node to avoid is better than none.
        for (uint32_t i = 0; i < nodes.size(); ++i) {
            if (nodes[i].routable) look.order.push_back(i);
        }
    }
    if (options_.mode != Mode::least_loaded && options_.mode != Mode::round_robin) {
        know_ring(nodes);
        for (const TableUse &use : request.tables) look_at_table(look, use);
        score(look);
    }
    order(look);
    weigh_waiting(look);
    if (options_.mode == Mode::round_robin && !look.order.empty()) {
        std::ranges::sort(look.order, {}, [&](uint32_t i) { return nodes[i].id; });
        std::ranges::rotate(look.order, look.order.begin() + static_cast<ptrdiff_t>(turn_ % look.order.size()));
    }
    // The warmest of those that the cap keeps from winning, if it is warmer than the winner.
    uint64_t most = look.order.empty() ? 0 : look.of_node[look.order.front()].score;
    for (const uint32_t i : look.order) {
        if (!look.caps.over(i) || look.of_node[i].score <= most || i == look.order.front()) continue;
        most = look.of_node[i].score;
        look.decision.passed_over = look.of_node[i].node;
    }
    look.decision.outcome = request.pinned ? Outcome::pinned : outcome_of(look, !request.tables.empty());
    for (const uint32_t i : look.order) look.decision.candidates.push_back(look.of_node[i]);
    if (!look.order.empty()) {
        look.decision.claim.node = nodes[look.order.front()].id;
        look.decision.claim.incarnation = nodes[look.order.front()].incarnation;
        look.decision.claim.reports_bytes = nodes[look.order.front()].reports_bytes;
    }
    return std::move(look.decision);
}

Decision Directory::explain(std::span<const NodeView> nodes, const Request &request) const {
    Decision decision = look(nodes, request);
    decision.claim = {};
    return decision;
}

Decision Directory::decide(std::span<const NodeView> nodes, const Request &request) {
    Decision decision = look(nodes, request);
    ++counts_[static_cast<size_t>(decision.outcome)];
    ++turn_;
    if (options_.mode == Mode::least_loaded || options_.mode == Mode::round_robin) return decision;
    for (const TableUse &use : request.tables) {
        const Unit *known = find({use.catalog, use.table, 0});
        const bool large = options_.mode == Mode::automatic && is_large(use, known);
        if (!large) continue;
        Unit &unit = table_of(use.catalog).touch({use.catalog, use.table, 0});
        if (!unit.large) unit.homes.clear();
        unit.large = true;
        unit.epoch = std::max(unit.epoch, use.epoch);
        unit.bytes = use.bytes;
    }
    if (options_.mode == Mode::segments) decision.claim.parts.clear();
    if (!decision.candidates.empty()) {
        decision.claim.open = true;
        enter(decision.claim, options_.as_seed && decision.outcome == Outcome::overflow);
    }
    return decision;
}

void Directory::enter(Claim &claim, bool takes) {
    for (const Claim::Part &part : claim.parts) {
        Unit &unit = table_of(part.unit.catalog).touch(part.unit);
        unit.large = false;
        unit.epoch = std::max(unit.epoch, part.epoch);
        unit.bytes = part.bytes;
        follow_rank(unit);
        if (takes) std::erase_if(unit.homes, [&](const Home &home) { return home.node != claim.node; });
        Home *home = unit.home(claim.node);
        if (home == nullptr) {
            if (unit.homes.size() >= kHomesMax) {
                unit.homes.erase(std::ranges::min_element(
                    unit.homes, {}, [](const Home &each) { return std::pair(each.reading, each.warm_bytes); }));
            }
            home = &unit.homes.emplace_back();
            home->node = claim.node;
            home->incarnation = claim.incarnation;
        } else if (home->incarnation < claim.incarnation) {
            // A new run of the node: cold until it says what it has.
            *home = {claim.node, claim.incarnation, 0, 0, 0};
        }
        if (home->incarnation == claim.incarnation) ++home->reading;
    }
}

void Directory::leave(const Claim &claim) {
    for (const Claim::Part &part : claim.parts) {
        Unit *unit = known(part.unit);
        Home *home = unit ? unit->home(claim.node) : nullptr;
        if (home == nullptr || home->incarnation != claim.incarnation || home->reading == 0) continue;
        --home->reading;
        if (home->warm_bytes == 0 && home->reading == 0) unit->erase(claim.node);
    }
}

void Directory::dispatched(Claim &claim, const NodeView &node) {
    if (!claim.open || (claim.node == node.id && claim.incarnation == node.incarnation)) return;
    leave(claim);
    ++passed_on_;
    claim.node = node.id;
    claim.incarnation = node.incarnation;
    claim.reports_bytes = node.reports_bytes;
    enter(claim, false);
}

void Directory::ended(Claim &claim, const Ended &end) {
    if (!claim.open) return;
    claim.open = false;
    if (end.ok) {
        for (const Claim::Part &part : claim.parts) end_part(claim, part, end);
    }
    leave(claim);
}

void Directory::end_part(const Claim &claim, const Claim::Part &part, const Ended &end) {
    Unit *unit = known(part.unit);
    Home *home = unit ? unit->home(claim.node) : nullptr;
    // Dropped meanwhile, large by now, or the node has begun a new run: what it read then says nothing.
    if (home == nullptr || home->incarnation != claim.incarnation) return;
    const uint64_t unit_epoch = unit->epoch;
    // A statement that came between may have seen the commit first.
    const bool was_fresh =
        home->warm_bytes == 0 || std::max(home->epoch, part.epoch) >= unit_epoch || unit_epoch == end.committed_epoch;
    if (!claim.reports_bytes) home->warm_bytes = std::max(home->warm_bytes, counted(part.bytes));
    for (const UnitReport &report : end.reports) {
        if (report.unit == part.unit) home->warm_bytes = report.warm_bytes;
    }
    home->epoch = std::max(home->epoch, part.epoch);
    if (home->warm_bytes > 0) follow_rank(*unit);
    if (part.written && end.committed_epoch > 0) {
        unit->epoch = std::max(unit->epoch, end.committed_epoch);
        if (was_fresh) home->epoch = std::max(home->epoch, end.committed_epoch);
    }
}

void Directory::report(const Uuid &node, uint64_t incarnation, std::span<const UnitReport> reports) {
    for (const UnitReport &report : reports) {
        if (!report.unit.is_table()) continue;  // segments go by rank
        Unit *unit =
            report.warm_bytes > 0 ? table_of(report.unit.catalog).add_if_room(report.unit) : known(report.unit);
        if (unit == nullptr || unit->large) continue;
        Home *home = unit->home(node);
        if (home == nullptr) {
            if (report.warm_bytes == 0 || unit->homes.size() >= kHomesMax) continue;
            home = &unit->homes.emplace_back();
            home->node = node;
            home->incarnation = incarnation;
        }
        if (home->incarnation > incarnation) continue;
        if (home->incarnation < incarnation) *home = {node, incarnation, 0, 0, 0};
        home->warm_bytes = report.warm_bytes;
        home->epoch = std::max(home->epoch, report.epoch);
        if (home->warm_bytes == 0 && home->reading == 0) unit->erase(node);
    }
}

void Directory::committed(const Uuid &node, uint64_t incarnation, std::span<const UnitId> units, uint64_t epoch) {
    for (const UnitId &id : units) {
        Unit *unit = known(id);
        if (unit == nullptr || unit->large) continue;
        Home *home = unit->home(node);
        const bool was_fresh =
            home != nullptr && home->incarnation == incarnation && (home->epoch >= unit->epoch || unit->epoch == epoch);
        unit->epoch = std::max(unit->epoch, epoch);
        if (was_fresh) home->epoch = std::max(home->epoch, epoch);
    }
}

void Directory::changed(uint64_t catalog, uint64_t table, uint64_t epoch) {
    if (Unit *unit = known({catalog, table, 0})) unit->epoch = std::max(unit->epoch, epoch);
}

void Directory::drop_table(uint64_t catalog, uint64_t table) {
    const auto found = catalogs_.find(catalog);
    if (found != catalogs_.end()) found->second.erase({catalog, table, 0});
    owners_.erase({catalog, table, 0});
}

void Directory::forget_node(const Uuid &node) {
    for (auto &[catalog, table] : catalogs_) {
        table.for_each([&](Unit &unit) { unit.erase(node); });
    }
}

}  // namespace roost::placement
