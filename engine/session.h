// A session's open transaction on this node: its connection in the pinned instance, and the order of its statements.
// DuckDB keeps one open result a connection, so a statement that begins while an earlier result is still being read
// first moves the rest of that result to memory that may spill (Session::Stream). Thread-safe; the connection belongs
// to whoever is inside (enter/leave).
#pragma once

#include <memory>
#include <unordered_map>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/cancellation.h"
#include "engine/instance.h"

namespace roost {

class Session {
public:
    // A result of this session that is read in steps.
    class Stream {
    public:
        virtual ~Stream() = default;
        // Takes what is left off the connection. Stops early, without harm, when `wish` is cancelled.
        virtual Status take_off(const Cancellation &wish) = 0;
        // What the rest failed with when it was taken off; its reader finds that in its place. Ok: nothing failed.
        virtual Status failure() const = 0;
        // The transaction ended; the rest of the result with it.
        virtual void abandon() = 0;
    };

    // Waits until no statement of the session runs. Fails when `cancellation` is requested first, or the session ended.
    Status enter(Cancellation &cancellation) ROOST_EXCLUDES(mutex_);
    // As enter, but only while `stream` is the one on the connection: false when it is not, and then nobody entered.
    bool enter_as(const Stream &stream) ROOST_EXCLUDES(mutex_);
    void leave() ROOST_EXCLUDES(mutex_);

    // Ends the session's transaction: cancels what is inside, which closes it on leaving; closes it here when nobody
    // is.
    void end(const Status &reason) ROOST_EXCLUDES(mutex_);

    // The rest REQUIRES being inside.
    void set_stream(Stream *stream) ROOST_EXCLUDES(mutex_);
    Stream *stream() const ROOST_EXCLUDES(mutex_);
    // Rolls back, closes, and lets nobody in any more.
    void close() ROOST_EXCLUDES(mutex_);

    // Guarded by being inside.
    std::shared_ptr<Instance> instance;
    std::unique_ptr<LakeConnection> connection;  // null: no transaction yet
    bool failed = false;                         // a statement failed: only a rollback can follow
    bool wrote = false;
    std::string write_catalog;  // with wrote
    uint64_t statements = 0;    // that were started in it

private:
    mutable Mutex mutex_;
    CondVar changed_;
    bool busy_ ROOST_GUARDED_BY(mutex_) = false;  // somebody is inside
    bool ended_ ROOST_GUARDED_BY(mutex_) = false;
    Stream *stream_ ROOST_GUARDED_BY(mutex_) = nullptr;
    Cancellation *inside_ ROOST_GUARDED_BY(mutex_) = nullptr;
};

class SessionTable {
public:
    // Makes it when there is none.
    std::shared_ptr<Session> open(const Uuid &id) ROOST_EXCLUDES(mutex_);
    std::shared_ptr<Session> find(const Uuid &id) const ROOST_EXCLUDES(mutex_);
    // Forgets it: the next open() makes a new one.
    void forget(const Uuid &id, const Session *session) ROOST_EXCLUDES(mutex_);

private:
    mutable Mutex mutex_;
    std::unordered_map<Uuid, std::shared_ptr<Session>> sessions_ ROOST_GUARDED_BY(mutex_);
};

}  // namespace roost
