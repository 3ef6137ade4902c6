#include "placement/rendezvous.h"

#include <algorithm>

namespace roost::placement {

uint64_t node_key(const Uuid &identity) { return hash_bytes(identity.raw()); }

uint32_t clamp_weight(uint32_t weight) { return std::clamp(weight, 1u, kMaxWeight); }

Rendezvous::Rendezvous(const std::vector<Member> &members) {
    for (const Member &member : members) set(member);
}

std::optional<size_t> Rendezvous::find(const Uuid &identity) const {
    const auto at = std::ranges::lower_bound(members_, identity, {}, &Member::identity);
    if (at == members_.end() || at->identity != identity) return std::nullopt;
    return static_cast<size_t>(at - members_.begin());
}

bool Rendezvous::set(const Member &member) {
    const uint32_t weight = clamp_weight(member.weight);
    const auto at = std::ranges::lower_bound(members_, member.identity, {}, &Member::identity);
    if (at != members_.end() && at->identity == member.identity) {
        if (at->weight == weight) return false;
        at->weight = weight;
        scales_[static_cast<size_t>(at - members_.begin())] = scale_of(weight);
    } else {
        keys_.insert(keys_.begin() + (at - members_.begin()), node_key(member.identity));
        scales_.insert(scales_.begin() + (at - members_.begin()), scale_of(weight));
        members_.insert(at, {member.identity, weight});
    }
    look_for_equals();
    return true;
}

bool Rendezvous::remove(const Uuid &identity) {
    const auto found = find(identity);
    if (!found) return false;
    members_.erase(members_.begin() + static_cast<ptrdiff_t>(*found));
    keys_.erase(keys_.begin() + static_cast<ptrdiff_t>(*found));
    scales_.erase(scales_.begin() + static_cast<ptrdiff_t>(*found));
    look_for_equals();
    return true;
}

void Rendezvous::look_for_equals() {
    uniform_ = std::ranges::all_of(members_, [&](const Member &each) { return each.weight == members_[0].weight; });
    slack_max_ = 0;
    for (const Scale &scale : scales_) slack_max_ = std::max(slack_max_, scale.slack);
}

size_t Rendezvous::owner_by_weight(uint64_t unit_key) const {
    // The two lowest costs, without a branch that would be guessed wrong; mostly they are far enough apart.
    size_t best = 0;
    uint64_t lowest = UINT64_MAX, second = UINT64_MAX;
    for (size_t i = 0; i < keys_.size(); ++i) {
        const uint64_t cost = near_cost(pair_hash(keys_[i], unit_key), scales_[i]);
        second = std::min(second, std::max(lowest, cost));
        best = cost < lowest ? i : best;
        lowest = std::min(lowest, cost);
    }
    if (second - lowest > slack_max_ + kCostRounding) return best;
    for (size_t i = best = 0; i < keys_.size(); ++i) {
        if (i != best && above(i, best, unit_key)) best = i;
    }
    return best;
}

bool Rendezvous::above(size_t a, size_t b, uint64_t unit_key) const {
    const int order = compare_scores(pair_hash(keys_[a], unit_key), members_[a].weight, pair_hash(keys_[b], unit_key),
                                     members_[b].weight);
    return order != 0 ? order > 0 : a < b;
}

void Rendezvous::rank(uint64_t unit_key, std::vector<size_t> &into) const {
    into.resize(members_.size());
    for (size_t i = 0; i < into.size(); ++i) {
        // Insertion: pools are small, and nothing is allocated.
        size_t at = i;
        for (; at > 0 && above(i, into[at - 1], unit_key); --at) into[at] = into[at - 1];
        into[at] = i;
    }
}

}  // namespace roost::placement
