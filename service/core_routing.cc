// What the core tells routing: the pool as it is, and the tables of a statement.
#include "service/core.h"

#include <boost/asio/detached.hpp>

namespace roost::service {
namespace {

constexpr int64_t kLookWithinMs = 10'000;
// Heartbeats that a busy machine may miss.
constexpr int64_t kBeatsMissedMax = 2;

routing::NodeState state_of(const Uuid &id, const cluster::Member &member) {
    routing::NodeState node;
    node.id = id;
    node.name = member.hello.name;
    node.weight = member.hello.cpus;
    node.in_flight = member.in_flight;
    node.last_used = member.last_used;
    node.incarnation = member.hello.incarnation;
    node.reports_bytes = member.hello.reports_bytes;
    return node;
}

}  // namespace

routing::ClusterSnapshot Core::snapshot() const {
    routing::ClusterSnapshot cluster;
    cluster.nodes.reserve(hub.members().size());
    bool any = false;
    for (const auto &[id, member] : hub.members()) {
        cluster.nodes.push_back(state_of(id, member));
        cluster.nodes.back().routable = standing(member).state.empty();
        any = any || cluster.nodes.back().routable;
    }
    // Rather one that may fail than none.
    if (!any) {
        for (routing::NodeState &node : cluster.nodes) node.routable = standing(hub.members().at(node.id)).hint;
    }
    return cluster;
}

Core::Standing Core::standing(const cluster::Member &member) const {
    if (member.heartbeat.stopping) return {"stopping", "its process has been told to end", false};
    if (drained.contains(member.hello.node)) return {"drained", "an operator drained it", false};
    if (member.hello.engine_version != limits.engine_version && !limits.engine_version.empty()) {
        return {"incompatible",
                "its DuckDB is " + member.hello.engine_version + ", the pool's is " + limits.engine_version, false};
    }
    const int64_t silent_ms = (clock.monotonic_us() - member.last_seen_us) / 1000;
    if (silent_ms > kBeatsMissedMax * limits.heartbeat_ms + limits.heartbeat_ms / 2) {
        return {"silent", "no word from it for " + std::to_string(silent_ms / 1000) + " s", true};
    }
    const auto found = health.find(member.hello.node);
    if (found != health.end() && found->second.failing()) {
        return {"failing", "statements failed there one after another; it is being probed", true};
    }
    return {};
}

void Core::note_health(const Uuid &node, const Status &status) {
    const bool failed = status.code() == Code::io_error || status.code() == Code::data_loss ||
                        (status.code() == Code::unavailable && status.name() != kNodeStopping);
    // What failed for its own reasons says nothing of the node, good or bad.
    if (!status.ok() && !failed) return;
    if (!failed && !health.contains(node)) return;
    if (!hub.members().contains(node)) return;
    if (!health[node].note(failed, clock.monotonic_us())) return;
    log.warn("node_failing", {{"node_id", node}, {"error", status.message()}});
}

void Core::note_dispatched(routing::Decision &decision, const Uuid &node) {
    const auto member = hub.members().find(node);
    if (member != hub.members().end()) policy->dispatched(decision, state_of(node, member->second));
}

void Core::note_ended(routing::Decision &decision, const Uuid &node, const Completion &completion, bool ok) {
    placement::Ended end{ok, {}, ok ? completion.committed_snapshot : 0};
    const auto member = hub.members().find(node);
    std::vector<placement::UnitReport> reports;
    if (ok && member != hub.members().end()) {
        const uint64_t incarnation = member->second.hello.incarnation;
        reports = warm.ended(node, incarnation, completion.reads, completion.committed_snapshot);
        if (placement::Directory *directory = policy->directory()) directory->report(node, incarnation, reports);
        end.reports = reports;
    }
    policy->ended(decision, end);
    const ReadBytes bytes = completion.read_bytes();
    if (placement::Directory *directory = policy->directory(); directory && ok && bytes.store_bytes > 0) {
        // Not what its reader kept it waiting for.
        const NodeTimings &t = completion.timings;
        directory->note_cold_read(bytes.store_bytes,
                                  static_cast<double>(std::max<int64_t>(t.execute_us - t.blocked_us, 0)));
    }
    metrics.read_bytes("store", bytes.store_bytes);
    metrics.read_bytes("peer", bytes.peer_bytes);
    metrics.read_bytes("cache", bytes.cache_bytes);
}

void Core::look_again(const std::string &catalog) {
    if (policy->directory() == nullptr) return;
    const auto [under_way, first] = looking.try_emplace(catalog, false);
    if (!first) {
        under_way->second = true;
        return;
    }
    net::asio::co_spawn(
        loop,
        [](Core *core, std::string name) -> net::Task<void> {
            do {
                core->looking[name] = false;
                // A failure is logged; the next turn of the mirror comes anyway.
                static_cast<void>(co_await core->mirrors.refresh(name, kLookWithinMs));
            } while (core->looking[name]);
            core->looking.erase(name);
        }(this, catalog),
        net::asio::detached);
}

std::string Core::table_in(const std::string &folder) const {
    const auto *found = warm.find(folder);
    if (found == nullptr) return "";
    return found->catalog + "." + found->table->schema_name + "." + found->table->name;
}

void Core::note_heartbeat(const cluster::Member &member) {
    const CacheReport &report = member.heartbeat.cache;
    if (!report.on) return;
    warm.report(member.hello.node, member.hello.incarnation, report);
    metrics.cache(member.hello.node.to_string(), report.gauges);
    if (const placement::Directory *directory = policy->directory()) {
        metrics.placement(directory->size(), directory->dropped(), directory->passed_on());
    }
}

void Core::note_join(const cluster::Member &member, std::map<Uuid, meta::Member> &known) {
    health.erase(member.hello.node);
    for (const auto &[id, old] : known) {
        if (id == member.hello.node || old.dir != member.hello.dir || old.name != member.hello.name ||
            hub.members().contains(id)) {
            continue;
        }
        warm.forget(id);
    }
}

routing::FoundTables Core::tables_of(const sql::Statement &statement, const StatementSettings &settings) {
    if (policy->directory() == nullptr) return {};
    routing::LakeStates states;
    for (const auto &[catalog, lake] : lakes) {
        states[catalog] = mirrors.current(catalog);
        warm.know(catalog, states[catalog]);
    }
    const auto parse = [this](const std::string &text) -> Result<std::vector<sql::Statement>> {
        const auto parsed = statements.parse(text);
        if (!parsed.ok()) return parsed.status();
        return (*parsed)->statements;
    };
    return routing::find_table_uses(statement, {settings.catalog, settings.search_path}, states, parse, epochs);
}

}  // namespace roost::service
