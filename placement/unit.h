// What placement places: a small table, or one segment of a large one. Plain value.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string_view>

#include "placement/hash.h"

namespace roost::placement {

struct UnitId {
    uint64_t catalog = 0;  // catalog_id of its name
    uint64_t table = 0;    // table id in the catalog: survives a rename
    uint64_t segment = 0;  // data file id + 1; 0: the whole table

    auto operator<=>(const UnitId &) const = default;
    bool is_table() const { return segment == 0; }
};

// The number by which placement knows a catalog; the same on every gateway and node of a pool.
constexpr uint64_t catalog_id(std::string_view name) { return hash_bytes(name); }

// A unit's half of the rank's hash.
constexpr uint64_t unit_key(const UnitId &unit) { return hash_words({unit.catalog, unit.table, unit.segment}); }

}  // namespace roost::placement

template <>
struct std::hash<roost::placement::UnitId> {
    size_t operator()(const roost::placement::UnitId &unit) const noexcept { return roost::placement::unit_key(unit); }
};
