// A statement's stay inside its session: enters on construction, leaves on destruction, and has the connection made
// ready.
#pragma once

#include "engine/instance_pool.h"
#include "engine/session.h"
#include "engine/statement.h"

namespace roost {

class SessionVisit {
public:
    // Both outlive this object. Waits for other statements of the session; see status().
    SessionVisit(Session &session, Cancellation &cancellation);
    ~SessionVisit();
    SessionVisit(const SessionVisit &) = delete;
    SessionVisit &operator=(const SessionVisit &) = delete;

    // Ok: inside. The rest REQUIRES it.
    const Status &status() const { return status_; }
    // Begins the transaction when there is none, takes other results off the connection, applies settings, and lets the
    // cancellation interrupt it. `own_bytes`: the limit of the instance that an import's transaction is begun in.
    Status ready(const StatementSpec &spec, InstancePool &pool, const Session::Stream *self, uint64_t own_bytes);
    // Any failure inside a transaction leaves only its rollback, but for a reader who left. Gives `status` back.
    Status fail(Status status);

private:
    Status begin(const StatementSpec &spec, InstancePool &pool, uint64_t own_bytes);

    Session &session_;
    Cancellation &cancellation_;
    Status status_;
};

}  // namespace roost
