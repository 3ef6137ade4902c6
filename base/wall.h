// The walls between a statement and what it must not reach (docs/design.md, Walls), by name. Each is raised or asked at
// one place, and each asks here whether it stands. In roost it always does: the answer is compiled in and nothing that
// is said from outside changes it. The canary tests link another definition (tests/walls/switched_walls.cc) into a
// binary of their own, to see what the other walls do when one is away. Thread-safe.
#pragma once

#include <cstdint>

namespace roost {

enum class Wall : uint8_t {
    guard,              // sql/guard.cc: the allow-list over the parse tree
    statement_kinds,    // engine/statement_kinds.cc: what a node runs at all
    functions,          // engine/walls.cc: forbidden functions do not exist in an instance
    replacement_scans,  // engine/walls.cc, lake_connection.cc: a name that is no table never becomes a file
    configuration,      // engine/walls.cc: settings are locked
    bound_plan,         // engine/plan_wall.cc: what views and macros bring with them
    files,              // engine/file_system.cc: files outside the lake
    process,            // app/process_wall.cc: Landlock
};

bool stands(Wall wall);

}  // namespace roost
