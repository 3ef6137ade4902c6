// What somebody is told who has too little of a grant: the same by the gateway, which judges names, and by the node,
// which judges bound plans. Stateless, thread-safe.
#pragma once

#include <string>

#include "base/status.h"
#include "lake/rights.h"

namespace roost {

// 42501: it may be seen, but that takes `needed`.
Status too_little_granted(const std::string &what, Privilege needed);
// 42P01: what may not be seen is not there.
Status not_to_be_seen(const std::string &relation);

}  // namespace roost
