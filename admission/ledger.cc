#include "admission/ledger.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <cstdlib>

namespace roost::admission {
namespace {

// A share of the budget for each of the two shared instances, as one over this.
constexpr uint64_t kLaneShare = 12;

struct ProfileInfo {
    Profile profile;
    std::string_view name;
};
constexpr std::array<ProfileInfo, 4> kProfiles = {{
    {Profile::single, "single"},
    {Profile::equal_2, "equal_2"},
    {Profile::decaying_2, "decaying_2"},
    {Profile::decaying_3, "decaying_3"},
}};

// A ledger that lends memory twice ends in the node being killed under other people's statements; better to stop here.
void require(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "admission ledger: %s\n", what);
    std::abort();
}

}  // namespace

std::optional<Profile> parse_profile(std::string_view name) {
    for (const ProfileInfo &info : kProfiles) {
        if (info.name == name) return info.profile;
    }
    return std::nullopt;
}

std::string_view profile_name(Profile profile) {
    for (const ProfileInfo &info : kProfiles) {
        if (info.profile == profile) return info.name;
    }
    return "unknown";
}

std::vector<uint32_t> ladder(Profile profile) {
    switch (profile) {
        case Profile::single:
            return {1};
        case Profile::equal_2:
            return {1, 1};
        case Profile::decaying_2:
            return {2, 1};
        case Profile::decaying_3:
            return {3, 2, 1};
    }
    return {1};
}

Lanes lanes_of(uint64_t budget_bytes) { return {budget_bytes / kLaneShare, budget_bytes / kLaneShare}; }

Ledger::Ledger(LedgerOptions options) : options_(options) {
    fill_ladder();
    open_slots();
    check_invariants();
}

// REQUIRES: no slot of the current ladder is open.
void Ledger::fill_ladder() {
    const std::vector<uint32_t> weights = ladder(options_.profile);
    uint64_t sum = 0;
    for (const uint32_t weight : weights) sum += weight;
    pending_slots_.clear();
    for (const uint32_t weight : weights) {
        // 128 bits: a weight times the memory of a large machine must not wrap.
        pending_slots_.push_back(
            static_cast<uint64_t>(static_cast<unsigned __int128>(lendable_bytes()) * weight / sum));
    }
}

uint64_t Ledger::lendable_bytes() const {
    const Lanes lanes = lanes_of(options_.budget_bytes);
    return options_.budget_bytes - lanes.small_bytes - lanes.pinned_bytes;
}

uint64_t Ledger::open_bytes() const {
    uint64_t bytes = 0;
    for (const Slot &slot : slots_) bytes += slot.bytes;
    return bytes;
}

// Opens those pending slots that fit beside what is open, larger ones first. A smaller one may open while a larger
// waits for its memory: when the holders of the earlier ladder have left, all of them fit.
void Ledger::open_slots() {
    uint64_t free_bytes = lendable_bytes() - open_bytes();
    for (auto it = pending_slots_.begin(); it != pending_slots_.end();) {
        if (*it > free_bytes) {
            ++it;
            continue;
        }
        free_bytes -= *it;
        slots_.push_back(Slot{next_slot_number_++, *it, false, std::nullopt});
        it = pending_slots_.erase(it);
    }
}

Ledger::Slot *Ledger::largest_free() {
    Slot *best = nullptr;
    for (Slot &slot : slots_) {
        const bool is_free = !slot.holder && !slot.retired;
        if (is_free && (best == nullptr || slot.bytes > best->bytes)) best = &slot;
    }
    return best;
}

Ledger::Answer Ledger::request(const Uuid &statement, bool no_wait, int64_t now_us, int64_t deadline_us) {
    require(!holds(statement), "a statement asks for a second slot");
    assert(place(statement) == 0);
    Answer answer;
    // Behind a line there is no free slot, so a newcomer passes nobody by taking one.
    if (Slot *slot = largest_free()) {
        slot->holder = statement;
        answer.kind = Answer::Kind::granted;
        answer.grant = SlotGrant{statement, slot->number, slot->bytes, 0};
    } else if (!no_wait) {
        line_.push_back(Waiter{statement, now_us, deadline_us});
        answer.kind = Answer::Kind::waiting;
        answer.place = waiting();
    }
    check_invariants();
    return answer;
}

