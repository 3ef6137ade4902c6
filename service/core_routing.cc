// What the core tells routing: the pool as it is, and the tables of a statement.
#include "service/core.h"

#include <boost/asio/detached.hpp>

namespace roost::service {
namespace {

constexpr int64_t kLookWithinMs = 10'000;

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
    for (const auto &[id, member] : hub.members()) cluster.nodes.push_back(state_of(id, member));
    return cluster;
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
