// Which node gets a statement, sentence by sentence of the design and of the seeds.
#include "placement/directory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <map>

namespace roost::placement {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLake = catalog_id("lake");

Uuid id(int i) { return Uuid::from_name("node " + std::to_string(i)); }

// A gateway's pool: nodes with loads, and a directory.
class Pool {
public:
    explicit Pool(int nodes, DirectoryOptions options = {}) : directory(std::move(options)) {
        for (int i = 0; i < nodes; ++i) views.push_back({id(i), 1, 4, 0, 0, 0, true, true});
    }
    NodeView &node(const Uuid &node) { return *std::ranges::find(views, node, &NodeView::id); }
    Decision decide(std::vector<TableUse> tables) {
        Decision decision = directory.decide(views, {tables, std::nullopt, std::nullopt});
        if (!decision.candidates.empty()) node(decision.candidates[0].node).last_used = ++used;
        return decision;
    }
    void end(Decision &decision, bool ok = true, uint64_t warm_bytes = UINT64_MAX, uint64_t committed = 0) {
        std::vector<UnitReport> reports;
        for (const auto &part : decision.claim.parts)
            reports.push_back({part.unit, std::min(warm_bytes, part.bytes), 0});
        directory.ended(decision.claim, {ok, reports, committed});
    }
    // Decides and ends well; returns the winner.
    Uuid read(std::vector<TableUse> tables) {
        Decision decision = decide(std::move(tables));
        last = decision.outcome;
        end(decision);
        return decision.candidates[0].node;
    }
    Uuid owner(uint64_t table) const {
        Rendezvous ring;
        for (const NodeView &each : views) {
            if (each.routable) ring.set({each.id, each.weight});
        }
        return ring.members()[ring.owner({kLake, table, 0})].identity;
    }
    std::vector<NodeView> views;
    Directory directory;
    Outcome last = Outcome::no_members;
    uint64_t used = 0;
};

TableUse table(uint64_t number, uint64_t epoch = 1, uint64_t bytes = 100 * kMiB) {
    return {kLake, number, epoch, bytes, false, nullptr};
}
TableUse written(uint64_t number, uint64_t epoch = 1) { return {kLake, number, epoch, 100 * kMiB, true, nullptr}; }

TEST(Directory, TheFirstQueryClaimsAndTheNextTwoFollow) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::claim);
    EXPECT_EQ(home, pool.owner(1));
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(pool.read({table(1)}), home);
        EXPECT_EQ(pool.last, Outcome::sticky_fresh);
    }
    EXPECT_EQ(pool.directory.counts()[static_cast<size_t>(Outcome::claim)], 1u);
    EXPECT_EQ(pool.directory.counts()[static_cast<size_t>(Outcome::sticky_fresh)], 2u);
}

TEST(Directory, ATransactionThatCommitsLeavesItsWriterUpToDateAndOthersStale) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    const UnitReport other{{kLake, 1, 0}, 100 * kMiB, 1};
    const Uuid second = pool.views[pool.views[0].id == home ? 1 : 0].id;
    pool.directory.report(second, 1, {&other, 1});
    const UnitId unit{kLake, 1, 0};
    pool.directory.committed(home, 1, {&unit, 1}, 5);
    const Unit *known = pool.directory.find(unit);
    EXPECT_EQ(known->epoch, 5u);
    EXPECT_TRUE(known->is_fresh(*known->home(home)));
    EXPECT_FALSE(known->is_fresh(*known->home(second)));
    // Of an earlier run of the node nothing is known.
    pool.directory.committed(home, 2, {&unit, 1}, 6);
    EXPECT_FALSE(known->is_fresh(*known->home(home)));
}

TEST(Directory, AWriterIsUpToDateThoughAnotherStatementSawItsCommitFirst) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    Decision write = pool.decide({written(1)});
    pool.directory.changed(kLake, 1, 5);
    pool.end(write, true, UINT64_MAX, 5);
    const Unit *known = pool.directory.find({kLake, 1, 0});
    EXPECT_TRUE(known->is_fresh(*known->home(home)));
}

TEST(Directory, GatewaysThatNeverTalkAgreeOnFirstClaims) {
    Pool a(8), b(8);
    std::ranges::reverse(b.views);
    for (uint64_t t = 0; t < 500; ++t) {
        // Whatever little load they see.
        b.views[t % 8].in_flight = t % 3;
        EXPECT_EQ(a.read({table(t)}), b.read({table(t)})) << t;
    }
}

