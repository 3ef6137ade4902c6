// Who may do what in the workspaces, as the gateway knows it: memberships and grants of the meta store, and what comes
// of them for one person. Loop thread only. Owned by Core; loaded at start and every few seconds, so that what another
// gateway changed is seen.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "lake/rights.h"
#include "meta/store.h"
#include "service/session.h"

namespace roost::service {

enum class Role : uint8_t { none = 0, reader = 1, writer = 2, owner = 3 };
std::string_view role_name(Role role);
std::optional<Role> parse_role(std::string_view name);  // not none

class Access {
public:
    void load(meta::AccessTables tables, const std::vector<meta::Catalog> &catalogs);

    const meta::AccessTables &tables() const { return tables_; }

    // In a workspace; an admin is owner everywhere.
    Role role_of(const Principal &who, const Uuid &workspace) const;
    // In the catalogs of a workspace. Nothing: everything.
    std::optional<Rights> rights_of(const Principal &who, const Uuid &workspace) const;
    // Something of it may be seen.
    bool sees(const Principal &who, const meta::Catalog &catalog) const;

private:
    CatalogRights rights_in(const Uuid &user, Role role, const meta::Catalog &catalog) const;

    meta::AccessTables tables_;
    std::vector<meta::Catalog> catalogs_;
    std::map<std::pair<Uuid, Uuid>, Role> roles_;                     // by user and workspace
    std::map<std::pair<Uuid, Uuid>, std::vector<size_t>> grants_of_;  // by user and catalog: places in tables_.grants
};

// permission_denied (42501) unless `who` may change members and grants of the workspace.
Status check_manages(const Access &access, const Principal &who, const meta::Workspace &workspace);

}  // namespace roost::service
