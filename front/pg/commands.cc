// What a session answers without a node: transactions' edges, variables, SQL's own prepared statements and cursors.
#include <algorithm>
#include <array>
#include <charconv>

#include "front/pg/connection.h"
#include "front/pg/sql_arguments.h"
#include "sql/lexer.h"

namespace roost::pg {
namespace {

using Stream = std::unique_ptr<service::ResultStream>;

Stream done(std::string tag) { return std::make_unique<LocalResult>(std::move(tag)); }

Status unsupported(std::string_view what) {
    return Status(Code::unimplemented, std::string(what) + " is not supported");
}

std::optional<std::string> option(const sql::SessionCommand &command, const std::string &name) {
    const auto at = command.options.find(name);
    return at == command.options.end() ? std::nullopt : std::optional<std::string>(at->second);
}

std::optional<bool> flag(const sql::SessionCommand &command, const std::string &name) {
    const auto value = option(command, name);
    return value ? std::optional<bool>(*value == "on") : std::nullopt;
}

Status no_cursor(const std::string &name) {
    return Status(Code::not_found, "cursor \"" + name + "\" does not exist").with_sqlstate("34000");
}

// The next rows of a cursor, as the result of FETCH, or skipped, as that of MOVE.
class FetchResult : public service::ResultStream {
public:
    FetchResult(std::shared_ptr<Portal> portal, uint64_t rows_max, bool is_move)
        : portal_(std::move(portal)), left_(rows_max), is_move_(is_move) {}

    const Uuid &id() const override { return id_; }
    net::Task<Result<ResultHeader>> header() override {
        if (is_move_) co_return ResultHeader{};
        co_return portal_->cursor->header();
    }
    net::Task<Result<std::optional<service::RowsFrame>>> next() override {
        while (left_ > 0) {
            const auto rows_max = static_cast<uint32_t>(std::min<uint64_t>(left_, UINT32_MAX));
            const Result<std::optional<RowCursor::Slice>> slice = co_await portal_->cursor->next(rows_max);
            if (!slice.ok()) co_return slice.status();
            if (!slice->has_value()) break;
            left_ -= (*slice)->rows;
            moved_ += (*slice)->rows;
            if (is_move_) continue;
            co_return std::optional<service::RowsFrame>({(*slice)->rows, std::string((*slice)->bytes)});
        }
        co_return std::optional<service::RowsFrame>();
    }
    const Completion &completion() const override { return completion_; }
    std::string tag(uint64_t rows) const override {
        return is_move_ ? "MOVE " + std::to_string(moved_) : "FETCH " + std::to_string(rows);
    }
    void cancel(Status reason) override { portal_->cursor->cancel(std::move(reason)); }

private:
    Uuid id_;
    std::shared_ptr<Portal> portal_;
    uint64_t left_;
    uint64_t moved_ = 0;
    bool is_move_;
    Completion completion_;
};

// How many rows a FETCH or MOVE asks for. Only forwards: rows are gone once they are sent.
Result<uint64_t> fetch_count(const sql::SessionCommand &command) {
    const std::string direction = option(command, "direction").value_or("next");
    const std::string count = option(command, "count").value_or("1");
    if (direction != "next" && direction != "forward") {
        return Status(Code::failed_precondition, "cursor can only scan forward");
    }
    if (count == "all") return UINT64_MAX;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), value);
    if (error != std::errc() || end != count.data() + count.size()) {
        return Status(Code::syntax_error, "invalid row count \"" + count + "\"");
    }
    if (value < 0) return Status(Code::failed_precondition, "cursor can only scan forward");
    return static_cast<uint64_t>(value);
}

}  // namespace

