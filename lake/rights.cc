#include "lake/rights.h"

#include <algorithm>
#include <array>

#include "lake/lake_state.h"

namespace roost {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"none", "metadata", "reader", "writer"};

template <class Map, class Key>
Privilege found_in(const Map &map, const Key &key) {
    const auto found = map.find(key);
    return found == map.end() ? Privilege::none : found->second;
}

}  // namespace

std::string_view privilege_name(Privilege privilege) { return kNames[static_cast<size_t>(privilege)]; }

std::optional<Privilege> parse_privilege(std::string_view name) {
    for (const Privilege privilege : {Privilege::metadata, Privilege::reader, Privilege::writer}) {
        if (privilege_name(privilege) == name) return privilege;
    }
    return std::nullopt;
}

void CatalogRights::add(std::string_view schema, std::string_view table, Privilege privilege) {
    Privilege &held = schema.empty()  ? all
                      : table.empty() ? schemas[folded(schema)]
                                      : tables[{folded(schema), folded(table)}];
    held = std::max(held, privilege);
}

Privilege CatalogRights::of_schema(std::string_view schema) const {
    return std::max(all, found_in(schemas, folded(schema)));
}

Privilege CatalogRights::of_table(std::string_view schema, std::string_view table) const {
    return std::max(of_schema(schema), found_in(tables, std::pair(folded(schema), folded(table))));
}

bool CatalogRights::sees_schema(std::string_view schema) const {
    if (of_schema(schema) != Privilege::none) return true;
    const std::string name = folded(schema);
    const auto first = tables.lower_bound({name, std::string()});
    return first != tables.end() && first->first.first == name;
}

const CatalogRights &rights_in(const Rights &rights, const std::string &catalog) {
    static const CatalogRights kNone;
    const auto found = rights.find(catalog);
    return found == rights.end() ? kNone : found->second;
}

}  // namespace roost