TEST(Directory, AClaimWhoseOwnerIsOverTheCapGoesToTheLeastLoaded) {
    Pool pool(3);
    pool.node(pool.owner(1)).in_flight = 100;
    NodeView *other = nullptr;
    for (NodeView &view : pool.views) {
        if (view.id != pool.owner(1)) (other == nullptr ? view.in_flight = 3, other = &view : other);
    }
    const Uuid home = pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::claim);
    EXPECT_NE(home, pool.owner(1));
    EXPECT_NE(home, other->id);
}

TEST(Directory, ManyColdReadersOfOneTableGoToOneNodeBeforeTheFirstHasEnded) {
    Pool pool(4);
    const Decision first = pool.decide({table(1)});
    for (int i = 0; i < 7; ++i) {
        const Decision next = pool.decide({table(1)});
        EXPECT_EQ(next.candidates[0].node, first.candidates[0].node);
        EXPECT_EQ(next.outcome, Outcome::sticky_stale) << "it has none of it yet";
    }
}

TEST(Directory, FailedStatementsWarmNothing) {
    Pool pool(3);
    Decision decision = pool.decide({table(1)});
    pool.end(decision, false);
    EXPECT_TRUE(pool.directory.find({kLake, 1, 0})->homes.empty());
    pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::claim);
    // What was warm before stays warm.
    Decision again = pool.decide({table(1)});
    pool.end(again, false);
    pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::sticky_fresh);
}

TEST(Directory, AWriteMakesOtherHomesStaleAndTheWriterFresh) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    pool.node(home).in_flight = 1000;
    const Uuid second = pool.read({table(1)});
    ASSERT_NE(second, home);
    pool.node(home).in_flight = 0;
    pool.node(second).in_flight = 1;

    Decision write = pool.decide({written(1)});
    EXPECT_EQ(write.candidates[0].node, home);
    pool.end(write, true, UINT64_MAX, 2);
    const Unit *unit = pool.directory.find({kLake, 1, 0});
    EXPECT_EQ(unit->epoch, 2u);
    EXPECT_TRUE(unit->is_fresh(*unit->home(home)));
    EXPECT_FALSE(unit->is_fresh(*unit->home(second)));
    pool.node(home).in_flight = 4;
    EXPECT_EQ(pool.read({table(1, 2)}), home) << "fresh before stale, though the other has less to do";
}

TEST(Directory, AStaleHomeKeepsTheTableAndTheNextReadMakesItFresh) {
    Pool pool(3);
    const Uuid home = pool.read({table(1, 1)});
    // A commit by anyone: an external engine, a compaction.
    EXPECT_EQ(pool.read({table(1, 7, 105 * kMiB)}), home);
    EXPECT_EQ(pool.last, Outcome::sticky_stale);
    EXPECT_EQ(pool.read({table(1, 7, 105 * kMiB)}), home);
    EXPECT_EQ(pool.last, Outcome::sticky_fresh);
    pool.directory.changed(kLake, 1, 9);
    EXPECT_EQ(pool.read({table(1, 7)}), home) << "a snapshot that the statement does not know of counts too";
    EXPECT_EQ(pool.last, Outcome::sticky_stale);
}

TEST(Directory, MuchThatIsStaleBeatsLittleThatIsFresh) {
    Pool pool(2);
    const UnitId large{kLake, 1, 0}, small{kLake, 2, 0};
    const UnitReport reports_a[] = {{large, 400 * kMiB, 1}}, reports_b[] = {{small, 1 * kMiB, 1}};
    pool.directory.report(id(0), 1, reports_a);
    pool.directory.report(id(1), 1, reports_b);
    EXPECT_EQ(pool.read({table(1, 5, 410 * kMiB), table(2, 1, kMiB)}), id(0));
}

TEST(Directory, TablesThatAreReadTogetherFollowTheWarmestNode) {
    Pool pool(4);
    pool.read({table(1, 1, 300 * kMiB)});
    pool.read({table(2, 1, 10 * kMiB)});
    const Uuid home = pool.read({table(1, 1, 300 * kMiB), table(2, 1, 10 * kMiB)});
    EXPECT_EQ(home, pool.owner(1));
    EXPECT_TRUE(pool.directory.find({kLake, 2, 0})->home(home)) << "it has read the other one now";
}

TEST(Directory, OverflowAddsAHomeAndTheLoadIsSharedFromThenOn) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    pool.node(home).in_flight = 100;
    const Uuid second = pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::overflow);
    EXPECT_NE(second, home);
    EXPECT_EQ(pool.directory.find({kLake, 1, 0})->homes.size(), 2u);
    pool.node(home).in_flight = 2;
    pool.node(second).in_flight = 1;
    EXPECT_EQ(pool.read({table(1)}), second) << "of two homes the less loaded";
    EXPECT_EQ(pool.last, Outcome::sticky_fresh);
    pool.node(second).in_flight = 3;
    EXPECT_EQ(pool.read({table(1)}), home);
}

