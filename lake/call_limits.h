// How long a call that waits may take, and the wish to end it sooner. A plain value; copies share the wish.
#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"

namespace roost {

struct CallLimits {
    using Clock = std::chrono::steady_clock;

    Clock::time_point deadline = Clock::time_point::max();
    std::stop_token cancelled;

    static CallLimits in(std::chrono::milliseconds time, std::stop_token cancelled = {}) {
        return {.deadline = Clock::now() + time, .cancelled = std::move(cancelled)};
    }
    bool over() const { return cancelled.stop_requested() || Clock::now() >= deadline; }
    // Not negative, at most a day.
    std::chrono::milliseconds left() const {
        constexpr std::chrono::milliseconds most = std::chrono::hours(24);
        const auto now = Clock::now();
        if (deadline <= now) return std::chrono::milliseconds(0);
        if (deadline - now > most) return most;
        return std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
    }
    // Why the call ends: cancelled or timeout. `what` names what was waited for.
    Status end(std::string_view what) const {
        if (cancelled.stop_requested()) return Status(Code::cancelled, std::string(what) + " was cancelled");
        return Status(Code::timeout, std::string(what) + " took too long").with_retryable(true);
    }
};

}  // namespace roost