net::Task<Result<Connection::Stream>> Connection::run_command(const sql::Statement &statement,
                                                              std::vector<Param> params, std::vector<int16_t> formats) {
    const sql::SessionCommand &command = statement.command;
    switch (statement.kind) {
        case sql::Kind::begin:
            co_return co_await run_begin(statement);
        case sql::Kind::commit:
            co_return co_await run_commit(statement);
        case sql::Kind::rollback:
            co_return co_await run_rollback(statement);
        case sql::Kind::savepoint:
        case sql::Kind::release:
        case sql::Kind::rollback_to:
            co_return run_savepoint(statement);
        case sql::Kind::use:
            co_return co_await run_use(statement);
        case sql::Kind::set:
            co_return run_set(command);
        case sql::Kind::reset:
            co_return run_reset(command);
        case sql::Kind::show:
            co_return run_show(command);
        case sql::Kind::discard:
            co_return run_discard(command);
        case sql::Kind::prepare:
            co_return co_await run_prepare(statement);
        case sql::Kind::execute:
            co_return co_await run_execute(command, std::move(formats));
        case sql::Kind::deallocate:
            co_return run_deallocate(command);
        case sql::Kind::declare:
            co_return co_await run_declare(statement, std::move(params));
        case sql::Kind::fetch:
        case sql::Kind::move:
            co_return run_fetch(statement);
        case sql::Kind::close_cursor:
            co_return run_close(command);
        case sql::Kind::listen:
            co_return done("LISTEN");  // nothing is ever sent: there is no NOTIFY
        case sql::Kind::unlisten:
            co_return done("UNLISTEN");
        case sql::Kind::set_constraints:
            co_return done("SET CONSTRAINTS");  // none of them can be deferred
        case sql::Kind::notify:
            co_return unsupported("NOTIFY");
        case sql::Kind::lock_table:
            co_return unsupported("LOCK TABLE");
        default:
            co_return unsupported(sql::kind_name(statement.kind));
    }
}

// --- transactions

net::Task<Result<Connection::Stream>> Connection::run_begin(const sql::Statement &statement) {
    const sql::SessionCommand &command = statement.command;
    std::string tag = command.options.contains("start") ? "START TRANSACTION" : "BEGIN";
    if (is_in_transaction() && !implicit_) {
        put_warning(channel_.out(), "25001", "there is already a transaction in progress");
        co_return done(std::move(tag));
    }
    const std::optional<bool> read_only = flag(command, "read_only");
    if (implicit_) {
        // What the message has done so far becomes the beginning of this transaction, as in PostgreSQL.
        implicit_ = false;
        session_->transaction_read_only = read_only.value_or(session_->transaction_read_only);
    } else {
        Status status = co_await control(statement);
        if (!status.ok()) co_return status;
    }
    variables_->begin_transaction(option(command, "isolation"), read_only);
    co_return done(std::move(tag));
}

net::Task<Result<Connection::Stream>> Connection::run_commit(const sql::Statement &statement) {
    if (option(statement.command, "chain") == "on") co_return unsupported("COMMIT AND CHAIN");
    if (!is_in_transaction() || implicit_) put_warning(channel_.out(), "25P01", "there is no transaction in progress");
    if (!is_in_transaction()) co_return done("COMMIT");
    if (is_failed()) co_return co_await run_rollback(sql::Statement{.text = "ROLLBACK", .kind = sql::Kind::rollback});
    implicit_ = false;
    portals_.clear();
    Status status = co_await control(statement);
    if (!status.ok()) {
        variables_->rollback();
        co_return status;
    }
    variables_->commit();
    co_return done("COMMIT");
}

net::Task<Result<Connection::Stream>> Connection::run_rollback(const sql::Statement &statement) {
    if (option(statement.command, "chain") == "on") co_return unsupported("ROLLBACK AND CHAIN");
    if (!is_in_transaction() || implicit_) put_warning(channel_.out(), "25P01", "there is no transaction in progress");
    if (!is_in_transaction()) co_return done("ROLLBACK");
    implicit_ = false;
    portals_.clear();
    variables_->rollback();
    Status status = co_await control(statement);
    if (!status.ok()) co_return status;
    co_return done("ROLLBACK");
}

