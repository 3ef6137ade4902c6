#include "cluster/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

namespace roost::cluster {
namespace {

// Counts down to zero; wait() returns then.
class Latch {
public:
    explicit Latch(int count) : count_(count) {}
    void count_down() {
        const std::lock_guard lock(mutex_);
        if (--count_ == 0) zero_.notify_all();
    }
    bool wait() {
        std::unique_lock lock(mutex_);
        return zero_.wait_for(lock, std::chrono::seconds(30), [&] { return count_ <= 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable zero_;
    int count_;
};

TEST(WorkerPool, RunsEveryJobAlsoThoseQueuedAtTheStop) {
    std::atomic<int> ran = 0;
    WorkerPool pool("w", 3);
    for (int i = 0; i < 1000; i++) pool.push([&] { ran++; });
    pool.stop();
    EXPECT_EQ(ran, 1000);
    pool.stop();  // again does nothing
}

TEST(WorkerPool, AllThreadsWorkWhenThereIsWorkForAll) {
    constexpr int threads = 4;
    WorkerPool pool("w", threads);
    Latch together(threads);
    Latch done(threads);
    std::atomic<int> met = 0;
    for (int i = 0; i < threads; i++) {
        pool.push([&] {
            together.count_down();
            if (together.wait()) met++;  // only when all four run at once
            done.count_down();
        });
    }
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(met, threads);
}

TEST(WorkerPool, JobsStartInTheirOrder) {
    WorkerPool pool("w", 1);
    std::vector<int> order;
    for (int i = 0; i < 100; i++) pool.push([&, i] { order.push_back(i); });
    pool.stop();
    ASSERT_EQ(order.size(), 100U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(WorkerPool, ALoneClientKeepsToTheWarmThread) {
    constexpr int threads = 8;
    WorkerPool pool("w", threads);
    std::set<std::thread::id> used;
    for (int i = 0; i < 200; i++) {
        while (pool.idle() < threads) std::this_thread::yield();
        Latch done(1);
        pool.push([&] {
            used.insert(std::this_thread::get_id());
            done.count_down();
        });
        ASSERT_TRUE(done.wait());
    }
    EXPECT_EQ(used.size(), 1U);
}

}  // namespace
}  // namespace roost::cluster
