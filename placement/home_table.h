// What is known of where units are warm: per catalog a bounded table of units, each with its homes. Dropped first when
// a catalog's table is full: the unit that no decision has named for longest. Pure; not synchronised; owned by
// Directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "placement/unit.h"

namespace roost::placement {

// One incarnation of a node where a unit is warm, or about to be.
struct Home {
    Uuid node;
    uint64_t incarnation = 0;
    uint64_t warm_bytes = 0;  // as the node reports them; 0: coming, by statements that are reading it now
    uint64_t epoch = 0;       // newest snapshot at which it was read or written there to the end; 0: not known
    uint32_t reading = 0;     // statements under way there that name the unit
    bool left = false;        // the unit has moved to another owner: not asked as long as a better home has room
};

struct Unit {
    UnitId id;
    uint64_t epoch = 0;  // snapshot that changed it last
    uint64_t bytes = 0;  // live
    Uuid owner;          // by rank, when it was placed; another one that is its owner now gets it
    bool large = false;  // its segments are units of their own; it has no homes then
    std::vector<Home> homes;

    // A home that has seen the last change. One that reported itself and whose snapshot nobody knows counts when it is
    // whole.
    bool is_fresh(const Home &home) const { return is_fresh(home, epoch, bytes); }
    static bool is_fresh(const Home &home, uint64_t epoch, uint64_t bytes) {
        return home.warm_bytes > 0 && (home.epoch >= epoch || (home.epoch == 0 && home.warm_bytes >= bytes));
    }
    Home *home(const Uuid &node);
    const Home *home(const Uuid &node) const;
    void erase(const Uuid &node);
};

class HomeTable {
public:
    explicit HomeTable(size_t units_max) : units_max_(units_max) {}

    const Unit *find(const UnitId &id) const;
    Unit *find(const UnitId &id);
    // The unit, newest now; made when it is not there, for which the oldest goes when the table is full.
    Unit &touch(const UnitId &id);
    // The unit; made, as the oldest, when it is not there and there is room. Null when there is none.
    Unit *add_if_room(const UnitId &id);
    void erase(const UnitId &id);

    size_t size() const { return index_.size(); }
    uint64_t dropped() const { return dropped_; }
    template <class See>
    void for_each(See &&see) {
        for (Unit &unit : units_) see(unit);
    }
    template <class See>
    void for_each(See &&see) const {
        for (const Unit &unit : units_) see(unit);
    }

private:
    size_t units_max_;
    std::list<Unit> units_;  // newest first
    std::unordered_map<UnitId, std::list<Unit>::iterator> index_;
    uint64_t dropped_ = 0;
};

}  // namespace roost::placement
