#include "lake/grant_refusals.h"

namespace roost {

Status too_little_granted(const std::string &what, Privilege needed) {
    return Status(Code::permission_denied, "permission denied for " + what)
        .with_rule("grant")
        .with_hint("it takes the grant '" + std::string(privilege_name(needed)) + "'; ask an owner of the workspace");
}

Status not_to_be_seen(const std::string &relation) {
    return Status(Code::not_found, "relation \"" + relation + "\" does not exist")
        .with_sqlstate("42P01")
        .with_rule("grant");
}

}  // namespace roost
