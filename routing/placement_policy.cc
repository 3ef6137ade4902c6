#include "routing/placement_policy.h"

namespace roost::routing {
namespace {

placement::NodeView view_of(const NodeState &node) {
    return {node.id,        node.incarnation, node.weight,       node.in_flight, node.others_in_flight,
            node.last_used, node.routable,    node.reports_bytes};
}

std::vector<placement::NodeView> views_of(const ClusterSnapshot &cluster) {
    std::vector<placement::NodeView> views;
    views.reserve(cluster.nodes.size());
    for (const NodeState &node : cluster.nodes) views.push_back(view_of(node));
    return views;
}

placement::Request request_of(const StatementFeatures &statement) {
    return {statement.tables, statement.pinned_node, statement.avoid};
}

Decision told(placement::Decision placed, const ClusterSnapshot &cluster) {
    Decision decision;
    decision.reason = placement::outcome_name(placed.outcome);
    decision.why = placement::reason_text(placed, [&](const Uuid &id) {
        for (const NodeState &node : cluster.nodes) {
            if (node.id == id) return node.name;
        }
        return id.to_string();
    });
    decision.candidates.reserve(placed.candidates.size());
    for (const placement::Candidate &candidate : placed.candidates) decision.candidates.push_back(candidate.node);
    decision.near = placed.near;
    decision.patience_us = placed.patience_us;
    decision.looks = std::move(placed.candidates);
    decision.claim = std::move(placed.claim);
    return decision;
}

}  // namespace

Decision PlacementPolicy::decide(const ClusterSnapshot &cluster, const StatementFeatures &statement) {
    return told(directory_.decide(views_of(cluster), request_of(statement)), cluster);
}

Decision PlacementPolicy::explain(const ClusterSnapshot &cluster, const StatementFeatures &statement) {
    return told(directory_.explain(views_of(cluster), request_of(statement)), cluster);
}

void PlacementPolicy::dispatched(Decision &decision, const NodeState &node) {
    directory_.dispatched(decision.claim, view_of(node));
}

void PlacementPolicy::ended(Decision &decision, const placement::Ended &end) { directory_.ended(decision.claim, end); }

}  // namespace roost::routing
