// What people see of placement and of the nodes' caches, and the work on them by hand. Names and sizes are those of the
// mirror; what the caller may not see is left out.
#include <algorithm>

#include "placement/rendezvous.h"
#include "service/gateway_service.h"

namespace roost::service {

namespace {

constexpr size_t kTablesMax = 10'000;  // of one answer

// "t", "schema.t", "catalog.schema.t": without case, as SQL.
bool names(const std::string &wanted, const std::string &catalog, const TableDefinition &table) {
    if (wanted.empty()) return true;
    const std::string name = folded(wanted);
    const std::string schema_name = folded(table.schema_name + "." + table.name);
    return name == folded(table.name) || name == schema_name || name == folded(catalog) + "." + schema_name;
}

Status no_such_table(const std::string &table) {
    return Status(Code::not_found, "there is no table '" + table + "' in this workspace")
        .with_name("table_not_found")
        .with_sqlstate("42P01");
}

}  // namespace

std::string GatewayService::node_name(const Uuid &node) const {
    const auto known = known_members_.find(node);
    return known == known_members_.end() ? "" : known->second.name;
}

// The tables of a workspace that the caller sees, by name.
net::Task<Result<std::vector<GatewayService::SeenTable>>> GatewayService::seen_tables(Principal who,
                                                                                      std::string workspace,
                                                                                      std::string table) {
    const auto visible = catalogs(who, workspace);
    if (!visible.ok()) co_return visible.status();
    std::vector<SeenTable> seen;
    for (const meta::Catalog &catalog : *visible) {
        auto browsed = co_await browse(who, workspace, catalog.slug);
        if (!browsed.ok()) co_return browsed.status();
        core_->warm.know(catalog.slug, browsed->state);
        for (const auto &each : browsed->state->tables()) {
            const TableDefinition &definition = *each->definition;
            if (!names(table, catalog.slug, definition)) continue;
            if (browsed->rights.of_table(definition.schema_name, definition.name) == Privilege::none) continue;
            seen.push_back({catalog.slug, browsed->state, each});
        }
    }
    if (seen.empty() && !table.empty()) co_return no_such_table(table);
    std::ranges::sort(seen, {}, [](const SeenTable &each) {
        return std::tuple(each.catalog, each.table->definition->schema_name, each.table->definition->name);
    });
    co_return seen;
}

TablePlacement GatewayService::placement_of(const SeenTable &seen, const placement::Rendezvous &ring) const {
    const TableState &table = *seen.table;
    const placement::UnitId unit{placement::catalog_id(seen.catalog), table.id(), 0};
    TablePlacement out;
    out.catalog = seen.catalog;
    out.schema = table.definition->schema_name;
    out.name = table.definition->name;
    out.segments = table.data->segments.size();
    out.bytes = table.data->segments.file_size_bytes() + table.data->segments.delete_file_size_bytes();
    if (!ring.empty()) out.owner = node_name(ring.members()[ring.owner(unit)].identity);
    const placement::Directory *directory = core_->policy->directory();
    const placement::Unit *known = directory ? directory->find(unit) : nullptr;
    if (known) out.epoch = known->epoch;
    const std::string folder = routing::folder_of(*table.definition);
    for (const auto &[id, node] : core_->warm.nodes()) {
        const auto warm = node.folders.find(folder);
        const placement::Home *home = known ? known->home(id) : nullptr;
        if (home && home->incarnation != node.incarnation) home = nullptr;
        if (!home && warm == node.folders.end()) continue;
        PlacementHome at;
        at.node = id;
        at.name = node_name(id);
        at.online = core_->hub.members().contains(id);
        if (warm != node.folders.end()) {
            at.warm_bytes = warm->second.bytes;
            at.files = warm->second.files;
        }
        if (home) {
            at.epoch = home->epoch;
            at.reading = home->reading;
            at.state = home->warm_bytes == 0 ? "coming" : known->is_fresh(*home) ? "fresh" : "stale";
        }
        out.homes.push_back(std::move(at));
    }
    std::ranges::sort(out.homes, std::ranges::greater(), &PlacementHome::warm_bytes);
    return out;
}

net::Task<Result<std::vector<TablePlacement>>> GatewayService::placement(Principal who, std::string workspace,
                                                                         std::string table) {
    const auto seen = co_await seen_tables(who, workspace, table);
    if (!seen.ok()) co_return seen.status();
    const placement::Rendezvous ring = routable_ring();
    std::vector<TablePlacement> out;
    for (const SeenTable &each : *seen) {
        if (out.size() >= kTablesMax) break;
        out.push_back(placement_of(each, ring));
    }
    co_return out;
}

placement::Rendezvous GatewayService::routable_ring() const {
    std::vector<placement::Member> members;
    for (const routing::NodeState &node : core_->snapshot().nodes) {
        if (node.routable) members.push_back({node.id, node.weight});
    }
    return placement::Rendezvous(std::move(members));
}

// Where the files are read next: where they are warm, else at the owner.
std::vector<Uuid> GatewayService::nodes_for(const SeenTable &seen, const CacheRequest &request) const {
    std::vector<Uuid> nodes, warm;
    const std::string folder = routing::folder_of(*seen.table->definition);
    for (const auto &[id, member] : core_->hub.members()) {
        if (!member.hello.reports_bytes) continue;
        if (!request.node.empty() && id.to_string() != request.node && member.hello.name != request.node) continue;
        nodes.push_back(id);
        const auto known = core_->warm.nodes().find(id);
        if (known != core_->warm.nodes().end() && known->second.folders.contains(folder)) warm.push_back(id);
    }
    const bool anywhere = request.action == CacheWork::Action::evict || request.action == CacheWork::Action::unpin;
    if (!request.node.empty() || anywhere) return nodes;
    if (!warm.empty()) return warm;
    const placement::Rendezvous ring = routable_ring();
    if (ring.empty()) return {};
    const placement::UnitId unit{placement::catalog_id(seen.catalog), seen.table->id(), 0};
    return {ring.members()[ring.owner(unit)].identity};
}

net::Task<Result<uint64_t>> GatewayService::work_at(Uuid node, CacheWork work) {
    auto remote = core_->hub.open(node, net::FrameType::cache_work, cluster::encode(work));
    if (!remote.ok()) co_return remote.status();
    for (;;) {
        auto frame = co_await (*remote)->next();
        if (!frame.ok()) co_return frame.status();
        if (frame->type != net::FrameType::end) continue;
        const auto completion = cluster::decode_completion(frame->payload);
        if (!completion.ok()) co_return completion.status();
        if (!completion->status.ok()) co_return completion->status;
        co_return completion->affected.value_or(0);
    }
}

net::Task<Result<std::vector<CacheDone>>> GatewayService::cache_work(Principal who, CacheRequest request) {
    if (who.role != "admin") {
        co_return Status(Code::permission_denied, "the caches are worked on by admins")
            .with_hint("ask an admin of the pool");
    }
    if (request.table.empty()) co_return Status(Code::invalid_argument, "which table?");
    const auto seen = co_await seen_tables(who, request.workspace, request.table);
    if (!seen.ok()) co_return seen.status();
    if (seen->size() > 1) {
        co_return Status(Code::invalid_argument, "there are " + std::to_string(seen->size()) + " tables of that name")
            .with_hint("name it with its schema, or as catalog.schema.table");
    }
    const SeenTable &table = seen->front();
    const auto lake = core_->lakes.find(table.catalog);
    if (lake == core_->lakes.end() || !lake->second.data_in_store()) {
        co_return Status(Code::failed_precondition,
                         "the lake's files are in a directory, which no node keeps copies of");
    }
    CacheWork work{request.action, table.catalog, routing::folder_of(*table.table->definition), {}};
    const auto add = [&](std::string_view path, bool relative, uint64_t size_bytes) {
        std::string whole = table.table->resolve(path, relative);
        // Files of others are read past the cache.
        if (!whole.starts_with(lake->second.data_path) || work.files.size() >= kCacheFilesMax) return;
        work.files.push_back({std::move(whole), size_bytes});
    };
    table.table->data->segments.for_each([&](const Segment &segment, const SegmentDeletes *deletes) {
        add(segment.path, segment.path_is_relative, segment.file_size_bytes);
        if (deletes && deletes->file) {
            add(deletes->file->path, deletes->file->path_is_relative, deletes->file->file_size_bytes);
        }
    });
    if (request.action == CacheWork::Action::evict) work.files.clear();
    const std::vector<Uuid> nodes = nodes_for(table, request);
    if (nodes.empty()) {
        co_return Status(Code::not_found, request.node.empty() ? "no node with a cache is connected"
                                                               : "there is no node '" + request.node + "' with a cache")
            .with_hint("see `roost nodes`");
    }
    std::vector<CacheDone> done;
    for (const Uuid &node : nodes) {
        const auto bytes = co_await work_at(node, work);
        core_->log.info("cache_work", {{"node_id", node},
                                       {"user", who.user_name},
                                       {"folder", work.folder},
                                       {"ok", bytes.ok()},
                                       {"bytes", bytes.ok() ? *bytes : 0}});
        if (!bytes.ok()) co_return bytes.status();
        done.push_back({node, node_name(node), *bytes});
    }
    co_return done;
}

}  // namespace roost::service
