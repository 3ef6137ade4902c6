#include "app/child_settings.h"

#include <sys/un.h>

#include <algorithm>
#include <filesystem>

#include "lake/postgres_dsn.h"

namespace roost::app {
namespace {

using config::Command;
using config::DatabaseLocation;
using config::Settings;

std::string absolute(const std::string &path) { return path.empty() ? path : pool_paths(path).dir; }

// So that variables_of() passes it on.
void given(Settings &settings, const char *name) {
    settings.sources[name] = config::Source{config::Source::Kind::flag, "roost up"};
}

std::map<std::string, std::string> environment_of(const Settings &settings, Command command,
                                                  const std::map<std::string, std::string> &base) {
    std::map<std::string, std::string> out;
    for (const auto &[name, value] : base) {
        if (!name.starts_with("ROOST_")) out.emplace(name, value);
    }
    for (const auto &[name, value] : config::variables_of(settings, command)) out[name] = value;
    // All is said by the variables: a roost.toml that is edited meanwhile must not change a process that is restarted.
    out["ROOST_CONFIG"] = "/dev/null";
    return out;
}

ChildSpec spec_of(const std::string &name, Settings settings, Command command, const PoolPaths &paths,
                  const std::map<std::string, std::string> &base) {
    settings.log_file = paths.log(name);
    given(settings, "log_file");
    ChildSpec spec;
    // The very file that runs now, also when it has been replaced on disk since.
    spec.executable = "/proc/self/exe";
    spec.environment = environment_of(settings, command, base);
    spec.log_path = settings.log_file;
    return spec;
}

}  // namespace

uint64_t cache_share(const std::string &dir, uint32_t nodes) {
    constexpr uint64_t kMostBytes = uint64_t{256} << 30;  // its books take 170 bytes of memory a MiB
    std::error_code ec;
    const auto space = std::filesystem::space(dir, ec);
    if (ec) return 0;
    // Below 64 MiB a cache is not worth its books.
    const uint64_t share = std::min(space.capacity / 5 * 2 / std::max<uint32_t>(nodes, 1), kMostBytes);
    return share < (uint64_t{64} << 20) ? 0 : share;
}

Settings with_absolute_paths(Settings settings) {
    settings.dir = absolute(settings.dir);
    given(settings, "dir");
    if (!settings.store.is_s3) settings.store.path = absolute(settings.store.path);
    for (config::StoreLocation &folder : settings.external) {
        if (!folder.is_s3) folder.path = absolute(folder.path);
    }
    for (DatabaseLocation *database : {&settings.catalog, &settings.meta}) {
        if (database->kind == DatabaseLocation::Kind::sqlite) database->place = absolute(database->place);
    }
    for (config::CatalogEntry &entry : settings.more_catalogs) {
        if (!entry.store.is_s3) entry.store.path = absolute(entry.store.path);
        if (entry.catalog.kind == DatabaseLocation::Kind::sqlite) entry.catalog.place = absolute(entry.catalog.place);
    }
    settings.staging = absolute(settings.staging);
    settings.ready_file = absolute(settings.ready_file);
    if (settings.listen.is_unix()) {
        settings.listen.unix_path = absolute(settings.listen.unix_path);
        constexpr size_t kLongest = sizeof(sockaddr_un{}.sun_path) - 1;
        if (settings.is_default("listen") && settings.listen.unix_path.size() > kLongest) {
            settings.listen = config::Address{"127.0.0.1", 0, ""};
        }
    }
    settings.catalogs = absolute(settings.catalogs);
    for (const char *name : {"store", "external", "staging", "catalog", "meta", "listen"}) given(settings, name);
    // Where the default file is not there, naming it would be an error.
    if (!settings.more_catalogs.empty()) given(settings, "catalogs");
    return settings;
}

// What is somebody else's must not be the lake's own: one is never touched, the other is written and cleaned up.
Status check_external(const Settings &settings) {
    std::vector<config::StoreLocation> stores = {settings.store};
    for (const config::CatalogEntry &entry : settings.more_catalogs) stores.push_back(entry.store);
    for (const config::StoreLocation &location : settings.external) {
        const auto own = std::ranges::find_if(
            stores, [&](const config::StoreLocation &store) { return config::overlap(store, location); });
        if (own == stores.end()) continue;
        return Status(Code::invalid_argument, "--external " + location.to_string() + " and a lake's own store (" +
                                                  own->to_string() + ") lie one in the other")
            .with_hint("name folders that are no lake's");
    }
    return {};
}

Status check_supported(const Settings &settings) {
    ROOST_RETURN_IF_ERROR(check_external(settings));
    const auto not_yet = [](const std::string &what, const std::string &instead) {
        return Status(Code::unimplemented, what + " is not supported yet").with_hint("this version takes " + instead);
    };
    if (settings.catalog.kind == DatabaseLocation::Kind::postgres) {
        ROOST_RETURN_IF_ERROR(complete_dsn(settings.catalog.place).status());
    }
    for (const config::CatalogEntry &entry : settings.more_catalogs) {
        if (entry.catalog.kind != DatabaseLocation::Kind::postgres) continue;
        ROOST_RETURN_IF_ERROR(complete_dsn(entry.catalog.place).status());
    }
    if (settings.meta.kind != DatabaseLocation::Kind::sqlite) return not_yet("--meta postgres:", "sqlite:PATH");
    return {};
}

ChildSpec gateway_spec(const Settings &settings, const PoolPaths &paths,
                       const std::map<std::string, std::string> &base) {
    Settings own = settings;
    own.token_file = paths.join_token();
    own.stop_timeout_ms = stop_schedule(settings).nodes_ms;
    own.ready_file.clear();
    for (const char *name : {"token_file", "stop_timeout_ms", "http", "pg"}) given(own, name);
    ChildSpec spec = spec_of("gateway", std::move(own), Command::gateway, paths, base);
    spec.arguments = {"gateway"};
    spec.environment[kEndpointsVariable] = std::to_string(kChildPipe);
    return spec;
}

ChildSpec node_spec(const Settings &settings, const PoolPaths &paths, const std::map<std::string, std::string> &base,
                    unsigned index, const Endpoints &endpoints) {
    Settings own = settings;
    own.cpus = settings.node_cpus;
    own.memory_bytes = settings.node_memory_bytes;
    const StopSchedule stop = stop_schedule(settings);
    own.stop_timeout_ms = stop.kill_ms - stop.nodes_ms;
    // The nodes share the volume.
    if (own.cache_max_bytes == config::kCacheAuto) own.cache_max_bytes = cache_share(settings.dir, settings.nodes);
    for (const char *name : {"cpus", "memory", "stop_timeout_ms", "cache_max_bytes"}) given(own, name);
    ChildSpec spec = spec_of("node-" + std::to_string(index), std::move(own), Command::node, paths, base);
    // Where it belongs stands on its command line, for people who look with ps.
    const bool is_url = endpoints.internal.starts_with("unix:") || endpoints.internal.starts_with("http");
    spec.arguments = {
        "node",           "--join",           is_url ? endpoints.internal : "http://" + endpoints.internal,
        "--token-file",   paths.join_token(), "--dir",
        paths.node(index)};
    return spec;
}

ChildSpec sample_fill_spec(const Settings &settings, const PoolPaths &paths,
                           const std::map<std::string, std::string> &base) {
    Settings own = settings;
    given(own, "sample");
    ChildSpec spec = spec_of("sample-fill", std::move(own), Command::gateway, paths, base);
    spec.arguments = {"sample-fill"};
    spec.environment[kProgressVariable] = "1";
    return spec;
}

StopSchedule stop_schedule(const Settings &settings) {
    return {settings.stop_timeout_ms * 7 / 10, settings.stop_timeout_ms * 9 / 10};
}

}  // namespace roost::app
