// Threads that run statements: a fixed number, one FIFO queue. The node has two: one for planning and the small lane,
// one for statements that hold a slot, so that neither can keep the other from running. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace roost::cluster {

class WorkerPool {
public:
    WorkerPool(std::string name, uint32_t threads);
    ~WorkerPool();  // stop()
    WorkerPool(const WorkerPool &) = delete;
    WorkerPool &operator=(const WorkerPool &) = delete;
    void push(std::function<void()> job);
    size_t queued();
    // Runs what is queued, then ends the threads.
    void stop();

private:
    void work();

    Mutex mutex_;
    CondVar wake_;
    std::deque<std::function<void()>> jobs_ ROOST_GUARDED_BY(mutex_);
    bool stopping_ ROOST_GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;
};

}  // namespace roost::cluster
