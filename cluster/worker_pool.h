// Threads that run statements: a fixed number, one FIFO queue of jobs. The node has two: one for planning and the small
// lane, one for statements that hold a slot, so that neither can keep the other from running. Thread-safe.
//
// A job goes to the thread that became idle last: its stack, its heap and the core's caches are still warm, where
// taking turns would spread a lone client's statements over all threads.
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
    size_t idle();  // threads without a job
    // Runs what is queued, then ends the threads.
    void stop();

private:
    struct Idle {
        CondVar wake;
        bool woken = false;
    };
    void work();

    Mutex mutex_;
    std::deque<std::function<void()>> jobs_ ROOST_GUARDED_BY(mutex_);
    std::vector<Idle *> idle_ ROOST_GUARDED_BY(mutex_);  // the last to become idle at the back
    bool stopping_ ROOST_GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;
};

}  // namespace roost::cluster
