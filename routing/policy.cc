#include "routing/policy.h"

#include <algorithm>

#include "routing/placement_policy.h"

namespace roost::routing {
namespace {

std::vector<const NodeState *> routable(const ClusterSnapshot &cluster, const StatementFeatures &statement) {
    std::vector<const NodeState *> nodes;
    for (const NodeState &node : cluster.nodes) {
        if (node.routable && node.id != statement.avoid) nodes.push_back(&node);
    }
    // The node to avoid is better than none.
    if (nodes.empty()) {
        for (const NodeState &node : cluster.nodes) {
            if (node.routable) nodes.push_back(&node);
        }
    }
    return nodes;
}

// A pinned statement runs where its transaction lives or not at all.
std::optional<Decision> pinned(const ClusterSnapshot &cluster, const StatementFeatures &statement) {
    if (!statement.pinned_node) return std::nullopt;
    Decision decision;
    decision.reason = "pinned";
    for (const NodeState &node : cluster.nodes) {
        if (node.id == *statement.pinned_node) decision.candidates.push_back(node.id);
    }
    return decision;
}

class LeastLoaded final : public Policy {
public:
    explicit LeastLoaded(std::string name) : name_(std::move(name)) {}
    std::string_view name() const override { return name_; }
    Decision decide(const ClusterSnapshot &cluster, const StatementFeatures &statement) override {
        if (auto decision = pinned(cluster, statement)) return *decision;
        auto nodes = routable(cluster, statement);
        std::stable_sort(nodes.begin(), nodes.end(), [](const NodeState *a, const NodeState *b) {
            if (a->load() != b->load()) return a->load() < b->load();
            return a->last_used < b->last_used;
        });
        Decision decision;
        decision.reason = nodes.empty() ? "no_members" : "least_loaded";
        for (const NodeState *node : nodes) decision.candidates.push_back(node->id);
        return decision;
    }

private:
    std::string name_;
};

class RoundRobin final : public Policy {
public:
    std::string_view name() const override { return "round_robin"; }
    Decision decide(const ClusterSnapshot &cluster, const StatementFeatures &statement) override {
        if (auto decision = pinned(cluster, statement)) return *decision;
        auto nodes = routable(cluster, statement);
        std::sort(nodes.begin(), nodes.end(), [](const NodeState *a, const NodeState *b) { return a->id < b->id; });
        Decision decision;
        decision.reason = nodes.empty() ? "no_members" : "round_robin";
        const size_t first = nodes.empty() ? 0 : next_++ % nodes.size();
        for (size_t i = 0; i < nodes.size(); ++i) decision.candidates.push_back(nodes[(first + i) % nodes.size()]->id);
        return decision;
    }

private:
    size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name, bool remote) {
    // Large tables too go by their homes, not by the owners of their segments, as long as a statement runs whole on one
    // node: it would fetch what others own.
    if (name == "auto") name = remote ? "affinity" : "least_loaded";
    if (name == "affinity" || name == "segments") {
        placement::DirectoryOptions options;
        options.mode = *placement::parse_mode(name);
        return std::make_unique<PlacementPolicy>(std::move(options));
    }
    if (name == "least_loaded") return std::make_unique<LeastLoaded>(std::string(name));
    if (name == "round_robin") return std::make_unique<RoundRobin>();
    return nullptr;
}

}  // namespace roost::routing
