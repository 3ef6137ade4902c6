// What `roost sim placement` is told and prints.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/simulation.h"

namespace roost::sim {

struct Policy {
    std::string name;
    placement::DirectoryOptions options;
};

// "least_loaded", "round_robin", "segments", "seed" (seed 000 exactly), "affinity" (the rules of `base`), "impatient"
// (the same, and no statement waits at its home for memory while another node has some), "plain" (that with one cap for
// all, as the formula reads).
Result<Policy> policy_named(const std::string &name, const placement::DirectoryOptions &base);
std::vector<std::string> policy_names();

struct SimCommand {
    PoolOptions pool;
    WorkloadOptions workload;
    RunPlan plan;
    std::vector<uint32_t> in_flight{1, 8, 64};  // a run of every policy at each
    std::vector<std::string> policies = policy_names();
    placement::DirectoryOptions placement;  // of the policies that go by homes
    std::string trace;                      // a file to read instead of making statements
    std::string write_trace;                // a file to write statements to; nothing is run
    bool markdown = false;
    uint64_t seed = 1;
};

// KIND@COUNT[:NODE[:WEIGHT]], KIND of join, die, restart, replace, reweigh: "join@500000", "die@500000:3",
// "reweigh@500000:2:8". COUNT statements from the start on.
Result<MembershipChange> parse_change(const std::string &text);

// Runs and prints a table. Errors: a trace that can't be read, an unknown policy, nothing to run.
Status run_command(const SimCommand &command, std::ostream &out);

}  // namespace roost::sim
