// What a node promises: the ledger of its memory. Pure: bytes, integers, an injected time; no threads, no I/O, no
// engine. The caller holds its lock around every call, starts what is granted and reports when memory is really back.
// See docs/design.md, Admission.
//
// Here: static ladders. The budget less the reserved lanes is divided into slots by the ladder's weights; a statement
// larger than the small lane takes the largest free slot, waits first in, first out, and nobody passes a waiter.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace roost::admission {

enum class Profile : uint8_t { single, equal_2, decaying_2, decaying_3 };
std::optional<Profile> parse_profile(std::string_view name);
std::string_view profile_name(Profile profile);
// Weights of the slots, largest first: {1}, {1,1}, {2,1}, {3,2,1}.
std::vector<uint32_t> ladder(Profile profile);

struct LedgerOptions {
    uint64_t budget_bytes = 0;  // all that statements may use
    Profile profile = Profile::equal_2;
};

// Bytes set aside from the budget for the two shared instances; never lent.
struct Lanes {
    uint64_t small_bytes = 0;   // budget / 12
    uint64_t pinned_bytes = 0;  // budget / 12
};
Lanes lanes_of(uint64_t budget_bytes);

struct SlotGrant {
    Uuid statement;
    uint32_t slot = 0;
    uint64_t bytes = 0;
    int64_t waited_us = 0;
};

class Ledger {
public:
    explicit Ledger(LedgerOptions options);

    struct Answer {
        enum class Kind : uint8_t { granted, waiting, would_wait } kind = Kind::would_wait;
        SlotGrant grant;     // granted
        uint32_t place = 0;  // waiting: 1 is the head
    };
    // Asks for a slot. `no_wait`: would_wait instead of joining the line. `deadline_us`: when the wait ends by itself.
    // REQUIRES: `statement` neither holds nor waits.
    Answer request(const Uuid &statement, bool no_wait, int64_t now_us, int64_t deadline_us);
    // The holder's memory is back. Returns the waiters granted by it, in order of arrival. Of a statement that holds
    // nothing: no effect.
    std::vector<SlotGrant> release(const Uuid &statement, int64_t now_us);
    // Leaves the line (cancelled, disconnected). False when it was not waiting.
    bool abandon(const Uuid &statement);
    // Waiters whose deadline has passed, in order of arrival; they are out of the line.
    std::vector<Uuid> expire(int64_t now_us);
    // Earliest deadline in the line.
    std::optional<int64_t> next_deadline_us() const;
    // 1-based place in line, 0 when not waiting.
    uint32_t place(const Uuid &statement) const;

    // Switches the ladder: running statements keep their slots and bytes; new slots open as the memory for them is
    // free. Returns waiters granted by it.
    std::vector<SlotGrant> set_profile(Profile profile, int64_t now_us);

    uint64_t budget_bytes() const { return options_.budget_bytes; }
    uint64_t granted_bytes() const;  // held by statements now, lanes not counted
    uint32_t running() const;
    uint32_t waiting() const;
    Profile profile() const { return options_.profile; }

private:
    struct Slot {
        uint32_t number = 0;
        uint64_t bytes = 0;
        bool retired = false;  // of an earlier ladder: closes when its holder leaves
        std::optional<Uuid> holder;
    };
    struct Waiter {
        Uuid statement;
        int64_t since_us = 0;
        int64_t deadline_us = 0;
    };

    void fill_ladder();
    void open_slots();
    uint64_t lendable_bytes() const;  // the budget less the lanes
    uint64_t open_bytes() const;      // of all slots, held or not
    bool holds(const Uuid &statement) const;
    std::vector<SlotGrant> grant_waiters(int64_t now_us);
    Slot *largest_free();
    void check_invariants() const;

    LedgerOptions options_;
    std::vector<Slot> slots_;
    std::vector<uint64_t> pending_slots_;  // of the current ladder, not open yet for want of memory
    uint32_t next_slot_number_ = 0;
    std::deque<Waiter> line_;
};

}  // namespace roost::admission
