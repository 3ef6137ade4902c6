#include "cluster/node_admission.h"

#include <algorithm>

namespace roost::cluster {

namespace {

using admission::Ledger;
using admission::Outcome;

// One that evicts much or meets pinned pages must not hold up the others.
constexpr uint32_t kEngineThreads = 2;
// A grant that has no thread waits for one; more threads than this gain nothing.
constexpr uint32_t kRunningMaxMax = 64;

admission::LedgerOptions ledger_options(const NodeAdmissionOptions &options, admission::EngineOrders *engine,
                                        Random *random) {
    admission::LedgerOptions ledger;
    ledger.budget_bytes = options.budget_bytes;
    ledger.profile = options.profile;
    ledger.threads = options.threads;
    ledger.max_bucket_fraction = options.max_bucket_fraction;
    ledger.groups = options.groups;
    ledger.engine = engine;
    ledger.random = random;
    return ledger;
}

uint32_t running_max_of(const Ledger &ledger) {
    constexpr uint32_t kLongestLadder = 3;  // the profile can change at run time
    const uint64_t most = ledger.lendable_bytes() / (uint64_t{64} << 20);
    return static_cast<uint32_t>(std::clamp<uint64_t>(most, kLongestLadder, kRunningMaxMax));
}

void add(Outcome &all, const Outcome &more) {
    all.grants.insert(all.grants.end(), more.grants.begin(), more.grants.end());
    all.ends.insert(all.ends.end(), more.ends.begin(), more.ends.end());
}

}  // namespace

NodeAdmission::NodeAdmission(NodeAdmissionOptions options, Engine &engine, const Clock &clock, obs::Log &log, Take take)
    : options_(std::move(options)),
      engine_(engine),
      clock_(clock),
      log_(log),
      take_(std::move(take)),
      jitter_(std::hash<Uuid>()(Uuid::make())),
      ledger_(ledger_options(options_, this, &jitter_)),
      engine_pool_("limits", kEngineThreads) {
    MutexLock lock(mutex_);
    running_max_ = running_max_of(ledger_);
}

NodeAdmission::~NodeAdmission() { stop(); }

void NodeAdmission::stop() { engine_pool_.stop(); }

void NodeAdmission::set_limit(const Uuid &account, uint64_t order, uint64_t bytes) {
    const auto found = accounts_.find(account);
    // One that is being granted is told by its grant.
    if (found == accounts_.end()) return;
    found->second.order = Order{order, bytes};
    to_send_.push_back(account);
}

void NodeAdmission::cant_shrink(const Uuid &account, uint64_t bytes) {
    ++not_shrunk_;
    log_.warn("memory_not_given_back", {{"account", account}, {"bytes", bytes}});
}

void NodeAdmission::send_orders() {
    for (const Uuid &id : std::exchange(to_send_, {})) {
        const auto found = accounts_.find(id);
        if (found == accounts_.end()) continue;
        Account &account = found->second;
        note_elastic(id, account);
        if (!account.live || account.busy || !account.order) continue;
        engine_pool_.push([this, id] { carry_out(id); });
    }
}

void NodeAdmission::carry_out(const Uuid &id) {
    Order order;
    uint32_t slot = 0;
    {
        MutexLock lock(mutex_);
        const auto found = accounts_.find(id);
        if (found == accounts_.end()) return;
        Account &account = found->second;
        if (!account.live || account.busy || !account.order) return;
        order = *account.order;
        account.order.reset();
        account.busy = true;
        slot = account.slot;
    }
    const Result<uint64_t> used = engine_.set_slot_limit(slot, order.bytes);
    Outcome outcome;
    {
        MutexLock lock(mutex_);
        Account &account = accounts_.at(id);  // stays while it is busy
        account.busy = false;
        carried_.notify_all();
        if (used.ok()) {
            outcome = ledger_.limit_confirmed(id, order.number, *used, clock_.monotonic_us());
        } else {
            ledger_.limit_failed(id, order.number, clock_.monotonic_us());
        }
        if (account.order) to_send_.push_back(id);
        forget_if_gone(id);
        note(outcome);
    }
    take_(outcome);
}

void NodeAdmission::await_order(const Uuid &id) {
    for (;;) {
        const auto found = accounts_.find(id);
        if (found == accounts_.end() || !found->second.busy) return;
        carried_.wait(mutex_);
    }
}

void NodeAdmission::forget_if_gone(const Uuid &id) {
    const auto found = accounts_.find(id);
    if (found == accounts_.end() || found->second.busy || found->second.has_statement) return;
    if (ledger_.view(id).counted_bytes > 0 || ledger_.place(id) > 0) return;
    accounts_.erase(found);
}

void NodeAdmission::note_grant(const admission::SlotGrant &grant) {
    Account &account = accounts_[grant.statement];
    account.slot = grant.slot;
    account.required_bytes = grant.bytes;
    account.has_statement = true;
    account.since_us = clock_.monotonic_us();
    account.elastic.assign(1, {0, grant.elastic_bytes});
}

void NodeAdmission::note_elastic(const Uuid &id, Account &account) {
    if (!account.has_statement || account.elastic.empty()) return;
    const MemoryAccount::Step step{clock_.monotonic_us() - account.since_us, ledger_.view(id).elastic_bytes};
    if (step.elastic_bytes == account.elastic.back().elastic_bytes) return;
    if (account.elastic.size() >= kElasticStepsMax) account.elastic.pop_back();
    account.elastic.push_back(step);
}

// REQUIRES: the outcome is that of the call just made.
void NodeAdmission::note(const Outcome &outcome) {
    for (const admission::SlotGrant &grant : outcome.grants) note_grant(grant);
    send_orders();
}

NodeAdmission::Asked NodeAdmission::request(const Ask &ask) {
    MutexLock lock(mutex_);
    Asked asked{Uuid::make(), {}};
    if (!ask.session.is_nil()) {
        // One that has a statement, or gives its memory back, is not to be had.
        const auto found = accounts_.find(ask.session);
        const bool free = found == accounts_.end()
                              ? ledger_.view(ask.session).counted_bytes == 0
                              : !found->second.has_statement && !found->second.closes && found->second.live;
        if (free && ledger_.place(ask.session) == 0) asked.account = ask.session;
    }
    asked.answer = ledger_.request({.account = asked.account,
                                    .no_wait = ask.no_wait,
                                    .wanted_bytes = ask.wanted_bytes,
                                    .admission_wait_us = ask.admission_wait_us,
                                    .timeout_us = ask.timeout_us,
                                    .user = ask.user,
                                    .group = ask.group,
                                    .fixed = ask.fixed},
                                   clock_.monotonic_us());
    if (asked.answer.kind == Ledger::Answer::Kind::granted) note_grant(asked.answer.grant);
    send_orders();
    return asked;
}

Outcome NodeAdmission::abandon(const Uuid &account) {
    MutexLock lock(mutex_);
    const int64_t now_us = clock_.monotonic_us();
    Outcome outcome = ledger_.abandon(account, now_us);
    // Of a session that has ended meanwhile: nobody else would close what it kept.
    const auto found = accounts_.find(account);
    if (found != accounts_.end() && found->second.closes && !found->second.has_statement) {
        add(outcome, ledger_.end(account, admission::Keep::nothing, now_us));
    }
    note(outcome);
    return outcome;
}

Grant NodeAdmission::begin(const Uuid &id) {
    MutexLock lock(mutex_);
    await_order(id);
    Account &account = accounts_.at(id);
    account.live = false;
    account.order.reset();
    const Ledger::View view = ledger_.view(id);
    account.begun_with_order = view.order;
    account.since_us = clock_.monotonic_us();
    account.elastic.assign(1, {0, view.elastic_bytes});
    return {.lane = Grant::Lane::slot,
            .slot = account.slot,
            .bytes = view.required_bytes,
            .elastic_bytes = view.told_bytes - std::min(view.told_bytes, view.required_bytes)};
}

void NodeAdmission::started(const Uuid &id, bool well) {
    if (!well) {
        MutexLock lock(mutex_);
        const auto found = accounts_.find(id);
        if (found == accounts_.end() || found->second.order) return;
        // Carried out when it has ended, if its instance is kept.
        found->second.order = Order{found->second.begun_with_order, ledger_.view(id).told_bytes};
        return;
    }
    const auto slot = [&]() -> std::optional<uint32_t> {
        MutexLock lock(mutex_);
        const auto found = accounts_.find(id);
        if (found == accounts_.end()) return std::nullopt;
        return found->second.slot;
    }();
    if (!slot) return;
    const uint64_t used_bytes = engine_.slot_used_bytes(*slot);
    Outcome outcome;
    {
        MutexLock lock(mutex_);
        Account &account = accounts_.at(id);
        account.live = true;
        outcome = ledger_.limit_confirmed(id, account.begun_with_order, used_bytes, clock_.monotonic_us());
        if (account.order) to_send_.push_back(id);
        note(outcome);
    }
    take_(outcome);
}

void NodeAdmission::finishing(const Uuid &id) {
    MutexLock lock(mutex_);
    await_order(id);
    if (const auto found = accounts_.find(id); found != accounts_.end()) found->second.live = false;
}

Outcome NodeAdmission::ended(const Uuid &id, bool keeps) {
    MutexLock lock(mutex_);
    await_order(id);
    const auto found = accounts_.find(id);
    if (found == accounts_.end()) return {};
    Account &account = found->second;
    account.has_statement = false;
    // Under a ladder nothing is kept between statements; the profile may have changed meanwhile.
    account.closes = account.closes || ledger_.profile() != admission::Profile::automatic;
    Outcome outcome;
    // One that was never begun leaves its session's instance as it was.
    if (keeps || account.live) {
        // What is kept of it is told like any limit; what the session has ended with is closed.
        account.live = true;
        if (account.order) to_send_.push_back(id);
        outcome = ledger_.end(id, account.closes ? admission::Keep::nothing : admission::Keep::elastic,
                              clock_.monotonic_us());
    } else {
        account.order.reset();
        outcome = ledger_.release(id, clock_.monotonic_us());
    }
    forget_if_gone(id);
    note(outcome);
    return outcome;
}

Outcome NodeAdmission::end_session(const Uuid &session) {
    MutexLock lock(mutex_);
    const auto found = accounts_.find(session);
    if (found == accounts_.end()) return {};
    found->second.closes = true;
    if (found->second.has_statement || ledger_.place(session) > 0) return {};
    Outcome outcome = ledger_.end(session, admission::Keep::nothing, clock_.monotonic_us());
    note(outcome);
    return outcome;
}

Outcome NodeAdmission::close_kept() {
    MutexLock lock(mutex_);
    Outcome all;
    for (auto &[id, account] : accounts_) {
        if (account.has_statement || !account.live || account.closes || ledger_.place(id) > 0) continue;
        account.closes = true;
        add(all, ledger_.end(id, admission::Keep::nothing, clock_.monotonic_us()));
    }
    note(all);
    return all;
}

bool NodeAdmission::enter_lane(const Uuid &statement, uint64_t estimate_bytes) {
    MutexLock lock(mutex_);
    return ledger_.enter_lane(statement, estimate_bytes);
}

void NodeAdmission::leave_lane(const Uuid &statement) {
    MutexLock lock(mutex_);
    ledger_.leave_lane(statement);
}

// Those that give memory back, with their slots.
std::vector<std::pair<Uuid, uint32_t>> NodeAdmission::giving_back() const {
    MutexLock lock(mutex_);
    std::vector<std::pair<Uuid, uint32_t>> slots;
    for (const Uuid &id : ledger_.giving_back()) {
        const auto found = accounts_.find(id);
        if (found != accounts_.end() && found->second.live) slots.emplace_back(id, found->second.slot);
    }
    return slots;
}

Outcome NodeAdmission::tick() {
    std::vector<std::pair<Uuid, uint64_t>> reports;
    for (const auto &[id, slot] : giving_back()) reports.emplace_back(id, engine_.slot_used_bytes(slot));
    MutexLock lock(mutex_);
    const int64_t now_us = clock_.monotonic_us();
    Outcome all;
    for (const auto &[id, used_bytes] : reports) {
        // Another statement may have the account by now; then it is its use, and true as well.
        add(all, ledger_.used(id, used_bytes, now_us));
        forget_if_gone(id);
    }
    add(all, ledger_.tick(now_us));
    note(all);
    return all;
}

Outcome NodeAdmission::set_profile(admission::Profile profile) {
    MutexLock lock(mutex_);
    Outcome outcome = ledger_.set_profile(profile, clock_.monotonic_us());
    note(outcome);
    return outcome;
}

Outcome NodeAdmission::set_pressure(admission::Pressure pressure) {
    MutexLock lock(mutex_);
    if (pressure == pressure_) return {};
    pressure_ = pressure;
    Outcome outcome = ledger_.set_pressure(pressure, clock_.monotonic_us());
    note(outcome);
    return outcome;
}

bool NodeAdmission::automatic() const { return profile() == admission::Profile::automatic; }

admission::Profile NodeAdmission::profile() const {
    MutexLock lock(mutex_);
    return ledger_.profile();
}

uint32_t NodeAdmission::place(const Uuid &account) const {
    MutexLock lock(mutex_);
    return ledger_.place(account);
}

uint32_t NodeAdmission::waiting() const {
    MutexLock lock(mutex_);
    return ledger_.waiting();
}

uint64_t NodeAdmission::granted_bytes() const {
    MutexLock lock(mutex_);
    return ledger_.granted_bytes();
}

void NodeAdmission::count_admission_timeout() {
    MutexLock lock(mutex_);
    ++admission_timeouts_;
}

void NodeAdmission::count_cancelled_for_memory() {
    MutexLock lock(mutex_);
    ++cancelled_for_memory_;
}

MemoryReport NodeAdmission::report() const {
    MutexLock lock(mutex_);
    MemoryReport report;
    report.profile = admission::profile_name(ledger_.profile());
    report.required_bytes = ledger_.required_bytes();
    report.elastic_bytes = ledger_.elastic_bytes();
    report.lane_bytes = ledger_.lane_bytes();
    report.pressure = static_cast<uint32_t>(pressure_);
    report.admission_timeouts = admission_timeouts_;
    report.not_shrunk = not_shrunk_;
    report.cancelled_for_memory = cancelled_for_memory_;
    const auto groups = ledger_.groups();
    if (groups.size() == 1) return report;  // nobody has set any
    for (size_t i = 0; i < groups.size() && i < kGroupsMax; ++i) {
        const admission::Line::Standing standing = ledger_.group_standing(i);
        report.groups.push_back({groups[i].name, standing.running, standing.waiting, standing.required_bytes});
    }
    return report;
}

std::vector<MemoryAccount::Step> NodeAdmission::elastic_of(const Uuid &account) const {
    MutexLock lock(mutex_);
    const auto found = accounts_.find(account);
    if (found == accounts_.end()) return {};
    std::vector<MemoryAccount::Step> steps = found->second.elastic;
    if (steps.size() == 1 && steps[0].elastic_bytes == 0) steps.clear();
    return steps;
}

std::vector<std::pair<int64_t, Uuid>> NodeAdmission::overruns() const {
    struct Running {
        Uuid id;
        uint32_t slot;
        uint64_t required_bytes;
    };
    std::vector<Running> running;
    {
        MutexLock lock(mutex_);
        for (const auto &[id, account] : accounts_) {
            if (account.has_statement && account.live) running.push_back({id, account.slot, account.required_bytes});
        }
    }
    std::vector<std::pair<int64_t, Uuid>> overruns;
    for (const Running &one : running) {
        const auto used = static_cast<int64_t>(engine_.slot_used_bytes(one.slot));
        overruns.emplace_back(used - static_cast<int64_t>(one.required_bytes), one.id);
    }
    std::sort(overruns.rbegin(), overruns.rend());
    return overruns;
}

}  // namespace roost::cluster
