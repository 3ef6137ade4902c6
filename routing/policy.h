// Which node runs a statement. Pure: a snapshot of the pool and what is known of the statement in, an order of
// candidates with the reason out. Affinity (which node is warm) will fill the same interface.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "sql/statement.h"

namespace roost::routing {

struct NodeState {
    Uuid id;
    std::string name;
    uint32_t weight = 1;     // effective vCPUs
    uint32_t in_flight = 0;  // statements this gateway has charged to it and not got back
    uint64_t last_used = 0;  // a counter: larger is more recent
    bool routable = true;
    double load() const { return static_cast<double>(in_flight) / weight; }
};

struct ClusterSnapshot {
    std::vector<NodeState> nodes;
};

struct StatementFeatures {
    std::vector<sql::TableName> reads, writes;
    std::optional<Uuid> pinned_node;  // an open transaction lives there
    std::optional<Uuid> avoid;        // just lost it there
};

struct Decision {
    std::vector<Uuid> candidates;  // best first; empty: no node can take it
    std::string reason;            // "least_loaded", "round_robin", "pinned", "no_members"
};

class Policy {
public:
    virtual ~Policy() = default;
    virtual Decision decide(const ClusterSnapshot &cluster, const StatementFeatures &statement) = 0;
    virtual std::string_view name() const = 0;
};

// "auto" and "least_loaded": smallest load, ties to the least recently used. "round_robin". Unknown: null.
std::unique_ptr<Policy> make_policy(std::string_view name);

}  // namespace roost::routing
