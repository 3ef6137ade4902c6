#include "app/node_wall.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/layout.h"
#include "lake/postgres_dsn.h"

namespace roost::app {
namespace {

// Finding others by name.
constexpr const char *kNameFiles[] = {
    "/etc/hosts",       "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/ld.so.cache", "/lib",           "/usr/lib"};
// Where certificates of authorities are, on one system or another.
constexpr const char *kCertificateFiles[] = {"/etc/ssl/certs",
                                             "/etc/ssl/cert.pem",
                                             "/etc/ssl/ca-bundle.pem",
                                             "/etc/ssl/openssl.cnf",
                                             "/etc/pki/tls/certs",
                                             "/etc/pki/ca-trust/extracted",
                                             "/usr/share/ca-certificates",
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

Status allow_lake(const LakeLocation &lake, ProcessWallOptions &options) {
    options.read_only.push_back(lake.staging_path);
    if (lake.store) allow_store(*lake.store, options);
    if (!lake.data_in_store()) options.read_write.push_back(lake.data_path);
    for (const std::string &folder : lake.external) {
        if (folder.starts_with('/')) options.read_only.push_back(folder);
    }
    if (lake.on_postgres) return allow_postgres(lake.metadata_path, options);
    options.read_write.push_back(std::filesystem::path(lake.metadata_path).parent_path().string());
    return Status();
}

// What a node has to do with: its own directory, the lake and its catalog, the engine's extensions, what the kernel
// says of memory and processors; and, for what is reached by network (gateway, store, catalog), its port and what
// finding it by name takes.
Result<ProcessWallOptions> wall_options(const config::Settings &settings) {
    namespace fs = std::filesystem;
    ProcessWallOptions options;
    options.read_write = {settings.dir};
    if (settings.log_file != "-") options.read_write.push_back(fs::absolute(settings.log_file).parent_path().string());
    options.read_only = {extension_dir(),           "/proc/self",  "/proc/meminfo", "/sys/fs/cgroup", "/dev/null",
                         "/sys/devices/system/cpu", "/dev/urandom"};
#if __has_feature(address_sanitizer)
    // Where a sanitizer writes what it finds.
    if (const char *findings = std::getenv("SANITIZER_FINDINGS")) options.read_write.emplace_back(findings);
#endif
    if (settings.join->unix_path.empty()) {
        options.connect_ports.push_back(settings.join->port);
        options.read_only.insert(options.read_only.end(), std::begin(kNameFiles), std::end(kNameFiles));
    }
    for (const LakeLocation &lake : lakes_of(settings)) ROOST_RETURN_IF_ERROR(allow_lake(lake, options));
    return options;
}

}  // namespace

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

Result<ProcessWall> raise_node_wall(const config::Settings &settings) {
    // What is not there when the wall goes up can't be opened later. A lake that this process can't write shows in use.
    std::error_code ignored;
    for (const LakeLocation &lake : lakes_of(settings)) {
        std::filesystem::create_directories(lake.staging_path, ignored);
    }
    // SQLite's scratch files, which would go to /tmp. Nobody else reads the environment yet.
    ::setenv("SQLITE_TMPDIR", settings.dir.c_str(), 1);
    ROOST_ASSIGN_OR_RETURN(const ProcessWallOptions inside, wall_options(settings));
    return raise_process_wall(inside);
}

}  // namespace roost::app
