// What DuckLake says of its commits (ducklake_snapshot_changes.changes_made), as far as it tells which parts of a
// mirror are still right. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

namespace roost {

struct LakeChanges {
    bool definitions = false;      // schemas, tables, columns, views, macros
    std::set<uint64_t> appended;   // tables with new files
    std::set<uint64_t> changed;    // tables with new deletes, rows in the catalog, files that ended, or another shape
    std::set<uint64_t> rewritten;  // tables whose past was rewritten as well (compaction, flush)

    // Adds those of one commit. False: it says something this does not know, so everything may have changed.
    bool add(std::string_view changes_made);
};

}  // namespace roost
