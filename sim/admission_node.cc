#include "sim/admission_node.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "admission/budget.h"

namespace roost::sim {
namespace {

using End = AdmissionRecord::End;
using admission::Keep;

constexpr double kBuildPart = 0.6;  // of its time, in which a statement's use grows to its peak
constexpr double kNoAdmissionShare = 0.8;
constexpr int64_t kRestart_us = 5'000'000;
// A statement that has less than this of its peak can't even spill.
constexpr double kHardPart = 0.05;

admission::LedgerOptions ledger_options(const AdmissionNodeOptions &options, admission::EngineOrders *engine,
                                        Random *random) {
    admission::LedgerOptions out;
    const auto budget = admission::budget_of(options.memory_bytes, 0);
    out.budget_bytes = budget.ok() ? *budget : admission::kBudgetMinBytes;
    out.profile = options.profile;
    out.threads = options.cpus;
    out.floor_fraction = options.floor_fraction;
    out.groups = options.groups;
    out.engine = engine;
    out.random = random;
    return out;
}

}  // namespace

AdmissionNode::AdmissionNode(AdmissionNodeOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      shapes_({.feedback = options_.feedback}),
      ledger_(ledger_options(options_, this, &random_)) {}

double AdmissionNode::exponential(double mean) { return -mean * std::log(1 - random_.unit()); }

Uuid AdmissionNode::new_id() {
    Uuid id;
    const uint64_t number = ++ids_;
    std::memcpy(id.bytes.data(), &number, sizeof(number));
    return id;
}

// What a session keeps between its statements is its own only where it keeps something.
bool AdmissionNode::keeps(const AdmissionStatement &statement) const {
    const bool may = ledger_.profile() == admission::Profile::automatic || options_.sessions_keep_slots;
    return may && !statement.session.is_nil();
}

size_t AdmissionNode::submit(AdmissionStatement statement) {
    const size_t number = records_.size();
    AdmissionRecord &record = records_.emplace_back();
    record.at_us = now_us_;
    record.statement = std::move(statement);
    const AdmissionStatement &spec = record.statement;
    if (!options_.admits) {
        start(number, new_id(), 0,
              static_cast<uint64_t>(static_cast<double>(options_.memory_bytes) * kNoAdmissionShare));
        return number;
    }
    if (spec.is_small) {
        const Uuid id = new_id();
        if (ledger_.enter_lane(id, spec.estimate_bytes)) {
            record.in_lane = true;
            start(number, id, 0, spec.estimate_bytes);
            return number;
        }
    }
    auto known = shapes_.find(spec.shape, now_us_);
    if (!known) {
        shapes_.planned(spec.shape, {}, spec.estimate_bytes, now_us_);
        known = shapes_.find(spec.shape, now_us_);
    }
    const admission::Bucket bucket = admission::bucket_of(known->bytes, budget_bytes());
    const bool planned = known->why == admission::ShapeMemory::Known::Why::planned;
    admission::Request request;
    request.account = keeps(spec) ? spec.session : new_id();
    request.no_wait = spec.no_wait;
    request.wanted_bytes = planned ? admission::bucket_bytes(bucket, budget_bytes()) : known->bytes;
    request.admission_wait_us = spec.admission_wait_us >= 0 ? spec.admission_wait_us : options_.admission_wait_us;
    request.timeout_us = spec.timeout_us;
    request.user = spec.user;
    request.group = spec.group;
    record.floor_bytes = ledger_.sizes_of(request.wanted_bytes).floor_bytes;
    waiting_[request.account] = number;
    const auto answer = ledger_.request(request, now_us_);
    using Kind = admission::Ledger::Answer::Kind;
    if (answer.kind == Kind::granted) {
        take({.grants = {answer.grant}});
    } else if (answer.kind != Kind::waiting) {
        waiting_.erase(request.account);
        give_up(number, answer.kind == Kind::refused ? End::timed_out : End::refused);
    }
    return number;
}

void AdmissionNode::start(size_t number, const Uuid &account, uint32_t slot, uint64_t limit_bytes) {
    records_[number].started_us = now_us_;
    const AdmissionStatement &spec = records_[number].statement;
    Instance &instance = instances_[account];
    instance.limit = limit_bytes;
    instance.statement = number;
    const auto kept = slot_cached_.find(slot);
    if (kept != slot_cached_.end()) instance.cached = std::min(kept->second, limit_bytes);
    Running running;
    running.slot = slot;
    const double warm = static_cast<double>(instance.cached) * options_.same_tables;
    running.warm_bytes = std::min(static_cast<uint64_t>(warm), spec.scan_bytes);
    running.number = number;
    running.account = account;
    running.pinned = spec.pinned.value_or(random_.chance(options_.pinned_share));
    running.lane_bytes = records_[number].in_lane ? limit_bytes : 0;
    running_.push_back(running);
}

void AdmissionNode::take(const admission::Outcome &outcome) {
    for (const admission::SlotGrant &grant : outcome.grants) {
        const size_t number = waiting_.at(grant.statement);
        waiting_.erase(grant.statement);
        records_[number].granted_bytes = grant.bytes;
        records_[number].overdue = grant.overdue;
        std::erase_if(orders_, [&](const Order &order) { return order.account == grant.statement; });
        start(number, grant.statement, grant.slot, grant.bytes + grant.elastic_bytes);
        instances_[grant.statement].order = grant.order;
        // The limit of a session that ran before is confirmed like an order.
        orders_.push_back({now_us_, grant.statement, grant.order, grant.bytes + grant.elastic_bytes});
    }
    for (const admission::WaitEnd &end : outcome.ends) {
        const size_t number = waiting_.at(end.statement);
        waiting_.erase(end.statement);
        give_up(number, end.why == admission::WaitEnd::Why::would_wait ? End::refused : End::timed_out);
    }
}

void AdmissionNode::give_up(size_t number, End end) {
    records_[number].end = end;
    records_[number].ended_us = now_us_;
    ended_.push_back(number);
}

void AdmissionNode::cancel(size_t number) {
    for (size_t i = 0; i < running_.size(); ++i) {
        if (running_[i].number == number) return finish(i, End::cancelled);
    }
    for (const auto &[account, waiter] : waiting_) {
        if (waiter != number) continue;
        const Uuid id = account;
        waiting_.erase(id);
        give_up(number, End::cancelled);
        return take(ledger_.abandon(id, now_us_));
    }
}

void AdmissionNode::set_limit(const Uuid &account, uint64_t order, uint64_t bytes) {
    orders_.push_back({now_us_ + static_cast<int64_t>(exponential(options_.order_delay_us)), account, order, bytes});
}

void AdmissionNode::cant_shrink(const Uuid &, uint64_t) { ++totals_.stuck; }

void AdmissionNode::obey(const Order &order) {
    const auto found = instances_.find(order.account);
    uint64_t used = 0;
    if (found != instances_.end()) {
        Instance &instance = found->second;
        if (order.number < instance.order) return;
        instance.order = order.number;
        instance.limit = order.bytes;
        const uint64_t room = instance.limit - std::min(instance.limit, instance.pinned);
        instance.cached = std::min(instance.cached, room);
        used = instance.used();
    }
    take(ledger_.limit_confirmed(order.account, order.number, used, now_us_));
}

void AdmissionNode::step() {
    now_us_ += options_.step_us;
    std::vector<Order> due;
    std::erase_if(orders_, [&](const Order &order) {
        if (order.at_us > now_us_) return false;
        due.push_back(order);
        return true;
    });
    for (const Order &order : due) obey(order);
    work();
    give_back();
    if (options_.admits) take(ledger_.tick(now_us_));
    measure();
}

void AdmissionNode::work() {
    if (running_.empty() || now_us_ < up_again_us_) return;
    const double share_us = static_cast<double>(options_.step_us) * options_.cpus *
                            std::min(options_.alone_share, 1 / static_cast<double>(running_.size()));
    std::vector<std::pair<size_t, End>> over;
    for (size_t i = 0; i < running_.size(); ++i) {
        Running &running = running_[i];
        advance(running, share_us);
        const AdmissionStatement &spec = records_[running.number].statement;
        const Instance &instance = instances_.at(running.account);
        if (instance.limit < static_cast<uint64_t>(static_cast<double>(spec.peak_bytes) * kHardPart)) {
            over.emplace_back(i, End::out_of_memory);
        } else if (instance.overrun > 0 && running.done_cpu_us > spec.cpu_us * kBuildPart) {
            // The engine notices what no limit held, and the statement dies alone.
            over.emplace_back(i, End::out_of_memory);
        } else if (running.done_cpu_us >= spec.cpu_us) {
            over.emplace_back(i, End::done);
        }
    }
    for (auto it = over.rbegin(); it != over.rend(); ++it) finish(it->first, it->second);
}

void AdmissionNode::advance(Running &running, double cpu_us) {
    AdmissionRecord &record = records_[running.number];
    const AdmissionStatement &spec = record.statement;
    Instance &instance = instances_.at(running.account);
    const double part = std::min(1.0, running.done_cpu_us / (spec.cpu_us * kBuildPart + 1));
    const auto built = static_cast<uint64_t>(static_cast<double>(spec.peak_bytes) * part);
    const uint64_t wanted = std::min(built, instance.limit);
    // What cannot shrink stays, though the limit was lowered.
    instance.pinned = running.pinned ? std::max(instance.pinned, wanted) : wanted;
    if (spec.overrun_bytes > 0 && part > 0.5) instance.overrun = spec.overrun_bytes;
    const uint64_t room = instance.limit - std::min(instance.limit, instance.pinned);
    instance.cached = std::min({room, spec.scan_bytes, instance.cached + spec.scan_bytes / 20 + 1});
    double slower = 1;
    if (spec.peak_bytes > instance.limit) {
        record.spilled = true;
        slower +=
            options_.spill_cost * (1 - static_cast<double>(instance.limit) / static_cast<double>(spec.peak_bytes));
    }
    if (spec.scan_bytes > 0) {
        slower +=
            options_.cold_cost * (1 - static_cast<double>(instance.cached) / static_cast<double>(spec.scan_bytes));
    }
    running.done_cpu_us += cpu_us / slower;
}

void AdmissionNode::finish(size_t index, End end) {
    const Running running = running_[index];
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(index));
    AdmissionRecord &record = records_[running.number];
    give_up(running.number, end);
    const AdmissionStatement &spec = record.statement;
    Instance &instance = instances_.at(running.account);
    instance.statement.reset();
    if (record.in_lane) {
        ledger_.leave_lane(running.account);
        instances_.erase(running.account);
        return;
    }
    const double delay_us =
        spec.give_back_us >= 0 ? static_cast<double>(spec.give_back_us) : exponential(options_.give_back_us);
    instance.back_at_us = now_us_ + static_cast<int64_t>(delay_us);
    if (!options_.admits) return;
    if (ledger_.profile() != admission::Profile::automatic) slot_cached_[running.slot] = instance.cached;
    if (end == End::done) {
        shapes_.ran(spec.shape, {}, std::min(spec.peak_bytes, instance.limit), record.granted_bytes, record.spilled,
                    now_us_);
    }
    take(ledger_.end(running.account, keeps(spec) ? Keep::elastic : Keep::nothing, now_us_));
}

// Statements that ended give back what they had built; what a session's cache has stays below its limit.
void AdmissionNode::give_back() {
    std::vector<std::pair<Uuid, uint64_t>> reports;
    for (auto it = instances_.begin(); it != instances_.end();) {
        Instance &instance = it->second;
        if (instance.back_at_us >= 0 && instance.back_at_us <= now_us_) {
            instance.back_at_us = -1;
            instance.pinned = instance.overrun = 0;
            if (!instance.statement) instance.cached = std::min(instance.cached, instance.limit);
        }
        if (!options_.admits) {
            it = !instance.statement && instance.back_at_us < 0 ? instances_.erase(it) : std::next(it);
            continue;
        }
        const admission::Ledger::View view = ledger_.view(it->first);
        if (view.counted_bytes > view.told_bytes || instance.overrun > 0)
            reports.emplace_back(it->first, instance.used());
        const bool gone = view.counted_bytes == 0 && !instance.statement && instance.back_at_us < 0;
        it = gone && !records_.empty() && instance.used() == 0 ? instances_.erase(it) : std::next(it);
    }
    for (const auto &[account, used] : reports) take(ledger_.used(account, used, now_us_));
}

void AdmissionNode::measure() {
    uint64_t limits = 0, used = 0, overrun = 0;
    for (const auto &[account, instance] : instances_) {
        if (instance.statement && records_[*instance.statement].in_lane) continue;
        limits += std::max(instance.limit, instance.pinned + instance.cached);
        used += instance.used();
        overrun += instance.overrun;
    }
    totals_.used_max_bytes = std::max(totals_.used_max_bytes, used);
    if (!options_.admits) {
        if (used > options_.memory_bytes) kill_all();
        return;
    }
    const uint64_t most = ledger_.lendable_bytes();
    if (limits > most) totals_.oversubscribed_bytes = std::max(totals_.oversubscribed_bytes, limits - most);
    if (used - overrun > most) {
        totals_.oversubscribed_bytes = std::max(totals_.oversubscribed_bytes, used - overrun - most);
    }
    if (ledger_.granted_bytes() == 0) {
        totals_.parked_us += static_cast<uint64_t>(options_.step_us) * ledger_.waiting();
    }
}

// The kernel ends the process: everybody's statements with it.
void AdmissionNode::kill_all() {
    ++totals_.kills;
    for (const Running &running : running_) give_up(running.number, End::killed);
    running_.clear();
    instances_.clear();
    up_again_us_ = now_us_ + kRestart_us;
}

bool AdmissionNode::run_until_idle(int64_t within_us) {
    const int64_t until_us = now_us_ + within_us;
    while (live() > 0 && now_us_ < until_us) step();
    return live() == 0;
}

std::vector<size_t> AdmissionNode::take_ended() { return std::exchange(ended_, {}); }

}  // namespace roost::sim
