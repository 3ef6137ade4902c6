#include "engine/janitor.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/ids.h"
#include "duckdb/common/file_system.hpp"
#include "lake/ducklake.h"
#include "lake/file_pins.h"
#include "lake/named_files.h"

namespace roost {

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kOftenest{250}, kSeldomest{6 * 3'600'000};
constexpr std::chrono::minutes kCatalogWithin{5};
constexpr int64_t kPinKept_us = 7LL * 86'400 * 1'000'000;  // of a registration that was not committed
// A listing of a store is held whole, some 500 bytes an object.
constexpr size_t kListedFilesMax = 400'000;

int64_t wall_us_of(fs::file_time_type time) {
    const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
}

Status walk(const std::string &folder, int64_t before_us, const std::function<void(const std::string &path)> &found) {
    std::error_code failed;
    fs::recursive_directory_iterator entries(folder, failed);
    for (const fs::recursive_directory_iterator end; !failed && entries != end; entries.increment(failed)) {
        std::error_code gone;  // meanwhile
        if (!is_ducklake_name(entries->path().filename().native()) || !entries->is_regular_file(gone)) continue;
        const auto written = entries->last_write_time(gone);
        if (!gone && wall_us_of(written) < before_us) found(entries->path().string());
    }
    if (failed) return Status(Code::io_error, "the lake's data can't be listed: " + failed.message());
    return Status();
}

void list(duckdb::ClientContext &context, const std::string &prefix, int64_t before_us,
          const std::function<void(const std::string &path)> &found) {
    auto &files = duckdb::FileSystem::GetFileSystem(context);
    files.ListFiles(prefix, [&](duckdb::OpenFileInfo &file) {
        if (!is_ducklake_name(file_name_of(file.path)) || !file.extended_info) return;
        const auto written = file.extended_info->options.find("last_modified");
        if (written == file.extended_info->options.end() || written->second.IsNull()) return;
        if (written->second.GetValue<duckdb::timestamp_t>().value < before_us) found(prefix + file.path);
    });
}

}  // namespace

Status for_each_old_file(Instance &instance, int64_t before_us,
                         const std::function<void(const std::string &path)> &found) {
    const LakeLocation &lake = instance.options().lake;
    if (!lake.data_in_store()) return walk(lake.data_path, before_us, found);
    ROOST_ASSIGN_OR_RETURN(auto connection, instance.connect());
    try {
        auto &context = connection->context();
        context.RunFunctionInTransaction([&] { list(context, lake.data_path, before_us, found); });
    } catch (const std::exception &error) {
        return instance.error(duckdb::ErrorData(error), "");
    }
    instance.give_back(std::move(connection));
    return Status();
}

Janitor::Janitor(JanitorOptions options, std::vector<InstancePool *> pools, Remove remove, obs::Log &log)
    : options_(options), pools_(std::move(pools)), remove_(std::move(remove)), log_(log) {
    thread_ = std::jthread([this](const std::stop_token &stop) { run(stop); });
}

Janitor::~Janitor() {
    thread_.request_stop();
    {
        MutexLock lock(mutex_);
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

void Janitor::run(const std::stop_token &stop) {
    const milliseconds grace(options_.orphan_grace_ms > 0 ? options_.orphan_grace_ms : 8 * kSeldomest.count());
    const milliseconds between = std::clamp(grace / 8, kOftenest, kSeldomest);
    while (!stop.stop_requested()) {
        {
            // Nodes that start together do not look together.
            const auto until =
                std::chrono::steady_clock::now() + between / 2 +
                milliseconds(static_cast<int64_t>(std::hash<Uuid>()(Uuid::make()) % (between.count() / 2 + 1)));
            MutexLock lock(mutex_);
            while (!stop.stop_requested()) {
                const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
                if (left.count() <= 0) break;
                changed_.wait_for(mutex_, left);
            }
        }
        for (InstancePool *pool : pools_) {
            if (stop.stop_requested()) return;
            const Status swept = sweep(*pool, stop);
            if (!swept.ok()) {
                log_.warn("lake_not_swept", {{"catalog", pool->options().lake.catalog}, {"error", swept.to_string()}});
            }
        }
    }
}

Status Janitor::sweep(InstancePool &pool, const std::stop_token &stop) {
    const LakeLocation &lake = pool.options().lake;
    const CallLimits limits = CallLimits::in(kCatalogWithin, stop);
    const int64_t now_us = SystemClock().wall_us();
    if (!lake.external.empty()) ROOST_RETURN_IF_ERROR(settle_pins(lake, now_us, kPinKept_us, limits).status());
    if (options_.orphan_grace_ms <= 0) return Status();
    ROOST_ASSIGN_OR_RETURN(const NamedFiles named, NamedFiles::load(lake, limits));
    if (lake.data_in_store() && named.size() > kListedFilesMax) {
        return Status(Code::resource_exhausted, "too many files to list: " + std::to_string(named.size()));
    }
    ROOST_ASSIGN_OR_RETURN(const auto instance, pool.small());
    std::vector<std::string> orphans;
    uint64_t old_files = 0;
    ROOST_RETURN_IF_ERROR(
        for_each_old_file(*instance, now_us - options_.orphan_grace_ms * 1'000, [&](const std::string &path) {
            old_files++;
            if (!named.has(file_name_of(path))) orphans.push_back(path);
        }));
    // Looking for a commit that nobody made settles those that somebody began: a SQLite commit whose process died in it
    // could come back otherwise. It writes, so it is done only when there is something to remove, which looks again.
    if (!orphans.empty()) ROOST_RETURN_IF_ERROR(find_commit(lake, Uuid::make()).status());
    size_t removed = 0;
    for (const std::string &path : orphans) {
        if (stop.stop_requested()) break;
        log_.warn("orphan_found", {{"catalog", lake.catalog}, {"path", path}});
        const auto settled = remove_(lake.catalog, path);
        if (!settled.ok()) return settled.status();
        removed++;
    }
    log_.debug("lake_swept",
               {{"catalog", lake.catalog}, {"old_files", old_files}, {"named", named.size()}, {"removed", removed}});
    return Status();
}

}  // namespace roost
