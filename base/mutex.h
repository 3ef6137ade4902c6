// std::mutex with clang's thread-safety annotations. Guarded data says ROOST_GUARDED_BY(mutex_); no lock is held over
// I/O or an engine call.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define ROOST_TSA_(x) __attribute__((x))
#else
#define ROOST_TSA_(x)
#endif
#define ROOST_GUARDED_BY(m) ROOST_TSA_(guarded_by(m))
#define ROOST_PT_GUARDED_BY(m) ROOST_TSA_(pt_guarded_by(m))
#define ROOST_REQUIRES(...) ROOST_TSA_(requires_capability(__VA_ARGS__))
#define ROOST_EXCLUDES(...) ROOST_TSA_(locks_excluded(__VA_ARGS__))
#define ROOST_ACQUIRE(...) ROOST_TSA_(acquire_capability(__VA_ARGS__))
#define ROOST_RELEASE(...) ROOST_TSA_(release_capability(__VA_ARGS__))
#define ROOST_NO_THREAD_SAFETY ROOST_TSA_(no_thread_safety_analysis)

namespace roost {

class ROOST_TSA_(capability("mutex")) Mutex {
public:
    void lock() ROOST_ACQUIRE() { mutex_.lock(); }
    void unlock() ROOST_RELEASE() { mutex_.unlock(); }
    std::mutex &raw() { return mutex_; }

private:
    std::mutex mutex_;
};

class ROOST_TSA_(scoped_lockable) MutexLock {
public:
    explicit MutexLock(Mutex &mutex) ROOST_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~MutexLock() ROOST_RELEASE() { mutex_.unlock(); }
    MutexLock(const MutexLock &) = delete;
    MutexLock &operator=(const MutexLock &) = delete;

private:
    Mutex &mutex_;
};

// A condition to wait for under a Mutex; spurious wake-ups happen, so wait in a loop.
class CondVar {
public:
    void wait(Mutex &mutex) ROOST_REQUIRES(mutex) ROOST_NO_THREAD_SAFETY {
        std::unique_lock<std::mutex> lock(mutex.raw(), std::adopt_lock);
        cv_.wait(lock);
        lock.release();
    }
    // False when the time is up.
    bool wait_for(Mutex &mutex, std::chrono::milliseconds timeout) ROOST_REQUIRES(mutex) ROOST_NO_THREAD_SAFETY {
        // A point in time is kept in nanoseconds; further away than this it would wrap into the past.
        constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 10);
        std::unique_lock<std::mutex> lock(mutex.raw(), std::adopt_lock);
        const bool signalled = cv_.wait_for(lock, std::min(timeout, longest)) == std::cv_status::no_timeout;
        lock.release();
        return signalled;
    }
    void notify_one() { cv_.notify_one(); }
    void notify_all() { cv_.notify_all(); }

private:
    std::condition_variable cv_;
};

}  // namespace roost
