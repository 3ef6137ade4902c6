// The extended query protocol. Parse looks at the text only; the engine is asked when somebody needs its answer.
// Clients send Parse, Bind, Describe, Execute and Sync in one piece, and then the header of the execution answers all
// of them: one trip to a node instead of three. Until then the replies wait in pending_, so that an error of the
// statement is answered where PostgreSQL would: at its Parse.
#include "front/pg/connection.h"

namespace roost::pg {
namespace {

constexpr size_t kPreparedMax = 10'000;
constexpr size_t kPortalsMax = 1'000;

// Errors that PostgreSQL finds when it parses and plans, before anything runs.
bool is_analysis_error(const Status &status) {
    const std::string_view state = status.sqlstate();
    return state.starts_with("42") || state.starts_with("3F") || state.starts_with("0A");
}

Status no_such(Code code, std::string_view what, const std::string &name, std::string sqlstate) {
    std::string message = name.empty() ? "unnamed " + std::string(what) + " does not exist"
                                       : std::string(what) + " \"" + name + "\" does not exist";
    return Status(code, std::move(message)).with_sqlstate(std::move(sqlstate));
}

bool same_columns(const std::vector<Column> &a, const std::vector<Column> &b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); i++) {
        if (a[i].name != b[i].name || a[i].pg_oid != b[i].pg_oid || a[i].pg_typmod != b[i].pg_typmod) return false;
    }
    return true;
}

bool is_local(const sql::Statement &statement) {
    return statement.kind == sql::Kind::empty || statement.kind == sql::Kind::set_variable ||
           sql::is_session_command(statement.kind);
}

}  // namespace

Result<std::shared_ptr<Prepared>> Connection::find_prepared(const std::string &name) const {
    const auto at = statements_.find(name);
    if (at == statements_.end()) return no_such(Code::not_found, "prepared statement", name, "26000");
    return at->second;
}

Result<std::shared_ptr<Portal>> Connection::find_portal(const std::string &name) const {
    const auto at = portals_.find(name);
    if (at == portals_.end()) {
        return Status(Code::not_found, "portal \"" + name + "\" does not exist").with_sqlstate("34000");
    }
    return at->second;
}

void Connection::reply(char type) { put_empty(pending_.any() ? pending_.replies : channel_.out(), type); }

void Connection::put_description(const Prepared &prepared, const std::vector<int16_t> &formats) {
    if (prepared.has_grid) {
        put_row_description(channel_.out(), prepared.columns, row_formats(prepared.statement, formats));
    } else {
        put_empty(channel_.out(), kNoData);
    }
}

// The engine has accepted what is pending: its replies go out.
void Connection::release_pending() {
    const Pending pending = std::exchange(pending_, {});
    channel_.out() += pending.replies;
    if (pending.described == nullptr) return;
    Prepared &prepared = *pending.described->prepared;
    put_description(prepared, pending.described->formats);
    prepared.is_shown = true;
}

net::Task<Status> Connection::resolve() {
    if (!pending_.any()) co_return Status();
    const std::shared_ptr<Prepared> prepared = pending_.described ? pending_.described->prepared : pending_.unvalidated;
    if (pending_.unvalidated || !prepared->is_described) {
        Status status = co_await describe(*prepared);
        if (!status.ok()) {
            if (pending_.unvalidated) statements_.erase(prepared->name);
            co_return status;
        }
    }
    release_pending();
    co_return Status();
}

net::Task<void> Connection::fail_group(Status status) {
    pending_ = {};
    skip_until_sync_ = true;
    co_await fail(std::move(status));
    // Not to be held back for a Sync that a waiting client would only send after it.
    if (channel_.input().size() <= message_bytes_) co_await channel_.flush();
}

net::Task<Status> Connection::describe(Prepared &prepared) {
    const RunScope scope(*this);
    if (is_local(prepared.statement)) co_return co_await describe_command(prepared);
    sync_settings();
    Result<ResultHeader> header =
        co_await shared_->service.describe(session_, prepared.statement, prepared.declared_oids);
    if (!header.ok()) co_return explain_show(prepared.statement, header.status());
    if (header->columns.size() > kColumnsMax) co_return too_many_columns();
    prepared.is_described = true;
    prepared.has_grid = header->has_grid;
    prepared.columns = std::move(header->columns);
    prepared.param_oids = std::move(header->param_oids);
    prepared.param_oids.resize(prepared.param_count, 0);
    for (size_t i = 0; i < prepared.param_count; i++) {
        uint32_t &oid = prepared.param_oids[i];
        if (i < prepared.declared_oids.size() && prepared.declared_oids[i] != 0) oid = prepared.declared_oids[i];
        if (oid == 0) oid = 25;  // text
    }
    co_return Status();
}

