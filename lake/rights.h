// What a person may do in the lakes of a workspace: a privilege on a catalog, a schema of it, or a table or view. A
// plain value; it travels with a statement to its node. Names are folded (folded()).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace roost {

// Each includes those before it. metadata: that it is there, with its columns. reader: what is in it. writer: changing
// it; of a schema or catalog also making, altering and dropping what is in it.
enum class Privilege : uint8_t { none = 0, metadata = 1, reader = 2, writer = 3 };
std::string_view privilege_name(Privilege privilege);
std::optional<Privilege> parse_privilege(std::string_view name);  // not none

struct CatalogRights {
    Privilege all = Privilege::none;
    std::map<std::string, Privilege> schemas;
    std::map<std::pair<std::string, std::string>, Privilege> tables;  // by schema and name

    // Raises what there is.
    void add(std::string_view schema, std::string_view table, Privilege privilege);

    Privilege of_schema(std::string_view schema) const;
    Privilege of_table(std::string_view schema, std::string_view table) const;
    // Something in it may be seen.
    bool sees_schema(std::string_view schema) const;
    bool sees_anything() const { return all != Privilege::none || !schemas.empty() || !tables.empty(); }
    bool operator==(const CatalogRights &) const = default;
};

// By catalog; one that is not there is hidden. Whoever has no Rights but may do everything has none of these.
using Rights = std::map<std::string, CatalogRights>;
// What holds in `catalog`: nothing when it is not among them.
const CatalogRights &rights_in(const Rights &rights, const std::string &catalog);

}  // namespace roost
