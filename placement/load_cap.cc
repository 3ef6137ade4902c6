#include "placement/load_cap.h"

#include <algorithm>
#include <limits>

namespace roost::placement {

std::string_view cap_rule_name(CapRule rule) {
    switch (rule) {
        case CapRule::others:
            return "others";
        case CapRule::seed:
            return "seed";
        case CapRule::none:
            return "none";
    }
    return "";
}

Caps caps_of(std::span<const NodeView> nodes, const CapOptions &options) {
    constexpr double kNoCap = std::numeric_limits<double>::infinity();
    Caps caps;
    caps.load.reserve(nodes.size());
    caps.cap.reserve(nodes.size());
    double work = 0, weight = 0;
    size_t routable = 0;
    for (const NodeView &node : nodes) {
        if (!node.routable) continue;
        work += node.work();
        weight += node.weight;
        ++routable;
    }
    for (const NodeView &node : nodes) {
        caps.load.push_back(options.rule == CapRule::seed ? node.work() : node.load());
        double cap = kNoCap;
        if (options.rule == CapRule::seed && routable > 0) {
            cap = std::max(options.c * work / static_cast<double>(routable), options.c);
        } else if (options.rule == CapRule::others) {
            const double others_weight = weight - (node.routable ? node.weight : 0);
            const double others_work = work - (node.routable ? node.work() : 0);
            if (others_weight > 0) cap = std::max(options.c * others_work / others_weight, options.slack);
        }
        caps.cap.push_back(cap);
    }
    return caps;
}

}  // namespace roost::placement