TEST(Directory, TheCapIsTheOthersMeanOrTheSlack) {
    DirectoryOptions options;
    options.cap.by_demand = false;
    Pool pool(3, options);
    const Uuid home = pool.read({table(1)});
    for (NodeView &view : pool.views) view.in_flight = 16;
    pool.node(home).in_flight = 32;  // 8 a vCPU, twice the others' 4
    EXPECT_EQ(pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}}).candidates[0].node, home);
    pool.node(home).in_flight = 33;
    const Decision over = pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}});
    EXPECT_NE(over.candidates[0].node, home);
    EXPECT_EQ(over.outcome, Outcome::overflow);
    EXPECT_EQ(over.passed_over, home);
    EXPECT_EQ(over.candidates.back().node, home) << "the last to be asked, but asked";
    for (NodeView &view : pool.views) view.in_flight = 0;
    pool.node(home).in_flight = 8;  // slack: 2 a vCPU
    EXPECT_EQ(pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}}).candidates[0].node, home);
    pool.node(home).in_flight = 9;
    EXPECT_NE(pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}}).candidates[0].node, home);
    // Other gateways' statements count, and a heavier node bears more.
    pool.node(home).in_flight = 4;
    pool.node(home).others_in_flight = 5;
    EXPECT_NE(pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}}).candidates[0].node, home);
    pool.node(home).weight = 8;
    EXPECT_EQ(pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}}).candidates[0].node, home);
}

TEST(Directory, TheCapGoesByWhetherTheUnitIsWhatMakesItsHomeBusy) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    const auto winner = [&](uint32_t in_flight) {
        pool.node(home).in_flight = in_flight;
        return pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}}).candidates[0].node;
    };
    EXPECT_EQ(winner(32), home) << "nobody reads it: four times the slack of 8";
    EXPECT_NE(winner(33), home);
    Decision one = pool.decide({table(1)});
    pool.node(home).in_flight = 0;
    one = pool.decide({table(1)});
    EXPECT_EQ(winner(16), home) << "one does: twice";
    EXPECT_NE(winner(17), home);
    Decision two = pool.decide({table(1)});
    pool.node(home).in_flight = 0;
    two = pool.decide({table(1)});
    EXPECT_EQ(winner(6), home) << "several: three quarters of it";
    EXPECT_NE(winner(7), home);
}

TEST(Directory, ALoneNodeHasNoCap) {
    Pool pool(2);
    const Uuid home = pool.read({table(1)});
    for (NodeView &view : pool.views) view.routable = view.id == home;
    pool.node(home).in_flight = 10'000;
    EXPECT_EQ(pool.read({table(1)}), home);
    EXPECT_EQ(pool.last, Outcome::sticky_fresh);
}

TEST(Directory, AClaimMovesWithAStatementThatANodeRefused) {
    Pool pool(3);
    Decision decision = pool.decide({table(1)});
    EXPECT_EQ(decision.candidates.size(), 3u) << "every node can be asked";
    const Uuid first = decision.candidates[0].node, second = decision.candidates[1].node;
    pool.directory.dispatched(decision.claim, pool.node(first));
    EXPECT_EQ(pool.directory.passed_on(), 0u);
    pool.directory.dispatched(decision.claim, pool.node(second));
    EXPECT_EQ(pool.directory.passed_on(), 1u);
    EXPECT_FALSE(pool.directory.find({kLake, 1, 0})->home(first));
    pool.end(decision);
    EXPECT_EQ(pool.directory.find({kLake, 1, 0})->home(second)->warm_bytes, 100 * kMiB);
    pool.end(decision);  // the second time nothing happens
    EXPECT_EQ(pool.directory.find({kLake, 1, 0})->home(second)->reading, 0u);
}

// Reads every table once, in a pool of `nodes`; the homes afterwards.
std::map<uint64_t, Uuid> read_all(Pool &pool, uint64_t tables) {
    std::map<uint64_t, Uuid> at;
    for (uint64_t i = 1; i <= tables; ++i) at[i] = pool.read({table(i)});
    return at;
}

TEST(Moving, AJoinerTakesWhatIsItsOwnByRankAndNothingElse) {
    Pool pool(3);
    const auto before = read_all(pool, 400);
    pool.views.push_back({id(3), 1, 4, 0, 0, 0, true, true});
    const auto after = read_all(pool, 400);
    uint64_t moved = 0;
    for (const auto &[number, node] : after) {
        EXPECT_EQ(node, pool.owner(number) == id(3) ? id(3) : before.at(number)) << number;
        moved += node == id(3);
    }
    EXPECT_NEAR(static_cast<double>(moved), 100, 4 * std::sqrt(400 * 0.25 * 0.75));
    EXPECT_EQ(pool.directory.counts()[static_cast<size_t>(Outcome::moved)], moved);
    // It stays there, though its old home has it too and has less to do.
    for (NodeView &view : pool.views) view.in_flight = view.id == id(3) ? 4 : 0;
    EXPECT_EQ(read_all(pool, 400), after);
    EXPECT_EQ(pool.directory.counts()[static_cast<size_t>(Outcome::moved)], moved);
    // The old home takes over where the new one is over its cap: nothing is fetched anew.
    for (NodeView &view : pool.views) view.in_flight = view.id == id(3) ? 100 : 0;
    EXPECT_EQ(read_all(pool, 400), before);
}

