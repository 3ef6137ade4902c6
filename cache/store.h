// Where the cache gets what it does not have. The engine's adapter implements Store over DuckDB's file systems;
// StoreFetcher (store_fetcher.h) puts retries and a hedge around one.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "cache/cache_files.h"

namespace roost::cache {

// The wish to stop, asked now and then by whoever works or waits. Thread-safe.
class Cancellation {
public:
    virtual ~Cancellation() = default;
    virtual bool requested() const = 0;
};

// One that is set by hand.
class CancelFlag final : public Cancellation {
public:
    void cancel() { requested_.store(true, std::memory_order_release); }
    bool requested() const override { return requested_.load(std::memory_order_acquire); }

private:
    std::atomic<bool> requested_{false};
};

// How long a caller waits: until a point of Clock::monotonic_us(), or its wish to stop.
struct Patience {
    int64_t deadline_us = std::numeric_limits<int64_t>::max();
    std::shared_ptr<const Cancellation> cancellation;  // may be null

    // Ok while there is some left; else cancelled or timeout.
    Status left(const Clock &clock) const {
        if (cancellation && cancellation->requested()) return Status(Code::cancelled, "the read was cancelled");
        if (clock.monotonic_us() >= deadline_us) return Status(Code::timeout, "the read took too long");
        return Status();
    }
};

enum class Source : uint8_t { store, peer, cache };

class Store {
public:
    virtual ~Store() = default;
    // Exactly this range of exactly this version into `buffer`, and where it came from. Blocks. Thread-safe.
    // Errors, by what is done about them: retryable() ones are tried again (throttled, reset, a short body: any of
    // unavailable, io_error, data_loss, resource_exhausted); conflict: the object has another version now; not_found;
    // cancelled and timeout: the patience is over; others are final.
    virtual Status fetch(const FileKey &file, uint64_t offset, size_t length, char *buffer, const Patience &patience,
                         Source &from) = 0;
};

}  // namespace roost::cache
