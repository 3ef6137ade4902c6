#include "placement/home_table.h"

#include <algorithm>

namespace roost::placement {

Home *Unit::home(const Uuid &node) {
    const auto found = std::ranges::find(homes, node, &Home::node);
    return found == homes.end() ? nullptr : &*found;
}

const Home *Unit::home(const Uuid &node) const { return const_cast<Unit *>(this)->home(node); }

void Unit::erase(const Uuid &node) {
    std::erase_if(homes, [&](const Home &home) { return home.node == node; });
}

const Unit *HomeTable::find(const UnitId &id) const {
    const auto found = index_.find(id);
    return found == index_.end() ? nullptr : &*found->second;
}

Unit *HomeTable::find(const UnitId &id) {
    const auto found = index_.find(id);
    return found == index_.end() ? nullptr : &*found->second;
}

Unit &HomeTable::touch(const UnitId &id) {
    if (const auto found = index_.find(id); found != index_.end()) {
        units_.splice(units_.begin(), units_, found->second);
        return units_.front();
    }
    if (index_.size() >= units_max_) {
        index_.erase(units_.back().id);
        units_.pop_back();
        ++dropped_;
    }
    units_.emplace_front().id = id;
    index_.emplace(id, units_.begin());
    return units_.front();
}

Unit *HomeTable::add_if_room(const UnitId &id) {
    if (Unit *unit = find(id)) return unit;
    if (index_.size() >= units_max_) return nullptr;
    units_.emplace_back().id = id;
    index_.emplace(id, std::prev(units_.end()));
    return &units_.back();
}

void HomeTable::erase(const UnitId &id) {
    const auto found = index_.find(id);
    if (found == index_.end()) return;
    units_.erase(found->second);
    index_.erase(found);
}

}  // namespace roost::placement
