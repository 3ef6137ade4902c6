#include "cache/store_fetcher.h"

#include <gtest/gtest.h>

#include <thread>

#include "cache/test_store.h"

namespace roost::cache {
namespace {

using testing::bytes_of;
using testing::FakeStore;

class SharedClock final : public Clock {
public:
    int64_t monotonic_us() const override { return now_us_.load(); }
    int64_t wall_us() const override { return now_us_.load(); }
    void advance_us(int64_t us) { now_us_ += us; }

private:
    std::atomic<int64_t> now_us_{1'000'000};
};

// Time goes on by exactly what is waited.
class TestPause final : public Pause {
public:
    explicit TestPause(SharedClock &clock) : clock_(clock) {}
    void wait_us(int64_t us, const Patience &) override {
        waits_us.push_back(us);
        clock_.advance_us(us);
    }
    std::vector<int64_t> waits_us;

private:
    SharedClock &clock_;
};

struct StoreFetcherTest : ::testing::Test {
    void make(StoreFetcherOptions options) {
        fetcher = std::make_unique<StoreFetcher>(store, options, clock, pause, random);
    }
    static StoreFetcherOptions without_hedges() {
        StoreFetcherOptions options;
        options.hedge_share = 0;
        return options;
    }
    Status fetch(uint64_t offset = 0, size_t length = 1000, const Patience &patience = {}) {
        std::string bytes(length, '?');
        Source from = Source::cache;
        const Status status = fetcher->fetch(file, offset, length, bytes.data(), patience, from);
        if (status.ok()) EXPECT_EQ(bytes, bytes_of(file.path, file.version, offset, length));
        if (status.ok()) EXPECT_EQ(from, Source::store);
        return status;
    }

