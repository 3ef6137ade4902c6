// A few threads for what nobody should wait for in turn: parts of a large read, reading ahead, hedges. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace roost::cache {

class Workers {
public:
    Workers(size_t threads, size_t waiting_max) : waiting_max_(waiting_max), idle_(threads) {
        for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    }
    // Finishes what has begun and what waits; tasks look at a wish to stop of their own.
    ~Workers() {
        {
            MutexLock lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        for (std::thread &thread : threads_) thread.join();
    }
    Workers(const Workers &) = delete;
    Workers &operator=(const Workers &) = delete;

    // False, and the task is gone: too many wait, there are no threads, or it is the end.
    bool post(std::function<void()> task) { return post(std::move(task), waiting_max_); }
    // The same, but the task begins at once or not at all.
    bool post_if_idle(std::function<void()> task) { return post(std::move(task), 0); }

private:
    bool post(std::function<void()> task, size_t waiting_max) {
        {
            MutexLock lock(mutex_);
            if (stopping_ || threads_.empty() || waiting_.size() >= idle_ + waiting_max) return false;
            waiting_.push_back(std::move(task));
        }
        changed_.notify_one();
        return true;
    }

    void run() {
        while (true) {
            std::function<void()> task;
            {
                MutexLock lock(mutex_);
                while (waiting_.empty() && !stopping_) changed_.wait(mutex_);
                if (waiting_.empty()) return;
                task = std::move(waiting_.front());
                waiting_.pop_front();
                --idle_;
            }
            task();
            task = nullptr;  // what it holds goes before the thread counts as free
            MutexLock lock(mutex_);
            ++idle_;
        }
    }

    const size_t waiting_max_;
    Mutex mutex_;
    CondVar changed_;
    std::deque<std::function<void()>> waiting_ ROOST_GUARDED_BY(mutex_);
    size_t idle_ ROOST_GUARDED_BY(mutex_);  // threads without a task; those that are still starting count
    bool stopping_ ROOST_GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;  // last: they use what is above
};

}  // namespace roost::cache
