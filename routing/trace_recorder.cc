#include "routing/trace_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace roost::routing {
namespace {

constexpr std::string_view kHead = "roost-trace 1\n";
// Numbers of units that are kept in memory: some 64 MiB.
constexpr size_t kUnitsMax = 1'000'000;

}  // namespace

Result<std::unique_ptr<TraceRecorder>> TraceRecorder::open(TraceOptions options, obs::Log &log) {
    const int file = ::open(options.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) {
        return Status(Code::io_error, "the trace " + options.path + " can't be written: " + std::strerror(errno));
    }
    return std::unique_ptr<TraceRecorder>(new TraceRecorder(std::move(options), file, log));
}

TraceRecorder::TraceRecorder(TraceOptions options, int file, obs::Log &log)
    : options_(std::move(options)), file_(file), log_(log), pending_(kHead), bytes_(kHead.size()) {
    thread_ = std::jthread([this](const std::stop_token &stop) { run(stop); });
}

TraceRecorder::~TraceRecorder() {
    {
        MutexLock lock(mutex_);
        waiting_ += pending_;
        thread_.request_stop();
        changed_.notify_all();
    }
    thread_.join();
    ::close(file_);
    log_.info("placement_trace", {{"path", options_.path}, {"statements", recorded_}, {"left_out", left_out_}});
}

void TraceRecorder::record(int64_t at_us, int64_t cpu_us, std::span<const placement::Claim::Part> parts) {
    if (parts.empty()) return;
    if (full_) {
        ++left_out_;
        return;
    }
    if (first_us_ < 0) first_us_ = at_us;
    const size_t known = numbers_.size();
    const size_t began = pending_.size();
    // What is written stands first.
    std::vector<const placement::Claim::Part *> order;
    for (const auto &part : parts) order.push_back(&part);
    std::ranges::stable_partition(order, [](const auto *part) { return part->written; });
    std::string units;
    for (const auto *part : order) units += (units.empty() ? "" : ",") + std::to_string(number_of(*part));
    pending_ += "run " + std::to_string(std::max<int64_t>(at_us - first_us_, 0)) +
                (order.front()->written ? " w " : " r ") + std::to_string(std::max<int64_t>(cpu_us, 1)) + ' ' + units +
                '\n';
    bytes_ += pending_.size() - began;
    ++recorded_;
    full_ = bytes_ > options_.max_bytes || numbers_.size() > kUnitsMax;
    if (full_) log_.warn("placement_trace_full", {{"path", options_.path}, {"bytes", bytes_}, {"units", known}});
    if (pending_.size() < options_.chunk_bytes && !full_) return;
    // Units that are named in what is left out would be missing later: nothing comes after a gap.
    if (!hand_over(std::exchange(pending_, {}))) {
        full_ = true;
        log_.warn("placement_trace_broken", {{"path", options_.path}, {"statements", recorded_}});
    }
}

// Named where it is met first.
uint32_t TraceRecorder::number_of(const placement::Claim::Part &part) {
    const auto [found, first] = numbers_.try_emplace(part.unit, static_cast<uint32_t>(numbers_.size()));
    if (first) {
        pending_ +=
            "unit " + std::to_string(found->second) + ' ' + std::to_string(std::max<uint64_t>(part.bytes, 1)) + '\n';
    }
    return found->second;
}

bool TraceRecorder::hand_over(std::string text) {
    MutexLock lock(mutex_);
    if (failed_ || waiting_.size() + text.size() > options_.waiting_max_bytes) return false;
    waiting_ += text;
    changed_.notify_all();
    return true;
}

void TraceRecorder::run(const std::stop_token &stop) {
    for (;;) {
        std::string text;
        bool last = false;
        {
            MutexLock lock(mutex_);
            while (waiting_.empty() && !stop.stop_requested()) changed_.wait(mutex_);
            text = std::exchange(waiting_, {});
            last = stop.stop_requested();
        }
        if (!write(text)) {
            log_.warn("placement_trace_failed", {{"path", options_.path}, {"error", std::strerror(errno)}});
            MutexLock lock(mutex_);
            failed_ = true;
            return;
        }
        if (last) return;
    }
}

bool TraceRecorder::write(const std::string &text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t wrote = ::write(file_, text.data() + done, text.size() - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return false;
        done += static_cast<size_t>(wrote);
    }
    return true;
}

}  // namespace roost::routing
