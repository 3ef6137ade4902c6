#include "cache/store_fetcher.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace roost::cache {
namespace {

constexpr std::chrono::milliseconds kLookUp(10);
constexpr double kHedgesSavedMax = 10;  // that a quiet time can leave for a busy one
constexpr uint64_t kDurationsLeast = 20;

class RealPause final : public Pause {
public:
    explicit RealPause(const Clock &clock) : clock_(clock) {}
    void wait_us(int64_t us, const Patience &patience) override {
        const int64_t end = clock_.monotonic_us() + us;
        for (int64_t left = us; left > 0 && patience.left(clock_).ok(); left = end - clock_.monotonic_us()) {
            std::this_thread::sleep_for(std::min<std::chrono::microseconds>(kLookUp, std::chrono::microseconds(left)));
        }
    }

private:
    const Clock &clock_;
};

// The caller's wish, or that the other request was faster.
class RaceOver final : public Cancellation {
public:
    explicit RaceOver(std::shared_ptr<const Cancellation> caller) : caller_(std::move(caller)) {}
    void end() { over_.store(true, std::memory_order_release); }
    bool requested() const override {
        return over_.load(std::memory_order_acquire) || (caller_ && caller_->requested());
    }

private:
    const std::shared_ptr<const Cancellation> caller_;
    std::atomic<bool> over_{false};
};

}  // namespace

std::unique_ptr<Pause> make_pause(const Clock &clock) { return std::make_unique<RealPause>(clock); }

// One range, asked for once or twice. Shared with the threads that ask: a slow one outlives its caller.
struct StoreFetcher::Race {
    FileKey file;
    uint64_t offset = 0;
    size_t length = 0;
    Patience patience;
    std::shared_ptr<RaceOver> over;

    Mutex mutex;
    CondVar changed;
    struct Runner {
        std::unique_ptr<char[]> bytes;
        Status status;
        Source from = Source::store;
        bool done = false;
    };
    std::array<Runner, 2> runners ROOST_GUARDED_BY(mutex);
};

StoreFetcher::StoreFetcher(std::shared_ptr<Store> store, StoreFetcherOptions options, const Clock &clock, Pause &pause,
                           Random &random)
    : store_(std::move(store)),
      options_(options),
      clock_(clock),
      pause_(pause),
      random_(random),
      // None waits for a thread: who gets none asks by itself.
      workers_(std::make_unique<Workers>(options.hedge_share > 0 ? options.threads : 0, 0)) {}
StoreFetcher::~StoreFetcher() = default;

FetcherCounters StoreFetcher::counters() {
    MutexLock lock(mutex_);
    return counters_;
}

int64_t StoreFetcher::hedge_after_us(size_t length) {
    std::array<int64_t, 128> sorted;
    size_t count = 0;
    {
        MutexLock lock(mutex_);
        if (durations_ < kDurationsLeast) return 0;
        sorted = durations_us_;
        count = std::min<uint64_t>(durations_, sorted.size());
    }
    const auto at = sorted.begin() + static_cast<int64_t>(count - 1 - count / 20);
    std::nth_element(sorted.begin(), at, sorted.begin() + static_cast<int64_t>(count));
    const auto transfer_us =
        length > options_.hedge_small_bytes ? static_cast<int64_t>(length * 1'000'000 / options_.hedge_bytes_per_s) : 0;
    return std::max(*at, options_.hedge_least_ms * 1000) + transfer_us;
}

void StoreFetcher::note_duration(int64_t us, size_t length) {
    if (length > options_.hedge_small_bytes) return;
    MutexLock lock(mutex_);
    durations_us_[durations_++ % durations_us_.size()] = us;
}

bool StoreFetcher::take_hedge() {
    MutexLock lock(mutex_);
    if (hedge_budget_ < 1) return false;
    hedge_budget_ -= 1;
    ++counters_.hedges;
    return true;
}

int64_t StoreFetcher::backoff_us(uint32_t failures) {
    const int64_t bound = std::min(options_.backoff_max_ms, options_.backoff_first_ms << std::min(failures, 20U));
    return static_cast<int64_t>(random_.unit() * static_cast<double>(bound * 1000));
}

