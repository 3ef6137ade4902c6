#include "engine/session_visit.h"

namespace roost {

namespace {

Status transaction_failed() {
    return Status(Code::failed_precondition,
                  "current transaction is aborted, commands ignored until end of transaction block")
        .with_sqlstate("25P02");
}

}  // namespace

SessionVisit::SessionVisit(Session &session, Cancellation &cancellation)
    : session_(session), cancellation_(cancellation), status_(session.enter(cancellation)) {}

SessionVisit::~SessionVisit() {
    if (!status_.ok()) return;
    cancellation_.watch(nullptr);
    session_.leave();
}

Status SessionVisit::begin(const StatementSpec &spec, InstancePool &pool, uint64_t own_bytes) {
    // An import's transaction reads staged files, which the shared instance must not be able to. Its instance is made
    // of its grant: no lane has room set aside for it.
    ROOST_ASSIGN_OR_RETURN(session_.instance, spec.internal ? pool.make_internal(own_bytes) : pool.pinned());
    ROOST_ASSIGN_OR_RETURN(session_.connection, session_.instance->connect());
    // What a session leaves in its connection is nobody else's.
    session_.connection->spoil();
    try {
        session_.connection->begin(spec.read_only);
    } catch (const std::exception &error) {
        return session_.instance->error(duckdb::ErrorData(error), spec.sql);
    }
    return Status();
}

Status SessionVisit::ready(const StatementSpec &spec, InstancePool &pool, const Session::Stream *self,
                           uint64_t own_bytes) {
    if (session_.failed) return transaction_failed();
    if (!session_.connection) ROOST_RETURN_IF_ERROR(begin(spec, pool, own_bytes));
    if (Session::Stream *open = session_.stream(); open && open != self) {
        ROOST_RETURN_IF_ERROR(open->take_off(cancellation_));
        session_.set_stream(nullptr);
        // Whether DuckDB's own transaction is spoilt by it depends on which thread met the error.
        static_cast<void>(fail(open->failure()));
        if (session_.failed) return transaction_failed();
    }
    cancellation_.watch(session_.connection->shared_context());
    try {
        session_.connection->apply(spec.settings);
    } catch (const std::exception &error) {
        return session_.instance->error(duckdb::ErrorData(error), spec.sql);
    }
    return Status();
}

Status SessionVisit::fail(Status status) {
    if (!status.ok() && status.name() != kReaderLeft) session_.failed = true;
    return status;
}

}  // namespace roost
