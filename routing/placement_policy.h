// The policies auto, affinity and segments: placement/'s directory behind the interface of routing. Loop thread only.
#pragma once

#include "placement/directory.h"
#include "routing/policy.h"

namespace roost::routing {

class PlacementPolicy final : public Policy {
public:
    explicit PlacementPolicy(placement::DirectoryOptions options) : directory_(std::move(options)) {}

    std::string_view name() const override { return placement::mode_name(directory_.options().mode); }
    Decision decide(const ClusterSnapshot &cluster, const StatementFeatures &statement) override;
    Decision explain(const ClusterSnapshot &cluster, const StatementFeatures &statement) override;
    void dispatched(Decision &decision, const NodeState &node) override;
    void ended(Decision &decision, const placement::Ended &end) override;
    placement::Directory *directory() override { return &directory_; }

private:
    placement::Directory directory_;
};

}  // namespace roost::routing
