#include "engine/engine.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "duckdb/common/allocator.hpp"
#include "duckdb/common/file_system.hpp"
#include "duckdb/main/database.hpp"
#include "engine/catalog_watch.h"
#include "engine/execution.h"
#include "engine/janitor.h"
#include "engine/lake_redactions.h"
#include "engine/object_cache.h"
#include "lake/ducklake.h"
#include "lake/postgres_dsn.h"

namespace roost {

namespace {

namespace fs = std::filesystem;

Redactions all_redactions(const EngineOptions &options) {
    Redactions redactions{{options.dir, "node"}, {options.extension_dir, "node"}};
    for (const auto &lake : options.lakes) {
        const Redactions own = redactions_of(lake);
        redactions.insert(redactions.end(), own.begin(), own.end());
    }
    return in_order(std::move(redactions));
}

class DuckdbEngine final : public Engine {
public:
    explicit DuckdbEngine(obs::Log &log) { parts_.log = &log; }

    Status open(const EngineOptions &options);

    Result<std::unique_ptr<Execution>> create(StatementSpec spec) override;
    void end_session(const Uuid &session) override;
    std::function<void()> take_session(const Uuid &session) override;
    bool has_session(const Uuid &session) const override { return parts_.sessions.find(session) != nullptr; }

    Result<std::string> read_page(const Uuid &statement, uint64_t offset_rows, uint32_t limit_rows) override {
        return parts_.results->read_page(statement, offset_rows, limit_rows);
    }
    Result<std::unique_ptr<StoredResultReader>> open_arrow(const Uuid &statement) override {
        return parts_.results->open_arrow(statement);
    }
    Status drop_result(const Uuid &statement) override { return parts_.results->drop(statement); }
    void sweep() override;

    Result<uint64_t> set_slot_limit(uint32_t slot, uint64_t bytes) override;
    uint64_t slot_used_bytes(uint32_t slot) const override {
        const auto instance = parts_.catalogs->instance_of_slot(slot);
        return instance ? instance->used_bytes() : 0;
    }
    void trim() override;
    uint64_t used_bytes() const override { return parts_.catalogs->used_bytes(); }
    CacheReport cache_report(bool all) override { return parts_.cache ? report_of(*parts_.cache, all) : CacheReport(); }
    bool cache_changed() override { return parts_.cache && parts_.cache->blocks().has_changes(); }
    Result<uint64_t> cache_work(const CacheWork &work, const std::function<bool()> &cancelled) override {
        ROOST_ASSIGN_OR_RETURN(const auto pool, parts_.catalogs->find(work.catalog));
        const InstancePoolOptions &options = pool->options();
        if (!options.cache) return Engine::cache_work(work, cancelled);
        return work_on(*options.cache, options.lake.data_path, work, cancelled);
    }
    std::string version() const override { return duckdb::DuckDB::LibraryVersion(); }

private:
    Status open_catalogs(const EngineOptions &options, const std::string &spill_root);
    Status watch(const LakeLocation &lake);
    void warm(const std::stop_token &stop, uint32_t slots);
    Status open_cache(const EngineOptions &options);
    Result<bool> settle_removal(const DeferredRemovals::Entry &entry);

