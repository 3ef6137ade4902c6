#include "placement/ownership.h"

#include <algorithm>

namespace roost::placement {
std::optional<Ownership::Place> Ownership::place_of(const Uuid &identity) const {
    const auto found = rendezvous_.find(identity);
    if (!found) return std::nullopt;
    return place_of_member_[*found];
}

std::optional<Uuid> Ownership::name(Place place) const {
    if (place == kNobody) return std::nullopt;
    return slots_[place].member.identity;
}

void Ownership::rank_unit(size_t i) {
    if (rendezvous_.empty()) {
        owners_[i] = kNobody;
        hashes_[i] = 0;
        costs_[i] = 0;
        return;
    }
    const auto [member, hash] = rendezvous_.owner_and_hash(keys_[i]);
    give(i, place_of_member_[member], hash);
}

void Ownership::give(size_t i, Place place, uint64_t hash) {
    owners_[i] = place;
    hashes_[i] = hash;
    // Between equal weights nobody asks.
    costs_known_ = costs_known_ && !rendezvous_.uniform_;
    if (costs_known_) costs_[i] = near_cost(hash, slots_[place].scale);
}

void Ownership::know_costs() {
    if (costs_known_) return;
    costs_known_ = true;
    for (size_t i = 0; i < keys_.size(); ++i) {
        costs_[i] = owners_[i] == kNobody ? 0 : near_cost(hashes_[i], slots_[owners_[i]].scale);
    }
}

std::vector<Ownership::Move> Ownership::set_member(const Member &member) {
    std::vector<Move> moves;
    const Member wanted{member.identity, clamp_weight(member.weight)};
    if (const auto place = place_of(wanted.identity)) {
        const uint32_t before = slots_[*place].member.weight;
        if (!rendezvous_.set(wanted)) return moves;
        slots_[*place].member = wanted;
        slots_[*place].scale = scale_of(wanted.weight);
        if (wanted.weight > before) {
            take(*place, moves);
            // What it had already costs less there now.
            for (size_t i = 0; i < keys_.size(); ++i) {
                if (owners_[i] == *place) give(i, *place, hashes_[i]);
            }
        } else {
            rank_those_of(*place, moves);
        }
        return moves;
    }
    Place place = 0;
    while (place < slots_.size() && slots_[place].used) ++place;
    if (place == slots_.size()) slots_.emplace_back();
    slots_[place] = {wanted, node_key(wanted.identity), scale_of(wanted.weight), true};
    rendezvous_.set(wanted);
    const size_t at = *rendezvous_.find(wanted.identity);
    place_of_member_.insert(place_of_member_.begin() + static_cast<ptrdiff_t>(at), place);
    take(place, moves);
    return moves;
}

// Whether the member in `slot` ranks above the owner of unit i.
bool Ownership::gains(const Slot &slot, uint64_t hash, size_t i) const {
    if (owners_[i] == kNobody) return true;
    if (!rendezvous_.uniform_ && costs_known_) {
        const int near =
            compare_near_costs(near_cost(hash, slot.scale), slot.scale, costs_[i], slots_[owners_[i]].scale);
        if (near != 0) return near > 0;
    }
    const Member &holder = slots_[owners_[i]].member;
    const int order = compare_scores(hash, slot.member.weight, hashes_[i], holder.weight);
    return order != 0 ? order > 0 : slot.member.identity < holder.identity;
}

// Writes to chosen_ the units for which `may(i)` holds; returns how many. Without a branch, which would be guessed
// wrong at each one that does.
template <class May>
size_t Ownership::choose(May may) {
    chosen_.resize(keys_.size());
    uint32_t *const chosen = chosen_.data();
    const auto units = static_cast<uint32_t>(keys_.size());
    size_t count = 0;
    for (uint32_t i = 0; i < units; ++i) {
        chosen[count] = i;
        count += may(i);
    }
    return count;
}

// The member at `place` is new or heavier: it may take units, and nothing else moves.
void Ownership::take(Place place, std::vector<Move> &moves) {
    const Slot slot = slots_[place];
    if (!rendezvous_.uniform_) know_costs();
    const uint64_t *const keys = keys_.data(), *const hashes = hashes_.data(), *const costs = costs_.data();
    const Place *const owners = owners_.data();
    // Of equal weights the hash says all but a tie; that of nobody's unit is 0.
    const auto by_hash = [=](size_t i) { return pair_hash(slot.key, keys[i]) >> 11 >= hashes[i] >> 11; };
    const uint64_t margin = slot.scale.slack + kCostRounding;
    const auto by_cost = [=](size_t i) {
        return (low_cost(pair_hash(slot.key, keys[i]), slot.scale) <= costs[i] + margin) | (owners[i] == kNobody);
    };
    const bool uniform = rendezvous_.uniform_;
    const size_t count = uniform ? choose(by_hash) : choose(by_cost);
    moves.resize(count);
    size_t moved = 0;
    for (size_t k = 0; k < count; ++k) {
        const size_t i = chosen_[k];
        const uint64_t hash = pair_hash(slot.key, keys_[i]);
        const Place owner = owners_[i];
        const bool surely = uniform && hash >> 11 > hashes_[i] >> 11;
        if (owner == place || (!surely && !gains(slot, hash, i))) continue;
        moves[moved++] = {static_cast<uint32_t>(i), owner, place};
        give(i, place, hash);
    }
    moves.resize(moved);
}

// The member at `place` is lighter, or gone: what it had is ranked again, and nothing else moves.
void Ownership::rank_those_of(Place place, std::vector<Move> &moves) {
    const Place *const owners = owners_.data();
    const size_t count = choose([=](size_t i) { return owners[i] == place; });
    moves.resize(count);
    size_t moved = 0;
    for (size_t k = 0; k < count; ++k) {
        const uint32_t i = chosen_[k];
        rank_unit(i);
        moves[moved] = {i, place, owners_[i]};
        moved += owners_[i] != place;
    }
    moves.resize(moved);
}

std::vector<Ownership::Move> Ownership::remove_member(const Uuid &identity) {
    std::vector<Move> moves;
    const auto at = rendezvous_.find(identity);
    if (!at) return moves;
    const Place place = place_of_member_[*at];
    place_of_member_.erase(place_of_member_.begin() + static_cast<ptrdiff_t>(*at));
    rendezvous_.remove(identity);
    rank_those_of(place, moves);
    slots_[place].used = false;
    return moves;
}

bool Ownership::add(const UnitId &unit) {
    if (!index_.try_emplace(unit, static_cast<uint32_t>(keys_.size())).second) return false;
    units_.push_back(unit);
    keys_.push_back(unit_key(unit));
    hashes_.push_back(0);
    costs_.push_back(0);
    owners_.push_back(kNobody);
    rank_unit(keys_.size() - 1);
    return true;
}

bool Ownership::remove(const UnitId &unit) {
    const auto found = index_.find(unit);
    if (found == index_.end()) return false;
    const size_t at = found->second, last = keys_.size() - 1;
    index_.erase(found);
    if (at != last) {
        units_[at] = units_[last];
        keys_[at] = keys_[last];
        hashes_[at] = hashes_[last];
        costs_[at] = costs_[last];
        owners_[at] = owners_[last];
        index_[units_[at]] = static_cast<uint32_t>(at);
    }
    units_.pop_back();
    keys_.pop_back();
    hashes_.pop_back();
    costs_.pop_back();
    owners_.pop_back();
    return true;
}

std::optional<Uuid> Ownership::owner(const UnitId &unit) const {
    const auto found = index_.find(unit);
    return found == index_.end() ? std::nullopt : name(owners_[found->second]);
}

}  // namespace roost::placement
