// The wish to stop a statement: who runs it looks at requested() wherever it can stop; DuckDB's own loops are stopped
// by an interrupt of the connection that is watched. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/mutex.h"
#include "base/status.h"
#include "duckdb/main/client_context.hpp"
#include "engine/statement.h"

namespace roost {

class Cancellation {
public:
    // The first reason wins, but any other wins over kReaderLeft, which waits for the end of a chunk instead of
    // interrupting.
    void cancel(Status reason) ROOST_EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        const bool gently = reason.name() == kReaderLeft;
        if (requested_.load(std::memory_order_relaxed) && (gently || !gently_)) return;
        gently_ = gently;
        reason_ = std::move(reason);
        requested_.store(true, std::memory_order_release);
        interrupt_if_requested();
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
        if (watched_ && !gently_ && requested_.load(std::memory_order_relaxed)) watched_->Interrupt();
    }

    mutable Mutex mutex_;
    std::atomic<bool> requested_{false};
    Status reason_ ROOST_GUARDED_BY(mutex_);
    bool gently_ ROOST_GUARDED_BY(mutex_) = false;
    duckdb::shared_ptr<duckdb::ClientContext> watched_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost
