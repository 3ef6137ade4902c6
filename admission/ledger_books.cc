// The ledger's books: accounts, sums, slots, and the checks that they add up.
#include <algorithm>

#include "admission/ledger.h"
#include "admission/ledger_require.h"

namespace roost::admission {

namespace {
constexpr uint32_t kAuditEvery = 256;
}  // namespace

uint64_t Ledger::free_bytes() const {
    const uint64_t there = sizing_.lendable_bytes - counted_bytes_;
    return there - std::min(there, overrun_bytes_);
}

Ledger::Account *Ledger::find(const Uuid &id) {
    const auto found = accounts_.find(id);
    return found == accounts_.end() ? nullptr : &found->second;
}

Ledger::View Ledger::view(const Uuid &id) const {
    const auto found = accounts_.find(id);
    if (found == accounts_.end()) return {};
    const Account &account = found->second;
    return {account.required, account.elastic, account.counted,
            account.told,     account.order,   account.state == State::running,
            account.stuck};
}

std::vector<Uuid> Ledger::giving_back() const {
    std::vector<Uuid> ids;
    for (const auto &[id, account] : accounts_) {
        if (account.counted > account.told || account.used > account.counted) ids.push_back(id);
    }
    return ids;
}

// The account, new or idle, with the number of its instance.
Ledger::Account &Ledger::open_account(const Uuid &id, Slot *slot) {
    const auto [found, is_new] = accounts_.try_emplace(id);
    Account &account = found->second;
    account.id = id;
    if (slot != nullptr) {
        // An instance that is there already keeps its place: what it holds is counted in the slot now, and another
        // one must not be made beside it.
        if (!is_new && !account.in_ladder) {
            spare_numbers_.insert(slot->number);
            slot->number = account.slot;
        }
        slot->holder = id;
        account.slot = slot->number;
        account.in_ladder = true;
    } else if (is_new) {
        if (spare_numbers_.empty()) {
            account.slot = next_slot_number_++;
        } else {
            account.slot = *spare_numbers_.begin();
            spare_numbers_.erase(spare_numbers_.begin());
        }
    }
    return account;
}

void Ledger::erase(Account &account) {
    unindex(account);
    shrinking_.erase({account.shrinking_since_us, account.id});
    if (!account.stuck) coming_bytes_ -= account.counted - account.told;
    failed_.erase(account.id);
    set_used(account, 0);
    set_promise(account, 0, 0);
    counted_bytes_ -= account.counted;
    if (account.state == State::running || account.keeps_slot) {
        --running_;
        line_.discharge(account.group, account.granted);
    }
    if (account.in_ladder) {
        give_back_slot(account.id);
    } else {
        spare_numbers_.insert(account.slot);
    }
    accounts_.erase(Uuid(account.id));
    if (accounts_.empty()) returned_at_us_ = 0;
}

void Ledger::set_promise(Account &account, uint64_t required, uint64_t elastic) {
    required_bytes_ = required_bytes_ - account.required + required;
    elastic_bytes_ = elastic_bytes_ - account.elastic + elastic;
    account.required = required;
    account.elastic = elastic;
}

void Ledger::set_counted(Account &account, uint64_t counted) {
    require(counted >= account.counted || (account.confirmed && account.used <= counted),
            "memory counts as back that the engine has not given back");
    const uint64_t used = account.used;
    set_used(account, 0);
    counted_bytes_ = counted_bytes_ - account.counted + counted;
    account.counted = counted;
    set_used(account, used);
}

void Ledger::set_used(Account &account, uint64_t used) {
    const auto over = [&account] { return account.used - std::min(account.used, account.counted); };
    overrun_bytes_ -= over();
    account.used = used;
    overrun_bytes_ += over();
}

// Orders a limit. REQUIRES: what it is above `counted` is free.
void Ledger::tell(Account &account, uint64_t bytes, int64_t now_us) {
    if (bytes == account.told) return;
    told_at_grant(account, bytes);
    watch_shrink(account, now_us);
    if (options_.engine != nullptr) options_.engine->set_limit(account.id, account.order, bytes);
}

// The limit that an instance starts with is in the grant itself.
void Ledger::told_at_grant(Account &account, uint64_t bytes) {
    if (!account.stuck) coming_bytes_ -= account.counted - account.told;
    account.stuck = false;
    account.order = ++orders_;
    account.confirmed = false;
    account.told = bytes;
    if (bytes > account.counted) set_counted(account, bytes);
    coming_bytes_ += account.counted - account.told;
    failed_.erase(account.id);
}

// Starts the clock of a limit that was lowered, or stops it when nothing is to come back any more.
void Ledger::watch_shrink(Account &account, int64_t now_us) {
    const bool watched = shrinking_.contains({account.shrinking_since_us, account.id});
    if (account.told == account.counted) {
        if (watched) shrinking_.erase({account.shrinking_since_us, account.id});
    } else if (!watched) {
        account.shrinking_since_us = now_us;
        shrinking_.insert({now_us, account.id});
    }
}

// A limit that was lowered counts as lowered once the engine has confirmed it and uses no more. May end the account.
void Ledger::settle(const Uuid &id, int64_t now_us) {
    Account *account = find(id);
    if (account == nullptr) return;
    if (account->confirmed && account->told < account->counted && account->used <= account->told) {
        note_return(account->counted - account->told, now_us);
        unindex(*account);
        if (!account->stuck) coming_bytes_ -= account->counted - account->told;
        account->stuck = false;
        if (account->state == State::leaving) set_promise(*account, 0, 0);
        set_counted(*account, account->told);
        watch_shrink(*account, now_us);
        index(*account);
    }
    const bool over = account->state == State::leaving || (account->state == State::idle && !account->keeps_slot);
    if (over && account->counted == 0) erase(*account);
}

// Keeps the account where those are looked up who can give elastic memory back, or be lent more.
void Ledger::index(const Account &account) {
    if (account.stuck || account.in_ladder || account.fixed) return;
    if (account.state == State::running) lent_.insert({account.elastic, account.id});
    if (account.state == State::idle && !account.keeps_slot && account.elastic > 0) {
        idle_.insert({account.elastic, account.id});
    }
}

void Ledger::unindex(const Account &account) {
    lent_.erase({account.elastic, account.id});
    idle_.erase({account.elastic, account.id});
}

void Ledger::note_return(uint64_t bytes, int64_t now_us) {
    constexpr double kNewest = 0.2;
    if (bytes == 0) return;
    const bool first = return_bytes_ <= 0;
    return_bytes_ += (static_cast<double>(bytes) - return_bytes_) * (first ? 1 : kNewest);
    if (returned_at_us_ != 0) {
        const auto every_us = static_cast<double>(now_us - returned_at_us_);
        return_every_us_ += (every_us - return_every_us_) * (return_every_us_ <= 0 ? 1 : kNewest);
    }
    returned_at_us_ = now_us;
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
            static_cast<uint64_t>(static_cast<unsigned __int128>(sizing_.lendable_bytes) * weight / sum));
    }
}

