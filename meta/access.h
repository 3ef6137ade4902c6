// Who may do what: members of workspaces and grants on catalogs, as the meta store keeps them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace roost::meta {

struct Membership {
    Uuid workspace, user;
    std::string role;  // owner | writer | reader
    int64_t created_us = 0;
};

// On a catalog, or a schema of it, or a table or view. One for each user and object.
struct Grant {
    Uuid id, user, catalog;
    std::string schema, table;  // empty: all below
    std::string tier;           // metadata | reader | writer
    Uuid granted_by;
    int64_t created_us = 0;
};

struct AccessTables {
    std::vector<Membership> memberships;
    std::vector<Grant> grants;
};

}  // namespace roost::meta
