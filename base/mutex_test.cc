#include "base/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace roost {
namespace {

struct Counter {
    Mutex mutex;
    CondVar changed;
    int value ROOST_GUARDED_BY(mutex) = 0;
};

TEST(Mutex, lets_one_thread_in_at_a_time) {
    Counter counter;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&counter] {
            for (int j = 0; j < 10'000; ++j) {
                const MutexLock lock(counter.mutex);
                ++counter.value;
            }
        });
    }
    for (auto &thread : threads) thread.join();
    const MutexLock lock(counter.mutex);
    EXPECT_EQ(counter.value, 40'000);
}

TEST(CondVar, wakes_a_waiter_that_holds_the_mutex_again_afterwards) {
    Counter counter;
    std::thread other([&counter] {
        const MutexLock lock(counter.mutex);
        counter.value = 1;
        counter.changed.notify_all();
        while (counter.value != 2) counter.changed.wait(counter.mutex);
    });
    {
        const MutexLock lock(counter.mutex);
        while (counter.value != 1) counter.changed.wait(counter.mutex);
        counter.value = 2;
        counter.changed.notify_one();
    }
    other.join();
    const MutexLock lock(counter.mutex);
    EXPECT_EQ(counter.value, 2);
}

TEST(CondVar, wait_for_gives_up_when_the_time_is_over) {
    Counter counter;
    const MutexLock lock(counter.mutex);
    // A spurious wake-up answers true; nobody else notifies, so it ends.
    while (counter.changed.wait_for(counter.mutex, std::chrono::milliseconds(1))) {
    }
    EXPECT_FALSE(counter.changed.wait_for(counter.mutex, std::chrono::milliseconds(0)));
}

TEST(CondVar, wait_for_takes_the_longest_time_there_is) {
    Counter counter;
    std::thread other([&counter] {
        const MutexLock lock(counter.mutex);
        counter.value = 1;
        counter.changed.notify_one();
    });
    {
        const MutexLock lock(counter.mutex);
        while (counter.value == 0) counter.changed.wait_for(counter.mutex, std::chrono::milliseconds::max());
    }
    other.join();
}

}  // namespace
}  // namespace roost
