// Cuts off connections to a Postgres catalog on which a thread has waited for an answer for too long: libpq waits for
// ever, and a server that hangs never answers. The thread then gets the error of a lost connection. (A machine or a
// network that is gone is noticed by the kernel, see complete_dsn.) Only TCP connections are looked at, and only where
// /proc tells what threads wait for. One thread of its own. Owned by the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "obs/log.h"

namespace roost {

class CatalogWatch {
public:
    // `ports`: where catalogs listen. Looks `look_every` at all connections of this process to those ports.
    CatalogWatch(std::vector<uint16_t> ports, std::chrono::milliseconds silence_max,
                 std::chrono::milliseconds look_every, obs::Log &log);
    CatalogWatch(const CatalogWatch &) = delete;
    CatalogWatch &operator=(const CatalogWatch &) = delete;

private:
    using Clock = std::chrono::steady_clock;
    // A connection on which a thread waits.
    struct Wait {
        uint64_t bytes_received = 0;
        Clock::time_point since;
    };
    void look();

    const std::vector<uint16_t> ports_;
    const std::chrono::milliseconds silence_max_;
    obs::Log &log_;
    std::map<int, Wait> waits_;  // by descriptor, of the last look
    std::jthread thread_;        // last
};

}  // namespace roost
