#include "sim/simulation.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <queue>

#include "placement/ownership.h"
#include "sim/node_model.h"

namespace roost::sim {
namespace {

using placement::Directory;
using placement::NodeView;
using placement::TableUse;
using placement::UnitId;
using placement::UnitReport;

constexpr double kNever = std::numeric_limits<double>::infinity();
// What a write changes of its unit, and how long a node that restarts is away.
constexpr double kWrittenShare = 0.05;
constexpr double kRestartUs = 2e6;
constexpr uint64_t kCatalog = placement::catalog_id("sim");

UnitId unit_id(uint32_t unit) { return {kCatalog, unit + 1, 0}; }

class Simulation {
public:
    Simulation(const PoolOptions &pool, const placement::DirectoryOptions &placement, Workload &workload,
               const RunPlan &plan);
    RunResult run();

private:
    struct Live {
        SimStatement statement;
        uint32_t gateway = 0;
        uint32_t node = UINT32_MAX;
        std::vector<uint32_t> candidates;  // places in nodes_
        std::vector<placement::Ask> asks;
        size_t ask = 0;
        enum class State : uint8_t { none, waiting, fetching, on_cpu } state = State::none;
        placement::Claim claim;
        std::vector<uint64_t> epochs;  // of its units when it was decided
        double arrived_us = 0, waits_since_us = 0;
        uint64_t turn = 0;  // tells an event of an earlier statement in this place
    };
    struct Event {
        double at_us;
        uint64_t number;  // events of one instant keep their order
        enum class Kind : uint8_t { arrive, fetched, back, impatient } kind;
        uint32_t what;
        uint64_t turn;
        bool operator>(const Event &other) const {
            return at_us != other.at_us ? at_us > other.at_us : number > other.number;
        }
    };

    void add_node(const Uuid &id, uint32_t weight);
    void schedule(double at_us, Event::Kind kind, uint32_t what, uint64_t turn = 0);
    bool step();
    void advance_to(double at_us);
    bool submit(uint32_t place);
    void place_statement(uint32_t place, std::optional<Uuid> avoid);
    void ask_next(uint32_t place);
    void give_up(uint32_t place);
    std::vector<NodeView> &views(uint32_t gateway);
    void begin_on(uint32_t place);
    double fetch(NodeModel &node, Live &live);
    void fetched(uint32_t place);
    void finish(uint32_t node_at);
    void take_from_line(NodeModel &node);
    void count_end(const Live &live);
    void report_evicted(NodeModel &node);
    void hear_heartbeats();
    void change(const MembershipChange &change);
    void stop(uint32_t node_at);
    void come_back(uint32_t node_at);
    void begin_measuring();
    RunResult result();

    PoolOptions pool_;
    Workload &workload_;
    RunPlan plan_;
    std::vector<NodeModel> nodes_;
    std::vector<std::unique_ptr<Directory>> gateways_;
    placement::Ownership ownership_;
    std::vector<std::vector<uint32_t>> others_;  // by gateway and node, as of the last heartbeat
    double heard_us_ = -kNever;
    std::vector<uint64_t> unit_writes_, unit_epoch_;
    std::vector<bool> touched_;
    double touched_bytes_ = 0, fetched_bytes_ = 0;
    uint64_t snapshot_ = 1;

    std::vector<Live> live_;
    std::vector<uint32_t> free_places_;  // of a trace's statements
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    uint64_t event_number_ = 0;
    double now_us_ = 0;
    std::optional<SimStatement> next_in_trace_;
    std::vector<uint32_t> evicted_;
    std::vector<NodeView> views_;
    std::vector<TableUse> uses_;
    uint32_t nodes_made_ = 0;
    size_t changes_done_ = 0;

