// What the connections of one listener share: the service they call, limits, and who is there. Owned by the Listener,
// loop thread only.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "base/clock.h"
#include "front/pg/cancel_registry.h"
#include "obs/log.h"
#include "service/service.h"

namespace roost::pg {

struct Options {
    std::string address = "127.0.0.1";
    uint16_t port = 0;  // 0: any free one
    uint32_t connections_max = 10'000;
    int64_t login_max_ms = 60'000;          // from the accept to the end of authentication
    int64_t message_stall_max_ms = 60'000;  // no byte of a message that has begun
    int64_t write_stall_max_ms = 900'000;   // a reader that takes nothing
    int64_t watch_after_ms = 100;           // a statement that runs longer has its client watched
    int64_t sweep_interval_ms = 100;        // how exactly the above are kept
    std::string server_version = "15.0";    // digits first; a suffix in parentheses is allowed
    std::string mock_secret;                // salt of unknown users; empty: random. The same on all gateways of a pool
};

struct Shared {
    service::Service &service;
    const Clock &clock;
    obs::Log &log;
    Options options;
    CancelRegistry cancels;
    std::unordered_set<Connection *> connections;
    bool draining = false;
};

}  // namespace roost::pg