Result<Connection::Stream> Connection::run_savepoint(const sql::Statement &statement) {
    if (statement.kind == sql::Kind::savepoint) return unsupported("SAVEPOINT");
    return Status(Code::not_found, "savepoint \"" + statement.command.name + "\" does not exist")
        .with_sqlstate("3B001");
}

net::Task<Result<Connection::Stream>> Connection::run_use(const sql::Statement &statement) {
    Status status = co_await control(statement);
    if (!status.ok()) co_return status;
    std::vector<std::string> path = session_->settings.search_path;
    if (path.empty()) path.emplace_back("main");
    std::replace(path.begin(), path.end(), std::string("main"), std::string("public"));
    status = variables_->set("search_path", path, false);
    if (!status.ok()) co_return status;
    co_return done("USE");
}

// --- variables

Result<Connection::Stream> Connection::run_set(const sql::SessionCommand &command) {
    if (command.name == "transaction" || command.name == "session characteristics") return run_set_transaction(command);
    if (option(command, "scope") == "global") {
        return Status(Code::permission_denied, "SET GLOBAL is not available: the pool's settings are its operator's");
    }
    if (command.options.contains("expression")) return unsupported("SET of an expression");
    if (command.is_local && (!is_in_transaction() || implicit_)) {
        put_warning(channel_.out(), "25P01", "SET LOCAL can only be used in transaction blocks");
    }
    if (command.is_default) {
        ROOST_RETURN_IF_ERROR(variables_->reset(command.name, command.is_local));
    } else {
        ROOST_RETURN_IF_ERROR(variables_->set(command.name, command.values, command.is_local));
    }
    if (command.name == "transaction_read_only") session_->transaction_read_only = variables_->transaction_read_only();
    return done("SET");
}

Result<Connection::Stream> Connection::run_set_transaction(const sql::SessionCommand &command) {
    const bool of_session = command.name != "transaction";
    if (!of_session && (!is_in_transaction() || implicit_)) {
        put_warning(channel_.out(), "25P01", "SET TRANSACTION can only be used in transaction blocks");
        return done("SET");
    }
    const std::string prefix = of_session ? "default_transaction_" : "transaction_";
    for (const char *name : {"isolation", "read_only", "deferrable"}) {
        const auto value = option(command, name);
        if (value) ROOST_RETURN_IF_ERROR(variables_->set(prefix + name, {*value}, !of_session));
    }
    if (!of_session) session_->transaction_read_only = variables_->transaction_read_only();
    return done("SET");
}

Result<Connection::Stream> Connection::run_reset(const sql::SessionCommand &command) {
    if (command.name == "all") {
        variables_->reset_all();
    } else {
        ROOST_RETURN_IF_ERROR(variables_->reset(command.name));
    }
    return done("RESET");
}

Result<Connection::Stream> Connection::run_show(const sql::SessionCommand &command) const {
    std::vector<std::vector<std::string>> rows;
    if (command.name == "all") {
        for (auto &shown : variables_->show_all()) rows.push_back({shown.name, shown.setting, shown.description});
        return Stream(
            std::make_unique<LocalResult>("SHOW", std::vector<std::string>{"name", "setting", "description"}, rows));
    }
    ROOST_ASSIGN_OR_RETURN(const auto shown, variables_->show(command.name));
    rows.push_back({shown.setting});
    return Stream(std::make_unique<LocalResult>("SHOW", std::vector<std::string>{shown.name}, rows));
}

Result<Connection::Stream> Connection::run_discard(const sql::SessionCommand &command) {
    std::string what = command.name;
    for (char &c : what) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    if (what != "ALL") return done("DISCARD " + what);  // no plans, sequences or temporary tables are kept
    if (is_in_transaction()) {
        return Status(Code::failed_precondition, "DISCARD ALL cannot run inside a transaction block")
            .with_sqlstate("25001");
    }
    portals_.clear();
    statements_.clear();
    variables_->reset_all();
    session_->settings.variables.clear();
    return done("DISCARD ALL");
}