    uint64_t ended_ = 0;
    bool measuring_ = false;
    double measured_since_us_ = 0;
    RunResult result_;
    std::vector<float> times_us_;
    double stretch_sum_ = 0, decide_ns_ = 0;
    uint64_t decided_ = 0;
    uint64_t cache_bytes_a_weight_ = 0;
};

Simulation::Simulation(const PoolOptions &pool, const placement::DirectoryOptions &placement, Workload &workload,
                       const RunPlan &plan)
    : pool_(pool), workload_(workload), plan_(plan) {
    double data_bytes = 0, weight = 0;
    for (const uint64_t bytes : workload.unit_bytes()) data_bytes += static_cast<double>(bytes);
    for (const uint32_t each : pool.weights) weight += each;
    const double cache_bytes =
        pool.cache_bytes > 0 ? static_cast<double>(pool.cache_bytes) : pool.cache_ratio * data_bytes;
    cache_bytes_a_weight_ = static_cast<uint64_t>(cache_bytes / weight);
    for (uint32_t i = 0; i < workload.unit_bytes().size(); ++i) ownership_.add(unit_id(i));
    for (uint32_t g = 0; g < std::max(pool.gateways, 1u); ++g) {
        gateways_.push_back(std::make_unique<Directory>(placement));
    }
    for (const uint32_t each : pool.weights) add_node(Uuid::from_name("sim node " + std::to_string(nodes_made_)), each);
    unit_writes_.resize(workload.unit_bytes().size());
    touched_.resize(workload.unit_bytes().size());
    unit_epoch_.resize(workload.unit_bytes().size(), 1);
}

void Simulation::add_node(const Uuid &id, uint32_t weight) {
    ++nodes_made_;
    NodeModel &node =
        nodes_.emplace_back(id, weight, pool_.slots, workload_.unit_bytes().size(), cache_bytes_a_weight_ * weight);
    node.charged.resize(gateways_.size());
    node.last_used.resize(gateways_.size());
    node.progress_at_us = now_us_;
    for (auto &others : others_) others.resize(nodes_.size());
    others_.resize(gateways_.size(), std::vector<uint32_t>(nodes_.size()));
    ownership_.set_member({id, weight});
}

void Simulation::schedule(double at_us, Event::Kind kind, uint32_t what, uint64_t turn) {
    events_.push({at_us, event_number_++, kind, what, turn});
}

RunResult Simulation::run() {
    SimStatement first;
    if (!workload_.next(first)) return result();
    if (first.at_us >= 0) {
        next_in_trace_ = first;
        schedule(first.at_us, Event::Kind::arrive, 0);
    } else {
        const auto clients = static_cast<uint32_t>(plan_.in_flight_per_node * pool_.weights.size());
        for (uint32_t i = 0; i < clients; ++i) {
            live_.emplace_back().gateway = i % static_cast<uint32_t>(gateways_.size());
            // Not all in one instant.
            schedule(i, Event::Kind::arrive, i);
        }
    }
    if (plan_.warmup_statements == 0) begin_measuring();
    while (ended_ < plan_.warmup_statements + plan_.statements && step()) {
    }
    return result();
}

void Simulation::advance_to(double at_us) {
    if (measuring_) {
        size_t waiting = 0;
        bool idle = false, free = false;
        for (const NodeModel &node : nodes_) {
            waiting += node.line.size();
            idle = idle || (node.alive && node.held == 0);
            free = free || (node.alive && node.held < node.slots);
        }
        const double statement_us = static_cast<double>(waiting) * (at_us - now_us_);
        result_.waited_us += statement_us;
        if (idle) result_.idle_beside_us += statement_us;
        if (free) result_.free_beside_us += statement_us;
    }
    now_us_ = at_us;
}

bool Simulation::step() {
    double done_us = kNever;
    uint32_t done_at = 0;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
        const double at_us = nodes_[i].next_done_us();
        if (at_us < done_us) {
            done_us = at_us;
            done_at = i;
        }
    }
    if (events_.empty() && done_us == kNever) return false;
    if (events_.empty() || done_us <= events_.top().at_us) {
        advance_to(std::max(done_us, now_us_));
        finish(done_at);
    } else {
        const Event event = events_.top();
        events_.pop();
        advance_to(event.at_us);
        if (event.kind == Event::Kind::arrive) {
            submit(event.what);
        } else if (event.kind == Event::Kind::back) {
            come_back(event.what);
        } else if (live_[event.what].turn == event.turn) {
            event.kind == Event::Kind::impatient ? give_up(event.what) : fetched(event.what);
        }
    }
    while (changes_done_ < plan_.changes.size() && plan_.changes[changes_done_].after_statements <= ended_) {
        change(plan_.changes[changes_done_++]);
    }
    return true;
}

// The client at `place` sends its next statement; of a trace, the next one arrives.
bool Simulation::submit(uint32_t place) {
    SimStatement statement;
    if (next_in_trace_) {
        statement = std::move(*next_in_trace_);
        next_in_trace_.reset();
        if (SimStatement later; workload_.next(later)) {
            next_in_trace_ = later;
            schedule(later.at_us, Event::Kind::arrive, 0);
        }
        if (free_places_.empty()) {
            free_places_.push_back(static_cast<uint32_t>(live_.size()));
            live_.emplace_back();
        }
        place = free_places_.back();
        free_places_.pop_back();
        live_[place].gateway = static_cast<uint32_t>(ended_ % gateways_.size());
    } else if (!workload_.next(statement)) {
        return false;
    }
    Live &live = live_[place];
    ++live.turn;
    live.statement = std::move(statement);
    live.arrived_us = now_us_;
    place_statement(place, std::nullopt);
    return true;
}

void Simulation::hear_heartbeats() {
    if (gateways_.size() == 1 || now_us_ - heard_us_ < pool_.heartbeat_us) return;
    heard_us_ = now_us_;
    for (size_t g = 0; g < gateways_.size(); ++g) {
        for (size_t n = 0; n < nodes_.size(); ++n) {
            others_[g][n] = 0;
            for (size_t other = 0; other < gateways_.size(); ++other) {
                if (other != g) others_[g][n] += nodes_[n].charged[other];
            }
        }
    }
}

std::vector<NodeView> &Simulation::views(uint32_t gateway) {
    hear_heartbeats();
    views_.clear();
    for (size_t n = 0; n < nodes_.size(); ++n) {
        const NodeModel &node = nodes_[n];
        views_.push_back({node.id, node.incarnation, node.weight, node.charged[gateway], others_[gateway][n],
                          node.last_used[gateway], node.alive, true});
    }
    return views_;
}

// Decides, asks the candidates in turn, and has it wait at the first when none takes it at once.
void Simulation::place_statement(uint32_t place, std::optional<Uuid> avoid) {
    Live &live = live_[place];
    uses_.clear();
    live.epochs.clear();
    for (size_t i = 0; i < live.statement.units.size(); ++i) {
        const uint32_t unit = live.statement.units[i];
        uses_.push_back({kCatalog, unit + 1, unit_epoch_[unit], workload_.unit_bytes()[unit],
                         live.statement.writes && i == 0, nullptr});
        live.epochs.push_back(unit_epoch_[unit]);
    }
    auto &nodes = views(live.gateway);
    const auto since = std::chrono::steady_clock::now();
    placement::Decision decision = gateways_[live.gateway]->decide(nodes, {uses_, std::nullopt, avoid});
    decide_ns_ += static_cast<double>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - since).count());
    ++decided_;
    live.claim = std::move(decision.claim);
    const auto find = [&](const Uuid &id) {
        return static_cast<uint32_t>(std::ranges::find(nodes_, id, &NodeModel::id) - nodes_.begin());
    };
    if (decision.candidates.empty()) {
        // Nobody is there; somebody will be.
        schedule(now_us_ + 100'000, Event::Kind::arrive, place);
        return;
    }
    live.candidates.clear();
    for (const auto &candidate : decision.candidates) live.candidates.push_back(find(candidate.node));
    live.asks = placement::asks_of(live.candidates.size(), decision.near, decision.patience_us);
    if (!pool_.no_wait) live.asks = {{0, placement::Ask::kAsLongAsItTakes}};
    live.ask = 0;
    ask_next(place);
}

