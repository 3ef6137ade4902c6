// Whether a member's own failures keep statements away from it. Three statements in a row that failed there for reasons
// of the node (it can't reach the store, its disk fails) take it out of routing; after a pause that doubles it is
// probed, and a probe that succeeds brings it back. Pure; one for each incarnation. Loop thread only.
#pragma once

#include <algorithm>
#include <cstdint>

namespace roost::routing {

class MemberHealth {
public:
    static constexpr uint32_t kFailuresMax = 3;
    static constexpr int64_t kPauseMinUs = 1'000'000, kPauseMaxUs = 30'000'000;

    // A statement ended there. `failed`: for a reason of the node. True: it has just left routing.
    bool note(bool failed, int64_t now_us) {
        if (failing_) return false;  // what began before says nothing new; the probe decides
        failures_ = failed ? failures_ + 1 : 0;
        if (failures_ < kFailuresMax) return false;
        failing_ = true;
        pause_us_ = kPauseMinUs;
        probe_us_ = now_us + pause_us_;
        return true;
    }
    bool failing() const { return failing_; }
    // It is failing, its pause is over, and nobody probes it yet: the caller does, and says what came out.
    bool take_probe(int64_t now_us) {
        if (!failing_ || probing_ || now_us < probe_us_) return false;
        probing_ = true;
        return true;
    }
    void probed(bool ok, int64_t now_us) {
        probing_ = false;
        if (ok) {
            failing_ = false;
            failures_ = 0;
            return;
        }
        pause_us_ = std::min(pause_us_ * 2, kPauseMaxUs);
        probe_us_ = now_us + pause_us_;
    }

private:
    uint32_t failures_ = 0;
    bool failing_ = false, probing_ = false;
    int64_t pause_us_ = 0, probe_us_ = 0;
};

}  // namespace roost::routing
