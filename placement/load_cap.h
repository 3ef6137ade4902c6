// Load of nodes and how much of it may not keep a warm node from winning. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace roost::placement {

// A node as the gateway sees it when it decides.
struct NodeView {
    Uuid id;
    uint64_t incarnation = 0;
    uint32_t weight = 1;            // effective vCPUs
    uint32_t in_flight = 0;         // statements this gateway has charged to it and not got back
    uint32_t others_in_flight = 0;  // of other gateways, by its heartbeat
    uint64_t last_used = 0;         // a counter: larger is more recent
    bool routable = true;
    bool reports_bytes = false;  // says with each completion what is warm; else a read is taken to leave all of it warm

    double work() const { return static_cast<double>(in_flight) + others_in_flight; }
    double load() const { return work() / (weight == 0 ? 1 : weight); }
};

enum class CapRule : uint8_t {
    others,  // max(c × mean of the other routable nodes, slack); the mean is their statements ÷ their vCPUs
    seed,    // max(c × mean of all routable nodes, c), of statements, whatever the vCPUs
    none,    // a warm node always wins
};
std::string_view cap_rule_name(CapRule rule);

struct CapOptions {
    CapRule rule = CapRule::others;
    double c = 2;
    double slack = 2;  // statements a vCPU
    // The cap of a home goes by how many statements read the unit there at this moment: four times the cap for one that
    // nobody reads, twice for one that one statement reads, since sending it away would cost a download and relieve
    // nobody; three quarters for one that several read, since that is what makes the home busy. docs/placement.md says
    // what the simulator makes of it.
    bool by_demand = true;
};

// The caps of all nodes, in their order; infinite where there is no other node to go to.
struct Caps {
    std::vector<double> load, cap;
    bool over(size_t node) const { return load[node] > cap[node]; }
};
Caps caps_of(std::span<const NodeView> nodes, const CapOptions &options);

}  // namespace roost::placement
