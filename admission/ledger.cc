// The transitions: who asks, ends, waits, is granted, gives back. The books they keep are in ledger_books.cc.
#include "admission/ledger.h"

#include <algorithm>
#include <utility>

#include "admission/ledger_require.h"

namespace roost::admission {
namespace {

// Limits are changed by no less than this: an order to the engine costs more than a few pages bring.
constexpr uint64_t kElasticStep = 16 * kMiB;
// Accounts whose elastic memory grows in one transition; the others are seen by the next ones.
constexpr int kLendMax = 2;
// Of the lendable memory, what one account may have with its elastic part.
constexpr uint64_t kElasticPercentMax = 85;
constexpr double kJitter = 0.15;
constexpr int64_t kRepeatAfter_us = 100'000;
constexpr uint64_t kLaneLeastBytes = kMiB;

int64_t later(int64_t now_us, int64_t by_us) { return by_us > INT64_MAX - now_us ? INT64_MAX : now_us + by_us; }

SizingOptions sizing_of(const LedgerOptions &options) {
    SizingOptions sizing;
    const Lanes lanes = lanes_of(options.budget_bytes);
    sizing.budget_bytes = options.budget_bytes;
    sizing.lendable_bytes = options.budget_bytes - lanes.small_bytes - lanes.pinned_bytes;
    sizing.max_bucket_fraction = options.max_bucket_fraction;
    sizing.floor_fraction = std::clamp(options.floor_fraction, 0.0, 1.0);
    sizing.threads = options.threads;
    sizing.thread_bytes = options.thread_bytes;
    return sizing;
}

}  // namespace

Ledger::Ledger(LedgerOptions options)
    : options_(std::move(options)), sizing_(sizing_of(options_)), line_(options_.groups) {
    fill_ladder();
    open_slots();
    check();
}

Waiter Ledger::waiter_of(const Request &request, int64_t now_us) {
    Waiter waiter;
    waiter.statement = request.account;
    waiter.user = request.user;
    waiter.group = line_.group_of(request.group);
    waiter.arrival = ++arrivals_;
    waiter.since_us = now_us;
    // Without jitter, those that came together would give up together, and all take what is there in one instant.
    double wait_us = static_cast<double>(request.admission_wait_us);
    if (options_.random != nullptr) wait_us *= 1 - kJitter + 2 * kJitter * options_.random->unit();
    const auto bounded_us = wait_us >= static_cast<double>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(wait_us);
    waiter.deadline_us = later(now_us, bounded_us);
    if (request.timeout_us > 0) {
        waiter.own_deadline_us = later(now_us, request.timeout_us);
        waiter.deadline_us = std::min(waiter.deadline_us, waiter.own_deadline_us);
    }
    waiter.at_once = request.admission_wait_us <= 0;
    waiter.no_wait = request.no_wait;
    waiter.fixed = request.fixed;
    const Size size = size_of(sizing_, request.wanted_bytes);
    const uint64_t cap = line_.group(waiter.group).required_max_bytes;
    waiter.want_bytes = cap == 0 ? size.want_bytes : std::min(size.want_bytes, cap);
    waiter.floor_bytes = std::min(size.floor_bytes, waiter.want_bytes);
    return waiter;
}

Ledger::Answer Ledger::request(const Request &request, int64_t now_us) {
    Account *own = find(request.account);
    require(own == nullptr || own->state == State::idle, "a statement asks for a second slot");
    require(line_.find(request.account) == nullptr, "a statement that waits asks again");
    Waiter waiter = waiter_of(request, now_us);
    Answer answer;
    answer.kind = Answer::Kind::granted;
    if (own != nullptr && own->keeps_slot) {
        // It has it already and takes nothing from anybody.
        own->keeps_slot = false;
        own->state = State::running;
        index(*own);
        answer.grant = {own->id, own->slot, own->required, 0, own->elastic, own->order, false};
    } else if (is_next(waiter) && grantable_with_what_is_lent(waiter, now_us)) {
        answer.grant = grant(waiter, false, now_us);
    } else {
        answer = wait_or_refuse(request, std::move(waiter), now_us);
    }
    check();
    return answer;
}

// Nobody waits whom it would pass.
bool Ledger::is_next(const Waiter &waiter) const {
    return !line_.has_eligible() && line_.may_run(waiter.group, waiter.floor_bytes);
}

// It can run now, and not with less than it wants while others are lent what they can do without.
bool Ledger::grantable_with_what_is_lent(const Waiter &waiter, int64_t now_us) {
    if (automatic() && !waiter.at_once) {
        const auto own = accounts_.find(waiter.statement);
        const uint64_t own_bytes = own == accounts_.end() ? 0 : own->second.counted;
        if (own_bytes + free_bytes() < waiter.want_bytes) call_back(waiter.want_bytes - own_bytes, now_us);
    }
    return grantable(waiter, false);
}

Ledger::Answer Ledger::wait_or_refuse(const Request &request, Waiter waiter, int64_t now_us) {
    Answer answer;
    answer.kind = Answer::Kind::waiting;
    const bool next = is_next(waiter);
    const uint64_t floor_bytes =
        waiter.at_once ? std::min(waiter.floor_bytes, least_bytes(sizing_)) : waiter.floor_bytes;
    const bool impatient = waiter.no_wait || waiter.at_once;
    if (waiter.at_once) {
        waiter.deadline_us =
            later(now_us, options_.shrink_wait_us);  // what is called back comes by then, or not at all
        if (waiter.own_deadline_us != 0) waiter.deadline_us = std::min(waiter.deadline_us, waiter.own_deadline_us);
    }
    const Uuid statement = waiter.statement;
    line_.join(waiter);
    if (Account *own = find(statement); own != nullptr) {
        // What a waiter holds is what the others wait for.
        unindex(*own);
        set_promise(*own, 0, std::min(own->elastic, least_bytes(sizing_)));
        index(*own);
        tell(*own, own->elastic, now_us);
    }
    if (impatient && !next) {
        line_.leave(statement);
    } else {
        call_back(0, now_us);
        const Account *own = find(statement);
        const uint64_t own_bytes = own == nullptr ? 0 : own->told;
        if (!impatient || (automatic() && pressure_ != Pressure::refuse && coming_bytes_ > 0 &&
                           free_bytes() + own_bytes + coming_bytes_ >= floor_bytes)) {
            return answer;
        }
        line_.leave(statement);
    }
    answer.kind = request.no_wait ? Answer::Kind::would_wait : Answer::Kind::refused;
    answer.expected_wait_us = expected_wait_us(waiter);
    return answer;
}

std::optional<int64_t> Ledger::expected_wait_us(const Waiter &waiter) const {
    if (return_bytes_ <= 0) return std::nullopt;
    double returns = static_cast<double>(line_.size()) + 1;
    if (automatic()) {
        const double needed = static_cast<double>(line_.wanted_bytes()) + static_cast<double>(waiter.floor_bytes) -
                              static_cast<double>(free_bytes());
        returns = std::max(1.0, needed / return_bytes_);
    }
    return static_cast<int64_t>(std::min(returns * return_every_us_, 1e15));
}

// What others were told to give back and have not yet.
uint64_t Ledger::coming_from_others_bytes(const Uuid &account) const {
    const auto found = accounts_.find(account);
    if (found == accounts_.end() || found->second.stuck) return coming_bytes_;
    return coming_bytes_ - (found->second.counted - found->second.told);
}

// How much the waiter gets if it is its turn; nothing: not enough is free. Not of ladders.
std::optional<uint64_t> Ledger::bytes_for(const Waiter &waiter, bool overdue) const {
    const auto own = accounts_.find(waiter.statement);
    const uint64_t room_bytes = line_.room_bytes(waiter.group);
    const uint64_t there_bytes = free_bytes() + (own == accounts_.end() ? 0 : own->second.counted);
    const uint64_t bytes = std::min(there_bytes, room_bytes);
    const uint64_t want_bytes = std::min(waiter.want_bytes, room_bytes);
    if (bytes >= want_bytes) return want_bytes;
    // More is on its way, for nobody else: it comes, or is given up, within 2 s.
    if (!overdue && !waiter.at_once && coming_from_others_bytes(waiter.statement) > 0) return std::nullopt;
    uint64_t floor_bytes = waiter.floor_bytes;
    // Nothing runs that could give memory back: to wait for more would only take longer.
    if (running_ == 0 || waiter.at_once) floor_bytes = std::min(floor_bytes, least_bytes(sizing_));
    if (bytes >= floor_bytes) return bytes;
    return std::nullopt;
}

bool Ledger::grantable(const Waiter &waiter, bool overdue) {
    if (pressure_ == Pressure::refuse) return false;
    return automatic() ? bytes_for(waiter, overdue).has_value() : largest_free() != nullptr;
}

// REQUIRES: grantable, and not in line any more.
SlotGrant Ledger::grant(const Waiter &waiter, bool overdue, int64_t now_us) {
    Slot *slot = automatic() ? nullptr : largest_free();
    const uint64_t required_bytes = slot != nullptr ? slot->bytes : bytes_for(waiter, overdue).value_or(0);
    Account &account = open_account(waiter.statement, slot);
    unindex(account);
    account.state = State::running;
    account.group = waiter.group;
    account.granted = required_bytes;
    account.fixed = waiter.fixed;
    // What a session kept stays with it while nobody needs it.
    uint64_t elastic_bytes = 0;
    if (slot == nullptr && !line_.has_eligible() && pressure_ == Pressure::none && account.told > required_bytes &&
        !account.fixed) {
        elastic_bytes = std::min(account.told - required_bytes, elastic_target(account));
    }
    set_promise(account, required_bytes, elastic_bytes);
    told_at_grant(account, required_bytes + elastic_bytes);
    if (const uint64_t bytes = growth_of(account); bytes > 0) {
        set_promise(account, required_bytes, elastic_bytes + bytes);
        told_at_grant(account, account.told + bytes);
    }
    watch_shrink(account, now_us);
    ++running_;
    line_.charge(waiter.group, required_bytes);
    index(account);
    if (slot != nullptr) open_slots();  // what a session had kept is now part of its slot
    return {account.id,      account.slot,  account.required, now_us - waiter.since_us,
            account.elastic, account.order, overdue};
}

// Grants in turn what is there, calls back what lacks, and lends what nobody waits for.
void Ledger::serve(Outcome &outcome, int64_t now_us) {
    open_slots();
    for (;;) {
        call_back(0, now_us);
        const Waiter *head = line_.head();
        if (head == nullptr) break;
        const Waiter waiter = *head;
        if (grantable(waiter, false)) {
            line_.serve(waiter.statement);
            outcome.grants.push_back(grant(waiter, false, now_us));
            continue;
        }
        const bool over = !automatic() || pressure_ == Pressure::refuse || coming_bytes_ == 0;
        if (!over || !(waiter.no_wait || waiter.at_once)) break;
        line_.leave(waiter.statement);
        outcome.ends.push_back(
            {waiter.statement, waiter.no_wait ? WaitEnd::Why::would_wait : WaitEnd::Why::admission_timeout});
    }
    lend(now_us);
}

Outcome Ledger::end(const Uuid &id, Keep keep, int64_t now_us) {
    Account *account = find(id);
    if (account == nullptr || account->state == State::leaving) return {};
    const bool has_statement = account->state == State::running || account->keeps_slot;
    if (!has_statement && keep != Keep::nothing) return {};
    if (line_.find(id) != nullptr) line_.leave(id);
    unindex(*account);
    account->fixed = false;  // it was the statement's
    const bool slot_stays = account->in_ladder && std::any_of(slots_.begin(), slots_.end(), [&](const Slot &slot) {
                                return slot.holder == id && !slot.retired;
                            });
    if (keep == Keep::slot || (keep == Keep::elastic && slot_stays)) {
        account->state = State::idle;
        account->keeps_slot = true;  // still counts as running, and against its group
        set_promise(*account, account->required, 0);
        tell(*account, account->required, now_us);
    } else {
        if (has_statement) {
            --running_;
            line_.discharge(account->group, account->granted);
            account->keeps_slot = false;
        }
        if (keep == Keep::elastic && automatic() && !account->in_ladder && options_.engine != nullptr) {
            account->state = State::idle;
            const uint64_t share = std::min(account->elastic, elastic_target(*account));
            const uint64_t kept = std::min(account->told, std::max(share, least_bytes(sizing_)));
            set_promise(*account, 0, kept);
            tell(*account, kept, now_us);
        } else {
            account->state = State::leaving;
            set_promise(*account, account->required, 0);
            tell(*account, 0, now_us);
        }
    }
    index(*account);
    settle(id, now_us);
    Outcome outcome;
    serve(outcome, now_us);
    check();
    return outcome;
}

Outcome Ledger::release(const Uuid &id, int64_t now_us) {
    Account *account = find(id);
    if (account == nullptr) return {};
    note_return(account->counted, now_us);
    erase(*account);
    Outcome outcome;
    serve(outcome, now_us);
    check();
    return outcome;
}

Outcome Ledger::abandon(const Uuid &id, int64_t now_us) {
    if (line_.find(id) == nullptr) return {};
    line_.leave(id);
    Outcome outcome;
    serve(outcome, now_us);
    check();
    return outcome;
}

Outcome Ledger::limit_confirmed(const Uuid &id, uint64_t order, uint64_t used_bytes, int64_t now_us) {
    Account *account = find(id);
    if (account == nullptr) return {};
    set_used(*account, used_bytes);
    // A limit that was followed by another says nothing of what the instance will have.
    if (order == account->order) account->confirmed = true;
    settle(id, now_us);
    Outcome outcome;
    serve(outcome, now_us);
    check();
    return outcome;
}

void Ledger::limit_failed(const Uuid &id, uint64_t order, int64_t now_us) {
    const Account *account = find(id);
    if (account == nullptr || order != account->order) return;
    if (failed_.empty()) repeat_at_us_ = later(now_us, kRepeatAfter_us);
    failed_.insert(id);
}

Outcome Ledger::used(const Uuid &id, uint64_t used_bytes, int64_t now_us) {
    Account *account = find(id);
    if (account == nullptr) return {};
    set_used(*account, used_bytes);
    settle(id, now_us);
    Outcome outcome;
    serve(outcome, now_us);
    check();
    return outcome;
}

Outcome Ledger::tick(int64_t now_us) {
    if (!failed_.empty() && repeat_at_us_ <= now_us) {
        for (const Uuid &id : std::exchange(failed_, {})) {
            Account *account = find(id);
            if (account == nullptr || account->confirmed) continue;
            account->order = ++orders_;
            if (options_.engine != nullptr) options_.engine->set_limit(id, account->order, account->told);
        }
    }
    give_up_on_stuck(now_us);
    Outcome outcome;
    serve(outcome, now_us);
    end_waits(outcome, now_us);
    check();
    return outcome;
}

void Ledger::give_up_on_stuck(int64_t now_us) {
    while (!shrinking_.empty() && later(shrinking_.begin()->first, options_.shrink_wait_us) <= now_us) {
        Account &account = *find(shrinking_.begin()->second);
        unindex(account);
        shrinking_.erase(shrinking_.begin());
        account.stuck = true;
        coming_bytes_ -= account.counted - account.told;
        if (options_.engine != nullptr) options_.engine->cant_shrink(account.id, account.counted - account.told);
    }
}

// Who has waited long enough runs with its floor or more, if that is there; else its wait ends.
void Ledger::end_waits(Outcome &outcome, int64_t now_us) {
    bool any = false;
    for (const Uuid &id : line_.overdue(now_us)) {
        const Waiter *found = line_.find(id);
        // What ended for another may have let this one run.
        if (found == nullptr) continue;
        any = true;
        const Waiter waiter = *found;
        const bool own = waiter.own_deadline_us != 0 && waiter.own_deadline_us <= now_us;
        if (!own && line_.may_run(waiter.group, waiter.floor_bytes) && grantable(waiter, true)) {
            line_.leave(id);  // not a turn: it was not its user's
            outcome.grants.push_back(grant(waiter, true, now_us));
            continue;
        }
        line_.leave(id);
        const auto why = own              ? WaitEnd::Why::own_timeout
                         : waiter.no_wait ? WaitEnd::Why::would_wait
                                          : WaitEnd::Why::admission_timeout;
        outcome.ends.push_back({id, why});
    }
    if (any) serve(outcome, now_us);
}

std::optional<int64_t> Ledger::next_event_us() const {
    std::optional<int64_t> next = line_.next_deadline_us();
    const auto sooner = [&next](int64_t at_us) { next = next ? std::min(*next, at_us) : at_us; };
    if (!shrinking_.empty()) sooner(later(shrinking_.begin()->first, options_.shrink_wait_us));
    if (!failed_.empty()) sooner(repeat_at_us_);
    return next;
}

// Elastic memory comes back before anybody is told to wait: of idle accounts what is above the idle minimum, then of
// running ones, the largest first, then idle instances whole. `newcomer_bytes`: for one who is not in line yet.
void Ledger::call_back(uint64_t newcomer_bytes, int64_t now_us) {
    if (options_.engine == nullptr) return;
    unsigned __int128 need = ~static_cast<unsigned __int128>(0);
    if (pressure_ == Pressure::none) {
        if (!automatic()) return;  // ladders have none
        const unsigned __int128 wanted = line_.wanted_bytes() + newcomer_bytes;
        const unsigned __int128 expected = static_cast<unsigned __int128>(free_bytes()) + coming_bytes_;
        if (wanted <= expected) return;
        need = wanted - expected;
    }
    const uint64_t least = least_bytes(sizing_);
    const auto cut = [&](const Uuid &id, uint64_t most_bytes) {
        Account &account = *find(id);
        unindex(account);
        const auto wanted = static_cast<uint64_t>(std::min<unsigned __int128>(need, UINT64_MAX));
        const uint64_t bytes = std::min(most_bytes, std::max(wanted, kElasticStep));
        set_promise(account, account.required, account.elastic - bytes);
        index(account);
        tell(account, account.required + account.elastic, now_us);
        need -= std::min<unsigned __int128>(need, bytes);
    };
    while (need > 0 && !idle_.empty() && idle_.rbegin()->first > least) {
        cut(idle_.rbegin()->second, idle_.rbegin()->first - least);
    }
    while (need > 0 && !lent_.empty() && lent_.rbegin()->first > 0) {
        cut(lent_.rbegin()->second, lent_.rbegin()->first);
    }
    while (need > 0 && !idle_.empty()) {
        const Uuid id = idle_.rbegin()->second;
        cut(id, idle_.rbegin()->first);
        settle(id, now_us);
    }
}

uint64_t Ledger::elastic_target(const Account &account) const {
    const uint64_t most = sizing_.lendable_bytes / 100 * kElasticPercentMax;
    const uint64_t live = accounts_.size() + line_.size();
    return std::min(most - std::min(most, account.required), sizing_.lendable_bytes / std::max<uint64_t>(live, 1));
}

// What the account's limit may grow by now.
uint64_t Ledger::growth_of(const Account &account) const {
    if (!automatic() || options_.engine == nullptr || pressure_ != Pressure::none || account.in_ladder) return 0;
    if (account.stuck || account.fixed || line_.has_eligible()) return 0;
    const uint64_t target = elastic_target(account);
    if (target < account.elastic + kElasticStep) return 0;
    // A limit that is being lowered may be raised again within what is still counted.
    const uint64_t there = free_bytes() + (account.counted - account.told);
    const uint64_t bytes = std::min(target - account.elastic, there);
    return bytes < kElasticStep ? 0 : bytes;
}

void Ledger::lend(int64_t now_us) {
    for (int i = 0; i < kLendMax && !lent_.empty(); ++i) {
        Account &account = *find(lent_.begin()->second);
        const uint64_t bytes = growth_of(account);
        if (bytes == 0) return;
        unindex(account);
        set_promise(account, account.required, account.elastic + bytes);
        index(account);
        tell(account, account.told + bytes, now_us);
    }
}

Outcome Ledger::set_profile(Profile profile, int64_t now_us) {
    if (profile == options_.profile) return {};
    options_.profile = profile;
    std::erase_if(slots_, [](const Slot &slot) { return !slot.holder; });
    for (Slot &slot : slots_) slot.retired = true;
    fill_ladder();
    if (!automatic()) {
        // Slots are fixed shares: they open as what was lent beside them comes back.
        std::vector<Uuid> ids;
        for (const auto &[id, account] : accounts_) ids.push_back(id);
        for (const Uuid &id : ids) {
            Account &account = *find(id);
            if (account.state == State::leaving || account.elastic == 0) continue;
            unindex(account);
            set_promise(account, account.required, 0);
            index(account);
            tell(account, account.required, now_us);
            settle(id, now_us);
        }
    }
    Outcome outcome;
    serve(outcome, now_us);
    check();
    return outcome;
}

Outcome Ledger::set_pressure(Pressure pressure, int64_t now_us) {
    pressure_ = pressure;
    Outcome outcome;
    serve(outcome, now_us);
    check();
    return outcome;
}

bool Ledger::enter_lane(const Uuid &statement, uint64_t estimate_bytes) {
    const uint64_t lane_bytes = lanes_of(options_.budget_bytes).small_bytes;
    const uint64_t bytes = std::max(estimate_bytes, std::min(kLaneLeastBytes, lane_bytes));
    if (bytes > lane_bytes - lane_bytes_) return false;
    if (!in_lane_.emplace(statement, bytes).second) return false;
    lane_bytes_ += bytes;
    check();
    return true;
}

void Ledger::leave_lane(const Uuid &statement) {
    const auto found = in_lane_.find(statement);
    if (found == in_lane_.end()) return;
    lane_bytes_ -= found->second;
    in_lane_.erase(found);
    check();
}

}  // namespace roost::admission
