// `roost sim admission`: a workload over a modelled node with the ledger itself, profile against profile.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/admission_node.h"

namespace roost::sim {

// Closed loop: a client sends its next statement some time after its last has ended.
struct AdmissionWorkload {
    uint32_t users = 8;
    uint32_t clients = 4;  // of each user
    uint32_t flood = 0;    // more clients of the first user
    uint32_t shapes = 60;
    double small_share = 0.3;    // of statements: metadata, point reads
    double session_share = 0.5;  // of clients: sessions that keep their elastic memory
    double peak_median = 0.03;   // of the node's memory
    double peak_spread = 1.2;    // sigma of its logarithm
    double estimate_factor = 5;  // median of what a plan says ÷ what is used
    double estimate_spread = 0.8;
    double cpu_median_us = 400'000;  // times the node's CPUs
    double think_us = 100'000;       // mean
    int64_t duration_us = 600'000'000;
};

// A statement of a trace, and when it arrives.
struct AdmissionArrival {
    int64_t at_us = 0;
    AdmissionStatement statement;
};

struct AdmissionResult {
    uint64_t done = 0, timed_out = 0, out_of_memory = 0, killed = 0, spilled = 0, small = 0;
    double done_per_minute = 0;                                 // small ones not counted
    double wait_mean_us = 0, wait_p50_us = 0, wait_p99_us = 0;  // small lane not counted
    double small_wait_p99_us = 0, small_outside = 0;            // share of small ones that the lane had no room for
    double first_user_wait_us = 0, others_wait_us = 0;          // means
    double fairness = 0;  // Jain's index of statements done, over the users but the first if it floods
    double reserved_to_peak_first = 0, reserved_to_peak_later = 0;  // medians, of those whose peak is XS at least
    AdmissionNode::Totals totals;
};

// Runs until the workload's time is over, or the trace is. Deterministic by the options' seed.
AdmissionResult run_admission(const AdmissionNodeOptions &node, const AdmissionWorkload &workload);
AdmissionResult run_admission(const AdmissionNodeOptions &node, const std::vector<AdmissionArrival> &trace);

// A recorded trace: a line of text each,
//   roost-admission-trace 1
//   run AT_US USER SHAPE ESTIMATE_BYTES PEAK_BYTES SCAN_BYTES CPU_US large|small
// in order of AT_US. Empty lines and those that begin with # are skipped. Errors name the line.
Result<std::vector<AdmissionArrival>> read_admission_trace(std::istream &in);

struct AdmissionCommand {
    AdmissionNodeOptions node;
    AdmissionWorkload workload;
    std::vector<std::string> profiles{"auto", "single", "equal_2", "decaying_2", "decaying_3", "none"};
    std::string trace;  // a file to read instead of making statements
    bool markdown = false;
};

// Runs and prints a table. Errors: an unknown profile, a trace that can't be read.
Status run_admission_command(const AdmissionCommand &command, std::ostream &out);

}  // namespace roost::sim