std::vector<SlotGrant> Ledger::release(const Uuid &statement, int64_t now_us) {
    const auto slot =
        std::find_if(slots_.begin(), slots_.end(), [&](const Slot &held) { return held.holder == statement; });
    if (slot == slots_.end()) return {};
    if (slot->retired) {
        slots_.erase(slot);
        open_slots();
    } else {
        slot->holder.reset();
    }
    std::vector<SlotGrant> grants = grant_waiters(now_us);
    check_invariants();
    return grants;
}

std::vector<SlotGrant> Ledger::grant_waiters(int64_t now_us) {
    std::vector<SlotGrant> grants;
    while (!line_.empty()) {
        Slot *slot = largest_free();
        if (slot == nullptr) break;
        const Waiter &head = line_.front();
        slot->holder = head.statement;
        grants.push_back(SlotGrant{head.statement, slot->number, slot->bytes, now_us - head.since_us});
        line_.pop_front();
    }
    return grants;
}

bool Ledger::abandon(const Uuid &statement) {
    const auto waiter =
        std::find_if(line_.begin(), line_.end(), [&](const Waiter &w) { return w.statement == statement; });
    if (waiter == line_.end()) return false;
    // Nobody is granted by this: in a line all wait for the same thing, a slot.
    line_.erase(waiter);
    check_invariants();
    return true;
}

std::vector<Uuid> Ledger::expire(int64_t now_us) {
    std::vector<Uuid> expired;
    std::erase_if(line_, [&](const Waiter &waiter) {
        if (waiter.deadline_us > now_us) return false;
        expired.push_back(waiter.statement);
        return true;
    });
    check_invariants();
    return expired;
}

std::optional<int64_t> Ledger::next_deadline_us() const {
    if (line_.empty()) return std::nullopt;
    return std::min_element(line_.begin(), line_.end(),
                            [](const auto &a, const auto &b) { return a.deadline_us < b.deadline_us; })
        ->deadline_us;
}

uint32_t Ledger::place(const Uuid &statement) const {
    for (size_t i = 0; i < line_.size(); ++i) {
        if (line_[i].statement == statement) return static_cast<uint32_t>(i + 1);
    }
    return 0;
}

std::vector<SlotGrant> Ledger::set_profile(Profile profile, int64_t now_us) {
    if (profile == options_.profile) return {};
    options_.profile = profile;
    std::erase_if(slots_, [](const Slot &slot) { return !slot.holder; });
    for (Slot &slot : slots_) slot.retired = true;
    fill_ladder();
    open_slots();
    std::vector<SlotGrant> grants = grant_waiters(now_us);
    check_invariants();
    return grants;
}

uint64_t Ledger::granted_bytes() const {
    uint64_t bytes = 0;
    for (const Slot &slot : slots_) bytes += slot.holder ? slot.bytes : 0;
    return bytes;
}

uint32_t Ledger::running() const {
    return static_cast<uint32_t>(
        std::count_if(slots_.begin(), slots_.end(), [](const Slot &slot) { return slot.holder.has_value(); }));
}

uint32_t Ledger::waiting() const { return static_cast<uint32_t>(line_.size()); }

bool Ledger::holds(const Uuid &statement) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot &slot) { return slot.holder == statement; });
}

void Ledger::check_invariants() const {
    const Lanes lanes = lanes_of(options_.budget_bytes);
    require(open_bytes() + lanes.small_bytes + lanes.pinned_bytes <= options_.budget_bytes,
            "more is lent than there is");
    bool has_free = false;
    bool has_retired = false;
    for (const Slot &slot : slots_) {
        require(!slot.retired || slot.holder, "a slot of an earlier ladder stays open without a holder");
        has_free = has_free || !slot.holder;
        has_retired = has_retired || slot.retired;
    }
    require(line_.empty() || !has_free, "a statement waits beside a free slot");
    require(pending_slots_.empty() || has_retired, "a slot stays closed though its memory is free");
    require(line_.empty() || running() > 0, "a statement waits while nothing runs");
}

}  // namespace roost::admission