// --- Parse

net::Task<void> Connection::on_parse(std::string_view body) {
    Status status = co_await resolve();
    if (status.ok()) {
        const Result<ParseMessage> message = decode_parse(body);
        status = message.ok() ? co_await add_prepared(*message) : message.status();
    }
    if (!status.ok()) co_await fail_group(std::move(status));
}

net::Task<Status> Connection::add_prepared(const ParseMessage &message) {
    std::string name(message.name);
    if (name.empty()) {
        statements_.erase(name);  // replaced, even if this one fails
    } else if (statements_.contains(name)) {
        co_return Status(Code::already_exists, "prepared statement \"" + name + "\" already exists")
            .with_sqlstate("42P05");
    }
    if (statements_.size() >= kPreparedMax) {
        co_return Status(Code::resource_exhausted, "too many prepared statements").with_sqlstate("54000");
    }
    Result<sql::Statement> statement = co_await parse_one(message.query);
    if (!statement.ok()) co_return statement.status();
    Status status = check_not_failed(*statement);
    if (!status.ok()) co_return status;
    auto prepared = std::make_shared<Prepared>();
    prepared->name = name;
    prepared->param_count = std::max<size_t>(statement->param_count, message.param_oids.size());
    prepared->declared_oids = message.param_oids;
    prepared->statement = std::move(statement).value();
    if (prepared->statement.kind == sql::Kind::declare) {
        const Result<sql::Statement> body = co_await parse_one(prepared->statement.command.body);
        if (!body.ok()) co_return body.status();
        prepared->param_count = std::max<size_t>(prepared->param_count, body->param_count);
    }
    statements_[std::move(name)] = prepared;
    if (!is_local(prepared->statement)) pending_.unvalidated = std::move(prepared);
    reply(kParseComplete);
    co_return Status();
}

net::Task<Result<sql::Statement>> Connection::parse_one(std::string_view text) {
    Result<std::vector<sql::Statement>> statements = co_await parse(text);
    if (!statements.ok()) co_return statements.status();
    std::erase_if(*statements, [](const sql::Statement &statement) { return statement.kind == sql::Kind::empty; });
    if (statements->empty()) co_return sql::Statement{};
    if (statements->size() > 1) {
        co_return Status(Code::syntax_error, "cannot insert multiple commands into a prepared statement");
    }
    co_return std::move((*statements)[0]);
}

// --- Bind

net::Task<void> Connection::on_bind(std::string_view body) {
    const Result<BindMessage> message = decode_bind(body);
    Status status = message.ok() ? co_await add_portal(*message) : message.status();
    if (!status.ok()) co_await fail_group(std::move(status));
}

