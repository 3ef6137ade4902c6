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
    {
        MutexLock lock(mutex_);
        jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
}

size_t WorkerPool::queued() {
    MutexLock lock(mutex_);
    return jobs_.size();
}

void WorkerPool::stop() {
    {
        MutexLock lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread &thread : threads_) {
        if (thread.joinable()) thread.join();
    }
}

void WorkerPool::work() {
    for (;;) {
        std::function<void()> job;
        {
            MutexLock lock(mutex_);
            while (jobs_.empty() && !stopping_) wake_.wait(mutex_);
            if (jobs_.empty()) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        job();
    }
}

}  // namespace roost::cluster
