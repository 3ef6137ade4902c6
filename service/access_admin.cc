// GatewayService as AccessAdmin. What changes is written first and then read back, so that two acts at once leave what
// the store has.
#include "service/access_admin.h"

#include <algorithm>

#include "lake/lake_state.h"
#include "service/gateway_service.h"

namespace roost::service {

namespace {

constexpr size_t kNameMaxBytes = 255;
constexpr size_t kPasswordMinBytes = 8, kPasswordMaxBytes = 1024;

Status bad(std::string what) { return Status(Code::invalid_argument, std::move(what)); }

bool is_plain(std::string_view text) {
    return text.size() <= kNameMaxBytes &&
           std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

Status check_user(const NewUser &request) {
    constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-";
    if (request.name.empty() || request.name.size() > 63 ||
        request.name.find_first_not_of(allowed) != std::string::npos)
        return bad("a user's name is 1 to 63 of A-Z, a-z, 0-9, '_', '.', '@' and '-'");
    if (!is_plain(request.email)) return bad("the email is too long or holds control characters");
    if (request.password.size() < kPasswordMinBytes || request.password.size() > kPasswordMaxBytes)
        return bad("a password has 8 to 1024 bytes");
    if (request.role != "user" && request.role != "admin") return bad("a role is user or admin");
    return Status();
}

Status check_admin(const Principal &who) {
    if (who.role == "admin") return Status();
    return Status(Code::permission_denied, "users are managed by admins").with_hint("ask an admin of the pool");
}

Status no_user() { return Status(Code::not_found, "there is no such user").with_name("user_not_found"); }

}  // namespace

// What the audit keeps of an act, and the access that holds from then on.
net::Task<void> GatewayService::changed_access(const Principal &who, std::string workspace, std::string event,
                                               std::string what) {
    core_->log.info("access_changed", {{"event", event}, {"user", who.user_name}, {"what", what}});
    core_->audit.changed(who, workspace, event, what);
    co_await reload_access();
    tokens_.clear();
}

net::Task<Result<meta::User>> GatewayService::user_by_id(Uuid id) {
    auto all = co_await core_->blocking([meta = &core_->meta] { return meta->users(); });
    if (!all.ok()) co_return all.status();
    for (meta::User &user : *all) {
        if (user.id == id) co_return std::move(user);
    }
    co_return no_user();
}

net::Task<Result<std::vector<meta::User>>> GatewayService::users(Principal who) {
    if (Status status = check_admin(who); !status.ok()) co_return status;
    co_return co_await core_->blocking([meta = &core_->meta] { return meta->users(); });
}

net::Task<Result<CreatedUser>> GatewayService::create_user(Principal who, NewUser request) {
    if (Status status = check_admin(who); !status.ok()) co_return status;
    if (Status status = check_user(request); !status.ok()) co_return status;
    auto made = co_await core_->blocking(
        [meta = &core_->meta, request, now_us = core_->clock.wall_us()]() -> Result<CreatedUser> {
            CreatedUser created;
            created.user = {Uuid::make(), request.name, request.role, meta::make_scram_verifier(request.password),
                            now_us,       request.email};
            created.token = random_hex(32);
            ROOST_RETURN_IF_ERROR(meta->put_user(created.user));
            ROOST_RETURN_IF_ERROR(meta->put_token(created.user.id, created.token, 0));
            return created;
        });
    if (made.ok()) co_await changed_access(who, "", "user_created", request.name + " as " + request.role);
    co_return made;
}

net::Task<Result<meta::User>> GatewayService::update_user(Principal who, Uuid id, std::optional<std::string> role,
                                                          std::optional<bool> active) {
    if (Status status = check_admin(who); !status.ok()) co_return status;
    if (role && *role != "user" && *role != "admin") co_return bad("a role is user or admin");
    if (id == who.user_id) co_return bad("nobody changes the own role or activity: another admin can");
    auto user = co_await user_by_id(id);
    if (!user.ok()) co_return user.status();
    if (role) user->role = *role;
    if (active) user->active = *active;
    const Status written =
        co_await core_->blocking([meta = &core_->meta, changed = *user] { return meta->put_user(changed); });
    if (!written.ok()) co_return written;
    co_await changed_access(who, "", "user_changed",
                            user->name + ": " + user->role + (user->active ? ", active" : ", inactive"));
    co_return user;
}

net::Task<Result<meta::Workspace>> GatewayService::create_workspace(Principal who, std::string slug, std::string name) {
    if (Status status = check_admin(who); !status.ok()) co_return status;
    constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    if (slug.empty() || slug.size() > 63 || slug.find_first_not_of(allowed) != std::string::npos || !is_plain(name))
        co_return bad("a workspace's slug is 1 to 63 of a-z, 0-9, '_' and '-'");
    const meta::Workspace workspace{Uuid::make(), slug, name.empty() ? slug : name, "", core_->clock.wall_us()};
    const Status written =
        co_await core_->blocking([meta = &core_->meta, workspace] { return meta->put_workspace(workspace); });
    if (!written.ok()) co_return written;
    co_await changed_access(who, slug, "workspace_created", slug);
    co_return workspace;
}

Result<meta::Workspace> GatewayService::managed_workspace(const Principal &who, const std::string &name) const {
    ROOST_ASSIGN_OR_RETURN(const meta::Workspace *workspace, find_workspace(who, name));
    ROOST_RETURN_IF_ERROR(check_manages(core_->access, who, *workspace));
    return *workspace;
}

net::Task<Result<std::vector<MemberInfo>>> GatewayService::members(Principal who, std::string name) {
    const auto workspace = find_workspace(who, name);
    if (!workspace.ok()) co_return workspace.status();
    const Uuid id = (*workspace)->id;
    const auto all = co_await core_->blocking([meta = &core_->meta] { return meta->users(); });
    if (!all.ok()) co_return all.status();
    std::vector<MemberInfo> found;
    for (const meta::Membership &membership : core_->access.tables().memberships) {
        if (membership.workspace != id) continue;
        const auto user = std::ranges::find(*all, membership.user, &meta::User::id);
        if (user != all->end()) found.push_back({membership, user->name, user->email});
    }
    std::ranges::sort(found, {}, &MemberInfo::user_name);
    co_return found;
}

net::Task<Result<MemberInfo>> GatewayService::put_member(Principal who, std::string name, Uuid user, std::string role) {
    const auto workspace = managed_workspace(who, name);
    if (!workspace.ok()) co_return workspace.status();
    if (!parse_role(role)) co_return bad("a member's role is owner, writer or reader");
    const auto found = co_await user_by_id(user);
    if (!found.ok()) co_return found.status();
    const meta::Membership membership{workspace->id, user, role, core_->clock.wall_us()};
    const Status written =
        co_await core_->blocking([meta = &core_->meta, membership] { return meta->put_membership(membership); });
    if (!written.ok()) co_return written;
    co_await changed_access(who, workspace->slug, "member_set", found->name + " as " + role);
    co_return MemberInfo{membership, found->name, found->email};
}

net::Task<Status> GatewayService::drop_member(Principal who, std::string name, Uuid user) {
    const auto workspace = managed_workspace(who, name);
    if (!workspace.ok()) co_return workspace.status();
    const Status written = co_await core_->blocking(
        [meta = &core_->meta, id = workspace->id, user] { return meta->drop_membership(id, user); });
    if (written.ok()) co_await changed_access(who, workspace->slug, "member_removed", user.to_string());
    co_return written;
}

Result<meta::Catalog> GatewayService::managed_catalog(const Principal &who, const std::string &name,
                                                      const std::string &catalog) const {
    ROOST_ASSIGN_OR_RETURN(const meta::Workspace workspace, managed_workspace(who, name));
    const meta::Catalog *found = find_catalog(who, workspace.id, catalog);
    if (found) return *found;
    return Status(Code::not_found, "there is no catalog '" + catalog + "' in this workspace")
        .with_name("catalog_not_found");
}

net::Task<Result<GrantList>> GatewayService::grants(Principal who, std::string workspace, std::string catalog) {
    const auto found = managed_catalog(who, workspace, catalog);
    if (!found.ok()) co_return found.status();
    const auto all = co_await core_->blocking([meta = &core_->meta] { return meta->users(); });
    if (!all.ok()) co_return all.status();
    GrantList list;
    list.access_mode = found->access_mode;
    for (const meta::Grant &grant : core_->access.tables().grants) {
        if (grant.catalog == found->id) list.grants.push_back(grant);
    }
    for (const meta::User &user : *all) {
        const Role role = core_->access.role_of({user.id, user.name, user.role}, found->workspace);
        if (role != Role::none) list.principals.push_back(user);
    }
    co_return list;
}

net::Task<Result<meta::Grant>> GatewayService::put_grant(Principal who, std::string workspace, std::string catalog,
                                                         meta::Grant wanted) {
    const auto found = managed_catalog(who, workspace, catalog);
    if (!found.ok()) co_return found.status();
    if (!parse_privilege(wanted.tier)) co_return bad("a tier is metadata, reader or writer");
    if (wanted.schema.empty() && !wanted.table.empty()) co_return bad("a grant on a table names its schema too");
    if (!is_plain(wanted.schema) || !is_plain(wanted.table)) co_return bad("a name holds control characters");
    const auto user = co_await user_by_id(wanted.user);
    if (!user.ok()) co_return user.status();
    if (core_->access.role_of({user->id, user->name, user->role}, found->workspace) == Role::none)
        co_return bad("user '" + user->name + "' is not a member of the workspace; add them first");
    wanted.id = Uuid::make();
    wanted.catalog = found->id;
    // Names compare without case, and one object has one grant of a user.
    wanted.schema = folded(wanted.schema);
    wanted.table = folded(wanted.table);
    wanted.granted_by = who.user_id;
    wanted.created_us = core_->clock.wall_us();
    const Status written = co_await core_->blocking([meta = &core_->meta, wanted] { return meta->put_grant(wanted); });
    if (!written.ok()) co_return written;
    std::string object = found->slug;
    if (!wanted.schema.empty()) object += "." + wanted.schema;
    if (!wanted.table.empty()) object += "." + wanted.table;
    co_await changed_access(who, workspace, "grant_set", wanted.tier + " on " + object + " to " + user->name);
    for (const meta::Grant &grant : core_->access.tables().grants) {
        if (grant.user == wanted.user && grant.catalog == wanted.catalog && grant.schema == wanted.schema &&
            grant.table == wanted.table)
            co_return grant;
    }
    co_return wanted;
}

net::Task<Status> GatewayService::drop_grant(Principal who, std::string workspace, std::string catalog, Uuid id) {
    const auto found = managed_catalog(who, workspace, catalog);
    if (!found.ok()) co_return found.status();
    const auto &all = core_->access.tables().grants;
    const auto grant =
        std::ranges::find_if(all, [&](const meta::Grant &one) { return one.id == id && one.catalog == found->id; });
    if (grant == all.end()) co_return Status(Code::not_found, "there is no such grant on this catalog");
    const std::string what = grant->tier + " on " + found->slug + "." + grant->schema + "." + grant->table + " of " +
                             grant->user.to_string();
    const Status written = co_await core_->blocking([meta = &core_->meta, id] { return meta->drop_grant(id); });
    if (written.ok()) co_await changed_access(who, workspace, "grant_removed", what);
    co_return written;
}

net::Task<Result<meta::Catalog>> GatewayService::set_access_mode(Principal who, std::string workspace,
                                                                 std::string catalog, std::string mode) {
    auto found = managed_catalog(who, workspace, catalog);
    if (!found.ok()) co_return found.status();
    if (mode != "open" && mode != "scoped") co_return bad("an access mode is open or scoped");
    found->access_mode = mode;
    const Status written =
        co_await core_->blocking([meta = &core_->meta, changed = *found] { return meta->put_catalog(changed); });
    if (!written.ok()) co_return written;
    co_await changed_access(who, workspace, "access_mode_set", found->slug + ": " + mode);
    co_return found;
}

}  // namespace roost::service
