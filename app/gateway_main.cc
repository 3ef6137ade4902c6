// `roost gateway`: builds the gateway's parts, hands each what it needs, and runs them on one loop until a signal
// drains them.
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "app/child_process.h"
#include "app/child_settings.h"
#include "app/commands.h"
#include "app/credentials.h"
#include "app/endpoints.h"
#include "app/files.h"
#include "app/layout.h"
#include "app/pool_directory.h"
#include "base/clock.h"
#include "cluster/gateway_hub.h"
#include "deps/version.h"
#include "front/http/http_front.h"
#include "front/pg/listener.h"
#include "meta/store.h"
#include "net/loop.h"
#include "obs/log.h"
#include "obs/metrics.h"
#include "service/gateway_service.h"

namespace roost::app {
namespace {

namespace asio = net::asio;

Status seed_admin(meta::Store &store, const config::Settings &settings, const Clock &clock) {
    ROOST_ASSIGN_OR_RETURN(const auto credentials, ensure_credentials(pool_paths(settings.dir).credentials()));
    ROOST_ASSIGN_OR_RETURN(auto user, store.find_user(credentials.user));
    if (!user) {
        user = meta::User{Uuid::make(), credentials.user, "admin", meta::make_scram_verifier(credentials.password),
                          clock.wall_us()};
        ROOST_RETURN_IF_ERROR(store.put_user(*user));
    }
    ROOST_ASSIGN_OR_RETURN(const auto token_user, store.find_token(credentials.token));
    if (token_user) return Status();
    return store.put_token(user->id, credentials.token, 0);
}

// A catalog that the settings name, and its workspace, where the meta store does not know them. One that moved to
// another database is brought up to date; the workspace that it was once put into stays.
Status seed_catalog(meta::Store &store, const LakeLocation &lake, const std::string &workspace,
                    const std::string &database, const Clock &clock) {
    const std::string metadata = config::mask_password(database);
    ROOST_ASSIGN_OR_RETURN(const auto catalogs, store.catalogs());
    for (meta::Catalog known : catalogs) {
        if (known.slug != lake.catalog) continue;
        if (known.metadata == metadata && known.data_path == lake.data_path) return Status();
        known.metadata = metadata;
        known.data_path = lake.data_path;
        return store.put_catalog(known);
    }
    ROOST_ASSIGN_OR_RETURN(const auto workspaces, store.workspaces());
    Uuid id;
    for (const meta::Workspace &known : workspaces) {
        if (known.slug == workspace) id = known.id;
    }
    const bool is_first = id.is_nil();
    if (is_first) {
        id = Uuid::make();
        ROOST_RETURN_IF_ERROR(store.put_workspace({id, workspace, workspace, lake.catalog, clock.wall_us()}));
    }
    return store.put_catalog({Uuid::make(), lake.catalog, metadata, lake.data_path, id, is_first, clock.wall_us()});
}

// The admin user, the workspaces and the catalogs, where the meta store has none yet.
Status seed_meta(meta::Store &store, const config::Settings &settings, const std::vector<LakeLocation> &lakes,
                 const Clock &clock) {
    ROOST_RETURN_IF_ERROR(seed_admin(store, settings, clock));
    ROOST_RETURN_IF_ERROR(seed_catalog(store, lakes.front(), kDefaultWorkspace, settings.catalog.to_string(), clock));
    for (size_t i = 0; i < settings.more_catalogs.size(); ++i) {
        const config::CatalogEntry &entry = settings.more_catalogs[i];
        ROOST_RETURN_IF_ERROR(seed_catalog(store, lakes[i + 1], entry.workspace, entry.catalog.to_string(), clock));
    }
    return Status();
}

cluster::HubOptions hub_options(const config::Settings &settings, std::string join_token) {
    cluster::HubOptions options;
    net::Endpoint endpoint;
    endpoint.unix_path = settings.listen.unix_path;
    endpoint.host = settings.listen.host;
    endpoint.port = settings.listen.port;
    options.listen.push_back(endpoint);
    options.join_token = std::move(join_token);
    options.heartbeat_ms = static_cast<uint32_t>(settings.heartbeat_ms);
    options.drop_after_ms = static_cast<uint32_t>(settings.node_drop_ms);
    options.version = std::string(deps::kRoostVersion);
    return options;
}

service::ServiceLimits service_limits(const config::Settings &settings) {
    service::ServiceLimits limits;
    limits.statement_timeout_ms = settings.statement_timeout_ms;
    limits.admission_wait_ms = settings.admission_wait_ms;
    for (const config::WorkloadGroup &group : settings.groups) {
        for (const std::string &user : group.users) limits.group_of_user[user] = group.name;
    }
    limits.idle_transaction_timeout_ms = settings.idle_transaction_timeout_ms;
    limits.session_idle_timeout_ms = settings.session_idle_timeout_ms;
    limits.session_life_ms = settings.session_life_ms;
    limits.http_sessions = settings.http_sessions == "on";
    limits.history_retention_ms = settings.history_retention_ms;
    limits.heartbeat_ms = static_cast<int64_t>(settings.heartbeat_ms);
    limits.engine_version = sql::engine_version();
    limits.sql_text_max_bytes = static_cast<uint32_t>(settings.sql_text_max_bytes);
    return limits;
}

pg::Options pg_options(const config::Settings &settings) {
    pg::Options options;
    options.address = settings.pg.host;
    options.port = settings.pg.port;
    options.connections_max = settings.gateway_connections_max;
    return options;
}

// What `roost up` does before its nodes start, a gateway of its own does for itself: the lake is made where there is
// none, and filled with the sample when it is empty, in a process of its own. REQUIRES: no other thread yet.
Status make_lake(const config::Settings &given) {
    if (std::getenv(kEndpointsVariable)) return Status();
    const config::Settings settings = with_absolute_paths(given);
    const PoolPaths paths = pool_paths(settings.dir);
    ROOST_RETURN_IF_ERROR(make_directory(settings.dir));
    ROOST_RETURN_IF_ERROR(make_directory(std::filesystem::path(paths.log("sample-fill")).parent_path().string()));
    ChildSpec spec = sample_fill_spec(settings, paths, current_environment());
    spec.environment.erase(kProgressVariable);
    spec.keep_stderr = true;
    ROOST_ASSIGN_OR_RETURN(const pid_t child, spawn(spec));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return Status();
    return Status(Code::failed_precondition, "the lake is not ready: its first filling " + describe_exit(status));
}

// Everything that must end before the loop does, in parallel.
net::Task<void> drain(service::GatewayService &service, pg::Listener &pg, http::HttpFront &http,
                      cluster::GatewayHub &hub, asio::io_context &loop, int64_t grace_ms) {
    net::Event done(loop.get_executor());
    int left = 3;
    const auto finished = [&](std::exception_ptr) {
        left--;
        done.notify();
    };
    // The last part of the grace is for telling those that did not finish.
    const int64_t finish_ms = grace_ms > 3000 ? grace_ms - 2000 : grace_ms / 2;
    asio::co_spawn(loop, service.drain(finish_ms), finished);
    asio::co_spawn(loop, pg.stop(finish_ms + 500), finished);
    asio::co_spawn(loop, http.stop(finish_ms + 500), finished);
    while (left > 0) co_await done.wait();
    hub.stop();
    loop.stop();
}

Status run_gateway(const config::Settings &settings) {
    const SystemClock clock;
    ROOST_RETURN_IF_ERROR(check_supported(settings));
    ROOST_RETURN_IF_ERROR(make_lake(settings));
    const auto log = obs::make_log("gateway", settings.log_file, obs::parse_level(settings.log_level));
    const auto metrics = obs::Metrics::make();
    net::Loop loop;
    const std::vector<LakeLocation> lakes = lakes_of(settings);
    ROOST_ASSIGN_OR_RETURN(const auto store, meta::Store::open(settings.meta.to_string()));
    ROOST_RETURN_IF_ERROR(seed_meta(*store, settings, lakes, clock));
    ROOST_ASSIGN_OR_RETURN(
        std::string join_token,
        ensure_join_token(settings.token_file.empty() ? pool_paths(settings.dir).join_token() : settings.token_file));
    auto policy = routing::make_policy(
        settings.routing, std::ranges::any_of(lakes, [](const LakeLocation &lake) { return lake.data_in_store(); }));
    if (!policy) {
        return Status(Code::unimplemented, "--routing " + settings.routing + " is not supported yet")
            .with_hint("this version takes auto, affinity, segments, least_loaded or round_robin");
    }
    cluster::GatewayHub hub(hub_options(settings, std::move(join_token)), clock, *log, loop);
    auto core = std::make_unique<service::Core>(hub, *store, std::move(policy), *metrics, *log, clock, loop,
                                                service_limits(settings));
    if (!settings.placement_trace.empty()) {
        ROOST_ASSIGN_OR_RETURN(core->trace, routing::TraceRecorder::open({.path = settings.placement_trace}, *log));
    }
    service::GatewayService service(std::move(core));
    http::ApiOptions api;
    api.version = std::string(deps::kRoostVersion);
    http::HttpFront http(loop, service, clock, *log, api);
    pg::Listener pg(loop, service, clock, *log, pg_options(settings));
    // What a second signal, or an error below, leaves half done is taken apart while all that it uses is there.
    const net::LoopEnd end(loop);
    ROOST_RETURN_IF_ERROR(service.start(lakes));
    ROOST_RETURN_IF_ERROR(hub.listen());
    ROOST_RETURN_IF_ERROR(http.listen(settings.http.to_string()));
    ROOST_RETURN_IF_ERROR(pg.listen());
    ROOST_RETURN_IF_ERROR(report_endpoints({http.endpoint(), pg.endpoint(), hub.endpoints().front().to_string()}));
    log->info("gateway_started", {{"version", deps::kRoostVersion}, {"http", http.endpoint()}, {"pg", pg.endpoint()}});
    asio::signal_set signals(loop, SIGTERM, SIGINT);
    signals.async_wait([&](const boost::system::error_code &ec, int) {
        if (ec) return;
        log->info("gateway_draining");
        asio::co_spawn(loop, drain(service, pg, http, hub, loop, settings.stop_timeout_ms), asio::detached);
        // A second signal does not wait.
        signals.async_wait([&](const boost::system::error_code &again, int) {
            if (!again) loop.stop();
        });
    });
    loop.run();
    loop.end();
    log->info("gateway_stopped");
    return store->flush();
}

}  // namespace

int gateway_main(const config::Settings &settings) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        const Status status = run_gateway(settings);
        return status.ok() ? kExitDone : print_error("gateway", status);
    } catch (const std::exception &error) {
        return print_error("gateway", Status(Code::internal, error.what()));
    }
}

}  // namespace roost::app
