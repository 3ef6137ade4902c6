// The subcommands of `roost`, one function each; main.cc chooses. What they return is the exit status of the process:
//   0  done
//   1  it failed: the message says why (sql: the statement failed; import: nothing was imported)
//   2  the command line or a setting is wrong; nothing was started
//   130  interrupted by Ctrl-C
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "config/settings.h"

namespace roost::app {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

// The processes of a pool.
int up_main(const config::Settings &settings);
int gateway_main(const config::Settings &settings);
int node_main(const config::Settings &settings);
// Fills the lake when it is empty, in a process of its own so that its memory is gone afterwards. Writes its progress
// to the pipe of child_process.h when it was started with one.
int sample_fill_main(const config::Settings &settings);

// Clients of a running pool, and what needs none.
int sql_main(const std::vector<std::string> &arguments);
int nodes_main(const std::vector<std::string> &arguments);
int placement_main(const std::vector<std::string> &arguments);
int cache_main(const std::vector<std::string> &arguments);
int explain_route_main(const std::vector<std::string> &arguments);
int import_main(const std::vector<std::string> &arguments);
int config_main(const std::vector<std::string> &arguments);
int sim_main(const std::vector<std::string> &arguments);

// "roost COMMAND: message" and the hint, on stderr. Returns the exit status that belongs to the code.
int print_error(std::string_view command, const Status &error);

}  // namespace roost::app
