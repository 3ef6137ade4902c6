#include "engine/instance.h"
#include "base/clock.h"

#include <openssl/evp.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/ids.h"
#include "deps/duckdb_extensions.h"
#include "duckdb/catalog/catalog.hpp"
#include "duckdb/common/virtual_file_system.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/storage/buffer_manager.hpp"
#include "duckdb/storage/object_cache.hpp"
#include "engine/foreign_scan.h"
#include "engine/outages.h"
#include "engine/walls.h"
#include "lake/ducklake.h"

namespace roost {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kExtensions = {"sqlite_scanner", "postgres_scanner", "httpfs", "ducklake"};

// Another statement of a shared instance may pin pages for a moment.
constexpr std::chrono::milliseconds kTakeBackPatience{2'000};
constexpr std::chrono::milliseconds kTakeBackPause{5};

constexpr std::chrono::seconds kPinWithin{20};

std::string extension_path(const std::string &dir, std::string_view name) {
    return dir + "/" + std::string(name) + ".duckdb_extension";
}

Result<std::string> sha256_of_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return Status(Code::io_error, "can't read the extension file " + path);
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    if (!digest || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1) {
        return Status(Code::internal, "SHA-256 is not available");
    }
    std::array<char, 1 << 16> buffer;
    while (in.read(buffer.data(), buffer.size()), in.gcount() > 0) {
        EVP_DigestUpdate(digest.get(), buffer.data(), static_cast<size_t>(in.gcount()));
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum;
    unsigned size = 0;
    EVP_DigestFinal_ex(digest.get(), sum.data(), &size);
    return to_hex({reinterpret_cast<const char *>(sum.data()), size});
}

void run(duckdb::Connection &connection, const std::string &sql) {
    auto result = connection.Query(sql);
    if (result->HasError()) result->ThrowError();
}

// Each transaction takes one connection to the catalog, from its first statement to its end, and no scan takes more.
void bound_catalog_connections(duckdb::Connection &connection, uint32_t connections_max) {
    const auto set = [&](const char *name, const std::string &value) {
        run(connection, std::string("SET GLOBAL ") + name + " = " + value);
    };
    set("pg_use_ctid_scan", "false");
    set("pg_pool_max_connections", std::to_string(connections_max));
    set("pg_pool_acquire_mode", "'wait'");
    set("pg_pool_wait_timeout_millis", "10000");
    // Kept for the next statement; one that the server closed is found out before it is used.
    set("pg_pool_idle_timeout_millis", "300000");
}

// The version that one of the lakes registered. Ids of files are each lake's own, so two may have the same: then both
// must have registered the same version.
Result<std::optional<FileVersion>> pin_in(const std::vector<std::shared_ptr<FilePins>> &pins, const DataFileKey &file) {
    std::optional<FileVersion> found;
    for (const auto &of_lake : pins) {
        ROOST_ASSIGN_OR_RETURN(const auto pin, of_lake->find(file, CallLimits::in(kPinWithin)));
        if (pin && found && *pin != *found) {
            return Status(Code::failed_precondition, "two catalogs registered different versions of one file")
                .with_hint("name one of the catalogs only");
        }
        if (pin) found = pin;
    }
    return found;
}

}  // namespace

Status verify_extensions(const std::string &extension_dir) {
    for (const auto name : kExtensions) {
        const std::string path = extension_path(extension_dir, name);
        ROOST_ASSIGN_OR_RETURN(const std::string sum, sha256_of_file(path));
        bool known = false;
        for (const auto &pinned : deps::kDuckdbExtensions) known |= pinned.name == name && pinned.sha256_hex == sum;
        if (!known) {
            return Status(Code::data_loss, "the extension file " + path + " is not the one this roost was built for")
                .with_hint("install the extensions of this release");
        }
    }
    return Status();
}

Instance::Instance(InstanceOptions options, obs::Log &log) : options_(std::move(options)), log_(log) {
    catalogs_.push_back(options_.lake.catalog);
    for (const LakeLocation &lake : options_.others) catalogs_.push_back(lake.catalog);
}

Instance::~Instance() {
    {
        MutexLock lock(mutex_);
        idle_.clear();
    }
    if (database_ && options_.keys) await_uploads(*database_->instance);
    database_.reset();
    if (!spill_dir_.empty()) {
        std::error_code ignored;  // what is left is removed when the node starts again
        fs::remove_all(spill_dir_, ignored);
    }
}

Result<std::shared_ptr<Instance>> Instance::make(InstanceOptions options, obs::Log &log) {
    std::shared_ptr<Instance> instance(new Instance(std::move(options), log));
    try {
        instance->set_up();
    } catch (const std::exception &error) {
        const duckdb::ErrorData data(error);
        const Redactions &redactions = instance->options_.redactions;
        log.error("instance_failed",
                  {{"catalog", instance->options_.lake.catalog}, {"error", redact(data.Message(), redactions)}});
        Status status = status_of(data, "", redactions);
        if (status.code() == Code::conflict || outage_of(data)) return status;
        return Status(Code::unavailable, "the node can't open the catalog " + instance->options_.lake.catalog)
            .with_detail(status.message());
    }
    return instance;
}

FileWallOptions Instance::wall_options() const {
    FileWallOptions options{.data_dirs = {{options_.lake.catalog, options_.lake.data_path}},
                            .spill_dir = spill_dir_,
                            .staging_dir = options_.internal ? options_.lake.staging_path : std::string(),
                            .external = options_.lake.external,
                            .pin_of = [pins = options_.pins](const DataFileKey &file) { return pin_in(pins, file); },
                            .on_deferred_removal = {}};
    for (const LakeLocation &lake : options_.others) options.data_dirs.push_back({lake.catalog, lake.data_path});
    options.on_deferred_removal = [removals = options_.removals](const std::string &catalog, const std::string &path) {
        if (removals) removals->put_off({catalog, path, SystemClock().wall_us()});
    };
    return options;
}

void Instance::set_up() {
    spill_dir_ = make_spill_dir();
    wall_ = std::make_shared<FileWall>(wall_options());

    duckdb::DBConfig config;
    config.file_system = duckdb::make_uniq<duckdb::VirtualFileSystem>(make_walled_file_system(wall_));
    config.options.maximum_threads = options_.threads;
    config.options.maximum_memory = options_.memory_bytes;
    config.options.temporary_directory = spill_dir_;
    config.options.maximum_swap_space = options_.spill_max_bytes;
    config.SetOptionByName("allow_unsigned_extensions", duckdb::Value::BOOLEAN(true));
    config.SetOptionByName("allow_community_extensions", duckdb::Value::BOOLEAN(false));
    config.SetOptionByName("autoload_known_extensions", duckdb::Value::BOOLEAN(false));
    config.SetOptionByName("autoinstall_known_extensions", duckdb::Value::BOOLEAN(false));
    database_ = std::make_unique<duckdb::DuckDB>(nullptr, &config);

    duckdb::Connection connection(*database_);
    attach_lakes(connection);
    remember_wall(*connection.context, wall_);
    raise_walls(connection, {.internal = options_.internal, .frozen = !options_.frozen_path.empty()});
    if (!options_.frozen_path.empty()) drop_history_functions(connection);
    wall_->seal();
}

void Instance::attach_lakes(duckdb::Connection &connection) {
    // One by a frozen catalog needs neither a scanner nor the way to the catalog.
    const bool frozen = !options_.frozen_path.empty();
    std::vector<LakeLocation> lakes = {options_.lake};
    lakes.insert(lakes.end(), options_.others.begin(), options_.others.end());
    const auto is_on_postgres = [](const LakeLocation &lake) { return lake.on_postgres; };
    const bool by_postgres = !frozen && std::ranges::any_of(lakes, is_on_postgres);
    const bool by_sqlite = !frozen && !std::ranges::all_of(lakes, is_on_postgres);
    const auto load = [&](std::string_view name) {
        run(connection, "LOAD " + quote_literal(extension_path(options_.extension_dir, name)));
    };
    if (by_sqlite) load("sqlite_scanner");
    if (by_postgres) load("postgres_scanner");
    load("ducklake");
    if (options_.keys) let_in(connection, options_.extension_dir, wall_, options_.keys, options_.cache);
    if (by_postgres) bound_catalog_connections(connection, options_.catalog_connections_max);
    run(connection, "SET GLOBAL ducklake_max_retry_count = 5");  // its sleeps can't be interrupted: 1 s in all
    if (by_postgres) {
        // The extension looks for a secret among the persistent ones and fails where those are off: there are none.
        run(connection, "SET GLOBAL secret_directory = " + quote_literal(spill_dir_ + "/secrets"));
    } else {
        run(connection, "SET GLOBAL allow_persistent_secrets = false");
    }
    for (const LakeLocation &lake : lakes) {
        const bool first = &lake == &lakes.front();
        const AttachMode mode{.metadata_catalog =
                                  first ? metadata_catalog_ : std::string(kMetadataPrefix) + random_hex(12)};
        run(connection, frozen ? attach_frozen_sql(lake.catalog, options_.frozen_path, mode) : attach_sql(lake, mode));
    }
}

std::string Instance::make_spill_dir() {
    const std::string dir = options_.spill_root + "/" + random_hex(8);
    fs::create_directories(dir);
    return dir;
}

Result<std::unique_ptr<LakeConnection>> Instance::connect() {
    {
        MutexLock lock(mutex_);
        if (!idle_.empty()) {
            auto connection = std::move(idle_.back());
            idle_.pop_back();
            return connection;
        }
    }
    try {
        return std::make_unique<LakeConnection>(*database_->instance);
    } catch (const std::exception &failure) {
        return error(duckdb::ErrorData(failure), "");
    }
}

void Instance::give_back(std::unique_ptr<LakeConnection> connection) {
    if (!connection) return;
    connection->rollback();
    if (connection->spoiled() || broken()) return;
    MutexLock lock(mutex_);
    if (idle_.size() < kPooledConnections) idle_.push_back(std::move(connection));
}

void Instance::load_schema(LakeConnection &connection) {
    connection.context().RunFunctionInTransaction([&] {
        auto &context = connection.context();
        int64_t version = 0;
        for (const std::string &name : catalogs_) {
            const auto own = duckdb::Catalog::GetCatalog(context, name).GetCatalogVersion(context);
            if (!own.IsValid()) continue;
            if (own.GetIndex() >= duckdb::TRANSACTION_ID_START) return;  // a transaction that has altered it by itself
            version += static_cast<int64_t>(own.GetIndex());
        }
        // An older transaction than the one that loaded last finds its schema loaded, or loads it for itself.
        if (version <= loaded_schema_.load()) return;
        MutexLock lock(schema_mutex_);
        if (version <= loaded_schema_.load()) return;
        duckdb::ObjectCache::GetObjectCache(context).EvictToReduceMemory(duckdb::ObjectCache::DEFAULT_MAX_MEMORY);
        for (const std::string &name : catalogs_) {
            duckdb::Catalog::GetCatalog(context, name).GetSchema(context, "main", duckdb::OnEntryNotFound::RETURN_NULL);
        }
        loaded_schema_.store(version);
    });
}

std::string Instance::schema_versions(LakeConnection &connection) {
    std::string versions;
    connection.context().RunFunctionInTransaction([&] {
        auto &context = connection.context();
        for (const std::string &name : catalogs_) {
            const auto version = duckdb::Catalog::GetCatalog(context, name).GetCatalogVersion(context);
            versions += name + ":" + (version.IsValid() ? std::to_string(version.GetIndex()) : "?") + ",";
        }
    });
    return versions;
}

Status Instance::set_memory_limit(uint64_t bytes) {
    try {
        database_->instance->GetBufferManager().SetMemoryLimit(bytes);
        return Status();
    } catch (const std::exception &failure) {
        return status_of(failure, "", options_.redactions);
    }
}

Status Instance::lend(uint64_t bytes) {
    if (bytes == 0) return Status();
    MutexLock lock(limit_mutex_);
    ROOST_RETURN_IF_ERROR(set_memory_limit(options_.memory_bytes + lent_bytes_ + bytes));
    lent_bytes_ += bytes;
    return Status();
}

Status Instance::take_back(uint64_t bytes) {
    if (bytes == 0) return Status();
    const auto give_up = std::chrono::steady_clock::now() + kTakeBackPatience;
    for (;;) {
        Status lowered;
        {
            MutexLock lock(limit_mutex_);
            lowered = set_memory_limit(options_.memory_bytes + lent_bytes_ - bytes);
            if (lowered.ok()) {
                lent_bytes_ -= bytes;
                return Status();
            }
        }
        if (std::chrono::steady_clock::now() > give_up) return lowered;
        std::this_thread::sleep_for(kTakeBackPause);
    }
}

duckdb::BufferManager &Instance::buffer_manager() { return database_->instance->GetBufferManager(); }

uint64_t Instance::used_bytes() const { return database_->instance->GetBufferManager().GetUsedMemory(); }

Instance::MemoryUse Instance::memory_use() const {
    MemoryUse use;
    for (const auto &tag : database_->instance->GetBufferManager().GetMemoryUsageInfo()) {
        use.spilled_bytes += tag.evicted_data;
        const bool cached =
            tag.tag == duckdb::MemoryTag::EXTERNAL_FILE_CACHE || tag.tag == duckdb::MemoryTag::OBJECT_CACHE;
        if (!cached) use.held_bytes += tag.size;
    }
    return use;
}

void Instance::note_failed_commit() {
    if (failed_commits_.fetch_add(1) + 1 == kFailedCommitsMax) mark_broken();
}

Status Instance::error(const duckdb::ErrorData &error, std::string_view sql) {
    if (is_stale_catalog(error)) {
        mark_broken();
        log_.info("catalog_reorganised", {{"catalog", options_.lake.catalog}});
    } else if (breaks_instance(error)) {
        mark_broken();
        log_.error("engine_internal_error",
                   {{"catalog", options_.lake.catalog}, {"error", redact(error.Message(), options_.redactions)}});
    } else if (outage_of(error)) {
        log_.warn("lake_outage",
                  {{"catalog", options_.lake.catalog}, {"error", redact(error.Message(), options_.redactions)}});
    }
    return status_of(error, sql, options_.redactions);
}

}  // namespace roost
