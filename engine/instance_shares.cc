#include "engine/instance_shares.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace roost {

namespace {

// An instance holds a lake's schema and runs a point read or two in this.
constexpr uint64_t kShareMinBytes = 48ull << 20;

// Idle instances that nobody's grant pays for: a few, of 16 MiB each at most.
constexpr size_t kWarmSlotsMax = 4;

constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kPause{5};

// One more than the catalogs: for statements that name two of them.
size_t live_max_of(uint64_t bytes, size_t catalogs) {
    if (catalogs <= 1) return 1;
    return std::clamp<size_t>(bytes / kShareMinBytes, 1, catalogs + 1);
}

}  // namespace

InstanceShares::InstanceShares(uint64_t small_bytes, uint64_t pinned_bytes, size_t catalogs) : catalogs_(catalogs) {
    lanes_[0].bytes = small_bytes;
    lanes_[0].live_max = live_max_of(small_bytes, catalogs);
    lanes_[1].bytes = pinned_bytes;
    lanes_[1].live_max = live_max_of(pinned_bytes, catalogs);
}

uint64_t InstanceShares::share_bytes(SharedLane lane) const {
    const Lane &found = lanes_[static_cast<size_t>(lane)];
    return found.bytes / found.live_max;
}

InstanceShares::Seat::Seat(Seat &&other) noexcept
    : shares_(std::exchange(other.shares_, nullptr)), lane_(other.lane_), holder_(other.holder_) {}

InstanceShares::Seat::~Seat() {
    if (!shares_) return;
    MutexLock lock(shares_->mutex_);
    for (Live &live : shares_->lanes_[static_cast<size_t>(lane_)].live) {
        if (live.holder == holder_) live.seats--;
    }
}

bool InstanceShares::try_seat(Lane &lane, SharedLane which, ShareHolder &holder) {
    const auto seated = std::ranges::find(lane.live, &holder, &Live::holder);
    if (seated != lane.live.end()) {
        seated->last_used = ++uses_;
        seated->seats++;
        return true;
    }
    if (lane.live.size() >= lane.live_max) {
        std::ranges::sort(lane.live, {}, &Live::last_used);
        const auto idle = std::ranges::find_if(
            lane.live, [which](const Live &live) { return live.seats == 0 && live.holder->drop_idle(which); });
        if (idle == lane.live.end()) return false;
        lane.live.erase(idle);
    }
    lane.live.push_back({&holder, ++uses_, 1});
    return true;
}

Result<InstanceShares::Seat> InstanceShares::take_seat(SharedLane lane, ShareHolder &holder) {
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
        {
            MutexLock lock(mutex_);
            if (try_seat(lanes_[static_cast<size_t>(lane)], lane, holder)) return Seat(*this, lane, holder);
        }
        if (std::chrono::steady_clock::now() > give_up) {
            return Status(Code::resource_exhausted, "this node has no memory to open one more catalog now")
                .with_sqlstate("53200")
                .with_hint(
                    "statements or transactions of other catalogs hold it; try again, or give nodes more memory");
        }
        std::this_thread::sleep_for(kPause);
    }
}

void InstanceShares::took_slot(uint32_t slot, ShareHolder &holder) {
    MutexLock lock(mutex_);
    ShareHolder *&owner = slots_[slot];
    if (owner && owner != &holder) owner->drop_idle_slot(slot);
    owner = &holder;
    std::erase(warm_slots_, slot);
}

void InstanceShares::stays_warm(uint32_t slot) {
    MutexLock lock(mutex_);
    std::erase(warm_slots_, slot);
    warm_slots_.push_back(slot);
    if (warm_slots_.size() <= kWarmSlotsMax) return;
    const auto owner = slots_.find(warm_slots_.front());
    if (owner != slots_.end()) owner->second->drop_idle_slot(owner->first);
    warm_slots_.erase(warm_slots_.begin());
}

void InstanceShares::forget(ShareHolder &holder) {
    MutexLock lock(mutex_);
    for (Lane &lane : lanes_) std::erase_if(lane.live, [&](const Live &live) { return live.holder == &holder; });
    std::erase_if(slots_, [&](const auto &entry) { return entry.second == &holder; });
}

}  // namespace roost