// The nodes that the statement has not asked yet, until one takes it or lets it wait.
void Simulation::ask_next(uint32_t place) {
    Live &live = live_[place];
    for (;; ++live.ask) {
        if (live.ask == live.asks.size()) return place_statement(place, std::nullopt);  // all of them have died
        const placement::Ask &ask = live.asks[live.ask];
        live.node = live.candidates[ask.candidate];
        NodeModel &node = nodes_[live.node];
        if (node.alive && (node.held < node.slots || ask.wait_us != 0)) break;
    }
    NodeModel &node = nodes_[live.node];
    gateways_[live.gateway]->dispatched(live.claim, views(live.gateway)[live.node]);
    ++node.charged[live.gateway];
    node.last_used[live.gateway] = ++event_number_;
    result_.fingerprint = placement::hash_words({result_.fingerprint, live.node, live.statement.units[0]});
    if (node.held < node.slots) {
        begin_on(place);
        return;
    }
    const int64_t wait_us = live.asks[live.ask].wait_us;
    live.state = Live::State::waiting;
    live.waits_since_us = now_us_;
    node.line.push_back(place);
    if (wait_us > 0) schedule(now_us_ + static_cast<double>(wait_us), Event::Kind::impatient, place, live.turn);
    if (!measuring_) return;
    ++result_.waited;
    result_.waited_beside_idle +=
        std::ranges::any_of(nodes_, [](const NodeModel &each) { return each.alive && each.held == 0; });
}

