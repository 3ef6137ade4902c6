// The simulator: what it models, that a seed fixes it, and the short form of what the defaults must come to
// (docs/placement.md; the long form is `roost sim placement`).
#include <gtest/gtest.h>

#include <sstream>

#include "sim/node_model.h"
#include "sim/report.h"

namespace roost::sim {
namespace {

placement::DirectoryOptions policy(const std::string &name) { return policy_named(name, {})->options; }

struct Scenario {
    PoolOptions pool;
    WorkloadOptions workload;
    RunPlan plan;
    RunResult run_as(const std::string &name, uint64_t seed = 1) const {
        const auto made = make_synthetic(workload, seed);
        return sim::run(pool, policy(name), *made, plan);
    }
};

// A fifth of the units. Where the cache is tight that is another case than 8,000 units: of few units a node's share by
// rank varies by more than the cache has to spare.
Scenario short_form(uint32_t in_flight) {
    Scenario setup;
    setup.workload.units = 1'600;
    setup.plan.in_flight_per_node = in_flight;
    setup.plan.warmup_statements = 80'000;
    setup.plan.statements = 40'000;
    return setup;
}

double misses(const RunResult &run) { return static_cast<double>(run.misses) / static_cast<double>(run.unit_reads); }

TEST(Placement, AffinityKeepsDataWhereItIsAtAnyLoad) {
    for (const uint32_t in_flight : {1u, 8u, 64u}) {
        Scenario setup = short_form(in_flight);
        setup.workload.units = 8'000;
        setup.plan.warmup_statements = 220'000;
        const RunResult affinity = setup.run_as("affinity"), least = setup.run_as("least_loaded");
        EXPECT_LE(misses(affinity), 0.005) << in_flight;
        EXPECT_NEAR(misses(least), 0.51, 0.01) << in_flight;
        EXPECT_LE(affinity.mean_us, least.mean_us) << in_flight;
        // Waiting at a home instead of reading elsewhere: a hundredth of a statement's time, and next to nothing of it
        // beside a node that had nothing to do. Who will not wait has none at all, and no better times for it.
        const auto statements = static_cast<double>(affinity.statements);
        EXPECT_LE(affinity.waited_us / statements, 1.02 * least.waited_us / least.statements + 1'000) << in_flight;
        EXPECT_LE(affinity.idle_beside_us / statements, 100) << in_flight;
        const RunResult impatient = setup.run_as("impatient");
        EXPECT_EQ(impatient.waited_beside_idle, 0u) << in_flight;
        EXPECT_LE(impatient.free_beside_us, 0.001 * impatient.waited_us) << in_flight;
        EXPECT_LE(affinity.mean_us, 1.02 * impatient.mean_us) << in_flight;
        EXPECT_LE(affinity.store_to_unique, 1.05) << in_flight;
    }
}

// Three nodes with memory for two statements each, tables that take a quarter of a second to read: whoever waits at no
// home reads most of them on two nodes and more.
TEST(Placement, ASmallBusyPoolReadsNextToNothingTwice) {
    Scenario setup;
    setup.pool = {
        .weights = {2, 2, 2}, .slots = 2, .cache_ratio = 4, .store_wait_us = 60'000, .store_bytes_per_us = 25};
    setup.workload.units = 20;
    setup.workload.unit_bytes = 5'000'000;
    setup.workload.cpu_us = 40'000;
    setup.plan.warmup_statements = 60;
    setup.plan.statements = 400;
    double patient[2] = {}, impatient[2] = {}, patient_us = 0, impatient_us = 0;
    for (const uint32_t in_flight : {1u, 2u}) {
        setup.plan.in_flight_per_node = in_flight;
        for (uint64_t seed = 1; seed <= 5; ++seed) {
            const RunResult waits = setup.run_as("affinity", seed), goes = setup.run_as("impatient", seed);
            patient[in_flight - 1] += waits.store_to_unique / 5;
            impatient[in_flight - 1] += goes.store_to_unique / 5;
            patient_us += waits.mean_us;
            impatient_us += goes.mean_us;
        }
    }
    EXPECT_LE(patient[0], 1.05);
    EXPECT_LE(patient[1], 1.35) << "hot tables are spread here, which is meant";
    EXPECT_GE(impatient[0], 1.2);
    EXPECT_GE(impatient[1], 2);
    EXPECT_LE(patient_us, 1.1 * impatient_us);
}

TEST(Placement, HotUnitsSpread) {
    Scenario setup = short_form(1);
    setup.workload.zipf = 1.1;
    for (const uint32_t vcpus : {1u, 4u}) {
        setup.pool.weights.assign(8, vcpus);
        for (const uint32_t in_flight : {1u, 8u}) {
            setup.plan.in_flight_per_node = in_flight;
            EXPECT_LE(setup.run_as("affinity").served_max_to_mean, 1.75) << vcpus << " " << in_flight;
        }
    }
}

TEST(Placement, UnequalNodesAreServedByTheirWeight) {
    Scenario setup = short_form(8);
    setup.pool.weights = {2, 2, 4, 8};
    setup.pool.slots = 64;
    EXPECT_LE(setup.run_as("affinity").served_max_to_mean, 1.5);
}

TEST(Placement, GatewaysThatNeverTalkKeepTheMissesLow) {
    Scenario setup = short_form(8);
    setup.pool.slots = 32;
    setup.pool.gateways = 3;
    EXPECT_LE(misses(setup.run_as("affinity")), 0.02);
}

TEST(Membership, AJoinAndADeathMoveTheirShareAndARestartNothing) {
    Scenario setup = short_form(8);
    setup.pool.cache_ratio = 2;
    using Kind = MembershipChange::Kind;
    setup.plan.changes = {{Kind::join, 90'000, 0, 4},
                          {Kind::die, 100'000, 2, 0},
                          {Kind::restart, 105'000, 1, 0},
                          {Kind::reweigh, 110'000, 3, 8}};
    const RunResult run = setup.run_as("affinity");
    ASSERT_EQ(run.moved.size(), 4u);
    EXPECT_NEAR(static_cast<double>(run.moved[0]) / 1'600, 1.0 / 9, 0.035);
    EXPECT_NEAR(static_cast<double>(run.moved[1]) / 1'600, 1.0 / 9, 0.035);
    EXPECT_EQ(run.moved[2], 0u);
    EXPECT_GT(run.moved[3], 0u);
    EXPECT_EQ(run.statements, setup.plan.statements) << "whatever was lost ran elsewhere";
    EXPECT_LE(misses(run), 0.02);
}

TEST(Membership, ARestartOnTheSameCacheReadsNothingAgain) {
    Scenario setup = short_form(1);
    setup.pool.cache_ratio = 10;
    setup.workload.zipf = 0.2;  // so that everything has been read by the time of the restart
    const RunResult calm = setup.run_as("affinity");
    // The node is away for two seconds: what is asked of it meanwhile goes elsewhere, and no more.
    setup.plan.changes = {{MembershipChange::Kind::restart, 81'000, 1, 0}};
    const RunResult restarted = setup.run_as("affinity");
    EXPECT_EQ(calm.misses, 0u);
    EXPECT_LE(restarted.misses, 100u);
}

TEST(Workloads, WritesJoinsTenantsAndScansRun) {
    Scenario setup = short_form(8);
    setup.workload.write_share = 0.05;
    setup.workload.join_share = 0.3;
    setup.workload.tenants = 5;
    setup.workload.scan_every = 30'000;
    setup.workload.size_spread = 1;
    setup.pool.cache_ratio = 1.6;
    const RunResult run = setup.run_as("affinity");
    EXPECT_GT(run.unit_reads, run.statements);
    EXPECT_GT(run.top_ups, 0u);
    EXPECT_LT(run.store_bytes, run.read_bytes / 10);
}

TEST(Simulation, ASeedFixesEverything) {
    const Scenario setup = short_form(8);
    const RunResult a = setup.run_as("affinity", 7), b = setup.run_as("affinity", 7), c = setup.run_as("affinity", 8);
    EXPECT_EQ(a.fingerprint, b.fingerprint);
    EXPECT_EQ(a.misses, b.misses);
    EXPECT_EQ(a.mean_us, b.mean_us);
    EXPECT_NE(a.fingerprint, c.fingerprint);
}

TEST(Simulation, ATraceIsRunAsItWasRecorded) {
    std::istringstream text(
        "roost-trace 1\n# two tables\nunit 0 1000\nunit 1 2000\n\nrun 50 r 100 0,1\nrun 0 r 100 0\nrun 1000000 w 100 "
        "1\n");
    auto trace = read_trace(text);
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    PoolOptions pool;
    pool.weights = {1, 1};
    pool.cache_ratio = 4;
    RunPlan plan;
    plan.warmup_statements = 0;
    const RunResult run = sim::run(pool, policy("affinity"), **trace, plan);
    EXPECT_EQ(run.statements, 3u);
    EXPECT_EQ(run.unit_reads, 4u);
    EXPECT_EQ(run.store_bytes, 3'000u) << "each unit once: the second reader shares the first one's download";
    for (const char *wrong : {"", "roost-trace 2\n", "roost-trace 1\nrun 0 r 1 0\n", "roost-trace 1\nunit 1 5\n",
                              "roost-trace 1\nunit 0 5\nrun 1 x 1 0\n", "roost-trace 1\nunit 0 5\nrun nan r 1 0\n",
                              "roost-trace 1\nunit 0 5\nrun 1 r 1 \n"}) {
        std::istringstream broken(wrong);
        EXPECT_FALSE(read_trace(broken).ok()) << wrong;
    }
}

TEST(Simulation, AWrittenTraceReadsBackTheSame) {
    WorkloadOptions options;
    options.units = 50;
    options.write_share = 0.2;
    options.join_share = 0.5;
    const auto made = make_synthetic(options, 3), again = make_synthetic(options, 3);
    std::stringstream text;
    write_trace(text, *made, 200);
    const auto trace = read_trace(text);
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    EXPECT_EQ((*trace)->unit_bytes(), again->unit_bytes());
    SimStatement read, expected;
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE((*trace)->next(read) && again->next(expected));
        ASSERT_EQ(read.units, expected.units);
        ASSERT_EQ(read.writes, expected.writes);
    }
    EXPECT_FALSE((*trace)->next(read));
}

TEST(Command, PrintsARowForEachPolicyAndRefusesWhatItDoesNotKnow) {
    SimCommand command;
    command.workload.units = 50;
    command.plan.warmup_statements = 500;
    command.plan.statements = 500;
    command.plan.changes = {*parse_change("join@600:0:8")};
    command.in_flight = {2};
    std::ostringstream out;
    ASSERT_TRUE(run_command(command, out).ok());
    for (const std::string &name : policy_names()) EXPECT_NE(out.str().find(name), std::string::npos) << name;
    command.policies = {"nonsense"};
    EXPECT_FALSE(run_command(command, out).ok());
    command.policies = {"seed"};
    command.trace = "/nowhere/at/all";
    EXPECT_EQ(run_command(command, out).code(), Code::not_found);
    for (const char *wrong : {"", "join", "join@", "join@x", "die@1", "die@1:2:3:4", "boom@1:1"}) {
        EXPECT_FALSE(parse_change(wrong).ok()) << wrong;
    }
}

TEST(CacheModel, EvictsTheLeastRecentlyUsedAndKeepsWhatIsTooLargeOut) {
    CacheModel cache(4, 100);
    std::vector<uint32_t> evicted;
    cache.put(0, 40, 1, evicted);
    cache.put(1, 40, 1, evicted);
    cache.touch(0);
    cache.put(2, 40, 1, evicted);
    EXPECT_EQ(evicted, std::vector<uint32_t>{1});
    cache.put(3, 101, 1, evicted);
    EXPECT_EQ(cache.bytes_of(3), 0u);
    EXPECT_EQ(cache.used_bytes(), 80u);
}

TEST(NodeModel, StatementsShareTheCpus) {
    NodeModel node(Uuid::from_name("n"), 2, 16, 1, 1);
    for (uint32_t i = 0; i < 4; ++i) node.on_cpu.push({100, i});
    EXPECT_EQ(node.next_done_us(), 200) << "four on two vCPUs take twice as long";
}

}  // namespace
}  // namespace roost::sim
