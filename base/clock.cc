#include "base/clock.h"

#include <chrono>

namespace roost {

int64_t SystemClock::monotonic_us() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

int64_t SystemClock::wall_us() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace roost
