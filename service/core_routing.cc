// What the core tells routing: the pool as it is, and the tables of a statement.
#include "service/core.h"

namespace roost::service {
namespace {

routing::NodeState state_of(const Uuid &id, const cluster::Member &member) {
    routing::NodeState node;
    node.id = id;
    node.name = member.hello.name;
    node.weight = member.hello.cpus;
    node.in_flight = member.in_flight;
    node.last_used = member.last_used;
    node.incarnation = member.hello.incarnation;
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

routing::FoundTables Core::tables_of(const sql::Statement &statement, const StatementSettings &settings) {
    if (policy->directory() == nullptr) return {};
    routing::LakeStates states;
    for (const auto &[catalog, lake] : lakes) states[catalog] = mirrors.current(catalog);
    const auto parse = [this](const std::string &text) -> Result<std::vector<sql::Statement>> {
        const auto parsed = statements.parse(text);
        if (!parsed.ok()) return parsed.status();
        return (*parsed)->statements;
    };
    return routing::find_table_uses(statement, {settings.catalog, settings.search_path}, states, parse, epochs);
}

}  // namespace roost::service
