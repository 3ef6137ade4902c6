// `roost node`: builds the node's parts (engine, agent) and runs them until a signal drains them.
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <filesystem>

#include "admission/ledger.h"
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

// What the process needs beside DuckDB's buffers: code and relocations, catalogs and plans of its instances, encoders,
// network buffers. Measured on an idle node with its instances open and on one that streams to 16 slow readers:
// docs/design.md.
constexpr uint64_t kProcessReserveBytes = 160ULL * 1024 * 1024;
constexpr uint64_t kBudgetMinBytes = 192ULL * 1024 * 1024;

Result<uint64_t> budget_of(uint64_t memory_bytes) {
    const uint64_t usable = memory_bytes / 10 * 9;
    if (usable < kProcessReserveBytes + kBudgetMinBytes) {
        return Status(Code::invalid_argument, "a node of " + std::to_string(memory_bytes >> 20) + " MiB is too small")
            .with_hint("give each node at least 400 MiB (--node-memory, or --memory of `roost node`)");
    }
    return usable - kProcessReserveBytes;
}

Result<EngineOptions> engine_options(const config::Settings &settings, uint32_t cpus, uint64_t budget_bytes) {
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
    return options;
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
    const uint32_t cpus = settings.cpus > 0 ? settings.cpus : machine.cpus;
    const uint64_t memory_bytes =
        settings.memory_bytes > 0 ? std::min(settings.memory_bytes, machine.memory_bytes) : machine.memory_bytes;
    ROOST_ASSIGN_OR_RETURN(const uint64_t budget_bytes, budget_of(memory_bytes));
    ROOST_ASSIGN_OR_RETURN(EngineOptions options, engine_options(settings, cpus, budget_bytes));
    ROOST_ASSIGN_OR_RETURN(const auto engine, Engine::open(std::move(options), *log));

    cluster::NodeAgentOptions agent_options;
    agent_options.gateway.unix_path = settings.join->unix_path;
    agent_options.gateway.host = settings.join->host;
    agent_options.gateway.port = settings.join->port;
    agent_options.join_token = join_token;
    agent_options.queue_max = settings.node_queue_max;
    agent_options.profile = admission::parse_profile(settings.admission_profile).value_or(admission::Profile::equal_2);
    cluster::Hello &hello = agent_options.hello;
    hello.node = identity.id;
    hello.incarnation = identity.incarnation;
    hello.name = "node-" + std::filesystem::path(settings.dir).filename().string();
    hello.pool = settings.pool;
    hello.version = std::string(deps::kRoostVersion);
    hello.engine_version = engine->version();
    hello.dir = settings.dir;
    hello.pid = ::getpid();
    hello.cpus = cpus;
    hello.memory_bytes = memory_bytes;
    hello.budget_bytes = budget_bytes;

    net::Loop loop;
    cluster::NodeAgent agent(std::move(agent_options), *engine, clock, *log, loop);
    agent.run();
    log->info("node_started", {{"node_id", identity.id},
                               {"incarnation", identity.incarnation},
                               {"cpus", cpus},
                               {"memory_bytes", memory_bytes},
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
