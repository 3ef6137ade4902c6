#include "app/pool_address.h"

#include "app/files.h"
#include "app/pool_directory.h"
#include "app/ready_file.h"

namespace roost::app {
namespace {

bool is_loopback(const std::string &url) {
    const size_t scheme = url.find("://");
    const std::string rest = scheme == std::string::npos ? url : url.substr(scheme + 3);
    for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
        if (rest.starts_with(host) &&
            (rest.size() == host.size() || rest[host.size()] == ':' || rest[host.size()] == '/')) {
            return true;
        }
    }
    return false;
}

std::string first_of(const std::string &given, const config::Environment &environment, const char *variable) {
    if (!given.empty()) return given;
    return environment(variable).value_or("");
}

}  // namespace

Result<PoolAddress> find_pool(const PoolArguments &arguments, const config::Environment &environment) {
    PoolAddress out;
    out.url = first_of(arguments.url, environment, "ROOST_URL");
    out.token = first_of(arguments.token, environment, "ROOST_TOKEN");
    if (!out.url.empty() && !out.token.empty()) return out;

    std::string dir = first_of(arguments.dir, environment, "ROOST_DIR");
    const PoolPaths paths = pool_paths(dir.empty() ? ".roost" : dir);
    ReadyInfo here;
    if (const auto text = read_file(paths.ready()); text.ok()) {
        ROOST_ASSIGN_OR_RETURN(here, ready_from_json(paths.ready(), *text));
    } else if (text.status().code() != Code::not_found) {
        return text.status();
    }
    if (out.url.empty()) {
        if (here.http.empty()) {
            return Status(Code::not_found, "no pool runs in " + paths.dir)
                .with_hint("start one with `roost up`, or name another with --dir or --url");
        }
        out.url = here.http;
    }
    if (!out.token.empty()) return out;
    if (out.url == here.http) {
        out.token = here.credentials.token;
    } else if (is_loopback(out.url)) {
        if (const auto credentials = load_credentials(paths.credentials()); credentials.ok())
            out.token = credentials->token;
    }
    if (out.token.empty()) {
        return Status(Code::unauthenticated, "no token for " + out.url).with_hint("set ROOST_TOKEN, or give --token");
    }
    return out;
}

}  // namespace roost::app
