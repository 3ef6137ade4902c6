// The members of the pool at their gateway: what is known of them, who of them gets statements, drains, probes.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "service/gateway_service.h"

namespace roost::service {

namespace asio = net::asio;

namespace {

constexpr int64_t kProbeWithinMs = 10'000;
constexpr size_t kRefusedMax = 100;

Status no_such_node(const std::string &node) {
    return Status(Code::not_found, "there is no node '" + node.substr(0, 200) + "'")
        .with_name("node_not_found")
        .with_hint("`roost nodes` lists them by name and id");
}

}  // namespace

void GatewayService::remember_member(const cluster::Member &member) {
    meta::Member &known = known_members_[member.hello.node];
    known.id = member.hello.node;
    known.name = member.hello.name;
    known.pool = member.hello.pool;
    known.version = member.hello.version;
    known.cpus = member.hello.cpus;
    known.memory_bytes = member.hello.memory_bytes;
    known.dir = member.hello.dir;
    known.last_seen_us = core_->clock.wall_us();
    refused_members_.erase(known.id);
    if (known.first_seen_us == 0) known.first_seen_us = known.last_seen_us;
    if (Status status = core_->meta.put_member(known); !status.ok()) {
        core_->log.error("member_not_recorded", {{"node_id", known.id}, {"error", status.message()}});
    }
}

void GatewayService::note_beat(const cluster::Member &member) {
    meta::Member &known = known_members_[member.hello.node];
    known.last_seen_us = core_->clock.wall_us();
    if (known.cpus == member.hello.cpus) return;
    core_->log.info("node_weight_changed", {{"node_id", known.id}, {"cpus", member.hello.cpus}, {"were", known.cpus}});
    remember_member(member);
}

void GatewayService::note_refused(const Uuid &node, const Status &why) {
    if (refused_members_.size() >= kRefusedMax && !refused_members_.contains(node)) return;
    refused_members_[node] = why.message();
}

std::vector<NodeInfo> GatewayService::nodes() const {
    std::vector<NodeInfo> nodes;
    for (const auto &[id, known] : known_members_) {
        NodeInfo info;
        info.id = id;
        info.name = known.name;
        info.pool = known.pool;
        info.version = known.version;
        info.dir = known.dir;
        info.cpus = known.cpus;
        info.memory_bytes = known.memory_bytes;
        info.first_seen_us = known.first_seen_us;
        info.last_seen_us = known.last_seen_us;
        info.status = "offline";
        const auto member = core_->hub.members().find(id);
        if (member != core_->hub.members().end()) {
            const cluster::Member &m = member->second;
            info.status = "online";
            const Core::Standing standing = core_->standing(m);
            if (standing.state == "drained" || standing.state == "stopping") info.status = "draining";
            info.routable = standing.state.empty();
            info.state = standing.state;
            info.why = standing.why;
            info.cpus = m.hello.cpus;
            info.pid = m.hello.pid;
            info.incarnation = m.hello.incarnation;
            info.budget_bytes = m.hello.budget_bytes;
            info.granted_bytes = m.heartbeat.granted_bytes;
            info.profile = m.heartbeat.memory.profile;
            info.required_bytes = m.heartbeat.memory.required_bytes;
            info.elastic_bytes = m.heartbeat.memory.elastic_bytes;
            info.pressure = m.heartbeat.memory.pressure;
            for (const auto &group : m.heartbeat.memory.groups) {
                info.groups.push_back({group.name, group.running, group.waiting, group.required_bytes});
            }
            info.used_bytes = m.heartbeat.used_bytes;
            info.resident_bytes = m.heartbeat.resident_bytes;
            info.running = m.in_flight;
            info.waiting = m.heartbeat.waiting;
            info.load = static_cast<double>(m.in_flight) / m.hello.cpus;
            const auto warm = core_->warm.nodes().find(id);
            if (m.hello.reports_bytes && warm != core_->warm.nodes().end()) info.cache = warm->second.gauges;
        }
        for (const auto &session : sessions_) info.transactions += session->pinned_node == id;
        const auto refused = refused_members_.find(id);
        if (info.status == "offline" && refused != refused_members_.end()) info.why = refused->second;
        nodes.push_back(std::move(info));
    }
    return nodes;
}

const meta::Member *GatewayService::find_member(std::string_view node) const {
    const auto id = Uuid::parse(node);
    const meta::Member *found = nullptr;
    for (const auto &[each, known] : known_members_) {
        if (id ? each == *id : known.name == node) {
            // Of several runs on one directory, or of one name, the one that is here.
            if (!found || core_->hub.members().contains(each)) found = &known;
        }
    }
    return found;
}

// To the end of a stream that has no rows.
net::Task<Status> GatewayService::answer_of(cluster::RemoteStream &remote) {
    for (;;) {
        auto frame = co_await remote.next();
        if (!frame.ok()) co_return frame.status();
        if (frame->type != net::FrameType::end) continue;
        const auto completion = cluster::decode_completion(frame->payload);
        co_return completion.ok() ? completion->status : completion.status();
    }
}

net::Task<Result<NodeInfo>> GatewayService::set_profile(Principal who, std::string node, std::string profile) {
    if (who.role != "admin") {
        co_return Status(Code::permission_denied, "setting the profile of nodes is for admins")
            .with_rule("nodes.profile");
    }
    const meta::Member *found = find_member(node);
    if (!found) co_return no_such_node(node);
    const Uuid id = found->id;
    auto remote = core_->hub.open(id, net::FrameType::set_profile, cluster::encode(cluster::SetProfile{profile}));
    if (!remote.ok()) co_return remote.status();
    const Status status = co_await answer_of(**remote);
    if (!status.ok()) co_return status;
    core_->log.info("node_profile_set", {{"node_id", id}, {"profile", profile}, {"user", who.user_name}});
    for (NodeInfo &info : nodes()) {
        if (info.id == id) co_return std::move(info);
    }
    co_return Status(Code::internal, "the node has gone");
}

net::Task<Result<NodeInfo>> GatewayService::drain_node(Principal who, std::string node, bool drained) {
    if (who.role != "admin") {
        co_return Status(Code::permission_denied, "draining nodes is for admins").with_rule("nodes.drain");
    }
    const meta::Member *found = find_member(node);
    if (!found) co_return no_such_node(node);
    const Uuid id = found->id;
    meta::Member changed = *found;
    changed.drained = drained;
    // Recorded first: a gateway that is started again goes by it.
    Status status = co_await core_->blocking([meta = &core_->meta, changed] { return meta->put_member(changed); });
    if (!status.ok()) co_return status;
    known_members_[id].drained = drained;
    if (drained) {
        core_->drained.insert(id);
    } else {
        core_->drained.erase(id);
    }
    core_->log.info(drained ? "node_drained" : "node_resumed", {{"node_id", id}, {"user", who.user_name}});
    for (NodeInfo &info : nodes()) {
        if (info.id == id) co_return std::move(info);
    }
    co_return Status(Code::internal, "the node has gone");
}

void GatewayService::probe_members() {
    for (auto &[id, health] : core_->health) {
        if (!health.take_probe(core_->clock.monotonic_us())) continue;
        asio::co_spawn(core_->loop, probe(id), asio::detached);
    }
}

// A statement of roost's own that needs what every statement needs: the catalog, and a worker.
net::Task<void> GatewayService::probe(Uuid node) {
    StatementSpec spec;
    spec.id = Uuid::make();
    spec.sql = "SELECT 1";
    spec.settings.catalog = core_->lakes.empty() ? "" : core_->lakes.begin()->first;
    spec.timeout_ms = kProbeWithinMs;
    spec.admission_wait_ms = kProbeWithinMs;
    Status status;
    auto remote = core_->hub.open(node, net::FrameType::dispatch, cluster::encode(spec));
    if (!remote.ok()) status = remote.status();
    while (remote.ok()) {
        auto frame = co_await (*remote)->next();
        if (!frame.ok()) {
            status = frame.status();
            break;
        }
        if (frame->type == net::FrameType::refused) break;  // it is busy or stops: that is an answer
        if (frame->type != net::FrameType::end) continue;
        const auto completion = cluster::decode_completion(frame->payload);
        status = completion.ok() ? completion->status : completion.status();
        break;
    }
    const auto health = core_->health.find(node);  // gone when the node has come anew meanwhile
    if (health == core_->health.end()) co_return;
    health->second.probed(status.ok(), core_->clock.monotonic_us());
    if (status.ok()) {
        core_->log.info("node_recovered", {{"node_id", node}});
    } else {
        core_->log.warn("node_still_failing", {{"node_id", node}, {"error", status.message()}});
    }
}

}  // namespace roost::service
