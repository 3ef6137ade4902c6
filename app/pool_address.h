// Where a client command finds its pool: --url and --token, else ROOST_URL and ROOST_TOKEN, else what runs in the
// pool's directory
// (--dir, ROOST_DIR, .roost).
#pragma once

#include <string>

#include "app/client_arguments.h"
#include "base/status.h"
#include "config/settings.h"

namespace roost::app {

struct PoolAddress {
    std::string url, token;
};

// The directory's token goes only to the pool that runs there and to loopback addresses: a mistyped --url must not
// receive it. not_found: no pool runs in the directory and no address was given. unauthenticated: an address but no
// token for it.
Result<PoolAddress> find_pool(const PoolArguments &arguments, const config::Environment &environment);

}  // namespace roost::app
