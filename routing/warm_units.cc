#include "routing/warm_units.h"

namespace roost::routing {

std::string folder_of(const TableDefinition &table) {
    return table.data_path.ends_with('/') ? table.data_path : table.data_path + '/';
}

void WarmUnits::know(const std::string &catalog, const std::shared_ptr<const LakeState> &state) {
    if (!state) return;
    Lake &lake = lakes_[catalog];
    if (lake.state == state) return;
    const uint64_t before_snapshot = lake.state ? lake.state->snapshot().id : 0;
    lake.state = state;
    std::map<uint64_t, Lake::Table> now;
    for (const auto &table : state->tables()) {
        now.emplace_hint(now.end(), table->id(), Lake::Table{table->definition, table->data});
    }
    // Those that are gone first: a table made anew has the folder of the one before.
    for (const auto &[id, table] : lake.tables) {
        if (!now.contains(id)) end_table(catalog, *table.definition, before_snapshot);
    }
    for (const auto &[id, table] : now) {
        const auto before = lake.tables.find(id);
        const bool is_new = before == lake.tables.end();
        if (is_new || before->second.definition != table.definition) begin_table(catalog, table.definition);
        if (!is_new && directory_ && before->second.data.lock() != table.data.lock()) {
            directory_->changed(placement::catalog_id(catalog), id, state->snapshot().id);
        }
    }
    lake.tables = std::move(now);
}

void WarmUnits::end_table(const std::string &catalog, const TableDefinition &table, uint64_t until_snapshot) {
    if (directory_) directory_->drop_table(placement::catalog_id(catalog), table.id);
    const std::string folder = folder_of(table);
    const auto known = folders_.find(folder);
    if (known == folders_.end() || known->second.table->id != table.id) return;
    folders_.erase(known);
    // What is there now is of the files of that table, until its node says otherwise.
    for (auto &[id, node] : nodes_) {
        const auto warm = node.folders.find(folder);
        if (warm != node.folders.end() && warm->second.epoch <= until_snapshot) node.folders.erase(warm);
    }
}

void WarmUnits::begin_table(const std::string &catalog, const std::shared_ptr<const TableDefinition> &table) {
    const std::string folder = folder_of(*table);
    const bool known = folders_.contains(folder) && folders_[folder].table->id == table->id;
    folders_[folder] = {catalog, table};
    if (known || !directory_) return;
    const placement::UnitId unit{placement::catalog_id(catalog), table->id, 0};
    for (const auto &[id, node] : nodes_) {
        const auto warm = node.folders.find(folder);
        if (warm == node.folders.end()) continue;
        const placement::UnitReport report{unit, warm->second.bytes, warm->second.epoch};
        directory_->report(id, node.incarnation, {&report, 1});
    }
}

const WarmUnits::Folder *WarmUnits::find(std::string_view folder) const {
    const auto found = folders_.find(folder);
    return found == folders_.end() ? nullptr : &found->second;
}

std::optional<placement::UnitId> WarmUnits::unit_of(std::string_view folder) const {
    const Folder *known = find(folder);
    if (known == nullptr) return std::nullopt;
    return placement::UnitId{placement::catalog_id(known->catalog), known->table->id, 0};
}

WarmUnits::Node &WarmUnits::node_of(const Uuid &id, uint64_t incarnation) {
    Node &node = nodes_[id];
    if (node.incarnation != incarnation) {
        node = {};
        node.incarnation = incarnation;
    }
    return node;
}

void WarmUnits::set(Node &node, const std::string &folder, const Warm &warm) {
    const auto known = node.folders.find(folder);
    if (warm.bytes == 0) {
        if (known != node.folders.end()) node.folders.erase(known);
    } else if (known != node.folders.end()) {
        known->second = {warm.bytes, warm.files, std::max(warm.epoch, known->second.epoch)};
    } else if (node.folders.size() < kFoldersMax) {
        node.folders.emplace(folder, warm);
    }
}

void WarmUnits::report(const Uuid &id, uint64_t incarnation, const CacheReport &report) {
    if (!report.on) return;
    Node &node = node_of(id, incarnation);
    node.gauges = report.gauges;
    std::vector<placement::UnitReport> units;
    if (report.all) {
        // What is not named is not there.
        std::map<std::string, Warm, std::less<>> before;
        before.swap(node.folders);
        for (const WarmFolder &folder : report.folders) {
            const auto known = before.find(folder.folder);
            set(node, folder.folder,
                {folder.warm_bytes, folder.files, known == before.end() ? 0 : known->second.epoch});
        }
        for (const auto &[folder, warm] : before) {
            if (node.folders.contains(folder)) continue;
            if (const auto unit = unit_of(folder)) units.push_back({*unit, 0, 0});
        }
    }
    for (const WarmFolder &folder : report.folders) {
        if (!report.all) set(node, folder.folder, {folder.warm_bytes, folder.files, 0});
        if (const auto unit = unit_of(folder.folder)) units.push_back({*unit, folder.warm_bytes, 0});
    }
    if (directory_) directory_->report(id, incarnation, units);
}

std::vector<placement::UnitReport> WarmUnits::ended(const Uuid &id, uint64_t incarnation,
                                                    std::span<const UnitRead> reads, uint64_t committed_snapshot) {
    std::vector<placement::UnitReport> units;
    if (reads.empty()) return units;
    Node &node = node_of(id, incarnation);
    for (const UnitRead &read : reads) {
        const auto known = node.folders.find(read.folder);
        const uint64_t files = std::max(known == node.folders.end() ? 0 : known->second.files, read.files);
        set(node, read.folder, {read.warm_bytes, files, read.written ? committed_snapshot : 0});
        if (const auto unit = unit_of(read.folder)) units.push_back({*unit, read.warm_bytes, 0});
    }
    return units;
}

void WarmUnits::forget(const Uuid &node) {
    nodes_.erase(node);
    if (directory_) directory_->forget_node(node);
}

}  // namespace roost::routing
