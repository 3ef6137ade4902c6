// The owners of many units, kept up as members come, go and change weight: a join hashes each unit with the joiner
// alone, a removal ranks again only what the member owned, a weight change does one or the other; only what moves is
// written. The answers are those of Rendezvous. Held by who owns a list of segments for longer than a statement: the
// warmer, the pushes of new segments, the simulator. Pure; not synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "placement/rendezvous.h"

namespace roost::placement {

class Ownership {
public:
    // Members are named by a place that stays theirs as long as they are one, so that others joining rewrite nothing.
    using Place = uint16_t;
    // What moved, small: a change may name a third of all units. Its names are valid until the next change.
    struct Move {
        uint32_t unit;
        Place from, to;
    };
    const UnitId &unit(const Move &move) const { return units_[move.unit]; }
    std::optional<Uuid> from(const Move &move) const { return name(move.from); }  // none: there was no member
    std::optional<Uuid> to(const Move &move) const { return name(move.to); }

    // Each returns what moved.
    std::vector<Move> set_member(const Member &member);  // joins, or has another weight
    std::vector<Move> remove_member(const Uuid &identity);

    // False when it is there already.
    bool add(const UnitId &unit);
    bool remove(const UnitId &unit);

    // None without members, or when the unit is not here.
    std::optional<Uuid> owner(const UnitId &unit) const;
    size_t size() const { return keys_.size(); }
    const Rendezvous &members() const { return rendezvous_; }
    // Visits each unit that a member owns.
    template <class See>
    void for_each_of(const Uuid &identity, See &&see) const {
        const auto place = place_of(identity);
        for (size_t i = 0; place && i < keys_.size(); ++i) {
            if (owners_[i] == *place) see(units_[i]);
        }
    }

private:
    static constexpr Place kNobody = UINT16_MAX;
    struct Slot {
        Member member;
        uint64_t key = 0;
        Scale scale;
        bool used = false;
    };

    std::optional<Place> place_of(const Uuid &identity) const;
    void rank_unit(size_t i);
    void give(size_t i, Place place, uint64_t hash);
    bool gains(const Slot &slot, uint64_t hash, size_t i) const;
    void know_costs();
    template <class May>
    size_t choose(May may);
    void take(Place place, std::vector<Move> &moves);
    void rank_those_of(Place place, std::vector<Move> &moves);
    std::optional<Uuid> name(Place place) const;

    Rendezvous rendezvous_;
    std::vector<Place> place_of_member_;  // of rendezvous_.members()
    std::vector<Slot> slots_;             // by place

    // By unit, side by side: a change walks few of them.
    std::vector<uint64_t> keys_;
    std::vector<uint64_t> hashes_;  // with its owner; nobody's: 0
    std::vector<uint64_t> costs_;   // near_cost at its owner, when costs_known_
    bool costs_known_ = false;
    std::vector<Place> owners_;
    std::vector<UnitId> units_;
    std::unordered_map<UnitId, uint32_t> index_;
    std::vector<uint32_t> chosen_;  // room for one change's candidates
};

}  // namespace roost::placement
