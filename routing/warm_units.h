// What the nodes say is warm in their caches, by folder, and which of placement's units the folders are: tables, as the
// mirrors know them. A folder that no mirror knows yet (a table made a moment ago) is remembered until one does.
// Pure; owned by the gateway's core; loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "engine/cache_report.h"
#include "lake/lake_state.h"
#include "placement/directory.h"

namespace roost::routing {

class WarmUnits {
public:
    // `directory`: told of what the folders are; may be null, outlives this.
    explicit WarmUnits(placement::Directory *directory) : directory_(directory) {}

    // The lake as it is now: costs nothing when it is the same state as before.
    void know(const std::string &catalog, const std::shared_ptr<const LakeState> &state);

    // A heartbeat's.
    void report(const Uuid &node, uint64_t incarnation, const CacheReport &report);
    // What a statement that ended well has read and written there. `committed_snapshot`: that it made, 0: none. Returns
    // the units that it names.
    std::vector<placement::UnitReport> ended(const Uuid &node, uint64_t incarnation, std::span<const UnitRead> reads,
                                             uint64_t committed_snapshot);
    // The identity is gone for good.
    void forget(const Uuid &node);

    struct Folder {
        std::string catalog;
        std::shared_ptr<const TableDefinition> table;
    };
    // The table whose files are there; null: none that is known.
    const Folder *find(std::string_view folder) const;

    struct Warm {
        uint64_t bytes = 0, files = 0;
        uint64_t epoch = 0;  // newest snapshot that its node committed of it
    };
    struct Node {
        uint64_t incarnation = 0;
        std::map<std::string, Warm, std::less<>> folders;
        obs::CacheGauges gauges;
    };
    const std::map<Uuid, Node> &nodes() const { return nodes_; }

private:
    static constexpr size_t kFoldersMax = 65'536;  // of a node; more are not remembered

    struct Lake {
        std::shared_ptr<const LakeState> state;
        struct Table {
            std::shared_ptr<const TableDefinition> definition;
            std::weak_ptr<const TableData> data;  // states share what a commit left alone
        };
        std::map<uint64_t, Table> tables;  // by id
    };
    Node &node_of(const Uuid &node, uint64_t incarnation);
    void set(Node &node, const std::string &folder, const Warm &warm);
    std::optional<placement::UnitId> unit_of(std::string_view folder) const;
    void begin_table(const std::string &catalog, const std::shared_ptr<const TableDefinition> &table);
    // `until_snapshot`: in which it was still there.
    void end_table(const std::string &catalog, const TableDefinition &table, uint64_t until_snapshot);

    placement::Directory *const directory_;
    std::map<std::string, Lake> lakes_;
    std::map<std::string, Folder, std::less<>> folders_;
    std::map<Uuid, Node> nodes_;
};

// The folder of a table, as nodes name it.
std::string folder_of(const TableDefinition &table);

}  // namespace roost::routing
