#include "service/access.h"

#include <array>

namespace roost::service {

namespace {
constexpr std::array<std::string_view, 4> kRoles = {"none", "reader", "writer", "owner"};
}

std::string_view role_name(Role role) { return kRoles[static_cast<size_t>(role)]; }

std::optional<Role> parse_role(std::string_view name) {
    for (const Role role : {Role::reader, Role::writer, Role::owner}) {
        if (role_name(role) == name) return role;
    }
    return std::nullopt;
}

void Access::load(meta::AccessTables tables, const std::vector<meta::Catalog> &catalogs) {
    tables_ = std::move(tables);
    catalogs_ = catalogs;
    roles_.clear();
    grants_of_.clear();
    for (const meta::Membership &membership : tables_.memberships) {
        // One that this version does not know gives nothing.
        roles_[{membership.user, membership.workspace}] = parse_role(membership.role).value_or(Role::none);
    }
    for (size_t i = 0; i < tables_.grants.size(); ++i) {
        grants_of_[{tables_.grants[i].user, tables_.grants[i].catalog}].push_back(i);
    }
}

Role Access::role_of(const Principal &who, const Uuid &workspace) const {
    if (who.role == "admin") return Role::owner;
    const auto found = roles_.find({who.user_id, workspace});
    return found == roles_.end() ? Role::none : found->second;
}

CatalogRights Access::rights_in(const Uuid &user, Role role, const meta::Catalog &catalog) const {
    CatalogRights rights;
    if (role == Role::owner) {
        rights.all = Privilege::writer;
    } else if (role != Role::none && catalog.access_mode == "open") {
        rights.all = role == Role::writer ? Privilege::writer : Privilege::reader;
    }
    if (role == Role::none) return rights;  // grants are for members
    const auto found = grants_of_.find({user, catalog.id});
    if (found == grants_of_.end()) return rights;
    for (const size_t i : found->second) {
        const meta::Grant &grant = tables_.grants[i];
        if (const auto privilege = parse_privilege(grant.tier)) rights.add(grant.schema, grant.table, *privilege);
    }
    return rights;
}

std::optional<Rights> Access::rights_of(const Principal &who, const Uuid &workspace) const {
    const Role role = role_of(who, workspace);
    if (role == Role::owner) return std::nullopt;
    Rights rights;
    bool everything = true;
    for (const meta::Catalog &catalog : catalogs_) {
        if (catalog.workspace != workspace) continue;
        CatalogRights own = rights_in(who.user_id, role, catalog);
        everything = everything && own.all == Privilege::writer;
        if (own.sees_anything()) rights.emplace(catalog.slug, std::move(own));
    }
    if (everything && !rights.empty()) return std::nullopt;
    return rights;
}

bool Access::sees(const Principal &who, const meta::Catalog &catalog) const {
    return rights_in(who.user_id, role_of(who, catalog.workspace), catalog).sees_anything();
}

Status check_manages(const Access &access, const Principal &who, const meta::Workspace &workspace) {
    if (access.role_of(who, workspace.id) == Role::owner) return Status();
    return Status(Code::permission_denied,
                  "members and grants of workspace '" + workspace.slug + "' are changed by its owners and by admins")
        .with_hint("ask one of them");
}

}  // namespace roost::service