TEST(Moving, WhileANewOwnerFetchesOthersReadAtTheOldHome) {
    Pool pool(3);
    read_all(pool, 50);
    pool.views.push_back({id(3), 1, 4, 0, 0, 0, true, true});
    uint64_t number = 1;
    while (pool.owner(number) != id(3)) ++number;
    Decision first = pool.decide({table(number)});
    EXPECT_EQ(first.outcome, Outcome::moved);
    EXPECT_EQ(first.candidates[0].node, id(3));
    EXPECT_GT(first.candidates[1].there_bytes(), 0u) << "who has it is asked next";
    Decision second = pool.decide({table(number)});
    EXPECT_NE(second.candidates[0].node, id(3));
    pool.end(first, false);
    pool.end(second);
    EXPECT_EQ(pool.read({table(number)}), id(3)) << "what failed has moved nothing";
}

TEST(Moving, AFlapARestartAndADrainMoveNothing) {
    Pool pool(3);
    const auto before = read_all(pool, 100);
    for (const bool new_run : {false, true}) {
        NodeView &node = pool.views[1];
        node.routable = false;
        const auto meanwhile = read_all(pool, 50);  // half of it
        for (const auto &[number, at] : meanwhile)
            EXPECT_EQ(at, before.at(number) == node.id ? pool.owner(number) : before.at(number));
        node.routable = true;
        if (new_run) {
            ++node.incarnation;
            std::vector<UnitReport> inventory;
            for (const auto &[number, at] : before) {
                if (at == node.id) inventory.push_back({{kLake, number, 0}, 100 * kMiB, 1});
            }
            pool.directory.report(node.id, node.incarnation, inventory);
        }
        for (const auto &[number, at] : read_all(pool, 100)) {
            EXPECT_TRUE(at == before.at(number) || number <= 50) << number;
        }
    }
    EXPECT_EQ(pool.directory.counts()[static_cast<size_t>(Outcome::moved)], 0u);
}

TEST(Moving, AWeightChangeMovesOnlyToOrFromItsNode) {
    Pool pool(3);
    auto before = read_all(pool, 300);
    for (const uint32_t weight : {8u, 4u, 2u}) {
        pool.views[0].weight = weight;
        const auto after = read_all(pool, 300);
        for (const auto &[number, at] : after) {
            if (at == before.at(number)) continue;
            EXPECT_EQ(at, pool.owner(number)) << number;
            EXPECT_TRUE(at == id(0) || before.at(number) == id(0)) << number;
        }
        before = after;
    }
    for (const auto &[number, at] : before) EXPECT_EQ(at, pool.owner(number)) << number;
}

TEST(Moving, ATableThatWasMadeElsewhereThanAtItsOwnerStays) {
    Pool pool(3);
    const Uuid writer = id(pool.owner(7) == id(0) ? 1 : 0);
    const UnitReport made{{kLake, 7, 0}, 100 * kMiB, 1};
    pool.directory.report(writer, 1, {&made, 1});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(pool.read({table(7)}), writer);
}

TEST(Waiting, IsWorthWhatReadingElsewhereWouldTake) {
    Pool pool(3);
    EXPECT_EQ(pool.decide({table(1)}).patience_us, 0) << "nobody has it: it is cold wherever it goes";
    const Uuid home = pool.read({table(2)});
    const Decision one = pool.directory.explain(pool.views, {std::vector{table(2)}, {}, {}});
    EXPECT_EQ(one.near, 1u);
    EXPECT_NEAR(static_cast<double>(one.patience_us), ReadCost().us(100 * kMiB), 1);
    // A node that has most of it already is nearly as good.
    const Uuid other = pool.views[pool.views[0].id == home ? 1 : 0].id;
    const UnitReport part{{kLake, 2, 0}, 60 * kMiB, 0};
    pool.directory.report(other, 1, {&part, 1});
    const Decision two = pool.directory.explain(pool.views, {std::vector{table(2)}, {}, {}});
    EXPECT_EQ(two.near, 1u);
    EXPECT_NEAR(static_cast<double>(two.patience_us), ReadCost().us(40 * kMiB), 1);
    // Where all have it there is nothing to wait for.
    const UnitReport whole{{kLake, 2, 0}, 100 * kMiB, 1};
    for (const NodeView &view : pool.views) pool.directory.report(view.id, 1, {&whole, 1});
    EXPECT_EQ(pool.directory.explain(pool.views, {std::vector{table(2)}, {}, {}}).patience_us, 0);
}

