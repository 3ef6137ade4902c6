// What it costs a statement to read cold, in time: a line through what cold reads took lately. Learned by the directory
// from completions, so that it follows the store, the network and how busy the nodes are. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace roost::placement {

class ReadCost {
public:
    // What is taken to be so before anything was read: 50 ms and 100 MB/s.
    static constexpr double kFirstUs = 50'000, kUsPerByte = 0.01;

    // A statement fetched so many bytes and took so long. What it did beside fetching counts too: at the other node it
    // would have to do that as well, but mostly the store is what takes the time.
    void note(uint64_t bytes, double us) {
        const auto x = static_cast<double>(bytes);
        count_ = count_ * kKept + 1;
        x_ = x_ * kKept + x;
        y_ = y_ * kKept + us;
        xx_ = xx_ * kKept + x * x;
        xy_ = xy_ * kKept + x * us;
    }
    // Of so many bytes; never less than nothing.
    double us(uint64_t bytes) const {
        // Two readings of the first guess stay in for ever, so that readings of one size alone give a line as well.
        constexpr double kFar = 64 << 20, kFarUs = kFirstUs + kFar * kUsPerByte;
        const double n = count_ + 2 * kGuess;
        const double x = x_ + kGuess * kFar, y = y_ + kGuess * (kFirstUs + kFarUs);
        const double xx = xx_ + kGuess * kFar * kFar, xy = xy_ + kGuess * kFar * kFarUs;
        const double slope = std::max(0.0, (n * xy - x * y) / (n * xx - x * x));
        const double first = std::max(0.0, (y - slope * x) / n);
        return first + slope * static_cast<double>(bytes);
    }

private:
    static constexpr double kKept = 0.95;  // of what was learned before, at each reading: the last twenty count
    static constexpr double kGuess = 0.25;
    double count_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace roost::placement