    SharedClock clock;
    TestPause pause{clock};
    SeededRandom random{7};
    std::shared_ptr<FakeStore> store = std::make_shared<FakeStore>();
    std::unique_ptr<StoreFetcher> fetcher;
    const FileKey file{"s3://b/lake/a.parquet", "etag", 1 << 20};
};

Status throttled() { return Status(Code::unavailable, "503 Slow Down").with_retryable(true); }

TEST_F(StoreFetcherTest, what_may_pass_is_tried_again_after_a_growing_random_wait) {
    make(without_hedges());
    store->fail([](uint64_t n) { return n <= 4 ? throttled() : Status(); });
    EXPECT_TRUE(fetch().ok());
    EXPECT_EQ(store->fetches(), 5U);
    ASSERT_EQ(pause.waits_us.size(), 4U);
    for (size_t i = 0; i < 4; ++i) EXPECT_LE(pause.waits_us[i], 50'000 << i);
    EXPECT_EQ(fetcher->counters().retries, 4U);
}

TEST_F(StoreFetcherTest, what_can_not_pass_is_not_tried_again) {
    make(without_hedges());
    for (const Code code : {Code::not_found, Code::conflict, Code::permission_denied, Code::cancelled}) {
        const uint64_t before = store->fetches();
        store->fail([code](uint64_t) { return Status(code, "no"); });
        EXPECT_EQ(fetch().code(), code);
        EXPECT_EQ(store->fetches(), before + 1);
    }
}

TEST_F(StoreFetcherTest, the_last_error_names_the_object_and_the_attempts) {
    make(without_hedges());
    store->fail([](uint64_t) { return throttled(); });
    const Status status = fetch();
    EXPECT_EQ(status.code(), Code::unavailable);
    EXPECT_EQ(status.message(), "s3://b/lake/a.parquet: 503 Slow Down (asked for 8 times)");
    EXPECT_EQ(fetcher->counters().failures, 1U);
}

TEST_F(StoreFetcherTest, retries_end_with_the_time_for_them_and_with_the_callers_deadline) {
    StoreFetcherOptions options = without_hedges();
    options.attempts_max = 1000;
    make(options);
    store->fail([](uint64_t) { return throttled(); });
    const int64_t begun = clock.monotonic_us();
    EXPECT_FALSE(fetch().ok());
    EXPECT_LT(clock.monotonic_us() - begun, 8'000'000);
    EXPECT_GT(clock.monotonic_us() - begun, 4'000'000);
    Patience patience;
    patience.deadline_us = clock.monotonic_us() + 1'000'000;
    EXPECT_EQ(fetch(0, 1000, patience).code(), Code::unavailable) << "what the store said, not that time is up";
    EXPECT_LT(clock.monotonic_us(), patience.deadline_us);
    patience.deadline_us = clock.monotonic_us();
    EXPECT_EQ(fetch(0, 1000, patience).code(), Code::timeout);
}

TEST_F(StoreFetcherTest, a_slow_answer_is_overtaken_by_a_second_request) {
    StoreFetcherOptions options;
    options.hedge_least_ms = 1;
    make(options);
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(fetch().ok());
    EXPECT_EQ(fetcher->hedge_after_us(1000), 1000);
    EXPECT_EQ(fetcher->hedge_after_us(8 << 20), 1'001'000) << "a large one is given the time of its transfer";
    store->close_gate();
    std::thread slow([&] { EXPECT_TRUE(fetch(4096).ok()); });
    store->await_fetches(31);
    clock.advance_us(2'000);
    store->await_fetches(32);
    store->open_gate();
    slow.join();
    EXPECT_EQ(fetcher->counters().hedges, 1U);
}

TEST_F(StoreFetcherTest, a_hedge_wins_over_a_request_that_fails_for_being_late) {
    StoreFetcherOptions options;
    options.hedge_least_ms = 1;
    make(options);
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(fetch().ok());
    store->fail([](uint64_t n) { return n == 31 ? throttled() : Status(); });
    // Both begin before either answers; whichever is named first by the store fails, the other one counts.
    store->close_gate();
    std::thread reader([&] { EXPECT_TRUE(fetch(4096).ok()); });
    store->await_fetches(31);
    clock.advance_us(2'000);
    store->await_fetches(32);
    store->open_gate();
    reader.join();
}

TEST_F(StoreFetcherTest, hedges_have_a_budget) {
    StoreFetcherOptions options;
    options.hedge_least_ms = 1;
    options.hedge_share = 0.1;
    make(options);
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(fetch().ok());
    uint64_t expected = 30;
    // Every request is slow from here on: time passes at once, all the time.
    std::atomic<bool> end{false};
    std::thread time([&] {
        while (!end) {
            clock.advance_us(10'000);
            std::this_thread::yield();
        }
    });
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(fetch().ok());
    end = true;
    time.join();
    expected += 100;
    // One to begin with, a tenth of 130, and nothing else.
    EXPECT_LE(fetcher->counters().hedges, 1U + 13U);
    EXPECT_LE(store->fetches(), expected + 14);
}

TEST_F(StoreFetcherTest, a_caller_that_gives_up_does_not_wait_for_the_store) {
    StoreFetcherOptions options;
    make(options);
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(fetch().ok());
    store->close_gate();
    auto cancel = std::make_shared<CancelFlag>();
    Patience patience;
    patience.cancellation = cancel;
    std::thread reader([&] { EXPECT_EQ(fetch(0, 1000, patience).code(), Code::cancelled); });
    store->await_fetches(31);
    cancel->cancel();
    reader.join();
    store->open_gate();
}

TEST_F(StoreFetcherTest, faults_by_seed_end_in_the_right_bytes_or_a_named_error) {
    for (uint64_t seed = 1; seed <= 50; ++seed) {
        SeededRandom faults(seed);
        make(without_hedges());
        store->fail([&faults](uint64_t) {
            switch (faults.below(6)) {
                case 0:
                    return throttled();
                case 1:
                    return Status(Code::data_loss, "a short body").with_retryable(true);
                case 2:
                    return Status(Code::io_error, "connection reset").with_retryable(true);
                case 3:
                    return faults.chance(0.1) ? Status(Code::not_found, "404") : Status();
                default:
                    return Status();
            }
        });
        for (int i = 0; i < 20; ++i) {
            const Status status = fetch(faults.below(1000), 100 + faults.below(1000));
            if (!status.ok()) EXPECT_NE(status.message().find(file.path), std::string::npos) << seed;
        }
    }
}

}  // namespace
}  // namespace roost::cache