TEST(Waiting, IsForWhoseHomeIsUnderItsCap) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    pool.node(home).in_flight = 100;
    const Decision over = pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}});
    EXPECT_EQ(over.outcome, Outcome::overflow);
    EXPECT_EQ(over.patience_us, 0);
    DirectoryOptions impatient;
    impatient.patience = 0;
    Pool strict(3, impatient);
    strict.read({table(1)});
    EXPECT_EQ(strict.directory.explain(strict.views, {std::vector{table(1)}, {}, {}}).patience_us, 0);
}

TEST(Waiting, AHomeOverItsCapIsAskedBeforeANodeThatHasNothing) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    const Uuid second = pool.views[pool.views[0].id == home ? 1 : 0].id;
    const UnitReport whole{{kLake, 1, 0}, 100 * kMiB, 1};
    pool.directory.report(second, 1, {&whole, 1});
    pool.node(second).in_flight = 100;
    const Decision decision = pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}});
    EXPECT_EQ(decision.candidates[0].node, home);
    EXPECT_EQ(decision.candidates[1].node, second);
    EXPECT_EQ(decision.near, 2u);
}

TEST(Waiting, LearnsWhatAColdReadTakes) {
    ReadCost cost;
    EXPECT_NEAR(cost.us(0), ReadCost::kFirstUs, 1);
    EXPECT_NEAR(cost.us(10 * kMiB), ReadCost::kFirstUs + 10 * kMiB * ReadCost::kUsPerByte, 1);
    // A store of 20 MB/s whose first byte takes 100 ms.
    for (int i = 0; i < 100; ++i) {
        const uint64_t bytes = (1 + i % 10) * kMiB;
        cost.note(bytes, 100'000 + static_cast<double>(bytes) / 20);
    }
    EXPECT_NEAR(cost.us(5 * kMiB), 100'000 + 5 * kMiB / 20.0, 0.1 * (100'000 + 5 * kMiB / 20.0));
    // Readings of one size, and far from the first guess: right there, and a line all the same.
    ReadCost alone;
    for (int i = 0; i < 100; ++i) alone.note(2 * kMiB, 900'000);
    EXPECT_NEAR(alone.us(2 * kMiB), 900'000, 90'000);
    EXPECT_GE(alone.us(100 * kMiB), alone.us(2 * kMiB) * 0.9);
    EXPECT_GE(alone.us(0), 0);
}

TEST(Waiting, AsksGoFromHomesToTheRestAndWaitLast) {
    constexpr int64_t kLong = Ask::kAsLongAsItTakes;
    using Asks = std::vector<Ask>;
    EXPECT_EQ(asks_of(3, 1, 500), (Asks{{0, 500}, {1, 0}, {2, 0}, {0, kLong}, {1, kLong}, {2, kLong}}));
    EXPECT_EQ(asks_of(3, 2, 500), (Asks{{0, 0}, {1, 0}, {0, 500}, {2, 0}, {0, kLong}, {1, kLong}, {2, kLong}}));
    EXPECT_EQ(asks_of(2, 0, 0), (Asks{{0, 0}, {1, 0}, {0, kLong}, {1, kLong}}));
    EXPECT_EQ(asks_of(2, 2, 500), (Asks{{0, 0}, {1, 0}, {0, kLong}, {1, kLong}})) << "nobody is left to compare with";
    EXPECT_EQ(asks_of(1, 1, 500), (Asks{{0, kLong}}));
    EXPECT_EQ(asks_of(0, 0, 0), Asks{});
}

TEST(Directory, PinnedNoRefsNoMembersAndTheNodeToAvoid) {
    Pool pool(3);
    const std::vector<TableUse> tables{table(1)};
    const Uuid other = pool.owner(1) == id(0) ? id(1) : id(0);
    Decision pinned = pool.directory.decide(pool.views, {tables, other, {}});
    EXPECT_EQ(pinned.outcome, Outcome::pinned);
    ASSERT_EQ(pinned.candidates.size(), 1u);
    pool.end(pinned);
    EXPECT_EQ(pool.read({table(1)}), other) << "what it has read there is warm";
    EXPECT_TRUE(pool.directory.decide(pool.views, {tables, id(77), {}}).candidates.empty());

    pool.node(id(2)).in_flight = 1;
    Decision none = pool.decide({});
    EXPECT_EQ(none.outcome, Outcome::no_refs);
    EXPECT_NE(none.candidates[0].node, id(2));

    EXPECT_NE(pool.directory.decide(pool.views, {tables, {}, other}).candidates[0].node, other);
    for (NodeView &view : pool.views) view.routable = view.id == other;
    EXPECT_EQ(pool.directory.decide(pool.views, {tables, {}, other}).candidates[0].node, other);
    for (NodeView &view : pool.views) view.routable = false;
    EXPECT_EQ(pool.directory.decide(pool.views, {tables, {}, {}}).outcome, Outcome::no_members);
    EXPECT_EQ(pool.directory.decide({}, {tables, {}, {}}).outcome, Outcome::no_members);
}

TEST(Directory, AFlapLosesNoHomesAndANewIncarnationIsColdUntilItSaysWhatItHas) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    pool.node(home).routable = false;
    const Uuid standby = pool.read({table(1)});
    EXPECT_NE(standby, home);
    EXPECT_EQ(pool.last, Outcome::claim) << "no repair: the next query claims";
    pool.node(home).routable = true;
    pool.node(standby).in_flight = 1;
    EXPECT_EQ(pool.read({table(1)}), home);
    EXPECT_EQ(pool.last, Outcome::sticky_fresh);

    pool.node(home).incarnation = 2;
    pool.node(standby).in_flight = 0;
    EXPECT_EQ(pool.read({table(1)}), standby);
    const UnitReport late[] = {{{kLake, 1, 0}, 90 * kMiB, 1}};
    pool.directory.report(home, 2, late);
    pool.node(standby).in_flight = 2;
    EXPECT_EQ(pool.read({table(1)}), home) << "its cache outlived the process, and it said so";
    // What comes late from the run before says nothing.
    const UnitReport gone[] = {{{kLake, 1, 0}, 0, 0}};
    pool.directory.report(home, 1, gone);
    EXPECT_EQ(pool.read({table(1)}), home);
}

