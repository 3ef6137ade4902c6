// Whether an address can be listened at, asked before the gateway is started so that the message can name the flag.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "config/values.h"

namespace roost::app {

// Ok for port 0. `flag` is what the person would change: "--http". `patience_ms`: how long an address may still be
// taken by processes that are on their way out. already_exists: in use. permission_denied, invalid_argument: the kernel
// refuses the address.
Status check_can_listen(const config::Address &address, const std::string &flag, int64_t patience_ms);

}  // namespace roost::app