// --- prepared statements of SQL

Result<Connection::Stream> Connection::run_deallocate(const sql::SessionCommand &command) {
    if (command.name == "all") {
        statements_.clear();
        return done("DEALLOCATE ALL");
    }
    ROOST_RETURN_IF_ERROR(find_prepared(command.name).status());
    statements_.erase(command.name);
    return done("DEALLOCATE");
}

net::Task<Result<Connection::Stream>> Connection::run_prepare(const sql::Statement &statement) {
    const sql::SessionCommand &command = statement.command;
    if (statements_.contains(command.name)) {
        co_return Status(Code::already_exists, "prepared statement \"" + command.name + "\" already exists")
            .with_sqlstate("42P05");
    }
    Result<sql::Statement> body = co_await parse_one(command.body);
    if (!body.ok()) co_return body.status();
    if (body->kind == sql::Kind::empty || sql::is_session_command(body->kind)) {
        co_return Status(Code::syntax_error, "only a query can be prepared");
    }
    auto prepared = std::make_shared<Prepared>();
    prepared->name = command.name;
    prepared->param_count = std::max<size_t>(body->param_count, command.values.size());
    for (const std::string &type : command.values) prepared->declared_oids.push_back(type_oid(type));
    prepared->statement = std::move(body).value();
    Status status = co_await describe(*prepared);
    if (!status.ok()) co_return status;
    statements_[command.name] = std::move(prepared);
    co_return done("PREPARE");
}

net::Task<Result<Connection::Stream>> Connection::run_execute(const sql::SessionCommand &command,
                                                              std::vector<int16_t> formats) {
    const Result<std::shared_ptr<Prepared>> found = find_prepared(command.name);
    if (!found.ok()) co_return found.status();
    const std::shared_ptr<Prepared> &prepared = *found;
    if (sql::is_session_command(prepared->statement.kind)) co_return unsupported("EXECUTE of a session command");
    Result<std::vector<Param>> params = parse_arguments(command.body);
    if (!params.ok()) co_return params.status();
    if (params->size() != prepared->param_count) {
        co_return Status(Code::syntax_error,
                         "wrong number of parameters for prepared statement \"" + command.name + "\"")
            .with_detail("Expected " + std::to_string(prepared->param_count) + " parameters but got " +
                         std::to_string(params->size()) + ".");
    }
    for (size_t i = 0; i < params->size(); i++) {
        uint32_t &oid = (*params)[i].pg_oid;
        if (i < prepared->declared_oids.size() && prepared->declared_oids[i] != 0) oid = prepared->declared_oids[i];
        if (oid == 0 && prepared->is_described) oid = prepared->param_oids[i];
    }
    co_return co_await start(prepared->statement, std::move(params).value(), std::move(formats));
}

// --- cursors of SQL: portals with a statement in front

net::Task<Result<Connection::Stream>> Connection::run_declare(const sql::Statement &statement,
                                                              std::vector<Param> params) {
    const sql::SessionCommand &command = statement.command;
    if (option(command, "hold") == "on") co_return unsupported("DECLARE CURSOR WITH HOLD");
    if (!is_in_transaction()) {
        co_return Status(Code::failed_precondition, "DECLARE CURSOR can only be used in transaction blocks")
            .with_sqlstate("25P01");
    }
    if (portals_.contains(command.name)) {
        co_return Status(Code::already_exists, "cursor \"" + command.name + "\" already exists").with_sqlstate("42P03");
    }
    Result<sql::Statement> body = co_await parse_one(command.body);
    if (!body.ok()) co_return body.status();
    if (body->kind != sql::Kind::select) co_return Status(Code::syntax_error, "a cursor needs a SELECT");
    auto portal = std::make_shared<Portal>();
    portal->name = command.name;
    portal->prepared = std::make_shared<Prepared>();
    portal->prepared->statement = std::move(body).value();
    if (option(command, "binary") == "on") portal->formats = {1};
    Result<Stream> stream = co_await start(portal->prepared->statement, std::move(params), portal->formats);
    if (!stream.ok()) co_return stream.status();
    portal->cursor.emplace(std::move(stream).value());
    track(*portal->cursor);
    Status status = co_await portal->cursor->open();
    running_.cursor = nullptr;
    if (!status.ok()) co_return status;
    portals_[command.name] = std::move(portal);
    co_return done("DECLARE CURSOR");
}

