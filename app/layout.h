// What the settings mean on disk: where the lake is, where DuckDB's extensions are, who a node is. Blocking, no state.
// Called by the subcommands that are processes of a pool.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "config/settings.h"
#include "lake/lake_location.h"

namespace roost::app {

inline constexpr const char *kDefaultWorkspace = "main";
inline constexpr const char *kDefaultCatalog = "lake";

// The lake of these settings: data files in STORE/data, the catalog in its SQLite file or in Postgres; uploads in
// STORE/staging of a directory, else in DIR/staging, where DIR is the directory of the whole pool.
LakeLocation lake_of(const config::Settings &settings);
// That one and those of the file of catalogs: their files are in STORE/data of their own stores, uploads in one place.
std::vector<LakeLocation> lakes_of(const config::Settings &settings);

// Beside the binary when it is installed, else the build tree's.
std::string extension_dir();

// Who a node is, kept in its directory: DIR/identity (a UUID; made at the first start, so a restart on the same volume
// is the same node) and DIR/incarnation (one more at each start). Locks the directory for the life of the process.
struct NodeIdentity {
    Uuid id;
    uint64_t incarnation = 0;
};
Result<NodeIdentity> open_node_directory(const std::string &dir);

}  // namespace roost::app
