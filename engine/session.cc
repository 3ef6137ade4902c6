#include "engine/session.h"

#include <chrono>

namespace roost {

namespace {

// How soon a waiting statement sees that it was cancelled.
constexpr std::chrono::milliseconds kCancellationPoll{20};

Status session_ended() {
    return Status(Code::failed_precondition, "the session's transaction has ended").with_sqlstate("25P02");
}

}  // namespace

Status Session::enter(Cancellation &cancellation) {
    MutexLock lock(mutex_);
    for (;;) {
        if (cancellation.requested()) return cancellation.reason();
        if (ended_) return session_ended();
        if (!busy_) break;
        changed_.wait_for(mutex_, kCancellationPoll);
    }
    busy_ = true;
    inside_ = &cancellation;
    return Status();
}

bool Session::enter_as(const Stream &stream) {
    MutexLock lock(mutex_);
    while (busy_ && stream_ == &stream) changed_.wait(mutex_);
    if (stream_ != &stream) return false;
    busy_ = true;
    return true;
}

void Session::leave() {
    bool close_first = false;
    {
        MutexLock lock(mutex_);
        inside_ = nullptr;
        close_first = ended_;
    }
    if (close_first) close();
    MutexLock lock(mutex_);
    busy_ = false;
    changed_.notify_all();
}

void Session::end(const Status &reason) {
    {
        MutexLock lock(mutex_);
        ended_ = true;
        if (inside_) inside_->cancel(reason);
        if (busy_) return;
        busy_ = true;
    }
    leave();
}

void Session::set_stream(Stream *stream) {
    MutexLock lock(mutex_);
    stream_ = stream;
    changed_.notify_all();
}

Session::Stream *Session::stream() const {
    MutexLock lock(mutex_);
    return stream_;
}

void Session::close() {
    // In this order: whoever owns the stream may be gone as soon as it is not the stream any more.
    if (Stream *open = stream()) {
        open->abandon();
        set_stream(nullptr);
    }
    {
        MutexLock lock(mutex_);
        ended_ = true;
    }
    if (!connection) return;
    connection->rollback();
    connection.reset();
}

std::shared_ptr<Session> SessionTable::open(const Uuid &id) {
    MutexLock lock(mutex_);
    auto &session = sessions_[id];
    if (!session) session = std::make_shared<Session>();
    return session;
}

std::shared_ptr<Session> SessionTable::find(const Uuid &id) const {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : found->second;
}

void SessionTable::forget(const Uuid &id, const Session *session) {
    std::shared_ptr<Session> forgotten;  // destroyed after the lock
    MutexLock lock(mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || found->second.get() != session) return;
    forgotten = std::move(found->second);
    sessions_.erase(found);
}

}  // namespace roost
