// Which node runs a statement. Pure: a snapshot of the pool and what is known of the statement in, an order of
// candidates with the reason out. Those that go by what is warm where (placement_policy.h) also hear where a statement
// went and how it ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "placement/directory.h"
#include "sql/statement.h"

namespace roost::routing {

struct NodeState {
    Uuid id;
    std::string name;
    uint32_t weight = 1;     // effective vCPUs
    uint32_t in_flight = 0;  // statements this gateway has charged to it and not got back
    uint64_t last_used = 0;  // a counter: larger is more recent
    bool routable = true;
    uint64_t incarnation = 0;
    uint32_t others_in_flight = 0;  // statements of other gateways, by its heartbeat
    bool reports_bytes = false;     // it says what is warm; see placement::NodeView
    double load() const { return static_cast<double>(in_flight) / weight; }
};

struct ClusterSnapshot {
    std::vector<NodeState> nodes;
};

struct StatementFeatures {
    std::vector<sql::TableName> reads, writes;
    std::vector<placement::TableUse> tables;  // of these the lake's own, views expanded: find_table_uses
    std::optional<Uuid> pinned_node;          // an open transaction lives there
    std::optional<Uuid> avoid;                // just lost it there
};

struct Decision {
    std::vector<Uuid> candidates;  // best first; empty: no node can take it
    std::string reason;            // "least_loaded", "round_robin", "pinned", "no_members", placement::outcome_name
    std::string why = {};          // for a person: one line
    std::vector<placement::Candidate> looks = {};  // of candidates, what spoke for and against each; may be empty
    size_t near = 0;                               // of candidates, the first so many have the data: placement::asks_of
    int64_t patience_us = 0;                       // so long waiting there is cheaper than reading elsewhere
    placement::Claim claim = {};                   // the statement's hold on what it makes warm, until `ended`
};

class Policy {
public:
    virtual ~Policy() = default;
    virtual Decision decide(const ClusterSnapshot &cluster, const StatementFeatures &statement) = 0;
    // The same answer without a trace: for what is only described or explained.
    virtual Decision explain(const ClusterSnapshot &cluster, const StatementFeatures &statement) {
        return decide(cluster, statement);
    }
    // The statement has been sent to `node`, which need not be the first candidate.
    virtual void dispatched(Decision &, const NodeState &) {}
    // It has ended, or its node was lost. Each decision once; more do nothing.
    virtual void ended(Decision &, const placement::Ended &) {}
    // What is known of warmth; null when the policy doesn't care.
    virtual placement::Directory *directory() { return nullptr; }
    virtual std::string_view name() const = 0;
};

// "affinity", "segments": by what is warm where. "least_loaded": smallest load, ties to the least recently used.
// "round_robin". "auto": affinity where a lake's data is remote, so that warmth is worth something, else least loaded.
// Unknown: null.
std::unique_ptr<Policy> make_policy(std::string_view name, bool remote = false);

}  // namespace roost::routing