net::Task<Status> Connection::add_portal(const BindMessage &message) {
    const Result<std::shared_ptr<Prepared>> found = find_prepared(std::string(message.statement));
    if (pending_.described || (pending_.unvalidated && (!found.ok() || pending_.unvalidated != *found))) {
        Status status = co_await resolve();
        if (!status.ok()) co_return status;
    }
    if (!found.ok()) co_return found.status();
    const std::shared_ptr<Prepared> &prepared = *found;
    Status status = check_not_failed(prepared->statement);
    if (!status.ok()) co_return status;
    if (message.values.size() != prepared->param_count) {
        co_return protocol_violation("bind message supplies " + std::to_string(message.values.size()) +
                                     " parameters, but prepared statement \"" + prepared->name + "\" requires " +
                                     std::to_string(prepared->param_count));
    }
    if (message.result_formats.size() > 1 && !prepared->is_described) {
        status = co_await describe(*prepared);
        if (!status.ok()) {
            if (pending_.unvalidated) statements_.erase(prepared->name);
            co_return status;
        }
    }
    if (message.result_formats.size() > 1 && prepared->has_grid &&
        message.result_formats.size() != prepared->columns.size()) {
        release_pending();
        co_return protocol_violation("bind message has " + std::to_string(message.result_formats.size()) +
                                     " result formats but query has " + std::to_string(prepared->columns.size()) +
                                     " columns");
    }
    std::string name(message.portal);
    if (!name.empty() && portals_.contains(name)) {
        co_return Status(Code::already_exists, "cursor \"" + name + "\" already exists").with_sqlstate("42P03");
    }
    if (portals_.size() >= kPortalsMax) {
        co_return Status(Code::resource_exhausted, "too many open portals").with_sqlstate("54000");
    }
    auto portal = std::make_shared<Portal>();
    portal->name = name;
    portal->prepared = prepared;
    portal->formats = message.result_formats;
    portal->params.reserve(message.values.size());
    for (size_t i = 0; i < message.values.size(); i++) {
        Param param;
        const std::vector<int16_t> &formats = message.param_formats;
        const int16_t format = formats.empty() ? int16_t{0} : formats.size() == 1 ? formats[0] : formats[i];
        param.form = format == 1 ? Param::Form::pg_binary : Param::Form::pg_text;
        if (i < prepared->declared_oids.size()) param.pg_oid = prepared->declared_oids[i];
        if (param.pg_oid == 0 && prepared->is_described) param.pg_oid = prepared->param_oids[i];
        if (message.values[i]) param.value.emplace(*message.values[i]);
        portal->params.push_back(std::move(param));
    }
    portals_[std::move(name)] = std::move(portal);
    reply(kBindComplete);
    co_return Status();
}

// --- Describe

net::Task<void> Connection::on_describe(std::string_view body) {
    const Result<TargetMessage> message = decode_target(body);
    Status status = message.status();
    if (status.ok()) {
        const std::string name(message->name);
        status = message->kind == 'S' ? co_await describe_statement(name) : co_await describe_portal(name);
    }
    if (!status.ok()) co_await fail_group(std::move(status));
}

net::Task<Status> Connection::describe_statement(const std::string &name) {
    // What is pending may be this very statement, and its description is what resolve() asks for.
    Status status = co_await resolve();
    if (!status.ok()) co_return status;
    const Result<std::shared_ptr<Prepared>> found = find_prepared(name);
    if (!found.ok()) co_return found.status();
    Prepared &prepared = **found;
    status = check_not_failed(prepared.statement);
    if (status.ok() && (!prepared.is_described || is_local(prepared.statement))) status = co_await describe(prepared);
    if (!status.ok()) co_return status;
    put_parameter_description(channel_.out(), prepared.param_oids);
    put_description(prepared, {});
    prepared.is_shown = true;
    co_return Status();
}

net::Task<Status> Connection::describe_portal(const std::string &name) {
    const Result<std::shared_ptr<Portal>> found = find_portal(name);
    const bool continues =
        found.ok() && !pending_.described && (!pending_.unvalidated || pending_.unvalidated == (*found)->prepared);
    if (!continues) {
        Status status = co_await resolve();
        if (!status.ok()) co_return status;
    }
    if (!found.ok()) co_return found.status();
    const std::shared_ptr<Portal> &portal = *found;
    Status status = check_not_failed(portal->prepared->statement);
    if (!status.ok()) co_return status;
    if (!is_local(portal->prepared->statement) && !portal->cursor) {
        pending_.described = portal;  // most likely its Execute comes next
        co_return Status();
    }
    if (!portal->prepared->is_described || is_local(portal->prepared->statement)) {
        status = co_await describe(*portal->prepared);
    }
    if (status.ok()) put_description(*portal->prepared, portal->formats);
    co_return status;
}

// --- Execute

net::Task<void> Connection::on_execute(std::string_view body) {
    const Result<ExecuteMessage> message = decode_execute(body);
    Status status = message.status();
    if (status.ok()) status = co_await execute_portal(std::string(message->portal), message->max_rows);
    if (!status.ok()) co_await fail_group(std::move(status));
}

