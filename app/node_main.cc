// `roost node`: builds the node's parts (engine, agent) and runs them until a signal drains them.
#include <unistd.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <filesystem>

#include "admission/budget.h"
#include "admission/ledger.h"
#include "app/child_settings.h"
#include "app/commands.h"
#include "app/credentials.h"
#include "app/layout.h"
#include "app/node_wall.h"
#include "base/clock.h"
#include "cluster/node_agent.h"
#include "config/machine.h"
#include "deps/version.h"
#include "engine/engine.h"
#include "net/loop.h"
#include "obs/log.h"

namespace roost::app {
namespace {

namespace asio = net::asio;

// The segment cache holds a block's books in so much memory, and what is under way from the store or is not on the disk
// in a sixteenth of the node's.
constexpr uint64_t kCacheBookBytes = 170;
constexpr uint64_t kCacheMemoryPart = 16;

// For the buffers of the segment cache; none when there is no cache. A node that has no memory to spare gets the least.
uint64_t cache_memory_of(uint64_t memory_bytes, uint64_t cache_max_bytes) {
    if (cache_max_bytes == 0) return 0;
    const uint64_t usable = admission::usable_bytes(memory_bytes);
    const uint64_t promised = admission::kProcessReserveBytes + admission::kBudgetMinBytes;
    return usable < promised ? 0 : std::min(memory_bytes / kCacheMemoryPart, usable - promised);
}

Result<EngineOptions> engine_options(const config::Settings &settings, uint32_t cpus, uint64_t budget_bytes,
                                     uint64_t cache_memory_bytes) {
    EngineOptions options;
    options.dir = settings.dir;
    options.extension_dir = extension_dir();
    options.lakes = lakes_of(settings);
    options.threads = cpus;
    const admission::Lanes lanes = admission::lanes_of(budget_bytes);
    options.small_bytes = lanes.small_bytes;
    options.pinned_bytes = lanes.pinned_bytes;
    options.result_retention_ms = settings.result_retention_ms;
    options.orphan_grace_ms = settings.orphan_grace_ms;
    std::error_code ec;
    const auto space = std::filesystem::space(settings.dir, ec);
    if (ec) return Status(Code::io_error, "can't use " + settings.dir + ": " + ec.message());
    options.spill_max_bytes = space.available / 2;
    options.cache_max_bytes = settings.cache_max_bytes;
    options.cache_memory_bytes = cache_memory_bytes;
    return options;
}

cluster::NodeAgentOptions agent_options(const config::Settings &settings, const NodeIdentity &identity,
                                        const std::string &join_token, Engine &engine) {
    cluster::NodeAgentOptions options;
    options.gateway.unix_path = settings.join->unix_path;
    options.gateway.host = settings.join->host;
    options.gateway.port = settings.join->port;
    options.join_token = join_token;
    options.queue_max = settings.node_queue_max;
    options.profile = admission::parse_profile(settings.admission_profile).value_or(admission::Profile::equal_2);
    options.max_bucket_fraction = settings.session_max_bucket_fraction;
    options.shapes.feedback = settings.grant_feedback_enabled == "true";
    options.shapes.safety_multiplier = settings.grant_feedback_safety_multiplier;
    for (const config::WorkloadGroup &group : settings.groups) {
        options.groups.push_back({group.name, group.weight, group.priority, group.running_max, group.memory_max_bytes});
    }
    cluster::Hello &hello = options.hello;
    hello.node = identity.id;
    hello.incarnation = identity.incarnation;
    hello.name = "node-" + std::filesystem::path(settings.dir).filename().string();
    hello.pool = settings.pool;
    hello.version = std::string(deps::kRoostVersion);
    hello.engine_version = engine.version();
    hello.dir = settings.dir;
    hello.pid = ::getpid();
    hello.reports_bytes = engine.cache_report(true).on;
    return options;
}

// The cache's room in bytes; none where no lake has a store.
Result<config::Settings> with_cache_room(config::Settings settings) {
    const std::vector<LakeLocation> lakes = lakes_of(settings);
    const bool remote = std::ranges::any_of(lakes, [](const LakeLocation &lake) { return lake.data_in_store(); });
    if (!remote) {
        settings.cache_max_bytes = 0;
    } else if (settings.cache_max_bytes == config::kCacheAuto) {
        settings.cache_max_bytes = cache_share(settings.dir, 1);
    }
    return settings;
}

Status run_node(const config::Settings &settings) {
    const SystemClock clock;
    wipe_environment();
    if (!settings.join) return Status(Code::invalid_argument, "--join is missing: where is the gateway?");
    ROOST_ASSIGN_OR_RETURN(const NodeIdentity identity, open_node_directory(settings.dir));
    ROOST_ASSIGN_OR_RETURN(const std::string join_token, load_join_token(settings.token_file));
    const config::Machine machine = config::read_machine();
    // Before anything starts a thread.
    ROOST_ASSIGN_OR_RETURN(const ProcessWall wall, raise_node_wall(settings));
    const auto log = obs::make_log("node", settings.log_file, obs::parse_level(settings.log_level));
    if (wall.files && wall.ports) {
        log->info("process_wall", {{"landlock_abi", wall.abi}, {"signals", wall.signals}});
    } else {
        log->warn("process_wall_missing", {{"landlock_abi", wall.abi},
                                           {"files", wall.files},
                                           {"ports", wall.ports},
                                           {"hint", "files need Linux 5.13, ports 6.7, and Landlock switched on"}});
    }
    const admission::Effective effective = admission::effective_of(machine, settings.memory_bytes, settings.cpus);
    const uint32_t cpus = effective.cpus;
    const uint64_t memory_bytes = effective.memory_bytes;
    ROOST_ASSIGN_OR_RETURN(const config::Settings sized, with_cache_room(settings));
    const uint64_t cache_memory_bytes = cache_memory_of(memory_bytes, sized.cache_max_bytes);
    const uint64_t books_bytes = (sized.cache_max_bytes >> 20) * kCacheBookBytes;
    ROOST_ASSIGN_OR_RETURN(const uint64_t budget_bytes,
                           admission::budget_of(memory_bytes, cache_memory_bytes + books_bytes));
    ROOST_ASSIGN_OR_RETURN(EngineOptions options, engine_options(sized, cpus, budget_bytes, cache_memory_bytes));
    ROOST_ASSIGN_OR_RETURN(const auto engine, Engine::open(std::move(options), *log));

    cluster::NodeAgentOptions node_options = agent_options(settings, identity, join_token, *engine);
    node_options.hello.cpus = cpus;
    node_options.cpus = [most = settings.cpus] {
        const uint32_t now = config::read_machine().cpus;
        return most > 0 ? std::min(most, now) : now;
    };
    node_options.hello.memory_bytes = memory_bytes;
    node_options.hello.budget_bytes = budget_bytes;
    net::Loop loop;
    cluster::NodeAgent agent(std::move(node_options), *engine, clock, *log, loop);
    agent.run();
    log->info("node_started", {{"node_id", identity.id},
                               {"incarnation", identity.incarnation},
                               {"cpus", cpus},
                               {"memory_bytes", memory_bytes},
                               {"memory_source", effective.memory_source},
                               {"budget_bytes", budget_bytes}});
    asio::signal_set signals(loop, SIGTERM, SIGINT);
    signals.async_wait([&](const boost::system::error_code &ec, int) {
        if (ec) return;
        log->info("node_draining");
        agent.drain(settings.stop_timeout_ms / 2);
        signals.async_wait([&](const boost::system::error_code &again, int) {
            if (!again) loop.stop();
        });
    });
    loop.run();
    // In this order: workers post to the loop, and its coroutines use the agent.
    agent.stop();
    loop.end();
    log->info("node_stopped");
    return Status();
}

}  // namespace

int node_main(const config::Settings &settings) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        const Status status = run_node(settings);
        return status.ok() ? kExitDone : print_error("node", status);
    } catch (const std::exception &error) {
        return print_error("node", Status(Code::internal, error.what()));
    }
}

}  // namespace roost::app