TEST(Directory, AStatementOfAnEarlierIncarnationWarmsNothing) {
    Pool pool(2);
    Decision decision = pool.decide({table(1)});
    const Uuid home = decision.candidates[0].node;
    pool.node(home).incarnation = 2;
    Decision next = pool.decide({table(1)});
    pool.end(decision);
    EXPECT_EQ(pool.directory.find({kLake, 1, 0})->home(next.candidates[0].node)->warm_bytes, 0u);
}

TEST(Directory, EvictionsTakeWarmthAwayAndTheNextQueryClaims) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    const UnitReport half[] = {{{kLake, 1, 0}, 50 * kMiB, 0}}, nothing[] = {{{kLake, 1, 0}, 0, 0}};
    pool.directory.report(home, 1, half);
    EXPECT_EQ(pool.directory.find({kLake, 1, 0})->home(home)->warm_bytes, 50 * kMiB);
    pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::sticky_fresh);
    pool.directory.report(home, 1, nothing);
    pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::claim);
}

TEST(Directory, WhatANodeDidNotKeepIsNotWarm) {
    Pool pool(3);
    Decision decision = pool.decide({table(1)});
    pool.end(decision, true, 0);
    pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::claim);
}

TEST(Directory, ANodeThatReportsNoBytesIsWarmWhereATableWasReadLast) {
    Pool pool(3);
    for (NodeView &view : pool.views) view.reports_bytes = false;
    Decision decision = pool.decide({table(1)});
    pool.directory.ended(decision.claim, {true, {}, 0});
    pool.read({table(1)});
    EXPECT_EQ(pool.last, Outcome::sticky_fresh);
}

TEST(Directory, AJoinerWinsWhatItOwnsOfWhatNobodyHas) {
    Pool pool(3);
    pool.views.push_back({id(3), 1, 4, 0, 0, 0, true, true});
    int won = 0;
    for (uint64_t t = 200; t < 600; ++t) won += pool.read({table(t)}) == id(3);
    EXPECT_NEAR(won, 100, 4 * std::sqrt(400 * 0.25 * 0.75));
}

TEST(Directory, ExplainLeavesNoTrace) {
    Pool pool(3);
    const auto counts = pool.directory.counts();
    const Decision decision = pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}});
    EXPECT_EQ(decision.outcome, Outcome::claim);
    EXPECT_EQ(pool.directory.size(), 0u);
    EXPECT_EQ(pool.directory.counts(), counts);
    EXPECT_FALSE(decision.claim.open);
    const auto name = [](const Uuid &node) { return node == id(0) ? "a" : node == id(1) ? "b" : "c"; };
    EXPECT_NE(reason_text(decision, name).find("owns it by rank"), std::string::npos);
    pool.read({table(1)});
    const Decision sticky = pool.directory.explain(pool.views, {std::vector{table(1)}, {}, {}});
    EXPECT_NE(reason_text(sticky, name).find("has 100.0 MiB warm of 100.0 MiB"), std::string::npos)
        << reason_text(sticky, name);
}