Result<Connection::Stream> Connection::run_fetch(const sql::Statement &statement) {
    const auto at = portals_.find(statement.command.name);
    if (at == portals_.end() || !at->second->cursor) return no_cursor(statement.command.name);
    ROOST_ASSIGN_OR_RETURN(const uint64_t rows_max, fetch_count(statement.command));
    if (rows_max == 0 && statement.kind == sql::Kind::fetch) return unsupported("FETCH 0");
    return Stream(std::make_unique<FetchResult>(at->second, rows_max, statement.kind == sql::Kind::move));
}

std::vector<int16_t> Connection::row_formats(const sql::Statement &statement, const std::vector<int16_t> &asked) const {
    if (statement.kind != sql::Kind::fetch) return asked;
    const auto at = portals_.find(statement.command.name);
    return at != portals_.end() ? at->second->formats : asked;
}

Result<Connection::Stream> Connection::run_close(const sql::SessionCommand &command) {
    if (command.name == "all") {
        portals_.clear();
        return done("CLOSE CURSOR ALL");
    }
    if (portals_.erase(command.name) == 0) return no_cursor(command.name);
    return done("CLOSE CURSOR");
}

Status Connection::explain_show(const sql::Statement &statement, Status status) {
    if (status.ok() || statement.kind != sql::Kind::describe || status.sqlstate() != "42P01") return status;
    sql::Lexer lexer(statement.text);
    if (!sql::equals_folded(lexer.next().in(statement.text), "show")) return status;
    const sql::Token name = lexer.next();
    if (lexer.next().kind != sql::Token::Kind::end) return status;
    return Status(Code::not_found,
                  "unrecognized configuration parameter \"" + std::string(name.in(statement.text)) + "\"");
}

// --- what a command returns, without running it

net::Task<Status> Connection::describe_command(Prepared &prepared) {
    const sql::SessionCommand &command = prepared.statement.command;
    prepared.has_grid = false;
    prepared.columns.clear();
    prepared.param_oids = prepared.declared_oids;
    prepared.param_oids.resize(prepared.param_count, 0);
    std::replace(prepared.param_oids.begin(), prepared.param_oids.end(), 0U, 25U);
    if (prepared.statement.kind == sql::Kind::show) {
        Result<Stream> shown = run_show(command);
        if (!shown.ok()) co_return shown.status();
        Result<ResultHeader> header = co_await (*shown)->header();
        prepared.columns = std::move(header->columns);
    } else if (prepared.statement.kind == sql::Kind::execute) {
        const Result<std::shared_ptr<Prepared>> found = find_prepared(command.name);
        if (!found.ok()) co_return found.status();
        const std::shared_ptr<Prepared> &body = *found;
        if (!body->is_described && !sql::is_session_command(body->statement.kind)) {
            Status status = co_await describe(*body);
            if (!status.ok()) co_return status;
        }
        prepared.columns = body->columns;
    } else if (prepared.statement.kind == sql::Kind::fetch) {
        const auto at = portals_.find(command.name);
        if (at == portals_.end() || !at->second->cursor) co_return no_cursor(command.name);
        prepared.columns = at->second->cursor->header().columns;
    }
    prepared.has_grid = !prepared.columns.empty();
    prepared.is_described = true;
    co_return Status();
}

}  // namespace roost::pg