// It has waited at its home for as long as reading elsewhere takes.
void Simulation::give_up(uint32_t place) {
    Live &live = live_[place];
    if (live.state != Live::State::waiting) return;
    NodeModel &node = nodes_[live.node];
    std::erase(node.line, place);
    --node.charged[live.gateway];
    live.state = Live::State::none;
    result_.gave_up += measuring_;
    ++live.ask;
    ask_next(place);
}

void Simulation::begin_on(uint32_t place) {
    Live &live = live_[place];
    NodeModel &node = nodes_[live.node];
    ++node.held;
    live.state = Live::State::fetching;
    const double ready_us = fetch(node, live);
    if (ready_us <= now_us_) return fetched(place);
    schedule(ready_us, Event::Kind::fetched, place, live.turn);
}

// Starts the downloads that the statement needs, or joins those under way. Returns when all is there.
double Simulation::fetch(NodeModel &node, Live &live) {
    double ready_us = now_us_;
    for (const uint32_t unit : live.statement.units) {
        const uint64_t bytes = workload_.unit_bytes()[unit];
        const uint64_t there = node.cache.bytes_of(unit);
        const uint64_t behind = unit_writes_[unit] - node.cache.version_of(unit);
        const bool loading = node.loading_until_us[unit] > now_us_;
        double needed = there == 0 ? 1 : std::min(1.0, kWrittenShare * static_cast<double>(behind));
        if (measuring_) {
            ++result_.unit_reads;
            result_.read_bytes += bytes;
            result_.misses += there == 0;
            result_.top_ups += there > 0 && behind > 0;
        }
        if (!touched_[unit]) {
            touched_[unit] = true;
            touched_bytes_ += bytes;
        }
        if (needed == 0) continue;
        if (loading) {
            ready_us = std::max(ready_us, node.loading_until_us[unit]);
            continue;
        }
        const double bytes_needed = needed * static_cast<double>(bytes);
        if (measuring_) result_.store_bytes += static_cast<uint64_t>(bytes_needed);
        fetched_bytes_ += bytes_needed;
        const double takes_us = pool_.store_wait_us + bytes_needed / pool_.store_bytes_per_us;
        node.loading_until_us[unit] = now_us_ + takes_us;
        gateways_[live.gateway]->note_cold_read(static_cast<uint64_t>(bytes_needed), takes_us);
        ready_us = std::max(ready_us, node.loading_until_us[unit]);
    }
    return ready_us;
}

