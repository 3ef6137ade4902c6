// How long to wait before a crashed process is started again: doubles with every crash, forgets them once the process
// has stayed up. Pure: the caller says how long it ran. Not thread-safe. Used by Supervisor, one a child.
#pragma once

#include <algorithm>
#include <cstdint>

namespace roost::app {

class Backoff {
public:
    static constexpr int64_t kFirst_ms = 100;
    static constexpr int64_t kMost_ms = 10'000;
    // A process that ran this long is taken as healthy: its next crash is a first one.
    static constexpr int64_t kHealthy_ms = 30'000;

    // The pause before the next start, given how long the run that just ended lasted.
    int64_t pause_ms(int64_t ran_ms) {
        if (ran_ms >= kHealthy_ms) next_ms_ = kFirst_ms;
        const int64_t pause = next_ms_;
        next_ms_ = std::min(next_ms_ * 2, kMost_ms);
        return pause;
    }

private:
    int64_t next_ms_ = kFirst_ms;
};

}  // namespace roost::app
