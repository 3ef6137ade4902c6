// The incidents that admission exists to prevent, each as it happened, and profile against profile.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "sim/admission_report.h"

namespace roost::sim {
namespace {

using End = AdmissionRecord::End;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr int64_t kSecond = 1'000'000;

AdmissionStatement heavy(uint64_t peak_bytes, double cpu_us = 4e6) {
    AdmissionStatement statement;
    statement.user = "a";
    statement.shape = "heavy " + std::to_string(peak_bytes);
    statement.estimate_bytes = statement.peak_bytes = peak_bytes;
    statement.scan_bytes = 2 * peak_bytes;
    statement.cpu_us = cpu_us;
    return statement;
}

AdmissionStatement of_session(AdmissionStatement statement, uint8_t number) {
    statement.session.bytes[15] = number;
    statement.session.bytes[0] = 0xFF;
    return statement;
}

uint64_t count(const AdmissionNode &node, End end) {
    return static_cast<uint64_t>(std::count_if(node.records().begin(), node.records().end(),
                                               [&](const AdmissionRecord &record) { return record.end == end; }));
}

void expect_promises_kept(const AdmissionNode &node) {
    EXPECT_EQ(node.totals().oversubscribed_bytes, 0U);
    EXPECT_EQ(node.totals().parked_us, 0U) << "somebody waited while nothing ran";
    EXPECT_EQ(count(node, End::out_of_memory), 0U);
}

TEST(Incident, a_burst_of_22_statements_is_not_one_with_all_and_the_others_with_nothing) {
    AdmissionNode node({.memory_bytes = 4 * kGiB, .cpus = 4});
    for (int i = 0; i < 22; ++i) {
        AdmissionStatement statement = heavy(300 * kMiB);
        statement.user = std::string(1, static_cast<char>('a' + i));
        node.submit(statement);
    }
    ASSERT_TRUE(node.run_until_idle(600 * kSecond));
    expect_promises_kept(node);
    EXPECT_EQ(count(node, End::done), 22U);
    uint64_t least = UINT64_MAX, most = 0;
    for (const AdmissionRecord &record : node.records()) {
        least = std::min(least, record.granted_bytes);
        most = std::max(most, record.granted_bytes);
    }
    EXPECT_GE(least, node.records()[0].floor_bytes);
    EXPECT_LE(most, 2 * least) << "one has what the others lack";
}

TEST(Incident, ten_waiters_do_not_hold_all_the_memory_between_them) {
    AdmissionNode node({.memory_bytes = 4 * kGiB, .cpus = 4});
    // Ten sessions that keep what they had between statements.
    for (uint8_t i = 1; i <= 10; ++i) {
        node.submit(of_session(heavy(150 * kMiB, 1e6), i));
        node.run_until_idle(100 * kSecond);
    }
    // All come at once with more than they keep.
    for (uint8_t i = 1; i <= 10; ++i) {
        AdmissionStatement statement = of_session(heavy(900 * kMiB), i);
        node.submit(statement);
    }
    bool has_waited = false;
    for (int step = 0; step < 100'000 && node.live() > 0; ++step) {
        node.step();
        if (step < 500 || node.ledger().waiting() == 0) continue;
        has_waited = true;
        for (const Uuid &waiter : node.ledger().line()) {
            EXPECT_LE(node.ledger().view(waiter).told_bytes, 64 * kMiB);
        }
    }
    EXPECT_EQ(node.live(), 0U);
    EXPECT_TRUE(has_waited);
    EXPECT_EQ(count(node, End::done), 20U);
    expect_promises_kept(node);
}

TEST(Incident, ten_waits_that_began_together_do_not_end_in_one_instant) {
    AdmissionNode node({.memory_bytes = 4 * kGiB, .cpus = 4, .admission_wait_us = 60 * kSecond});
    for (int i = 0; i < 3; ++i) node.submit(heavy(2 * kGiB, 4e9));
    for (int i = 0; i < 50; ++i) node.step();
    const size_t first = node.records().size();
    for (int i = 0; i < 10; ++i) node.submit(heavy(2 * kGiB));
    for (int i = 0; i < 8'000; ++i) node.step();
    std::set<int64_t> ends;
    for (size_t i = first; i < node.records().size(); ++i) {
        EXPECT_EQ(node.records()[i].end, End::timed_out);
        ends.insert(node.records()[i].ended_us / kSecond);
    }
    EXPECT_GE(ends.size(), 6U);
    EXPECT_EQ(node.totals().oversubscribed_bytes, 0U);
}

TEST(Incident, ten_statements_do_not_wait_on_an_idle_node) {
    AdmissionNode node({.memory_bytes = 4 * kGiB, .cpus = 4});
    for (uint8_t i = 1; i <= 10; ++i) {
        node.submit(of_session(heavy(700 * kMiB, 1e6), i));
    }
    ASSERT_TRUE(node.run_until_idle(100 * kSecond));
    // Idle sessions have it all; what comes now runs as soon as they gave it back.
    const size_t first = node.records().size();
    for (int i = 0; i < 10; ++i) node.submit(heavy(2 * kGiB, 1e6));
    ASSERT_TRUE(node.run_until_idle(300 * kSecond));
    EXPECT_LE(node.records()[first].wait_us(), kSecond / 2);
    EXPECT_EQ(count(node, End::done), node.records().size());
    expect_promises_kept(node);
}

TEST(Incident, nobody_leaves_his_wait_to_run_on_64_mib_and_fail) {
    AdmissionNode node({.memory_bytes = 4 * kGiB, .cpus = 4, .admission_wait_us = 20 * kSecond});
    // Sizes that were measured fill the memory no more evenly than the real ones.
    const std::vector<uint64_t> peaks = {350 * kMiB, 610 * kMiB, 770 * kMiB, 130 * kMiB};
    for (const uint64_t peak : peaks) {
        node.submit(heavy(peak, 4e6));
        ASSERT_TRUE(node.run_until_idle(100 * kSecond));
    }
    const size_t first = node.records().size();
    for (size_t i = 0; i < 60; ++i) node.submit(heavy(peaks[i % peaks.size()], 4e6));
    ASSERT_TRUE(node.run_until_idle(900 * kSecond));
    EXPECT_GT(count(node, End::timed_out), 5U) << "it says so, with a clear error";
    EXPECT_GT(count(node, End::done), 10U);
    EXPECT_EQ(count(node, End::out_of_memory), 0U);
    uint64_t below_want = 0;
    for (size_t i = first; i < node.records().size(); ++i) {
        const AdmissionRecord &record = node.records()[i];
        if (record.started_us < 0) continue;
        EXPECT_GE(record.granted_bytes, record.floor_bytes);
        below_want += record.granted_bytes < record.statement.peak_bytes ? 1 : 0;
    }
    EXPECT_GT(below_want, 0U) << "it was about that";
    expect_promises_kept(node);
}

TEST(Incident, memory_of_a_cancelled_statement_is_not_lent_before_it_is_back) {
    AdmissionNode node({.memory_bytes = 4 * kGiB, .cpus = 4});
    std::vector<size_t> first;
    for (int i = 0; i < 3; ++i) {
        AdmissionStatement statement = heavy(2 * kGiB, 4e9);
        statement.give_back_us = 7 * kSecond;  // the engine is in the middle of something
        statement.pinned = true;
        first.push_back(node.submit(statement));
    }
    for (int i = 0; i < 2'000; ++i) node.step();
    const size_t next = node.submit(heavy(2 * kGiB));
    const int64_t cancelled_us = node.now_us();
    node.cancel(first[0]);
    while (node.records()[next].started_us < 0 && node.now_us() < cancelled_us + 60 * kSecond) node.step();
    EXPECT_GE(node.records()[next].started_us, cancelled_us + 7 * kSecond);
    EXPECT_LT(node.records()[next].started_us, cancelled_us + 8 * kSecond);
    EXPECT_EQ(node.totals().oversubscribed_bytes, 0U);
    EXPECT_GT(node.totals().stuck, 0U) << "and people are told";
}

TEST(Incident, a_statement_that_outgrows_its_limit_dies_alone) {
    AdmissionNode node({.memory_bytes = 8 * kGiB, .cpus = 4});
    AdmissionStatement aggregate = heavy(600 * kMiB);
    aggregate.overrun_bytes = kGiB / 2;  // list(x ORDER BY y)
    const size_t culprit = node.submit(aggregate);
    std::vector<size_t> others;
    for (int i = 0; i < 8; ++i) others.push_back(node.submit(heavy(600 * kMiB)));
    ASSERT_TRUE(node.run_until_idle(600 * kSecond));
    EXPECT_EQ(node.records()[culprit].end, End::out_of_memory);
    for (const size_t other : others) EXPECT_EQ(node.records()[other].end, End::done);
    EXPECT_EQ(node.totals().oversubscribed_bytes, 0U);
    EXPECT_EQ(node.totals().kills, 0U);
    EXPECT_LE(node.totals().used_max_bytes, 8 * kGiB);
}

TEST(Incident, what_a_statement_uses_beyond_its_limit_is_lent_to_nobody) {
    AdmissionNode node({.memory_bytes = 8 * kGiB, .cpus = 4});
    AdmissionStatement aggregate = heavy(600 * kMiB, 4e7);
    aggregate.overrun_bytes = 5 * kGiB;
    const size_t culprit = node.submit(aggregate);
    while (node.totals().used_max_bytes < 5 * kGiB) node.step();
    for (int i = 0; i < 10; ++i) node.step();
    const size_t next = node.submit(heavy(600 * kMiB));
    ASSERT_TRUE(node.run_until_idle(600 * kSecond));
    EXPECT_EQ(node.records()[culprit].end, End::out_of_memory);
    EXPECT_EQ(node.records()[next].end, End::done);
    EXPECT_GE(node.records()[next].started_us, node.records()[culprit].ended_us);
}

TEST(Incident, a_small_node_as_in_a_container_keeps_its_promises_too) {
    // The limits themselves are read from trees of cgroup v1, v2 and none in admission/budget_test.cc.
    for (const uint64_t memory : {512 * kMiB, kGiB, 3 * kGiB}) {
        for (const uint32_t cpus : {2U, 16U, 64U}) {
            AdmissionNode node({.memory_bytes = memory, .cpus = cpus});
            for (int i = 0; i < 20; ++i) node.submit(heavy(memory / 10 * static_cast<uint64_t>(1 + i % 5)));
            ASSERT_TRUE(node.run_until_idle(3'600 * kSecond)) << memory << " " << cpus;
            expect_promises_kept(node);
            EXPECT_EQ(count(node, End::done), 20U);
        }
    }
}

TEST(AdmissionRun, every_profile_keeps_its_promises_and_no_admission_does_not) {
    AdmissionWorkload workload;
    workload.duration_us = 120 * kSecond;
    for (const std::string name : {"auto", "single", "equal_2", "decaying_2", "decaying_3"}) {
        AdmissionNodeOptions node{.memory_bytes = 4 * kGiB, .cpus = 4};
        node.profile = *admission::parse_profile(name);
        const AdmissionResult result = run_admission(node, workload);
        EXPECT_GT(result.done, 100U) << name;
        EXPECT_EQ(result.totals.oversubscribed_bytes, 0U) << name;
        EXPECT_EQ(result.totals.kills, 0U) << name;
        EXPECT_EQ(result.totals.parked_us, 0U) << name;
        EXPECT_EQ(result.small_wait_p99_us, 0.0) << name;
        EXPECT_EQ(result.small_outside, 0.0) << name;
    }
    AdmissionNodeOptions none{.memory_bytes = 4 * kGiB, .cpus = 4, .admits = false};
    EXPECT_GT(run_admission(none, workload).totals.kills, 0U);
}

TEST(AdmissionRun, one_users_flood_does_not_hold_back_the_others) {
    AdmissionWorkload workload;
    workload.users = 5;
    workload.clients = 1;
    workload.flood = 100;
    workload.duration_us = 300 * kSecond;
    const AdmissionResult result = run_admission({.memory_bytes = 4 * kGiB, .cpus = 4}, workload);
    EXPECT_LT(result.others_wait_us * 5, result.first_user_wait_us);
    EXPECT_GT(result.fairness, 0.9);
}

TEST(AdmissionRun, what_was_measured_is_reserved_more_closely) {
    AdmissionWorkload workload;
    workload.duration_us = 300 * kSecond;
    workload.peak_median = 0.1;
    const AdmissionNodeOptions node{.memory_bytes = 8 * kGiB, .cpus = 4};
    AdmissionNodeOptions without = node;
    without.feedback = false;
    const AdmissionResult learns = run_admission(node, workload);
    const AdmissionResult plans = run_admission(without, workload);
    EXPECT_LT(learns.reserved_to_peak_later, plans.reserved_to_peak_later);
    EXPECT_LE(learns.reserved_to_peak_later, 1.5);
}

TEST(AdmissionRun, a_seed_fixes_everything) {
    AdmissionWorkload workload;
    workload.duration_us = 60 * kSecond;
    const AdmissionNodeOptions node{.memory_bytes = 4 * kGiB, .cpus = 4, .seed = 7};
    const AdmissionResult one = run_admission(node, workload), again = run_admission(node, workload);
    EXPECT_EQ(one.done, again.done);
    EXPECT_EQ(one.wait_mean_us, again.wait_mean_us);
    EXPECT_EQ(one.totals.used_max_bytes, again.totals.used_max_bytes);
}

TEST(AdmissionTrace, is_read_and_run) {
    std::istringstream in(
        "roost-admission-trace 1\n# two\n\nrun 0 ann q1 1000000 500000 0 2000 small\nrun 5000 bob q2 900000000 "
        "100000000 "
        "0 1e6 large\n");
    const auto trace = read_admission_trace(in);
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    ASSERT_EQ(trace->size(), 2U);
    const AdmissionResult result = run_admission({.memory_bytes = 4 * kGiB}, *trace);
    EXPECT_EQ(result.done, 2U);
    EXPECT_EQ(result.small, 1U);
    for (const std::string wrong :
         {"", "run 0 a q 1 1 1 1 large\n", "roost-admission-trace 1\nrun 0 a q 1 1 1 1 huge\n",
          "roost-admission-trace 1\nrun 0 a q 1 1 1 0 large\n", "roost-admission-trace 1\nrun 0 a q -x 1 1 1 large\n",
          "roost-admission-trace 1\nrun 9 a q 1 1 1 1 large\nrun 8 a q 1 1 1 1 large\n"}) {
        std::istringstream text(wrong);
        EXPECT_FALSE(read_admission_trace(text).ok()) << wrong;
    }
}

TEST(AdmissionCommand, prints_a_row_for_each_profile_and_refuses_others) {
    AdmissionCommand command;
    command.node.memory_bytes = 4 * kGiB;
    command.workload.duration_us = 5 * kSecond;
    command.markdown = true;
    std::ostringstream out;
    ASSERT_TRUE(run_admission_command(command, out).ok());
    for (const std::string &profile : command.profiles)
        EXPECT_NE(out.str().find("| " + profile + " |"), std::string::npos);
    command.profiles = {"double"};
    EXPECT_FALSE(run_admission_command(command, out).ok());
    command.trace = "/nowhere";
    EXPECT_FALSE(run_admission_command(command, out).ok());
}

}  // namespace
}  // namespace roost::sim
