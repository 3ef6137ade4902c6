// `roost up`: checks what can be checked before anything is started, then hands over to the supervisor.
#include <unistd.h>

#include <iostream>

#include "app/child_settings.h"
#include "app/commands.h"
#include "app/credentials.h"
#include "app/files.h"
#include "app/pool_directory.h"
#include "app/port_check.h"
#include "app/supervisor.h"
#include "base/clock.h"
#include "config/machine.h"
#include "obs/log.h"

namespace roost::app {
namespace {

// Processes of a killed run are on their way out for a moment.
constexpr int64_t kPortPatience_ms = 2'000;

Status check_ports(const config::Settings &settings) {
    if (settings.http == settings.pg && settings.http.port != 0) {
        return Status(Code::invalid_argument, "--http and --pg are the same address: " + settings.http.to_string());
    }
    ROOST_RETURN_IF_ERROR(check_can_listen(settings.http, "--http", kPortPatience_ms));
    ROOST_RETURN_IF_ERROR(check_can_listen(settings.pg, "--pg", kPortPatience_ms));
    if (settings.listen.is_unix()) return {};
    return check_can_listen(settings.listen, "--listen", kPortPatience_ms);
}

void warn_of_too_much_memory(const config::Settings &settings) {
    const config::Machine machine = config::read_machine();
    const uint64_t promised_bytes = settings.nodes * settings.node_memory_bytes;
    if (machine.memory_bytes == 0 || promised_bytes <= machine.memory_bytes) return;
    std::cerr << "roost up: warning: " << settings.nodes << " nodes may use "
              << config::format_bytes(settings.node_memory_bytes) << " each, more than the "
              << config::format_bytes(machine.memory_bytes) << " there are; lower --node-memory or --nodes\n";
}

Result<Credentials> prepare(const config::Settings &settings, const PoolPaths &paths) {
    ROOST_ASSIGN_OR_RETURN(Credentials credentials, ensure_credentials(paths.credentials()));
    ROOST_RETURN_IF_ERROR(ensure_join_token(paths.join_token()).status());
    ROOST_RETURN_IF_ERROR(write_file_atomically(paths.passfile(), passfile_line(credentials)));
    for (unsigned index = 1; index <= settings.nodes; ++index) ROOST_RETURN_IF_ERROR(make_directory(paths.node(index)));
    if (!settings.ready_file.empty() && ::unlink(settings.ready_file.c_str()) != 0 && errno != ENOENT) {
        return errno_status("replace", settings.ready_file, errno);
    }
    return credentials;
}

}  // namespace

int up_main(const config::Settings &given) {
    const config::Settings settings = with_absolute_paths(given);
    if (Status status = check_supported(settings); !status.ok()) return print_error("up", status);
    // The lock comes first: two of them must not find out by their ports.
    const Result<PoolDirectory> directory = PoolDirectory::open(settings.dir);
    if (!directory.ok()) return print_error("up", directory.status());
    if (Status status = check_ports(settings); !status.ok()) return print_error("up", status);
    const Result<Credentials> credentials = prepare(settings, directory->paths());
    if (!credentials.ok()) return print_error("up", credentials.status());
    warn_of_too_much_memory(settings);

    const SystemClock clock;
    const auto log = obs::make_log("up", directory->paths().log("up"), obs::parse_level(settings.log_level));
    Supervisor supervisor({directory->paths(), settings, *credentials, current_environment()}, clock, *log);
    return supervisor.run();
}

}  // namespace roost::app