// All is there: on to the CPU.
void Simulation::fetched(uint32_t place) {
    Live &live = live_[place];
    NodeModel &node = nodes_[live.node];
    for (const uint32_t unit : live.statement.units) {
        node.cache.put(unit, workload_.unit_bytes()[unit], unit_writes_[unit], evicted_);
    }
    report_evicted(node);
    live.state = Live::State::on_cpu;
    node.advance(now_us_);
    node.on_cpu.push({node.progress_us + live.statement.cpu_us, place});
}

void Simulation::report_evicted(NodeModel &node) {
    if (evicted_.empty()) return;
    std::vector<UnitReport> reports;
    for (const uint32_t unit : evicted_) reports.push_back({unit_id(unit), 0, 0});
    for (auto &gateway : gateways_) gateway->report(node.id, node.incarnation, reports);
    evicted_.clear();
}

void Simulation::finish(uint32_t node_at) {
    NodeModel &node = nodes_[node_at];
    node.advance(now_us_);
    const uint32_t place = node.on_cpu.top().statement;
    node.on_cpu.pop();
    Live &live = live_[place];
    uint64_t committed = 0;
    if (live.statement.writes) {
        const uint32_t unit = live.statement.units[0];
        const bool whole = node.cache.bytes_of(unit) > 0 && node.cache.version_of(unit) == unit_writes_[unit];
        committed = unit_epoch_[unit] = ++snapshot_;
        ++unit_writes_[unit];
        // What it wrote it has.
        if (whole) node.cache.put(unit, workload_.unit_bytes()[unit], unit_writes_[unit], evicted_);
    }
    std::vector<UnitReport> reports;
    for (const uint32_t unit : live.statement.units) {
        node.cache.touch(unit);
        reports.push_back({unit_id(unit), node.cache.bytes_of(unit), 0});
    }
    gateways_[live.gateway]->ended(live.claim, {true, reports, committed});
    --node.charged[live.gateway];
    --node.held;
    take_from_line(node);
    ++ended_;
    count_end(live);
    if (!measuring_ && ended_ >= plan_.warmup_statements) begin_measuring();
    live.state = Live::State::none;
    ++live.turn;
    if (live.statement.at_us >= 0) {
        free_places_.push_back(place);
    } else {
        submit(place);
    }
}

void Simulation::take_from_line(NodeModel &node) {
    if (!node.alive || node.line.empty() || node.held >= node.slots) return;
    const uint32_t next = node.line.front();
    node.line.pop_front();
    begin_on(next);
}

void Simulation::count_end(const Live &live) {
    if (!measuring_) return;
    ++result_.statements;
    ++nodes_[live.node].served;
    const double time_us = now_us_ - live.arrived_us;
    times_us_.push_back(static_cast<float>(time_us));
    stretch_sum_ += time_us / std::max(live.statement.cpu_us, 1.0);
}

void Simulation::change(const MembershipChange &change) {
    using Kind = MembershipChange::Kind;
    size_t moved = 0;
    if (change.kind == Kind::join) {
        add_node(Uuid::from_name("sim node " + std::to_string(nodes_made_)), change.weight);
        // Counted anew, since add_node has done it.
        ownership_.remove_member(nodes_.back().id);
        moved = ownership_.set_member({nodes_.back().id, change.weight}).size();
    } else if (change.node < nodes_.size() && nodes_[change.node].alive) {
        NodeModel &node = nodes_[change.node];
        if (change.kind == Kind::reweigh) {
            node.advance(now_us_);
            node.weight = change.weight;
            moved = ownership_.set_member({node.id, change.weight}).size();
        } else {
            stop(change.node);
            if (change.kind == Kind::restart) {
                schedule(now_us_ + kRestartUs, Event::Kind::back, change.node);
            } else {
                moved = ownership_.remove_member(node.id).size();
                for (auto &gateway : gateways_) gateway->forget_node(node.id);
            }
            if (change.kind == Kind::replace) {
                const uint32_t weight = node.weight;
                add_node(Uuid::from_name("sim node " + std::to_string(nodes_made_)), weight);
            }
        }
    }
    result_.moved.push_back(moved);
}

