// What the processes of `roost up` are started with: settings of theirs, made of those given to `up`, as variables and
// flags. Pure. Called by Supervisor and up_main.
#pragma once

#include <map>
#include <string>

#include "app/child_process.h"
#include "app/endpoints.h"
#include "app/pool_directory.h"
#include "base/status.h"
#include "config/settings.h"

namespace roost::app {

// The same settings with every path absolute, since processes and messages must agree whatever the working directory;
// nodes join over loopback TCP when the socket's path is longer than the kernel takes.
config::Settings with_absolute_paths(config::Settings settings);

// `auto` room of a node's segment cache, bytes: a share of the volume that holds `dir`, where so many nodes keep
// theirs.
uint64_t cache_share(const std::string &dir, uint32_t nodes);

// not supported yet: s3, Postgres. The message names the flag.
Status check_supported(const config::Settings &settings);

// `base` is the environment of `up`; its ROOST_ variables are replaced, for flags given to `up` beat them.
ChildSpec gateway_spec(const config::Settings &settings, const PoolPaths &paths,
                       const std::map<std::string, std::string> &base);
ChildSpec node_spec(const config::Settings &settings, const PoolPaths &paths,
                    const std::map<std::string, std::string> &base, unsigned index, const Endpoints &endpoints);
ChildSpec sample_fill_spec(const config::Settings &settings, const PoolPaths &paths,
                           const std::map<std::string, std::string> &base);

// After `up` began to stop, ms: the gateway has until nodes_ms to drain, everything until kill_ms. For stop_timeout 10
// s: 7 s and 9 s.
struct StopSchedule {
    int64_t nodes_ms = 0, kill_ms = 0;
};
StopSchedule stop_schedule(const config::Settings &settings);

}  // namespace roost::app
