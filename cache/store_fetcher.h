// A store with patience: tries again what may pass (throttling, resets, short bodies), asks a second time when the
// first answer is slow, and says at the end which object could not be had. Wraps the Store of the engine's adapter; one
// a process. Thread-safe.
//
// Retries: full jitter below a doubling bound (Brooker: Exponential backoff and jitter, 2015), over `retry_for_ms` and
// at most `attempts_max`. Hedge: when an answer takes longer than the slowest twentieth of the latest ones did, the
// same range is asked for once more and the first answer counts; at most `hedge_share` of all requests, so that a store
// that is slow as a whole is not asked twice for everything.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "cache/store.h"
#include "cache/workers.h"

namespace roost::cache {

struct StoreFetcherOptions {
    int64_t retry_for_ms = 8'000;  // from the first request on; a request that has begun is not cut short by it
    uint32_t attempts_max = 8;
    int64_t backoff_first_ms = 50, backoff_max_ms = 2'000;
    double hedge_share = 0.05;  // of requests; 0: no hedges
    int64_t hedge_least_ms = 50;
    // Requests of more than hedge_small_bytes don't say what is slow, and are given the time that their bytes take at
    // this pace beside: most of theirs is transfer, and a second one only doubles it.
    uint64_t hedge_small_bytes = 1 << 20, hedge_bytes_per_s = 8 << 20;
    uint32_t threads = 40;  // for requests that may be hedged: that many at once, further ones are not
};

// The passage of time while nothing is to be done, injected beside the clock.
class Pause {
public:
    virtual ~Pause() = default;
    // Until so much time is over, or earlier when the patience is.
    virtual void wait_us(int64_t us, const Patience &patience) = 0;
};
std::unique_ptr<Pause> make_pause(const Clock &clock);

struct FetcherCounters {
    uint64_t requests = 0;  // to the store, hedges and retries included
    uint64_t retries = 0;
    uint64_t hedges = 0, hedges_won = 0;
    uint64_t failures = 0;  // given up
};

class StoreFetcher final : public Store {
public:
    StoreFetcher(std::shared_ptr<Store> store, StoreFetcherOptions options, const Clock &clock, Pause &pause,
                 Random &random);
    ~StoreFetcher() override;

    // Errors: those of the store, with the object's name and the number of attempts; cancelled, timeout.
    Status fetch(const FileKey &file, uint64_t offset, size_t length, char *buffer, const Patience &patience,
                 Source &from) override;
    FetcherCounters counters();
    // How long an answer of so many bytes is waited for before a hedge; 0: not known yet.
    int64_t hedge_after_us(size_t length);

private:
    struct Race;

    Status attempt(const FileKey &file, uint64_t offset, size_t length, char *buffer, const Patience &patience,
                   Source &from);
    bool start(const std::shared_ptr<Race> &race, size_t runner);
    bool take_hedge();
    void note_duration(int64_t us, size_t length);
    int64_t backoff_us(uint32_t failures);

    const std::shared_ptr<Store> store_;
    const StoreFetcherOptions options_;
    const Clock &clock_;
    Pause &pause_;
    Random &random_;
    Mutex mutex_;
    FetcherCounters counters_ ROOST_GUARDED_BY(mutex_);
    double hedge_budget_ ROOST_GUARDED_BY(mutex_) = 1;
    std::array<int64_t, 128> durations_us_ ROOST_GUARDED_BY(mutex_){};  // of the latest requests that were answered
    uint64_t durations_ ROOST_GUARDED_BY(mutex_) = 0;
    std::unique_ptr<Workers> workers_;
};

}  // namespace roost::cache
