// For tests: a store of made-up files (bytes_of) that counts, waits at a gate and fails as told. Thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cache/store.h"
#include "cache/test_disk.h"

namespace roost::cache::testing {

class FakeStore final : public Store {
public:
    Status fetch(const FileKey &file, uint64_t offset, size_t length, char *buffer, const Patience &patience,
                 Source &from) override {
        Status fault;
        {
            MutexLock lock(mutex_);
            ++fetches_;
            bytes_ += length;
            ranges_.emplace_back(offset, length);
            for (uint64_t at = offset / kUnit; at * kUnit < offset + length; ++at) ++asked_[{file.path, at * kUnit}];
            changed_.notify_all();
            while (closed_) {
                if (patience.cancellation && patience.cancellation->requested())
                    return Status(Code::cancelled, "cancelled");
                changed_.wait_for(mutex_, std::chrono::milliseconds(1));
            }
            if (fault_) fault = fault_(fetches_);
        }
        if (!fault.ok()) {
            std::fill_n(buffer, length, '#');  // what a failed request leaves may be anything
            return fault;
        }
        const std::string bytes = bytes_of(file.path, file.version, offset, length);
        std::copy(bytes.begin(), bytes.end(), buffer);
        for (size_t i = 0; i < overlay_.size(); ++i) {
            const uint64_t at = overlay_at_ + i;
            if (at >= offset && at < offset + length) buffer[at - offset] = overlay_[i];
        }
        from = source;
        return Status();
    }
    void close_gate() { set_gate(true); }
    void open_gate() { set_gate(false); }
    // Other bytes in this place of every file. Before the first fetch.
    void overlay(uint64_t at, std::string bytes) {
        overlay_at_ = at;
        overlay_ = std::move(bytes);
    }
    // Told the number of the request (1 is the first), answers what is wrong with it.
    void fail(std::function<Status(uint64_t)> fault) {
        MutexLock lock(mutex_);
        fault_ = std::move(fault);
    }
    void await_fetches(uint64_t count) {
        MutexLock lock(mutex_);
        while (fetches_ < count) changed_.wait(mutex_);
    }
    uint64_t fetches() {
        MutexLock lock(mutex_);
        return fetches_;
    }
    uint64_t bytes() {
        MutexLock lock(mutex_);
        return bytes_;
    }
    // How often the unit that was fetched most was fetched.
    uint64_t most_asked() {
        MutexLock lock(mutex_);
        uint64_t most = 0;
        for (const auto &[where, times] : asked_) most = std::max(most, times);
        return most;
    }
    std::vector<std::pair<uint64_t, size_t>> ranges() {
        MutexLock lock(mutex_);
        return ranges_;
    }

    Source source = Source::store;

private:
    static constexpr uint64_t kUnit = 4096;
    void set_gate(bool closed) {
        MutexLock lock(mutex_);
        closed_ = closed;
        changed_.notify_all();
    }

    uint64_t overlay_at_ = 0;
    std::string overlay_;
    Mutex mutex_;
    CondVar changed_;
    bool closed_ ROOST_GUARDED_BY(mutex_) = false;
    std::function<Status(uint64_t)> fault_ ROOST_GUARDED_BY(mutex_);
    uint64_t fetches_ ROOST_GUARDED_BY(mutex_) = 0, bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    std::map<std::pair<std::string, uint64_t>, uint64_t> asked_ ROOST_GUARDED_BY(mutex_);
    std::vector<std::pair<uint64_t, size_t>> ranges_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost::cache::testing
