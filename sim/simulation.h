// Runs a workload over a pool of modelled nodes, with placement/ deciding where each statement goes: the same code as
// the gateway's, called in the same way. Deterministic by seed. Pure but for the memory it takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/decision.h"
#include "placement/directory.h"
#include "sim/workload.h"

namespace roost::sim {

struct PoolOptions {
    std::vector<uint32_t> weights = std::vector<uint32_t>(8, 4);  // vCPUs of each node
    uint32_t slots = 16;       // statements that a node has memory for at once; more wait there
    uint64_t cache_bytes = 0;  // of all nodes together, by weight; 0: cache_ratio × data
    double cache_ratio = 1.1;
    double store_wait_us = 30'000;    // until the first byte
    double store_bytes_per_us = 200;  // a download
    bool no_wait = true;              // ask every candidate before a statement waits
    uint32_t gateways = 1;            // each with a directory of its own; clients are dealt out
    double heartbeat_us = 5e6;        // how old a gateway's knowledge of the others' load may be
};

struct MembershipChange {
    enum class Kind : uint8_t {
        join,
        die,
        restart,
        replace,
        reweigh
    } kind;                         // restart: same cache; replace: new identity, empty
    uint64_t after_statements = 0;  // counted from the start
    uint32_t node = 0;              // of PoolOptions::weights, then of joins, in order; not of join
    uint32_t weight = 4;            // join, reweigh
};

struct RunPlan {
    uint32_t in_flight_per_node = 8;  // closed loop: so many clients a node of the start; a trace keeps its own pace
    uint64_t warmup_statements = 400'000;
    uint64_t statements = 400'000;  // measured, after the warm-up
    std::vector<MembershipChange> changes;
};

struct RunResult {
    uint64_t statements = 0, unit_reads = 0;
    uint64_t misses = 0;   // unit reads that found nothing of the unit in the node's cache
    uint64_t top_ups = 0;  // that found it but for what was written since
    uint64_t store_bytes = 0, read_bytes = 0;
    double store_to_unique = 0;       // bytes fetched ÷ bytes of the units that were read, from the start on, cold
    uint64_t waited = 0;              // statements that waited for memory
    double waited_us = 0;             // all of them together
    uint64_t waited_beside_idle = 0;  // began to wait while another node had memory free
    uint64_t gave_up = 0;             // waits at a home that ended with reading cold elsewhere
    double idle_beside_us = 0;        // statement-µs in a line while some node had nothing at all to do
    double free_beside_us = 0;        // while some node had memory free
    double total_us = 0;              // simulated time
    double mean_us = 0, p50_us = 0, p99_us = 0;  // from arrival to end
    double mean_stretch = 0;                     // mean of (end - arrival) ÷ time alone on a warm node
    double served_max_to_mean = 0;               // by weight
    double homes_per_unit = 0;                   // nodes that have a unit, over units that anyone has
    uint64_t failed = 0;                         // by the death of their node; run again elsewhere
    std::vector<uint64_t> moved;                 // by change: units whose owner by rank moved
    placement::OutcomeCounts outcomes{};
    uint64_t passed_on = 0;
    double decide_us = 0;      // real time of a decision, mean: the only figure that is not of the model
    uint64_t fingerprint = 0;  // of every placement made, for the test that a seed fixes everything
};

RunResult run(const PoolOptions &pool, const placement::DirectoryOptions &placement, Workload &workload,
              const RunPlan &plan);

}  // namespace roost::sim
