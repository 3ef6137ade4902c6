#include "engine/execution.h"

#include "engine/stopwatch.h"
#include "lake/ducklake.h"

namespace roost {

Status BaseExecution::fail(Status status) {
    if (!status.ok() && failure_.ok()) failure_ = status;
    return status;
}

Completion BaseExecution::account(Status status, const ResultOutput *output, const RunningQuery *query) {
    completion_.status = failure_.ok() ? std::move(status) : failure_;
    if (output) {
        completion_.rows = output->rows();
        completion_.result_bytes = output->bytes();
        completion_.affected = output->affected();
        completion_.first_page = output->first_page();
        completion_.timings.encode_us = output->encode_us();
        completion_.timings.blocked_us = output->blocked_us();
    }
    if (query) {
        completion_.peak_memory_bytes = query->peak_bytes();
        completion_.memory.spilled_bytes = query->spilled_bytes();
        completion_.profile_json = query->profile_json();
        completion_.reads = query->reads();
    }
    return std::move(completion_);
}

namespace {

// For placement alone, so that what has just been written here is known to be up to date here. 0: not known.
uint64_t newest_commit(LakeConnection &connection, const std::string &catalog) noexcept {
    try {
        const auto found = connection.raw().Query(last_committed_snapshot_sql(catalog));
        if (found->HasError() || found->RowCount() != 1) return 0;
        const duckdb::Value snapshot = found->GetValue(0, 0);
        return snapshot.IsNull() ? 0 : snapshot.GetValue<uint64_t>();
    } catch (const std::exception &) {
        return 0;
    }
}

}  // namespace

Status commit_marked(Instance &instance, LakeConnection &connection, const std::string &catalog, const Uuid &statement,
                     Completion &completion) {
    const Stopwatch watch;
    const int64_t within_ms = instance.options().commit_within_ms;
    if (within_ms > 0 && connection.age().count() > within_ms) {
        return Status(Code::failed_precondition, "the transaction was open for too long to commit what it wrote: " +
                                                     std::to_string(connection.age().count() / 1'000) + " s")
            .with_sqlstate("25P04")
            .with_hint("commit within " + std::to_string(within_ms / 1'000) + " s, half of orphan_grace_ms");
    }
    try {
        auto marked = connection.raw().Query(commit_message_sql(catalog, statement));
        if (marked->HasError()) return instance.error(marked->GetErrorObject(), "");
        const FileWall::DeferRemovals keep_files(instance.wall());
        connection.commit(catalog, instance.commit_gate());
        if (instance.options().cache) completion.committed_snapshot = newest_commit(connection, catalog);
        completion.timings.commit_us = watch.elapsed_us();
        return Status();
    } catch (const std::exception &error) {
        completion.timings.commit_us = watch.elapsed_us();
        if (connection.left_behind()) instance.note_failed_commit();
        Status failure = instance.error(duckdb::ErrorData(error), "");
        completion.commit_in_doubt = failure.code() != Code::conflict;
        if (!completion.commit_in_doubt) return failure;
        return std::move(failure).with_name(std::string(kCommitFailed));
    }
}

Status TransactionEndExecution::commit(Session &session) {
    if (session.failed) {
        return Status(Code::failed_precondition, "the transaction was rolled back: a statement in it had failed")
            .with_sqlstate("25P02");
    }
    if (!session.connection || !session.connection->in_transaction()) return Status();
    if (!session.wrote) return Status();
    return commit_marked(*session.instance, *session.connection, session.write_catalog, spec_.id, completion_);
}

Result<bool> TransactionEndExecution::step(ResultSink &sink) {
    const auto session = parts_.sessions.find(spec_.session);
    if (!session) {
        if (spec_.transaction == TransactionAction::rollback) return false;
        return fail(
            Status(Code::failed_precondition, "there is no transaction to commit on this node").with_sqlstate("25P01"));
    }
    ROOST_RETURN_IF_ERROR(fail(session->enter(cancellation_)));
    Status status;
    if (spec_.transaction == TransactionAction::commit) status = commit(*session);
    session->close();
    session->leave();
    parts_.sessions.forget(spec_.session, session.get());
    if (!status.ok()) return fail(std::move(status));
    sink.header({});
    return false;
}

}  // namespace roost
