// The simple query protocol: a text of statements, run in order, as one implicit transaction where that makes a
// difference.
#include "front/pg/connection.h"

namespace roost::pg {

net::Task<Result<std::vector<sql::Statement>>> Connection::parse(std::string_view text) {
    const RunScope scope(*this);
    auto statements = co_await shared_->service.parse(text, sql::Context::session, session_);
    if (running_.cancelled) co_return Status(Code::cancelled, "canceling statement due to user request");
    co_return statements;
}

net::Task<bool> Connection::on_query(std::string_view body) {
    statements_.erase("");
    portals_.erase("");
    Status status = co_await resolve();  // of a group that ended without Sync
    if (status.ok()) {
        const Result<std::string_view> text = decode_query(body);
        status = text.status();
        if (text.ok()) {
            const Result<std::vector<sql::Statement>> statements = co_await parse(*text);
            status = statements.status();
            if (statements.ok()) status = co_await run_all(*statements);
        }
    }
    if (status.ok() && implicit_) status = co_await commit_implicit();
    const bool ok = status.ok();
    if (!ok) co_await fail(std::move(status));
    settle(ok);
    co_return co_await ready();
}

net::Task<Status> Connection::run_all(const std::vector<sql::Statement> &statements) {
    bool any = false;
    for (size_t i = 0; i < statements.size(); i++) {
        const sql::Statement &statement = statements[i];
        if (statement.kind == sql::Kind::empty) continue;
        any = true;
        Status status = check_not_failed(statement);
        if (status.ok()) status = co_await run_simple(statements, i);
        if (!status.ok()) {
            // The engine counts from where its statement begins, the client from where its text does.
            const uint32_t position = status.error().position;
            if (position > 0) status = std::move(status).with_position(position + statement.offset);
            co_return status;
        }
    }
    if (!any) put_empty(channel_.out(), kEmptyQuery);
    co_return Status();
}

net::Task<Status> Connection::run_simple(const std::vector<sql::Statement> &statements, size_t index) {
    const RunScope scope(*this);
    if (wants_implicit(statements, index)) {
        Status status = co_await begin_implicit();
        if (!status.ok()) co_return status;
    }
    Result<Stream> stream = co_await start(statements[index], {}, {});
    if (!stream.ok()) co_return stream.status();
    RowCursor cursor(std::move(stream).value());
    track(cursor);
    Status status = co_await cursor.open();
    if (!status.ok()) co_return explain_show(statements[index], std::move(status));
    const ResultHeader &header = cursor.header();
    if (header.columns.size() > kColumnsMax) co_return too_many_columns();
    if (header.has_grid) put_row_description(channel_.out(), header.columns, row_formats(statements[index], {}));
    uint64_t rows = 0;
    const Result<Relay> relayed = co_await relay(cursor, 0, rows);
    if (!relayed.ok()) co_return relayed.status();
    put_command_complete(channel_.out(), cursor.tag(rows));
    co_return Status();
}

const sql::Statement &Connection::what_runs(const sql::Statement &statement) const {
    if (statement.kind != sql::Kind::execute) return statement;
    const auto at = statements_.find(statement.command.name);
    return at != statements_.end() ? at->second->statement : statement;
}

bool Connection::wants_implicit(const std::vector<sql::Statement> &statements, size_t from) const {
    if (implicit_ || is_in_transaction()) return false;
    // Up to the next end of a transaction: more than one statement, and something that would have to be undone.
    size_t count = 0;
    bool changes = false;
    for (size_t i = from; i < statements.size(); i++) {
        const sql::Statement &statement = what_runs(statements[i]);
        if (statement.kind == sql::Kind::commit || statement.kind == sql::Kind::rollback) break;
        if (statement.kind == sql::Kind::begin && i == from) return false;
        if (sql::is_session_command(statement.kind) || statement.kind == sql::Kind::empty) continue;
        count++;
        changes = changes || sql::changes_lake(statement.kind);
    }
    return count > 1 && changes && !sql::is_session_command(what_runs(statements[from]).kind);
}

}  // namespace roost::pg