TEST(Directory, WhatNoStatementNamedForLongestIsDroppedFirst) {
    DirectoryOptions options;
    options.units_max = 100;
    Pool pool(2, options);
    for (uint64_t t = 0; t < 100; ++t) pool.read({table(t)});
    pool.read({table(0)});
    pool.read({table(100)});
    EXPECT_EQ(pool.directory.size(), 100u);
    EXPECT_EQ(pool.directory.dropped(), 1u);
    EXPECT_TRUE(pool.directory.find({kLake, 0, 0}));
    EXPECT_FALSE(pool.directory.find({kLake, 1, 0}));
    // Reports make no room for themselves; another catalog has its own.
    const UnitReport report[] = {{{kLake, 500, 0}, kMiB, 1}};
    pool.directory.report(id(0), 1, report);
    EXPECT_FALSE(pool.directory.find({kLake, 500, 0}));
    pool.read({{catalog_id("other"), 1, 1, kMiB, false, nullptr}});
    EXPECT_EQ(pool.directory.size(), 101u);
}

TEST(Directory, DroppedTablesAndForgottenNodesAreGone) {
    Pool pool(3);
    const Uuid home = pool.read({table(1)});
    pool.directory.forget_node(home);
    EXPECT_TRUE(pool.directory.find({kLake, 1, 0})->homes.empty());
    pool.directory.drop_table(kLake, 1);
    EXPECT_FALSE(pool.directory.find({kLake, 1, 0}));
}

// ---- large tables

SegmentSource segments(uint64_t count, uint64_t bytes, int *asked = nullptr) {
    return [=](const std::function<void(const SegmentBytes &)> &see) {
        if (asked != nullptr) ++*asked;
        for (uint64_t i = 0; i < count; ++i) see({i, bytes});
    };
}

TEST(LargeTables, GoToTheNodeThatOwnsMostOfTheirSegmentsAndNeedNoHomes) {
    int asked = 0;
    const SegmentSource source = segments(31, 64 * kMiB, &asked);
    Pool pool(3);
    TableUse large = table(1, 1, 31 * 64 * kMiB);
    large.segments = &source;
    Decision decision = pool.decide({large});
    EXPECT_EQ(decision.outcome, Outcome::owner);
    for (const Candidate &candidate : decision.candidates) {
        EXPECT_LE(candidate.owned_bytes, decision.candidates[0].owned_bytes);
    }
    pool.end(decision);
    EXPECT_TRUE(pool.directory.find({kLake, 1, 0})->homes.empty());
    pool.decide({large});
    EXPECT_EQ(asked, 1) << "known from the statement before";
    large.epoch = 2;
    pool.decide({large});
    EXPECT_EQ(asked, 2);
    pool.node(decision.candidates[0].node).routable = false;
    const Decision without = pool.decide({large});
    EXPECT_EQ(asked, 3);
    uint64_t owned_bytes = 0;
    for (const Candidate &candidate : without.candidates) owned_bytes += candidate.owned_bytes;
    EXPECT_EQ(owned_bytes, 31 * 64 * kMiB) << "a missing owner's segments are their standbys'";
}

TEST(LargeTables, WithoutARoutableNodeThereIsNoOwner) {
    const SegmentSource source = segments(31, 64 * kMiB);
    TableUse large = table(1, 1, 31 * 64 * kMiB);
    large.segments = &source;
    Pool pool(2);
    for (NodeView &view : pool.views) view.routable = false;
    const std::vector<TableUse> tables{large, table(2)};
    EXPECT_EQ(pool.directory.decide(pool.views, {tables, {}, {}}).outcome, Outcome::no_members);
    EXPECT_EQ(pool.directory.decide(pool.views, {tables, id(0), {}}).candidates[0].node, id(0));
}

TEST(LargeTables, CrossingTheThresholdIsSticky) {
    const SegmentSource source = segments(8, 64 * kMiB);
    Pool pool(3);
    const auto outcome = [&](uint64_t bytes) {
        TableUse use = table(1, 1, bytes);
        use.segments = &source;
        Decision decision = pool.decide({use});
        pool.end(decision);
        return decision.outcome;
    };
    EXPECT_EQ(outcome(511 * kMiB), Outcome::claim);
    EXPECT_EQ(outcome(511 * kMiB), Outcome::sticky_fresh);
    EXPECT_EQ(outcome(512 * kMiB), Outcome::owner);
    EXPECT_EQ(outcome(300 * kMiB), Outcome::owner);
    EXPECT_EQ(outcome(256 * kMiB), Outcome::owner);
    EXPECT_EQ(outcome(255 * kMiB), Outcome::claim);
    EXPECT_EQ(outcome(400 * kMiB), Outcome::sticky_fresh);
}