// The node's process is gone: what ran there fails and is run again elsewhere.
void Simulation::stop(uint32_t node_at) {
    NodeModel &node = nodes_[node_at];
    node.alive = false;
    node.on_cpu = {};
    node.line.clear();
    node.held = 0;
    std::ranges::fill(node.charged, 0);
    std::ranges::fill(node.loading_until_us, -1);
    for (uint32_t place = 0; place < live_.size(); ++place) {
        Live &live = live_[place];
        if (live.state == Live::State::none || live.node != node_at) continue;
        ++live.turn;
        ++result_.failed;
        gateways_[live.gateway]->ended(live.claim, {});
        place_statement(place, node.id);
    }
}

// With its cache and a new incarnation: it says what it has.
void Simulation::come_back(uint32_t node_at) {
    NodeModel &node = nodes_[node_at];
    node.alive = true;
    ++node.incarnation;
    node.progress_at_us = now_us_;
    std::vector<UnitReport> inventory;
    for (uint32_t unit = 0; unit < unit_writes_.size(); ++unit) {
        const uint64_t bytes = node.cache.bytes_of(unit);
        const uint64_t epoch = node.cache.version_of(unit) == unit_writes_[unit] ? unit_epoch_[unit] : 0;
        if (bytes > 0) inventory.push_back({unit_id(unit), bytes, epoch});
    }
    for (auto &gateway : gateways_) gateway->report(node.id, node.incarnation, inventory);
}

void Simulation::begin_measuring() {
    measuring_ = true;
    measured_since_us_ = now_us_;
    for (NodeModel &node : nodes_) node.served = 0;
}

RunResult Simulation::result() {
    RunResult &result = result_;
    result.total_us = now_us_ - measured_since_us_;
    if (!times_us_.empty()) {
        double sum = 0;
        for (const float each : times_us_) sum += each;
        result.mean_us = sum / static_cast<double>(times_us_.size());
        std::ranges::sort(times_us_);
        result.p50_us = times_us_[times_us_.size() / 2];
        result.p99_us = times_us_[times_us_.size() * 99 / 100];
        result.mean_stretch = stretch_sum_ / static_cast<double>(times_us_.size());
    }
    double served = 0, weight = 0, most = 0;
    for (const NodeModel &node : nodes_) {
        if (!node.alive) continue;
        served += static_cast<double>(node.served);
        weight += node.weight;
        most = std::max(most, static_cast<double>(node.served) / node.weight);
    }
    if (served > 0) result.served_max_to_mean = most / (served / weight);
    uint64_t homes = 0, units = 0;
    for (uint32_t unit = 0; unit < unit_writes_.size(); ++unit) {
        uint64_t here = 0;
        for (const NodeModel &node : nodes_) here += node.alive && node.cache.bytes_of(unit) > 0;
        homes += here;
        units += here > 0;
    }
    if (touched_bytes_ > 0) result.store_to_unique = fetched_bytes_ / touched_bytes_;
    if (units > 0) result.homes_per_unit = static_cast<double>(homes) / static_cast<double>(units);
    for (const auto &gateway : gateways_) {
        for (size_t i = 0; i < placement::kOutcomes; ++i) result.outcomes[i] += gateway->counts()[i];
        result.passed_on += gateway->passed_on();
    }
    if (decided_ > 0) result.decide_us = decide_ns_ / 1e3 / static_cast<double>(decided_);
    return result;
}

}  // namespace

RunResult run(const PoolOptions &pool, const placement::DirectoryOptions &placement, Workload &workload,
              const RunPlan &plan) {
    return Simulation(pool, placement, workload, plan).run();
}

}  // namespace roost::sim