Status StoreFetcher::fetch(const FileKey &file, uint64_t offset, size_t length, char *buffer, const Patience &patience,
                           Source &from) {
    const int64_t end_us = clock_.monotonic_us() + options_.retry_for_ms * 1000;
    uint32_t attempts = 0;
    Status status;
    while (true) {
        ROOST_RETURN_IF_ERROR(patience.left(clock_));
        status = attempt(file, offset, length, buffer, patience, from);
        ++attempts;
        // A conflict is one for good: the version asked for is gone.
        const bool passes = status.retryable() && status.code() != Code::conflict;
        if (status.ok() || !passes || attempts >= options_.attempts_max) break;
        const int64_t wait_us = backoff_us(attempts - 1);
        if (clock_.monotonic_us() + wait_us >= std::min(end_us, patience.deadline_us)) break;
        pause_.wait_us(wait_us, patience);
        MutexLock lock(mutex_);
        ++counters_.retries;
    }
    if (status.ok() || status.code() == Code::cancelled || status.code() == Code::timeout) return status;
    {
        MutexLock lock(mutex_);
        ++counters_.failures;
    }
    Error error = status.error();
    error.message = file.path + ": " + error.message;
    if (attempts > 1) error.message += " (asked for " + std::to_string(attempts) + " times)";
    return Status(std::move(error));
}

bool StoreFetcher::start(const std::shared_ptr<Race> &race, size_t runner) {
    {
        MutexLock lock(mutex_);
        ++counters_.requests;
    }
    return workers_->post_if_idle([this, race, runner] {
        std::unique_ptr<char[]> bytes(new char[race->length]);
        Source from = Source::store;
        Patience patience = race->patience;
        patience.cancellation = race->over;
        const int64_t begun_us = clock_.monotonic_us();
        Status status = patience.left(clock_);
        if (status.ok()) status = store_->fetch(race->file, race->offset, race->length, bytes.get(), patience, from);
        if (status.ok()) note_duration(clock_.monotonic_us() - begun_us, race->length);
        MutexLock lock(race->mutex);
        race->runners[runner] = {std::move(bytes), std::move(status), from, true};
        race->changed.notify_all();
    });
}

Status StoreFetcher::attempt(const FileKey &file, uint64_t offset, size_t length, char *buffer,
                             const Patience &patience, Source &from) {
    {
        MutexLock lock(mutex_);
        hedge_budget_ = std::min(kHedgesSavedMax, hedge_budget_ + options_.hedge_share);
    }
    const int64_t hedge_after = options_.hedge_share > 0 ? hedge_after_us(length) : 0;
    auto race = std::make_shared<Race>();
    race->file = file;
    race->offset = offset;
    race->length = length;
    race->patience = patience;
    race->over = std::make_shared<RaceOver>(patience.cancellation);
    const int64_t begun_us = clock_.monotonic_us();
    if (hedge_after == 0 || !start(race, 0)) {
        Status status = store_->fetch(file, offset, length, buffer, patience, from);
        if (status.ok()) note_duration(clock_.monotonic_us() - begun_us, length);
        MutexLock lock(mutex_);
        if (hedge_after == 0) ++counters_.requests;
        return status;
    }
    bool hedged = false, may_hedge = true;
    Status status;
    MutexLock lock(race->mutex);
    while (true) {
        auto &runners = race->runners;
        for (size_t i = 0; i < runners.size(); ++i) {
            if (!runners[i].done || !runners[i].status.ok()) continue;
            std::memcpy(buffer, runners[i].bytes.get(), length);
            from = runners[i].from;
            race->over->end();
            if (i == 1) {
                MutexLock counters_lock(mutex_);
                ++counters_.hedges_won;
            }
            return Status();
        }
        if (runners[0].done && (!hedged || runners[1].done)) return runners[0].status;
        status = patience.left(clock_);
        if (!status.ok()) {
            race->over->end();
            return status;
        }
        if (may_hedge && !runners[0].done && clock_.monotonic_us() - begun_us >= hedge_after) {
            may_hedge = false;
            hedged = take_hedge() && start(race, 1);
        }
        race->changed.wait_for(race->mutex, kLookUp);
    }
}

}  // namespace roost::cache