    int64_t removal_grace_ms_ = 0;
    EngineParts parts_;
    std::vector<std::unique_ptr<CatalogWatch>> watches_;
    std::unique_ptr<Janitor> janitor_;
    std::jthread warmer_;  // last: it is joined before the parts go
};

// One for all lakes of the node. A disk that fails is no error here: then reads go to the store.
Status DuckdbEngine::open_cache(const EngineOptions &options) {
    if (parts_.cache || options.cache_max_bytes == 0) return Status();
    cache::SegmentCacheOptions cache_options;
    cache_options.blocks.max_bytes = options.cache_max_bytes;
    // Half for what is under way, half for what was fetched and is not on the disk.
    const uint64_t half_bytes = options.cache_memory_bytes / 2, block_bytes = cache_options.blocks.block_bytes;
    const uint64_t fetch_max_bytes = cache_options.fetch_max_bytes;
    // Threads wait for the store; what they hold is bounded in bytes. Two of the largest requests fit at once.
    cache_options.in_flight_max_bytes = half_bytes;
    cache_options.fetch_max_bytes =
        std::clamp(half_bytes / 2 / block_bytes * block_bytes, block_bytes, fetch_max_bytes);
    cache_options.read_ahead_max_bytes = std::min(cache_options.read_ahead_max_bytes, half_bytes);
    cache_options.recent_max_bytes = std::clamp<uint64_t>(half_bytes, 4 << 20, 64 << 20);
    ROOST_ASSIGN_OR_RETURN(parts_.cache, cache::SegmentCache::open(cache::make_posix_disk(options.dir + "/cache"),
                                                                   cache_options, parts_.clock, *parts_.log));
    const cache::DiskState state = parts_.cache->blocks().state();
    parts_.log->info("cache_opened", {{"identity", state.identity},
                                      {"generation", state.generation},
                                      {"mode", cache::disk_mode_name(state.mode)},
                                      {"warm_bytes", parts_.cache->blocks().warm_bytes()},
                                      {"max_bytes", options.cache_max_bytes}});
    return Status();
}

Status DuckdbEngine::open(const EngineOptions &options) {
    ROOST_RETURN_IF_ERROR(verify_extensions(options.extension_dir));
    const std::string spill_root = options.dir + "/spill";
    std::error_code error;
    fs::remove_all(spill_root, error);  // of a run that ended badly
    fs::create_directories(spill_root, error);
    if (error) return Status(Code::io_error, "can't make the spill directory: " + error.message());
    const uint64_t result_max_bytes = options.result_max_bytes > 0 ? options.result_max_bytes : options.spill_max_bytes;
    ROOST_ASSIGN_OR_RETURN(parts_.results,
                           ResultStore::open(options.dir + "/results", options.result_retention_ms, result_max_bytes));
    parts_.removals = std::make_unique<DeferredRemovals>(options.dir + "/deferred_removals", *parts_.log);
    removal_grace_ms_ = options.removal_grace_ms;
    ROOST_RETURN_IF_ERROR(open_catalogs(options, spill_root));
    warmer_ = std::jthread([this, slots = options.warm_slots](const std::stop_token &stop) { warm(stop, slots); });
    return Status();
}

Status DuckdbEngine::open_catalogs(const EngineOptions &options, const std::string &spill_root) {
    InstancePoolOptions common{.lake = {},
                               .others = {},
                               .extension_dir = options.extension_dir,
                               .spill_root = spill_root,
                               .threads = options.threads,
                               .small_bytes = options.small_bytes,
                               .pinned_bytes = options.pinned_bytes,
                               .spill_max_bytes = options.spill_max_bytes,
                               .redactions = all_redactions(options),
                               .removals = parts_.removals.get(),
                               .keys = {},
                               .cache = {},
                               .pins = {},
                               .commit_within_ms = options.orphan_grace_ms / 2,
                               .frozen_dir = {},
                               .frozen_quiet_ms = options.frozen_quiet_ms};
    parts_.catalogs = std::make_unique<CatalogPools>(
        std::move(common),
        std::make_unique<InstanceShares>(options.small_bytes, options.pinned_bytes, options.lakes.size()), *parts_.log);
    for (const auto &lake : options.lakes) {
        if (lake.on_postgres) ROOST_RETURN_IF_ERROR(watch(lake));
        std::shared_ptr<StoreKeys> keys;
        std::shared_ptr<ObjectCache> cache;
        if (lake.store) {
            ROOST_ASSIGN_OR_RETURN(keys, StoreKeys::make(*lake.store, options.extension_dir));
            ROOST_RETURN_IF_ERROR(open_cache(options));
            if (parts_.cache) cache = std::make_shared<ObjectCache>(*parts_.cache, keys, parts_.clock);
        }
        parts_.catalogs->add(lake, std::move(keys), std::move(cache),
                             options.frozen_quiet_ms < 0 ? std::string() : options.dir + "/frozen/" + lake.catalog);
        // The first statement should not pay for it, and a lake that can't be opened should be known now. One of
        // several that can't is its own statements' trouble.
        ROOST_ASSIGN_OR_RETURN(const auto pool, parts_.catalogs->find(lake.catalog));
        const Status opened = pool->small().status();
        if (!opened.ok() && options.lakes.size() == 1) return opened;
        if (!opened.ok())
            parts_.log->error("catalog_not_open", {{"catalog", lake.catalog}, {"error", opened.to_string()}});
    }
    std::vector<InstancePool *> pools;
    for (const auto &[name, pool] : parts_.catalogs->each()) pools.push_back(pool.get());
    janitor_ = std::make_unique<Janitor>(
        JanitorOptions{.orphan_grace_ms = options.orphan_grace_ms}, std::move(pools),
        [this](const std::string &catalog, const std::string &path) {
            return settle_removal({.catalog = catalog, .path = path});
        },
        *parts_.log);
    return Status();
}

Result<uint64_t> DuckdbEngine::set_slot_limit(uint32_t slot, uint64_t bytes) {
    if (bytes == 0) {
        parts_.catalogs->drop_idle_slot(slot);
        return uint64_t{0};
    }
    const auto instance = parts_.catalogs->instance_of_slot(slot);
    if (!instance) return uint64_t{0};
    ROOST_RETURN_IF_ERROR(instance->set_memory_limit(bytes));
    return instance->used_bytes();
}

void DuckdbEngine::trim() {
    duckdb::Allocator::FlushAll();
    ::malloc_trim(0);
}

void DuckdbEngine::sweep() {
    // Reads do the same each second: of a node that reads nothing, a disk that failed would never be found whole again.
    if (parts_.cache) parts_.cache->tick();
    parts_.results->sweep();
    parts_.removals->settle(SystemClock().wall_us() - removal_grace_ms_ * 1000,
                            [this](const auto &entry) { return settle_removal(entry); });
}

// Removes the file unless the catalog names it.
Result<bool> DuckdbEngine::settle_removal(const DeferredRemovals::Entry &entry) {
    const auto pool = parts_.catalogs->find(entry.catalog);
    if (!pool.ok()) return true;  // of a catalog that this node has no more to do with
    ROOST_ASSIGN_OR_RETURN(const auto instance, (*pool)->small());
    ROOST_ASSIGN_OR_RETURN(auto connection, instance->connect());
    auto named = connection->raw().Query(names_file_sql(instance->metadata_catalog(), entry.path));
    if (named->HasError()) return instance->error(named->GetErrorObject(), "");
    const bool is_named = named->GetValue(0, 0).GetValue<int64_t>() > 0;
    named.reset();
    if (!is_named) {
        try {
            duckdb::FileSystem::GetFileSystem(connection->context()).TryRemoveFile(entry.path);
        } catch (const std::exception &error) {
            return instance->error(duckdb::ErrorData(error), "");
        }
    }
    instance->give_back(std::move(connection));
    parts_.log->info("removal_settled", {{"catalog", entry.catalog}, {"path", entry.path}, {"removed", !is_named}});
    return true;
}

// The server ends a statement itself, unless it hangs.
Status DuckdbEngine::watch(const LakeLocation &lake) {
    ROOST_ASSIGN_OR_RETURN(DsnPlaces places, places_of(lake.metadata_path));
    const std::chrono::milliseconds timeout(lake.catalog_timeout_ms);
    watches_.push_back(
        std::make_unique<CatalogWatch>(std::move(places.ports), timeout + timeout / 4, timeout / 40, *parts_.log));
    return Status();
}

// Failures are left to the statement that needs the instance: it makes its own and tells.
void DuckdbEngine::warm(const std::stop_token &stop, uint32_t slots) {
    for (const auto &[name, pool] : parts_.catalogs->each()) {
        // Others take their turn when they are asked for.
        if (stop.stop_requested() || parts_.catalogs->each().size() > 1) return;
        (void)pool->pinned();
        for (uint32_t slot = 0; slot < slots && !stop.stop_requested(); slot++) pool->warm_slot(slot);
    }
}

Result<std::unique_ptr<Execution>> DuckdbEngine::create(StatementSpec spec) {
    if (spec.transaction != TransactionAction::autocommit && spec.session.is_nil()) {
        return Status(Code::internal, "a transaction statement came without a session");
    }
    switch (spec.transaction) {
        case TransactionAction::commit:
        case TransactionAction::rollback:
            return std::unique_ptr<Execution>(std::make_unique<TransactionEndExecution>(parts_, std::move(spec)));
        default:
            break;
    }
    if (spec.work == Work::describe) {
        return std::unique_ptr<Execution>(std::make_unique<DescribeExecution>(parts_, std::move(spec)));
    }
    if (spec.internal && spec.sql == kRegisterFiles) {
        if (spec.transaction != TransactionAction::in_session) {
            return Status(Code::internal, "files are registered in a transaction");
        }
        return std::unique_ptr<Execution>(std::make_unique<RegisterExecution>(parts_, std::move(spec)));
    }
    if (spec.transaction == TransactionAction::in_session) {
        return std::unique_ptr<Execution>(std::make_unique<SessionExecution>(parts_, std::move(spec)));
    }
    return std::unique_ptr<Execution>(std::make_unique<AutocommitExecution>(parts_, std::move(spec)));
}

void DuckdbEngine::end_session(const Uuid &session) { take_session(session)(); }

std::function<void()> DuckdbEngine::take_session(const Uuid &session) {
    const auto found = parts_.sessions.find(session);
    if (!found) return [] {};
    parts_.sessions.forget(session, found.get());
    return [found] { found->end(Status(Code::cancelled, "the session ended")); };
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options, obs::Log &log) {
    auto engine = std::make_unique<DuckdbEngine>(log);
    ROOST_RETURN_IF_ERROR(engine->open(options));
    return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace roost
