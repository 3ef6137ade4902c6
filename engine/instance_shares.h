// How the instances that several catalogs share out a node's memory: the small lane and the pinned lane are set aside
// once a node, and each pool of instances wants one of each. So many live at a time as each can have a workable share;
// the one used longest ago makes room when it is idle. A slot's memory is promised to one pool at a time: what another
// keeps warm of it goes. Thread-safe. Owned by the engine; outlives the pools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace roost {

enum class SharedLane : uint8_t { small = 0, pinned = 1 };

// What a pool lets go of when told.
class ShareHolder {
public:
    virtual ~ShareHolder() = default;
    // False: it is in use.
    virtual bool drop_idle(SharedLane lane) = 0;
    virtual void drop_idle_slot(uint32_t slot) = 0;
};

class InstanceShares {
public:
    // Bytes of the whole lanes; `catalogs`: how many the node has.
    InstanceShares(uint64_t small_bytes, uint64_t pinned_bytes, size_t catalogs);

    // What one instance of the lane gets.
    uint64_t share_bytes(SharedLane lane) const;
    // Every catalog can have its instance at the same time.
    bool roomy() const { return lanes_[0].live_max >= catalogs_; }

    // While it lives the holder's instance of the lane is not dropped. To be kept until the instance is in use.
    class Seat {
    public:
        Seat(InstanceShares &shares, SharedLane lane, ShareHolder &holder)
            : shares_(&shares), lane_(lane), holder_(&holder) {}
        Seat(Seat &&other) noexcept;
        Seat &operator=(Seat &&) = delete;
        ~Seat();

    private:
        InstanceShares *shares_;
        SharedLane lane_;
        ShareHolder *holder_;
    };
    // Waits, 10 s at most, until another's instance is idle when all seats are taken: resource_exhausted (53200).
    Result<Seat> take_seat(SharedLane lane, ShareHolder &holder) ROOST_EXCLUDES(mutex_);

    void took_slot(uint32_t slot, ShareHolder &holder) ROOST_EXCLUDES(mutex_);
    // The slot's instance is idle, and holds little. Of many such, the one used longest ago goes.
    void stays_warm(uint32_t slot) ROOST_EXCLUDES(mutex_);
    // The holder is going.
    void forget(ShareHolder &holder) ROOST_EXCLUDES(mutex_);

private:
    struct Live {
        ShareHolder *holder = nullptr;
        uint64_t last_used = 0;
        uint32_t seats = 0;
    };
    struct Lane {
        uint64_t bytes = 0;
        size_t live_max = 1;
        std::vector<Live> live;
    };
    bool try_seat(Lane &lane, SharedLane which, ShareHolder &holder) ROOST_REQUIRES(mutex_);

    const size_t catalogs_;
    mutable Mutex mutex_;
    uint64_t uses_ ROOST_GUARDED_BY(mutex_) = 0;
    Lane lanes_[2];  // `live` is guarded by mutex_
    std::map<uint32_t, ShareHolder *> slots_ ROOST_GUARDED_BY(mutex_);
    std::vector<uint32_t> warm_slots_ ROOST_GUARDED_BY(mutex_);  // the one used longest ago first
};

}  // namespace roost