net::Task<Status> Connection::execute_portal(const std::string &name, uint32_t rows_max) {
    const Result<std::shared_ptr<Portal>> found = find_portal(name);
    const bool continues = found.ok() && (!pending_.described || pending_.described == *found) &&
                           (!pending_.unvalidated || pending_.unvalidated == (*found)->prepared);
    Status status;
    if (!continues) status = co_await resolve();
    if (!status.ok()) co_return status;
    if (is_failed() && !found.ok()) co_return check_not_failed(sql::Statement{.kind = sql::Kind::other});
    if (!found.ok()) co_return found.status();
    const std::shared_ptr<Portal> &portal = *found;  // held by `found`: a COMMIT drops all portals, its own too
    status = check_not_failed(portal->prepared->statement);
    if (!status.ok()) co_return status;
    if (portal->prepared->statement.kind == sql::Kind::empty) {
        put_empty(channel_.out(), kEmptyQuery);
        co_return Status();
    }
    const RunScope scope(*this);
    if (!portal->cursor) {
        status = co_await open_portal(*portal);
    } else if (portal->cursor->at_end() && !portal->cursor->header().has_grid) {
        status = Status(Code::failed_precondition, "portal \"" + name + "\" cannot be run");
    } else {
        track(*portal->cursor);
    }
    if (!status.ok()) co_return status;
    RowCursor &cursor = *portal->cursor;
    uint64_t rows = 0;
    const Result<Relay> relayed = co_await relay(cursor, cursor.header().has_grid ? rows_max : 0, rows);
    if (!relayed.ok()) co_return relayed.status();
    if (*relayed == Relay::suspended) {
        put_empty(channel_.out(), kPortalSuspended);
    } else {
        put_command_complete(channel_.out(), cursor.tag(rows));
    }
    co_return Status();
}

net::Task<Status> Connection::open_portal(Portal &portal) {
    const std::shared_ptr<Prepared> prepared = portal.prepared;
    // One statement up to Sync is its own transaction; when more may follow, they are one together.
    const bool changes = sql::changes_lake(what_runs(prepared->statement).kind);
    Status status;
    if (changes && !implicit_ && !is_in_transaction() && !next_is_sync()) status = co_await begin_implicit();
    if (status.ok()) {
        Result<Stream> stream = co_await start(prepared->statement, std::move(portal.params), portal.formats);
        status = stream.status();
        if (status.ok()) {
            portal.cursor.emplace(std::move(stream).value());
            track(*portal.cursor);
            status = explain_show(prepared->statement, co_await portal.cursor->open());
        }
    }
    if (status.ok()) status = take_header(portal);
    if (status.ok()) {
        release_pending();
        co_return status;
    }
    if (pending_.unvalidated && is_analysis_error(status)) {
        statements_.erase(prepared->name);
    } else {
        channel_.out() += pending_.replies;
    }
    co_return status;
}

Status Connection::take_header(Portal &portal) {
    Prepared &prepared = *portal.prepared;
    const ResultHeader &header = portal.cursor->header();
    if (header.columns.size() > kColumnsMax) return too_many_columns();
    const bool changed = prepared.has_grid != header.has_grid || !same_columns(prepared.columns, header.columns);
    if (prepared.is_shown && changed && !is_local(prepared.statement)) {
        prepared.is_described = false;  // what comes next learns the new columns
        prepared.is_shown = false;
        return Status(Code::unimplemented, "cached plan must not change result type").with_name("cached_plan_changed");
    }
    if (portal.formats.size() > 1 && header.has_grid && portal.formats.size() != header.columns.size()) {
        return protocol_violation("bind message has " + std::to_string(portal.formats.size()) +
                                  " result formats but query has " + std::to_string(header.columns.size()) +
                                  " columns");
    }
    prepared.has_grid = header.has_grid;
    prepared.columns = header.columns;
    return {};
}

// --- Close, Sync

net::Task<void> Connection::on_close(std::string_view body) {
    Status status = co_await resolve();
    const Result<TargetMessage> message = decode_target(body);
    if (status.ok()) status = message.status();
    if (!status.ok()) {
        co_await fail_group(std::move(status));
        co_return;
    }
    if (message->kind == 'S') {
        statements_.erase(std::string(message->name));
    } else {
        portals_.erase(std::string(message->name));
    }
    reply(kCloseComplete);
}

net::Task<bool> Connection::on_sync() {
    bool ok = !std::exchange(skip_until_sync_, false);
    Status status = co_await resolve();
    if (status.ok() && implicit_) status = co_await commit_implicit();
    if (!status.ok()) {
        pending_ = {};
        ok = false;
        co_await fail(std::move(status));
    }
    settle(ok);
    co_return co_await ready();
}

}  // namespace roost::pg
