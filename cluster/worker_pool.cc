#include "cluster/worker_pool.h"

#include <pthread.h>

namespace roost::cluster {

WorkerPool::WorkerPool(std::string name, uint32_t threads) {
    for (uint32_t i = 0; i < threads; ++i) {
        threads_.emplace_back([this] { work(); });
        // Shown by top -H and debuggers; 15 characters at most.
        pthread_setname_np(threads_.back().native_handle(), (name + std::to_string(i)).substr(0, 15).c_str());
    }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::push(std::function<void()> job) {
    MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
    if (idle_.empty()) return;  // who works now looks at the queue next
    Idle *last = idle_.back();
    idle_.pop_back();
    last->woken = true;
    last->wake.notify_one();  // under the lock: the waiter owns `last` and may be gone once it has the lock
}

size_t WorkerPool::queued() {
    MutexLock lock(mutex_);
    return jobs_.size();
}

size_t WorkerPool::idle() {
    MutexLock lock(mutex_);
    return idle_.size();
}

void WorkerPool::stop() {
    {
        MutexLock lock(mutex_);
        stopping_ = true;
        for (Idle *idle : idle_) {
            idle->woken = true;
            idle->wake.notify_one();
        }
        idle_.clear();
    }
    for (std::thread &thread : threads_) {
        if (thread.joinable()) thread.join();
    }
}

void WorkerPool::work() {
    Idle self;
    for (;;) {
        std::function<void()> job;
        {
            MutexLock lock(mutex_);
            while (jobs_.empty() && !stopping_) {
                self.woken = false;
                idle_.push_back(&self);
                while (!self.woken) self.wake.wait(mutex_);
            }
            if (jobs_.empty()) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        job();
    }
}

}  // namespace roost::cluster
