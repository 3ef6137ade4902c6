#include "app/layout.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/files.h"
#include "deps/duckdb_extensions.h"

namespace roost::app {

namespace fs = std::filesystem;

namespace {

ObjectStore object_store_of(const config::Settings &settings) {
    return {
        .endpoint = settings.s3_endpoint,
        .region = settings.s3_region,
        .url_style = settings.s3_url_style,
        .access_key_id = settings.s3_access_key_id,
        .secret_access_key = settings.s3_secret_access_key,
        .session_token = settings.s3_session_token,
        .timeout_ms = settings.s3_timeout_ms,
    };
}

std::string folder_of(const config::StoreLocation &location) {
    std::string folder = location.to_string();
    if (!folder.ends_with('/')) folder += '/';
    return folder;
}

LakeLocation lake_at(const config::Settings &settings, const std::string &name, const config::StoreLocation &store,
                     const config::DatabaseLocation &catalog) {
    LakeLocation lake;
    lake.catalog = name;
    lake.metadata_path = catalog.place;
    lake.catalog_timeout_ms = settings.catalog_timeout_ms;
    lake.on_postgres = catalog.kind == config::DatabaseLocation::Kind::postgres;
    if (store.is_s3) {
        lake.data_path = store.to_string() + "/data/";
        lake.store = object_store_of(settings);
    } else {
        lake.data_path = store.path + "/data/";
    }
    for (const config::StoreLocation &location : settings.external) {
        lake.external.push_back(folder_of(location));
        if (location.is_s3 && !lake.store) lake.store = object_store_of(settings);
    }
    // One place for all: an upload is there before anybody says which catalog it is for.
    lake.staging_path = settings.store.is_s3 ? settings.staging : settings.store.path + "/staging";
    return lake;
}

}  // namespace

LakeLocation lake_of(const config::Settings &settings) {
    return lake_at(settings, kDefaultCatalog, settings.store, settings.catalog);
}

std::vector<LakeLocation> lakes_of(const config::Settings &settings) {
    std::vector<LakeLocation> lakes = {lake_of(settings)};
    for (const config::CatalogEntry &entry : settings.more_catalogs) {
        lakes.push_back(lake_at(settings, entry.name, entry.store, entry.catalog));
    }
    return lakes;
}

std::string extension_dir() {
    std::error_code ec;
    const fs::path self = fs::read_symlink("/proc/self/exe", ec);
    if (!ec) {
        const fs::path beside = self.parent_path() / "extensions";
        if (fs::exists(beside / "ducklake.duckdb_extension", ec)) return beside.string();
    }
    return std::string(deps::kBuildTreeExtensionDir);
}

Result<NodeIdentity> open_node_directory(const std::string &dir) {
    std::error_code ec;
    fs::create_directories(dir, ec);
    if (ec) return Status(Code::io_error, "can't make the node's directory " + dir + ": " + ec.message());
    // Held open, and so locked, until the process ends.
    const int fd = ::open((dir + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) return Status(Code::io_error, "can't open " + dir + "/lock: " + std::strerror(errno));
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ::close(fd);
        return Status(Code::failed_precondition, "another node uses " + dir)
            .with_hint("give each node a directory of its own");
    }
    NodeIdentity identity;
    auto known = read_file(dir + "/identity", 256);
    if (known.ok()) {
        const auto id = Uuid::parse(known->substr(0, 36));
        if (!id) {
            return Status(Code::invalid_argument, dir + "/identity does not hold a UUID")
                .with_hint("restore the file, or empty the directory to start as a new node");
        }
        identity.id = *id;
    } else {
        identity.id = Uuid::make();
        ROOST_RETURN_IF_ERROR(write_file_atomically(dir + "/identity", identity.id.to_string() + "\n"));
    }
    if (auto last = read_file(dir + "/incarnation", 64); last.ok()) {
        identity.incarnation = std::strtoull(last->c_str(), nullptr, 10);
    }
    identity.incarnation++;
    ROOST_RETURN_IF_ERROR(write_file_atomically(dir + "/incarnation", std::to_string(identity.incarnation) + "\n"));
    return identity;
}

}  // namespace roost::app
