// Changing who may do what: users, members of workspaces, grants. Each act is in the audit. Called by the HTTP front;
// loop thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "meta/store.h"
#include "net/async.h"
#include "service/session.h"

namespace roost::service {

struct MemberInfo {
    meta::Membership membership;
    std::string user_name, email;
};

struct GrantList {
    std::string access_mode;
    std::vector<meta::Grant> grants;
    std::vector<meta::User> principals;  // whom a grant could name: the members
};

struct NewUser {
    std::string name, email, password;
    std::string role = "user";  // "user" | "admin"
};
struct CreatedUser {
    meta::User user;
    std::string token;  // shown this once; only its hash is kept
};

// Errors of all: permission_denied (42501) unless the caller is an admin, or, where a workspace is named, an owner of
// it; not_found for what does not exist or the caller may not see; invalid_argument; already_exists.
class AccessAdmin {
public:
    virtual ~AccessAdmin() = default;

    virtual net::Task<Result<std::vector<meta::User>>> users(Principal who) = 0;
    virtual net::Task<Result<CreatedUser>> create_user(Principal who, NewUser request) = 0;
    // A user that is made inactive is refused at every login, and within seconds by token.
    virtual net::Task<Result<meta::User>> update_user(Principal who, Uuid user, std::optional<std::string> role,
                                                      std::optional<bool> active) = 0;
    virtual net::Task<Result<meta::Workspace>> create_workspace(Principal who, std::string slug, std::string name) = 0;

    virtual net::Task<Result<std::vector<MemberInfo>>> members(Principal who, std::string workspace) = 0;
    // `role`: owner, writer or reader.
    virtual net::Task<Result<MemberInfo>> put_member(Principal who, std::string workspace, Uuid user,
                                                     std::string role) = 0;
    virtual net::Task<Status> drop_member(Principal who, std::string workspace, Uuid user) = 0;

    virtual net::Task<Result<GrantList>> grants(Principal who, std::string workspace, std::string catalog) = 0;
    // Of `wanted` user, schema, table and tier count.
    virtual net::Task<Result<meta::Grant>> put_grant(Principal who, std::string workspace, std::string catalog,
                                                     meta::Grant wanted) = 0;
    virtual net::Task<Status> drop_grant(Principal who, std::string workspace, std::string catalog, Uuid grant) = 0;
    // "open" or "scoped".
    virtual net::Task<Result<meta::Catalog>> set_access_mode(Principal who, std::string workspace, std::string catalog,
                                                             std::string mode) = 0;
};

}  // namespace roost::service
