// Writes down which units statements read and for how long, as `roost sim placement --trace` reads it (sim/workload.h):
// so that other caps, policies and pools can be tried with one's own load. Names and texts are not in it.
// record() is for the loop's thread and never waits: a thread of its own writes. What is more than the disk takes, or
// than the file may have, is left out and counted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "obs/log.h"
#include "placement/decision.h"

namespace roost::routing {

struct TraceOptions {
    std::string path;  // made anew
    uint64_t max_bytes = uint64_t{1} << 30;
    size_t chunk_bytes = 64 * 1024;  // written at once
    size_t waiting_max_bytes = 4 << 20;
};

class TraceRecorder {
public:
    // Errors: io_error, the file can't be made.
    static Result<std::unique_ptr<TraceRecorder>> open(TraceOptions options, obs::Log &log);
    // Writes what is left.
    ~TraceRecorder();
    TraceRecorder(const TraceRecorder &) = delete;
    TraceRecorder &operator=(const TraceRecorder &) = delete;

    // A statement that has ended well: when it came (monotonic), what it took of a CPU, about, and its units. One
    // without units is not recorded.
    void record(int64_t at_us, int64_t cpu_us, std::span<const placement::Claim::Part> parts);
    uint64_t recorded() const { return recorded_; }
    uint64_t left_out() const { return left_out_; }

private:
    TraceRecorder(TraceOptions options, int file, obs::Log &log);
    uint32_t number_of(const placement::Claim::Part &part);
    bool hand_over(std::string text);
    void run(const std::stop_token &stop);
    bool write(const std::string &text);

    const TraceOptions options_;
    const int file_;
    obs::Log &log_;
    // Of the loop's thread.
    std::unordered_map<placement::UnitId, uint32_t> numbers_;
    std::string pending_;
    int64_t first_us_ = -1;
    uint64_t bytes_ = 0, recorded_ = 0, left_out_ = 0;
    bool full_ = false;

    Mutex mutex_;
    CondVar changed_;
    std::string waiting_ ROOST_GUARDED_BY(mutex_);
    bool failed_ ROOST_GUARDED_BY(mutex_) = false;
    std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace roost::routing
