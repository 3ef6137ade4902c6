// The wall around a node's process: what it has to do with, from its settings. Called by `roost node`.
#pragma once

#include "app/process_wall.h"
#include "base/status.h"
#include "config/settings.h"

namespace roost::app {

// The settings have the store's keys and the catalog's password; the environment they came from, which any code of the
// process could read, is wiped. REQUIRES: there is no other thread yet.
void wipe_environment();

// REQUIRES: there is no other thread yet. Errors: of raise_process_wall; invalid_argument (the catalog's connection
// string).
Result<ProcessWall> raise_node_wall(const config::Settings &settings);

}  // namespace roost::app
