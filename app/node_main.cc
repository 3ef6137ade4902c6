// `roost node`: builds the node's parts (engine, agent) and runs them until a signal drains them.
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "admission/ledger.h"
#include "app/commands.h"
#include "app/credentials.h"
#include "app/layout.h"
#include "app/process_wall.h"
#include "base/clock.h"
#include "cluster/node_agent.h"
#include "config/machine.h"
#include "deps/version.h"
#include "engine/engine.h"
#include "lake/postgres_dsn.h"
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
    options.lakes.push_back(lake_of(settings));
    options.threads = cpus;
    const admission::Lanes lanes = admission::lanes_of(budget_bytes);
    options.small_bytes = lanes.small_bytes;
    options.pinned_bytes = lanes.pinned_bytes;
    options.result_retention_ms = settings.result_retention_ms;
    std::error_code ec;
    const auto space = std::filesystem::space(settings.dir, ec);
    if (ec) return Status(Code::io_error, "can't use " + settings.dir + ": " + ec.message());
    options.spill_max_bytes = space.available / 2;
    return options;
}

// Finding others by name.
constexpr const char *kNameFiles[] = {
    "/etc/hosts",       "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/ld.so.cache", "/lib",           "/usr/lib"};
// Where certificates of authorities are, on one system or another.
constexpr const char *kCertificateFiles[] = {"/etc/ssl", "/etc/pki", "/usr/share/ca-certificates",
                                             "/usr/local/share/ca-certificates"};

uint16_t port_of(const std::string &endpoint) {
    const bool plain = endpoint.starts_with("http://");
    const size_t scheme = endpoint.find("://");
    const std::string_view host = std::string_view(endpoint).substr(scheme == std::string::npos ? 0 : scheme + 3);
    const size_t end = std::min(host.find('/'), host.size());
    const size_t colon = host.substr(0, end).rfind(':');
    uint16_t port = plain ? 80 : 443;
    if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
        std::from_chars(host.data() + colon + 1, host.data() + end, port);
    }
    return port;
}

void allow_store(const ObjectStore &store, ProcessWallOptions &options) {
    options.connect_ports.push_back(port_of(store.endpoint));
    options.read_only.insert(options.read_only.end(), std::begin(kNameFiles), std::end(kNameFiles));
    if (store.endpoint.starts_with("http://")) return;
    options.read_only.insert(options.read_only.end(), std::begin(kCertificateFiles), std::end(kCertificateFiles));
}

Status allow_postgres(const std::string &dsn, ProcessWallOptions &options) {
    ROOST_ASSIGN_OR_RETURN(const DsnPlaces places, places_of(dsn));
    options.connect_ports.insert(options.connect_ports.end(), places.ports.begin(), places.ports.end());
    options.read_only.insert(options.read_only.end(), places.paths.begin(), places.paths.end());
    options.read_only.insert(options.read_only.end(), std::begin(kNameFiles), std::end(kNameFiles));
    options.read_only.insert(options.read_only.end(), std::begin(kCertificateFiles), std::end(kCertificateFiles));
    return Status();
}

// What a node has to do with: its own directory, the lake and its catalog, the engine's extensions, what the kernel
// says of memory and processors; and, for what is reached by network (gateway, store, catalog), its port and what
// finding it by name takes.
Result<ProcessWallOptions> wall_options(const config::Settings &settings) {
    namespace fs = std::filesystem;
    const LakeLocation lake = lake_of(settings);
    ProcessWallOptions options;
    options.read_write = {settings.dir};
    if (!lake.store) options.read_write.push_back(lake.data_path);
    if (!lake.on_postgres) options.read_write.push_back(fs::path(lake.metadata_path).parent_path().string());
    if (settings.log_file != "-") options.read_write.push_back(fs::absolute(settings.log_file).parent_path().string());
    options.read_only = {lake.staging_path, extension_dir(),           "/proc/self", "/proc/meminfo",
                         "/sys/fs/cgroup",  "/sys/devices/system/cpu", "/dev/null",  "/dev/urandom"};
#if __has_feature(address_sanitizer)
    // Where a sanitizer writes what it finds.
    if (const char *findings = std::getenv("SANITIZER_FINDINGS")) options.read_write.emplace_back(findings);
#endif
    if (settings.join->unix_path.empty()) {
        options.connect_ports.push_back(settings.join->port);
        options.read_only.insert(options.read_only.end(), std::begin(kNameFiles), std::end(kNameFiles));
    }
    if (lake.store) allow_store(*lake.store, options);
    if (lake.on_postgres) ROOST_RETURN_IF_ERROR(allow_postgres(lake.metadata_path, options));
    return options;
}

// The settings have the store's keys and the catalog's password; the environment they came from, which any code of the
// process could read, is wiped. REQUIRES: no other thread yet.
void wipe_environment() {
    std::vector<std::string> names;
    for (char **entry = environ; *entry; entry++) {
        const std::string_view text = *entry;
        const size_t equals = text.find('=');
        if (equals == std::string_view::npos || !(text.starts_with("ROOST_") || text.starts_with("AWS_"))) continue;
        names.emplace_back(text.substr(0, equals));
        ::explicit_bzero(*entry + equals + 1, text.size() - equals - 1);
    }
    for (const std::string &name : names) ::unsetenv(name.c_str());
}

Status run_node(const config::Settings &settings) {
    const SystemClock clock;
    wipe_environment();
    if (!settings.join) return Status(Code::invalid_argument, "--join is missing: where is the gateway?");
    ROOST_ASSIGN_OR_RETURN(const NodeIdentity identity, open_node_directory(settings.dir));
    ROOST_ASSIGN_OR_RETURN(const std::string join_token, load_join_token(settings.token_file));
    const config::Machine machine = config::read_machine();
    // What is not there when the wall goes up can't be opened later. A lake that this process can't write shows in use.
    std::error_code ignored;
    std::filesystem::create_directories(lake_of(settings).staging_path, ignored);
    // SQLite's scratch files, which would go to /tmp. Nobody else reads the environment yet.
    ::setenv("SQLITE_TMPDIR", settings.dir.c_str(), 1);
    // Before anything starts a thread.
    ROOST_ASSIGN_OR_RETURN(const ProcessWallOptions inside, wall_options(settings));
    ROOST_ASSIGN_OR_RETURN(const ProcessWall wall, raise_process_wall(inside));
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
