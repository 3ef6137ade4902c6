// How a gateway process tells `roost up` where it listens. The supervisor starts `roost gateway` with one end of a pipe
// and names the descriptor in the variable ROOST_ENDPOINTS_FD. Once every listener is bound the gateway calls
// report_endpoints(), which writes one line of JSON and closes the descriptor:
//   {"http":"127.0.0.1:8080","pg":"127.0.0.1:5433","internal":"unix:/path/gateway.sock"}
// `internal` is what `roost node --join` takes. A gateway that was not started by `roost up` has no such variable and
// the call does nothing. Not thread-safe: call it once, at start, before other threads read the environment.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace roost::app {

inline constexpr const char *kEndpointsVariable = "ROOST_ENDPOINTS_FD";

struct Endpoints {
    std::string http, pg;  // HOST:PORT with the real port
    std::string internal;
    bool operator==(const Endpoints &) const = default;
};

// In the gateway. Also forgets the variable, so that children do not inherit it.
Status report_endpoints(const Endpoints &endpoints);

std::string endpoints_to_json(const Endpoints &endpoints);
Result<Endpoints> endpoints_from_json(std::string_view line);

}  // namespace roost::app
