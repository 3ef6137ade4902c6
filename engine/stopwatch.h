// Elapsed time for the timings of a statement. Not an injected clock: nothing is decided by it.
#pragma once

#include <chrono>
#include <cstdint>

namespace roost {

class Stopwatch {
public:
    int64_t elapsed_us() const {
        return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace roost