// ---- modes

TEST(Modes, AffinityTakesLargeTablesWholeAndSegmentsNeverRemembers) {
    const SegmentSource source = segments(31, 64 * kMiB);
    TableUse large = table(1, 1, 31 * 64 * kMiB);
    large.segments = &source;
    DirectoryOptions options;
    options.mode = Mode::affinity;
    Pool affinity(3, options);
    affinity.read({large});
    EXPECT_EQ(affinity.last, Outcome::claim);
    affinity.read({large});
    EXPECT_EQ(affinity.last, Outcome::sticky_fresh);

    options.mode = Mode::segments;
    Pool by_segments(3, options);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(by_segments.read({table(7)}), by_segments.owner(7));
        EXPECT_EQ(by_segments.last, Outcome::owner);
        by_segments.node(by_segments.owner(7)).in_flight = 1000;  // no cap
    }
    EXPECT_EQ(by_segments.directory.size(), 0u);
}

TEST(Modes, LeastLoadedAndRoundRobin) {
    DirectoryOptions options;
    options.mode = Mode::least_loaded;
    Pool least(3, options);
    least.views[0].in_flight = 1;
    const Uuid a = least.read({table(1)}), b = least.read({table(1)});
    EXPECT_NE(a, b) << "ties go to the least recently used";
    EXPECT_EQ(least.last, Outcome::by_load);
    options.mode = Mode::round_robin;
    Pool turn(3, options);
    std::vector<Uuid> nodes{turn.read({table(1)}), turn.read({table(1)}), turn.read({table(1)})};
    EXPECT_EQ(turn.read({table(1)}), nodes[0]);
    std::ranges::sort(nodes);
    EXPECT_EQ(std::ranges::unique(nodes).begin(), nodes.end());
    for (const Mode mode : {Mode::automatic, Mode::affinity, Mode::segments, Mode::least_loaded, Mode::round_robin}) {
        EXPECT_EQ(parse_mode(mode_name(mode)), mode);
    }
    EXPECT_FALSE(parse_mode("nonsense"));
}

// ---- seed 000 exactly

TEST(Seed, ClaimsGoToTheLeastLoadedAndOverflowMovesTheHome) {
    Pool pool(3, DirectoryOptions::seed());
    for (NodeView &view : pool.views) view.weight = view.id == id(2) ? 64 : 1;  // weights don't matter to it
    pool.node(id(0)).in_flight = 1;
    pool.node(id(1)).in_flight = 2;
    pool.node(id(2)).in_flight = 3;
    const Uuid home = pool.read({table(1)});
    EXPECT_EQ(home, id(0));
    EXPECT_EQ(pool.last, Outcome::claim);

    // At most c = 2 times the pool's average, itself included; and c where the average is less than one.
    pool.node(id(0)).in_flight = 10;
    pool.node(id(1)).in_flight = 3;
    pool.node(id(2)).in_flight = 2;  // average 5
    EXPECT_EQ(pool.read({table(1)}), home);
    pool.node(id(0)).in_flight = 11;  // average 5.33
    EXPECT_EQ(pool.read({table(1)}), id(2)) << "to the least loaded";
    EXPECT_EQ(pool.last, Outcome::overflow);
    const Unit *unit = pool.directory.find({kLake, 1, 0});
    ASSERT_EQ(unit->homes.size(), 1u) << "the home moves";
    EXPECT_EQ(unit->homes[0].node, id(2));

    for (NodeView &view : pool.views) view.in_flight = 0;
    pool.node(id(2)).in_flight = 2;
    EXPECT_EQ(pool.read({table(1)}), id(2)) << "2 is more than twice the average, but not more than c";
    pool.node(id(2)).in_flight = 3;
    EXPECT_NE(pool.read({table(1)}), id(2));
}

TEST(Seed, AWriteDowngradesAndADeathLetsTheNextQueryClaim) {
    Pool pool(3, DirectoryOptions::seed());
    const Uuid home = pool.read({table(1)});
    EXPECT_EQ(pool.read({table(1, 2)}), home);
    EXPECT_EQ(pool.last, Outcome::sticky_stale);
    EXPECT_EQ(pool.read({table(1, 2)}), home);
    EXPECT_EQ(pool.last, Outcome::sticky_fresh);
    pool.node(home).routable = false;
    EXPECT_NE(pool.read({table(1, 2)}), home);
    EXPECT_EQ(pool.last, Outcome::claim);
}

}  // namespace
}  // namespace roost::placement
