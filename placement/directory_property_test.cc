// Random histories of a pool (statements, failures, writes, evictions, joins, deaths, flaps, restarts, weight changes,
// overload) against what must hold after each step. The seed is printed when something does not.
#include <gtest/gtest.h>

#include <algorithm>

#include <map>
#include <random>
#include <set>

#include "placement/directory.h"

namespace roost::placement {
namespace {

constexpr size_t kUnitsMax = 40;
constexpr uint64_t kTables = 50;  // more than there is room for
constexpr uint64_t kLake = catalog_id("lake");

class History {
public:
    History(uint32_t seed, DirectoryOptions options) : random_(seed), directory_(options), twin_(options) {
        for (int i = 0; i < 4; ++i) join();
    }

    void step() {
        switch (random_() % 20) {
            case 0:
                return join();
            case 1:
                return leave();
            case 2:
                return flap();
            case 3:
                return restart();
            case 4:
                return reweigh();
            case 5:
                return evict();
            case 6:
                return commit_elsewhere();
            case 7:
            case 8:
            case 9:
            case 10:
                return end(random_() % 5 != 0);
            case 11:
                return pass_on();
            default:
                return decide();
        }
    }

    void finish() {
        while (!open_.empty()) end(true);
        check();
    }

    void check() {
        std::map<std::tuple<UnitId, Uuid, uint64_t>, uint32_t> reading;
        for (const Open &each : open_) {
            for (const auto &part : each.claim.parts) {
                ++reading[{part.unit, each.claim.node, each.claim.incarnation}];
            }
        }
        size_t units = 0;
        directory_.for_each([&](const Unit &unit) {
            ++units;
            std::set<Uuid> nodes;
            for (const Home &home : unit.homes) {
                ASSERT_TRUE(nodes.insert(home.node).second) << "one home a node";
                ASSERT_TRUE(home.warm_bytes > 0 || home.reading > 0) << "a home has something, or is about to";
                // Fewer when the unit was dropped and came back while they ran.
                ASSERT_LE(home.reading, (reading[{unit.id, home.node, home.incarnation}]));
                ASSERT_LE(home.epoch, snapshot_);
                if (unit.is_fresh(home)) ASSERT_GT(home.warm_bytes, 0u);
                if (open_.empty()) ASSERT_EQ(home.reading, 0u);
            }
            if (unit.large) ASSERT_TRUE(unit.homes.empty());
        });
        ASSERT_EQ(units, directory_.size());
        ASSERT_LE(units, kUnitsMax);
        uint64_t counted = 0;
        for (const uint64_t each : directory_.counts()) counted += each;
        ASSERT_EQ(counted, decisions_);
    }

private:
    struct Open {
        Claim claim, twin;
        bool writes = false;
    };

    size_t some_node() { return random_() % views_.size(); }

    void join() {
        if (views_.size() > 8) return;
        views_.push_back({Uuid::from_name("node " + std::to_string(names_++)), 1,
                          static_cast<uint32_t>(1 + random_() % 8), 0, static_cast<uint32_t>(random_() % 4),
                          random_() % 10, true, random_() % 4 != 0});
    }
    void leave() {
        if (views_.size() < 2) return;
        const size_t i = some_node();
        if (random_() % 2) {
            directory_.forget_node(views_[i].id);
            twin_.forget_node(views_[i].id);
        }
        views_.erase(views_.begin() + static_cast<ptrdiff_t>(i));
    }
    // Out and back in: every home is as before.
    void flap() {
        NodeView &node = views_[some_node()];
        node.routable = !node.routable;
    }
    void restart() {
        NodeView &node = views_[some_node()];
        ++node.incarnation;
        std::vector<UnitReport> inventory;
        for (uint64_t t = 0; random_() % 2 && t < kTables; t += 1 + random_() % 9) {
            inventory.push_back({{kLake, t, 0}, 1 + random_() % 100, random_() % 2 ? snapshot_ : 0});
        }
        report(node, inventory);
    }
    void reweigh() { views_[some_node()].weight = static_cast<uint32_t>(1 + random_() % 16); }
    void evict() {
        const std::vector<UnitReport> reports{
            {{kLake, random_() % kTables, 0}, random_() % 2 ? 0 : 1 + random_() % 50, 0}};
        report(views_[some_node()], reports);
    }
    void report(const NodeView &node, const std::vector<UnitReport> &reports) {
        directory_.report(node.id, node.incarnation, reports);
        twin_.report(node.id, node.incarnation, reports);
    }
    void commit_elsewhere() {
        const uint64_t table = random_() % kTables;
        epoch_[table] = ++snapshot_;
        directory_.changed(kLake, table, snapshot_);
        twin_.changed(kLake, table, snapshot_);
    }

    void decide() {
        std::vector<TableUse> tables;
        for (uint64_t n = random_() % 4; n > 0; --n) {
            const uint64_t table = random_() % kTables;
            // Around the threshold now and then.
            tables.push_back({kLake, table, epoch_[table], 1 + random_() % 120, tables.empty() && random_() % 5 == 0,
                              random_() % 3 == 0 ? &segments_ : nullptr});
        }
        Request request{tables, std::nullopt, std::nullopt};
        if (random_() % 10 == 0) request.pinned = views_[some_node()].id;
        if (random_() % 10 == 0) request.avoid = views_[some_node()].id;
        const Decision told = directory_.explain(views_, request);
        Decision decision = directory_.decide(views_, request);
        Decision twin = twin_.decide(views_, request);
        ++decisions_;
        check_decision(told, decision, request);
        ASSERT_EQ(twin.outcome, decision.outcome) << "the same history, the same answer";
        ASSERT_EQ(twin.claim.node, decision.claim.node);
        if (decision.candidates.empty()) {
            ASSERT_FALSE(decision.claim.open);
            return;
        }
        ++view_of(decision.claim.node)->in_flight;
        open_.push_back({std::move(decision.claim), std::move(twin.claim), !tables.empty() && tables[0].written});
    }

