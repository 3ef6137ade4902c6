// The wish to stop a statement: who runs it looks at requested() wherever it can stop; DuckDB's own loops are stopped
// by an interrupt of the connection that is watched. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/mutex.h"
#include "base/status.h"
#include "duckdb/main/client_context.hpp"

namespace roost {

class Cancellation {
public:
    // The first reason wins.
    void cancel(Status reason) ROOST_EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        if (requested_.load(std::memory_order_relaxed)) return;
        reason_ = std::move(reason);
        requested_.store(true, std::memory_order_release);
        if (watched_) watched_->Interrupt();
    }
    bool requested() const { return requested_.load(std::memory_order_acquire); }
    // Ok while nobody cancelled.
    Status reason() const ROOST_EXCLUDES(mutex_) {
        if (!requested()) return Status();
        MutexLock lock(mutex_);
        return reason_;
    }
    // How far the watched connection's query is: 0..100, negative when unknown.
    double progress() const ROOST_EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        if (!watched_) return -1;
        const double percentage = watched_->GetQueryProgress().GetPercentage();
        return percentage < 0 ? -1 : std::min(percentage, 100.0);
    }
    // The connection to interrupt from now on; null: none.
    void watch(duckdb::shared_ptr<duckdb::ClientContext> context) ROOST_EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        watched_ = std::move(context);
        interrupt_if_requested();
    }
    // DuckDB forgets an interrupt when it begins a query: to be called after that.
    void renew() ROOST_EXCLUDES(mutex_) {
        if (!requested()) return;
        MutexLock lock(mutex_);
        interrupt_if_requested();
    }

private:
    void interrupt_if_requested() ROOST_REQUIRES(mutex_) {
        if (watched_ && requested_.load(std::memory_order_relaxed)) watched_->Interrupt();
    }

    mutable Mutex mutex_;
    std::atomic<bool> requested_{false};
    Status reason_ ROOST_GUARDED_BY(mutex_);
    duckdb::shared_ptr<duckdb::ClientContext> watched_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost
