// Which nodes rank highest for a unit, computed from the unit's id and the member list alone: gateways and nodes derive
// the same answer without asking each other. Removing a member moves only its units, adding one moves units only to it,
// a weight change moves units only to it or only away from it. Pure; not synchronised; cheap to copy.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "placement/score.h"
#include "placement/unit.h"

namespace roost::placement {

struct Member {
    Uuid identity;        // of the node's cache directory
    uint32_t weight = 1;  // effective vCPUs, brought into [1, kMaxWeight]
    bool operator==(const Member &) const = default;
};

// A node's half of the rank's hash.
uint64_t node_key(const Uuid &identity);
// The 64-bit hash of the pair. Both halves are mixed already; what is left is to part them.
constexpr uint64_t pair_hash(uint64_t node_key, uint64_t unit_key) { return mix64(node_key ^ unit_key); }
uint32_t clamp_weight(uint32_t weight);

class Rendezvous {
public:
    Rendezvous() = default;
    explicit Rendezvous(const std::vector<Member> &members);

    // Adds a member or changes its weight. True when something changed.
    bool set(const Member &member);
    bool remove(const Uuid &identity);

    size_t size() const { return members_.size(); }
    bool empty() const { return members_.empty(); }
    // In order of identity.
    const std::vector<Member> &members() const { return members_; }
    std::optional<size_t> find(const Uuid &identity) const;

    // The place in members() of the owner (rank 1). REQUIRES: not empty.
    size_t owner(uint64_t unit_key) const { return owner_and_hash(unit_key).first; }
    size_t owner(const UnitId &unit) const { return owner(unit_key(unit)); }
    // Places in members(), owner first, then the standbys. `into` is filled anew; reuse it to spare allocations.
    void rank(uint64_t unit_key, std::vector<size_t> &into) const;
    // Whether the member at `a` ranks above the one at `b`. REQUIRES: a != b
    bool above(size_t a, size_t b, uint64_t unit_key) const;

private:
    friend class Ownership;
    // With the pair's hash; of members that weigh the same, the bits that count of it.
    std::pair<size_t, uint64_t> owner_and_hash(uint64_t unit_key) const {
        if (uniform_) return owner_of_equals(unit_key);
        const size_t owner = owner_by_weight(unit_key);
        return {owner, pair_hash(keys_[owner], unit_key)};
    }
    // Of equal hashes the smaller identity wins: it comes first, and is passed only by a higher one.
    std::pair<size_t, uint64_t> owner_of_equals(uint64_t unit_key) const {
        const uint64_t *const keys = keys_.data();
        const size_t members = keys_.size();
        size_t best = 0;
        uint64_t best_hash = pair_hash(keys[0], unit_key) >> 11;
        for (size_t i = 1; i < members; ++i) {
            const uint64_t hash = pair_hash(keys[i], unit_key) >> 11;
            best = hash > best_hash ? i : best;
            best_hash = hash > best_hash ? hash : best_hash;
        }
        return {best, best_hash << 11};
    }
    size_t owner_by_weight(uint64_t unit_key) const;
    void look_for_equals();

    std::vector<Member> members_;
    std::vector<uint64_t> keys_;  // of members_
    std::vector<Scale> scales_;   // of members_
    bool uniform_ = true;         // all weights equal
    uint64_t slack_max_ = 0;      // of scales_
};

}  // namespace roost::placement
