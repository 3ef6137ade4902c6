#include "engine/frozen_reads.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "lake/frozen_catalog.h"

namespace roost {

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// A statement does not wait longer to hear whether the copy is the newest.
constexpr milliseconds kCheckWithin{200};
constexpr milliseconds kRefreshWithin{10'000};
constexpr milliseconds kWriteWithin{120'000};
// A copy costs as much as it saves some twenty reads.
constexpr uint64_t kReadsMin = 20;
// Writing copies takes at most this share of the time.
constexpr int kRestForWork = 10;
// The mirror is the node's own memory, not a statement's: some 200,000 files.
constexpr size_t kMirrorMaxBytes = 32u << 20;

}  // namespace

FrozenReads::FrozenReads(FrozenReadsOptions options, obs::Log &log)
    : options_(std::move(options)), log_(log), mirror_(metadata_address(options_.instance.lake)) {
    std::error_code error;
    fs::remove_all(options_.dir, error);  // of an earlier run
    fs::create_directories(options_.dir, error);
    if (error) {
        log_.warn("frozen_reads_off", {{"catalog", options_.instance.lake.catalog}, {"error", error.message()}});
        return;
    }
    thread_ = std::jthread([this](const std::stop_token &stop) { run(stop); });
}

FrozenReads::~FrozenReads() {
    thread_.request_stop();
    {
        MutexLock lock(mutex_);
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    copy_.reset();
    std::error_code ignored;  // what is left is removed when the node starts again
    fs::remove_all(options_.dir, ignored);
}

std::shared_ptr<Instance> FrozenReads::current() {
    std::shared_ptr<const Copy> copy;
    {
        MutexLock lock(mutex_);
        copy = copy_;
    }
    if (copy && !copy->instance->broken()) {
        const auto newest = mirror_.refresh(CallLimits::in(kCheckWithin));
        if (newest.ok() && *newest == copy->state) return copy->instance;
    }
    MutexLock lock(mutex_);
    if (++live_reads_ >= kReadsMin) changed_.notify_all();
    return nullptr;
}

// True unless it is to stop.
bool FrozenReads::wait(milliseconds time, const std::stop_token &stop) {
    MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + time;
    while (!stop.stop_requested()) {
        const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) return true;
        changed_.wait_for(mutex_, left);
    }
    return false;
}

void FrozenReads::run(const std::stop_token &stop) {
    while (!stop.stop_requested()) {
        {
            MutexLock lock(mutex_);
            while (live_reads_ < kReadsMin && !stop.stop_requested()) changed_.wait(mutex_);
        }
        const auto before = mirror_.refresh(CallLimits::in(kRefreshWithin, stop));
        if (!wait(milliseconds(options_.quiet_ms), stop)) return;
        const auto after = mirror_.refresh(CallLimits::in(kRefreshWithin, stop));
        if (!before.ok() || !after.ok() || *before != *after) continue;  // not left alone, or not to be had
        {
            MutexLock lock(mutex_);
            live_reads_ = 0;
        }
        const auto began = std::chrono::steady_clock::now();
        if (!freeze(*after, stop) && !has_room_) return;
        const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
        if (options_.quiet_ms > 0 && !wait(took * kRestForWork, stop)) return;
    }
}

bool FrozenReads::freeze(const std::shared_ptr<const LakeState> &state, const std::stop_token &stop) {
    const LakeLocation &lake = options_.instance.lake;
    const auto failed = [&](const Status &why) {
        log_.warn("frozen_catalog_failed", {{"catalog", lake.catalog}, {"error", why.to_string()}});
        return false;
    };
    if (state->memory_bytes() > kMirrorMaxBytes) return failed(Status(Code::resource_exhausted, "too many files"));
    if (!has_room_) {
        if (Status room = options_.make_room(); !room.ok()) return failed(room);
        has_room_ = true;
    }
    const std::string path = options_.dir + "/" + std::to_string(++copies_) + ".duckdb";
    const auto began = std::chrono::steady_clock::now();
    auto writer = FrozenCatalogWriter::open(
        {.address = metadata_address(lake), .extension_dir = options_.instance.extension_dir});
    if (!writer.ok()) return failed(writer.status());
    const auto written = (*writer)->write(*state, std::nullopt, path, CallLimits::in(kWriteWithin, stop));
    if (!written.ok()) return failed(written.status());
    writer->reset();
    InstanceOptions options = options_.instance;
    options.frozen_path = path;
    auto instance = Instance::make(std::move(options), log_);
    std::error_code ignored;  // it is open: its name is of no use any more, its space goes with the instance
    fs::remove(path, ignored);
    if (!instance.ok()) return failed(instance.status());
    const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
    log_.info("frozen_catalog", {{"catalog", lake.catalog},
                                 {"snapshot", state->snapshot().id},
                                 {"tables", written->tables},
                                 {"segments", written->segments},
                                 {"bytes", written->file_bytes},
                                 {"took_ms", took.count()}});
    auto copy = std::make_shared<const Copy>(Copy{state, std::move(instance).value()});
    MutexLock lock(mutex_);
    copy_.swap(copy);
    return true;
}

}  // namespace roost