    void check_decision(const Decision &told, const Decision &decision, const Request &request) {
        ASSERT_EQ(told.outcome, decision.outcome);
        ASSERT_EQ(told.candidates.size(), decision.candidates.size());
        for (size_t i = 0; i < told.candidates.size(); ++i) {
            if (directory_.options().mode != Mode::round_robin) {
                ASSERT_EQ(told.candidates[i].node, decision.candidates[i].node);
            }
        }
        std::set<Uuid> routable, asked;
        for (const NodeView &view : views_) {
            if (view.routable) routable.insert(view.id);
        }
        for (const Candidate &each : decision.candidates) ASSERT_TRUE(asked.insert(each.node).second);
        if (request.pinned) {
            ASSERT_EQ(decision.outcome, Outcome::pinned);
            ASSERT_EQ(asked, std::set<Uuid>{*request.pinned});
            return;
        }
        if (request.avoid && routable.size() > 1) routable.erase(*request.avoid);
        ASSERT_EQ(asked, routable) << "everybody who can is asked before anybody waits";
        ASSERT_EQ(decision.outcome == Outcome::no_members, routable.empty());
        if (routable.empty()) return;
        // Over its cap only when all are (the node to avoid apart).
        if (decision.candidates[0].over_cap && !request.avoid) {
            for (const Candidate &each : decision.candidates) ASSERT_TRUE(each.over_cap);
        }
        if (decision.outcome == Outcome::sticky_fresh) {
            ASSERT_GT(decision.candidates[0].fresh_bytes, 0u);
            ASSERT_EQ(decision.candidates[0].stale_bytes, 0u);
        }
        if (decision.outcome == Outcome::claim) {
            for (const Candidate &each : decision.candidates) ASSERT_EQ(each.score, 0u);
        }
        if (decision.outcome == Outcome::overflow) ASSERT_TRUE(decision.passed_over);
    }

    NodeView *view_of(const Uuid &node) {
        const auto found = std::ranges::find(views_, node, &NodeView::id);
        return found == views_.end() ? nullptr : &*found;
    }

    void pass_on() {
        if (open_.empty()) return;
        Open &each = open_[random_() % open_.size()];
        NodeView &to = views_[some_node()];
        if (NodeView *from = view_of(each.claim.node)) from->in_flight -= from->in_flight > 0;
        ++to.in_flight;
        directory_.dispatched(each.claim, to);
        twin_.dispatched(each.twin, to);
    }

    void end(bool ok) {
        if (open_.empty()) return;
        const size_t at = random_() % open_.size();
        Open each = std::move(open_[at]);
        open_.erase(open_.begin() + static_cast<ptrdiff_t>(at));
        NodeView *node = view_of(each.claim.node);
        if (node != nullptr) node->in_flight -= node->in_flight > 0;
        std::vector<UnitReport> reports;
        if (each.claim.reports_bytes) {
            for (const auto &part : each.claim.parts) {
                if (random_() % 4) reports.push_back({part.unit, random_() % 120, 0});
            }
        }
        uint64_t committed = 0;
        if (each.writes && ok && !each.claim.parts.empty() && each.claim.parts[0].written) {
            committed = epoch_[each.claim.parts[0].unit.table] = ++snapshot_;
        }
        const auto warm_before = warm();
        directory_.ended(each.claim, {ok, reports, committed});
        twin_.ended(each.twin, {ok, reports, committed});
        if (!ok) ASSERT_EQ(warm(), warm_before) << "failed statements warm nothing";
    }

    std::map<std::pair<UnitId, Uuid>, uint64_t> warm() const {
        std::map<std::pair<UnitId, Uuid>, uint64_t> all;
        directory_.for_each([&](const Unit &unit) {
            for (const Home &home : unit.homes) {
                if (home.warm_bytes > 0) all[{unit.id, home.node}] = home.warm_bytes;
            }
        });
        return all;
    }

    std::mt19937 random_;
    Directory directory_, twin_;
    std::vector<NodeView> views_;
    std::map<uint64_t, uint64_t> epoch_;
    uint64_t snapshot_ = 1, decisions_ = 0;
    int names_ = 0;
    std::vector<Open> open_;
    const SegmentSource segments_ = [](const std::function<void(const SegmentBytes &)> &see) {
        for (uint64_t i = 0; i < 6; ++i) see({i, 20});
    };
};

TEST(DirectoryHistories, HoldWhatMustHold) {
    const uint32_t first = std::random_device{}();
    for (uint32_t history = 0; history < 60; ++history) {
        const uint32_t seed = first + history;
        SCOPED_TRACE("seed " + std::to_string(seed));
        DirectoryOptions options = history % 6 == 5 ? DirectoryOptions::seed() : DirectoryOptions();
        if (history % 6 < 5) options.mode = static_cast<Mode>(history % 6);
        options.units_max = kUnitsMax;
        options.segment_threshold_bytes = 100;
        History pool(seed, options);
        for (int step = 0; step < 400; ++step) {
            pool.step();
            if (step % 8 == 0) pool.check();
            if (testing::Test::HasFatalFailure()) return;
        }
        pool.finish();
        if (testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace roost::placement