uint64_t Ledger::slots_free_bytes() const {
    uint64_t bytes = 0;
    for (const Slot &slot : slots_) bytes += slot.holder ? 0 : slot.bytes;
    return bytes;
}

// Opens those pending slots that fit beside what is open, larger ones first. A smaller one may open while a larger
// waits for its memory: when the accounts of the earlier profile have left, all of them fit.
void Ledger::open_slots() {
    if (pending_slots_.empty()) return;
    const uint64_t there = sizing_.lendable_bytes - counted_bytes_ - slots_free_bytes();
    uint64_t free = there - std::min(there, overrun_bytes_);
    for (auto it = pending_slots_.begin(); it != pending_slots_.end();) {
        if (*it > free) {
            ++it;
            continue;
        }
        free -= *it;
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

void Ledger::give_back_slot(const Uuid &account) {
    const auto slot =
        std::find_if(slots_.begin(), slots_.end(), [&](const Slot &held) { return held.holder == account; });
    require(slot != slots_.end(), "an account's slot is not there");
    if (slot->retired) {
        slots_.erase(slot);
    } else {
        slot->holder.reset();
    }
}

void Ledger::check() {
    require(required_bytes_ <= sizing_.lendable_bytes, "more is required than there is");
    require(required_bytes_ + elastic_bytes_ <= sizing_.lendable_bytes, "more is promised than there is");
    require(counted_bytes_ <= sizing_.lendable_bytes && slots_free_bytes() <= sizing_.lendable_bytes - counted_bytes_,
            "more is lent than there is");
    require(required_bytes_ + elastic_bytes_ <= counted_bytes_, "more is promised than is lent");
    require(lane_bytes_ <= lanes_of(options_.budget_bytes).small_bytes, "the small lane is full and over");
    check_line();
    const auto due = std::max<uint64_t>(kAuditEvery, 4 * (accounts_.size() + line_.size()));
    if (!options_.always_audit && ++transitions_ < due) return;
    transitions_ = 0;
    audit();
}

void Ledger::check_line() {
    const Waiter *head = line_.head();
    if (head == nullptr || pressure_ == Pressure::refuse) return;
    require(!grantable(*head, false), "a statement waits beside memory that would do");
    require(!accounts_.empty(), "a statement waits while nothing runs");
    require(head->deadline_us > INT64_MIN && next_event_us().has_value(), "a wait that nothing ends");
}

void Ledger::audit() const {
    uint64_t required = 0, elastic = 0, counted = 0, coming = 0, overrun = 0, running = 0;
    for (const auto &[id, account] : accounts_) {
        const bool has_statement = account.state == State::running || account.keeps_slot;
        require(account.counted >= account.required + account.elastic, "an account is promised more than is counted");
        require(account.counted >= account.told, "an account has a limit above what is counted");
        require(!has_statement || account.required == account.granted, "required memory was taken from a statement");
        require(account.state != State::running || account.told == account.required + account.elastic,
                "a running statement's limit is not what it was promised");
        require(account.state != State::leaving || account.counted > 0 || account.granted == 0,
                "an account is left that holds nothing");
        require(account.state != State::idle || account.keeps_slot || account.required == 0,
                "an idle session is promised required memory");
        required += account.required;
        elastic += account.elastic;
        counted += account.counted;
        coming += account.stuck ? 0 : account.counted - account.told;
        overrun += account.used - std::min(account.used, account.counted);
        running += has_statement ? 1 : 0;
    }
    require(required == required_bytes_ && elastic == elastic_bytes_ && counted == counted_bytes_ &&
                coming == coming_bytes_ && overrun == overrun_bytes_ && running == running_,
            "the sums do not add up");
    const uint64_t closed = sizing_.lendable_bytes - counted_bytes_ - slots_free_bytes();
    for (const uint64_t pending : pending_slots_) {
        require(pending > closed - std::min(closed, overrun_bytes_), "a slot stays closed though its memory is free");
    }
    for (const Slot &slot : slots_) {
        require(slot.holder ? accounts_.contains(*slot.holder) : !slot.retired, "a slot of an earlier ladder is open");
    }
}

}  // namespace roost::admission
