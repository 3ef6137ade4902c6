// HTTP sessions: their life, and the statements that run in them, one after the other.
#include <algorithm>
#include <boost/asio/detached.hpp>
#include <charconv>

#include "service/aborted_transaction.h"
#include "service/gateway_service.h"

namespace roost::service {

namespace asio = net::asio;

namespace {

// Statements that wait for their turn in one session.
constexpr size_t kQueueMax = 100;
constexpr size_t kOpenMax = 10'000, kClosedKeptMax = 10'000;

Status not_open(const SqlSessionInfo &info) {
    return Status(Code::failed_precondition,
                  "the session is " + info.status + (info.close_reason.empty() ? "" : " (" + info.close_reason + ")"))
        .with_name("session_not_open")
        .with_hint("open another one");
}

std::optional<bool> flag(const sql::SessionCommand &command, const char *name) {
    const auto found = command.options.find(name);
    if (found == command.options.end()) return std::nullopt;
    return found->second == "on";
}

// What only Postgres' protocol has a use for. The engine's parser does not know most of it.
bool is_postgres_only(const sql::Statement &statement) {
    if (statement.kind == sql::Kind::set) return statement.command.is_local;
    if (statement.kind == sql::Kind::reset) return statement.command.name == "all";
    return sql::is_session_command(statement.kind) && statement.kind != sql::Kind::begin &&
           statement.kind != sql::Kind::commit && statement.kind != sql::Kind::rollback &&
           statement.kind != sql::Kind::use && statement.kind != sql::Kind::set_variable;
}

}  // namespace

Result<SqlSessionInfo> GatewayService::open_sql_session(const OpenSession &request, std::optional<Uuid> node) {
    if (core_->draining) return Status(Code::unavailable, "roost is shutting down").with_sqlstate("57P03");
    ROOST_RETURN_IF_ERROR(check_node(node));
    const size_t open = sql_sessions_.size() - closed_sql_sessions_.size();
    if (open >= kOpenMax) {
        return Status(Code::unavailable,
                      "there are " + std::to_string(open) + " open sessions, as many as there may be")
            .with_name("too_many_sessions")
            .with_hint("close those that are not needed");
    }
    ROOST_ASSIGN_OR_RETURN(auto session, open_session(request));
    auto made = std::make_shared<SqlSession>(session, core_->loop.get_executor());
    SqlSessionInfo &info = made->info;
    info.id = session->id;
    info.workspace_id = session->workspace_id;
    info.workspace = session->workspace;
    info.user_id = session->principal.user_id;
    info.user_name = session->principal.user_name;
    info.active_catalog = session->settings.catalog;
    std::tie(info.client_name, info.client_version) = split_product(session->client_name);
    info.created_us = info.last_active_us = core_->clock.wall_us();
    made->node = node;
    made->opened_us = core_->clock.monotonic_us();
    look_at(*made);
    sql_sessions_[info.id] = made;
    core_->log.info("session_opened",
                    {{"session_id", info.id}, {"user", info.user_name}, {"client", session->client_name}});
    return info;
}

Result<GatewayService::SqlSessionPtr> GatewayService::find_sql_session(const Principal &who, const Uuid &id) const {
    const auto found = sql_sessions_.find(id);
    if (found == sql_sessions_.end() || (found->second->info.user_id != who.user_id && who.role != "admin")) {
        return Status(Code::not_found, "there is no session " + id.to_string()).with_name("session_not_found");
    }
    return found->second;
}

// As it is now.
const SqlSessionInfo &GatewayService::look_at(SqlSession &sql) {
    if (sql.info.is_open()) {
        sql.info.active_catalog = sql.session->settings.catalog;
        sql.info.node = sql.session->pinned_node.value_or(sql.node.value_or(Uuid()));
    }
    return sql.info;
}

Result<SqlSessionInfo> GatewayService::sql_session(const Principal &who, const Uuid &id) {
    ROOST_ASSIGN_OR_RETURN(const SqlSessionPtr sql, find_sql_session(who, id));
    return look_at(*sql);
}

Result<SqlSessionPage> GatewayService::list_sql_sessions(const Principal &who, std::string_view workspace,
                                                         const std::vector<std::string> &statuses,
                                                         std::string_view cursor, size_t limit) {
    ROOST_ASSIGN_OR_RETURN(const meta::Workspace *of, find_workspace(who, workspace));
    const auto before = Uuid::parse(cursor);
    if (!cursor.empty() && !before) {
        return Status(Code::invalid_argument, "cursor is not one of this list").with_name("bad_cursor");
    }
    SqlSessionPage page;
    // Ids are in the order of time.
    for (auto each = sql_sessions_.rbegin(); each != sql_sessions_.rend(); ++each) {
        SqlSession &sql = *each->second;
        if (sql.info.workspace_id != of->id || (before && !(sql.info.id < *before))) continue;
        if (sql.info.user_id != who.user_id && who.role != "admin") continue;
        if (!statuses.empty() && std::ranges::find(statuses, sql.info.status) == statuses.end()) continue;
        if (page.items.size() == limit) {
            page.cursor = page.items.back().id.to_string();
            break;
        }
        page.items.push_back(look_at(sql));
    }
    return page;
}

// --- the end

void GatewayService::end_sql_session(const SqlSessionPtr &sql, std::string_view status, std::string_view why) {
    if (!sql->info.is_open()) return;
    look_at(*sql);
    sql->info.node = Uuid();
    sql->info.status = status;
    sql->info.close_reason = why;
    sql->info.closed_us = core_->clock.wall_us();
    core_->log.info("session_closed", {{"session_id", sql->info.id}, {"why", why}});
    const Status reason(Code::cancelled, "the session was closed (" + std::string(why) + ")");
    for (const auto &queued : std::exchange(sql->queue, {})) {
        if (!queued.entry->info.is_terminal()) finish_entry(queued.entry, reason);
    }
    if (sql->entry) {
        if (sql->entry->cancel_reason.ok()) sql->entry->cancel_reason = reason;
        if (sql->entry->running) sql->entry->running->cancel(reason);
    }
    close_session(sql->session);
    closed_sql_sessions_.push_back(sql->info.id);
    while (closed_sql_sessions_.size() > kClosedKeptMax) {
        sql_sessions_.erase(closed_sql_sessions_.front());
        closed_sql_sessions_.pop_front();
    }
}

net::Task<Status> GatewayService::close_sql_session(Principal who, Uuid id) {
    const auto sql = find_sql_session(who, id);
    if (!sql.ok()) co_return sql.status();
    end_sql_session(*sql, "closed", "client");
    // What ran has ended when the client hears of it.
    while ((*sql)->entry) co_await (*sql)->idle.wait_for(std::chrono::seconds(1));
    co_return Status();
}

void GatewayService::expire_sql_sessions() {
    const int64_t now_us = core_->clock.monotonic_us();
    std::vector<std::pair<SqlSessionPtr, std::string_view>> over;
    for (const auto &[id, sql] : sql_sessions_) {
        if (!sql->info.is_open()) continue;
        if (sql->session->closed) {
            over.emplace_back(sql, "failed");  // its user was shut out
        } else if (now_us - sql->opened_us > core_->limits.session_life_ms * 1000) {
            over.emplace_back(sql, "max_lifetime");
        } else if (!sql->entry &&
                   now_us - sql->session->last_active_us > core_->limits.session_idle_timeout_ms * 1000) {
            over.emplace_back(sql, "idle");
        }
    }
    for (const auto &[sql, why] : over) end_sql_session(sql, why == "failed" ? "closed" : "expired", why);
}

// --- statements

net::Task<Result<StatementInfo>> GatewayService::submit_in_session(SubmitRequest request, Uuid id) {
    const auto found = find_sql_session(request.principal, id);
    if (!found.ok()) co_return found.status();
    const SqlSessionPtr sql = *found;
    if (!sql->info.is_open()) co_return not_open(sql->info);
    if (core_->draining) co_return Status(Code::unavailable, "roost is shutting down").with_sqlstate("57P03");
    if (sql->queue.size() >= kQueueMax) {
        co_return Status(Code::resource_exhausted,
                         std::to_string(kQueueMax) + " statements of this session wait for their turn already")
            .with_name("too_busy");
    }
    sql->info.last_active_us = core_->clock.wall_us();
    sql->session->last_active_us = core_->clock.monotonic_us();
    auto statements = co_await parse(request.sql, sql::Context::session, sql->session);
    if (!statements.ok()) co_return statements.status();
    if (!sql->info.is_open()) co_return not_open(sql->info);
    if (statements->size() > 1 && !request.params.empty()) {
        co_return Status(Code::invalid_argument,
                         "parameters are for a single statement; this text has " + std::to_string(statements->size()));
    }
    if (std::ranges::any_of(*statements, is_postgres_only)) {
        co_return Status(Code::not_allowed, "this is a command of Postgres clients; an HTTP session has no use for it")
            .with_rule("parse")
            .with_hint("connect by Postgres wire for it");
    }
    const bool writes = std::ranges::any_of(*statements, [](const auto &statement) {
        return sql::changes_lake(statement.kind) || statement.kind == sql::Kind::commit;
    });
    const EntryPtr entry =
        make_entry(sql->session, request.sql, std::string(sql::kind_name(statements->back().kind)), writes);
    sql->info.statements++;
    const int64_t wait_ms = request.wait_ms;
    entry->queued = true;
    sql->queue.push_back({entry, std::move(*statements), std::move(request)});
    if (!sql->entry) asio::co_spawn(core_->loop, run_session(sql), asio::detached);
    co_return co_await wait_for(entry, wait_ms);
}

// What waits in the session, until nothing does.
net::Task<void> GatewayService::run_session(SqlSessionPtr sql) {
    while (!sql->queue.empty()) {
        SqlSession::Queued next = std::move(sql->queue.front());
        sql->queue.pop_front();
        next.entry->queued = false;
        if (next.entry->info.is_terminal()) continue;  // cancelled while it waited
        sql->entry = next.entry;
        const Status status = co_await run_queued(sql, next);
        finish_entry(next.entry, status);
        sql->session->last_active_us = core_->clock.monotonic_us();
        sql->info.last_active_us = core_->clock.wall_us();
        sql->entry.reset();
        sql->idle.notify();
    }
}

net::Task<Status> GatewayService::run_queued(SqlSessionPtr sql, SqlSession::Queued &queued) {
    const EntryPtr entry = queued.entry;
    Status status;
    for (size_t i = 0; i < queued.statements.size() && status.ok(); ++i) {
        const bool last = i + 1 == queued.statements.size();
        if (!entry->cancel_reason.ok()) co_return entry->cancel_reason;
        ExecuteRequest execute;
        execute.statement = std::move(queued.statements[i]);
        if (last) execute.params = std::move(queued.request.params);
        execute.timeout_ms = queued.request.timeout_ms;
        const sql::Kind kind = execute.statement.kind;
        if (sql::is_session_command(kind) || kind == sql::Kind::set_variable) {
            status = co_await run_command(sql, std::move(execute), last ? entry->info.record.id : Uuid());
            if (status.ok() && last) end_local(entry);
            continue;
        }
        Session &session = *sql->session;
        if (session.transaction == TransactionState::failed) {
            status = aborted_transaction(session);
            continue;
        }
        RunOptions options;
        options.in_history = last;
        options.node = queued.request.node ? queued.request.node : sql->node;
        if (last) {
            options.record = entry->info.record;
            options.format = ResultFormat::stored;
            options.first_page_rows = queued.request.first_page_rows;
            options.end_durable = durable_callback(entry, Record::end);
        }
        status = co_await run_one(entry, sql->session, std::move(execute), std::move(options), last);
        // As in Postgres: what fails in a transaction, on its way to a node too, fails it.
        if (!status.ok() && session.transaction == TransactionState::open) {
            session.transaction = TransactionState::failed;
        }
        if (session.transaction == TransactionState::idle) {
            status.ok() ? sql->variables.commit() : sql->variables.rollback();
        }
    }
    co_return status;
}

// `id`: of the statement that the client follows; nil: it is a part of a text.
net::Task<Status> GatewayService::run_command(SqlSessionPtr sql, ExecuteRequest request, Uuid id) {
    Session &session = *sql->session;
    SessionVariables &variables = sql->variables;
    const sql::Kind kind = request.statement.kind;
    const sql::SessionCommand command = request.statement.command;
    const bool in_transaction = session.transaction != TransactionState::idle;
    if (kind == sql::Kind::commit || kind == sql::Kind::rollback) {
        if (!in_transaction) co_return Status();
        RunOptions options;
        options.id = id;
        options.in_history = false;
        const bool commit = kind == sql::Kind::commit && session.transaction == TransactionState::open;
        auto ended = co_await end_transaction(sql->session, request.statement, kind == sql::Kind::commit, options);
        ended.ok() && commit ? variables.commit() : variables.rollback();
        variables.apply_to(session);
        co_return ended.status();
    }
    if (session.transaction == TransactionState::failed) co_return aborted_transaction(session);
    Status status;
    if (kind == sql::Kind::set) {
        const auto scope = command.options.find("scope");
        if (scope != command.options.end() && scope->second == "global") {
            status =
                Status(Code::permission_denied, "SET GLOBAL is not available: the pool's settings are its operator's");
        } else if (command.options.contains("expression")) {
            status = Status(Code::unimplemented, "SET of an expression is not supported");
        } else {
            status =
                command.is_default ? variables.reset(command.name) : variables.set(command.name, command.values, false);
        }
    } else if (kind == sql::Kind::reset) {
        status = variables.reset(command.name);
    } else {
        auto done = co_await execute(sql->session, std::move(request));
        status = done.status();
        while (status.ok()) {
            auto frame = co_await (*done)->next();
            status = frame.status();
            if (frame.ok() && !frame->has_value()) break;
        }
        if (status.ok() && kind == sql::Kind::begin)
            variables.begin_transaction(std::nullopt, flag(command, "read_only"));
        if (status.ok() && kind == sql::Kind::use) {
            std::vector<std::string> path = session.settings.search_path;
            std::ranges::replace(path, std::string("main"), std::string("public"));
            status = variables.set("search_path", path, false);
        }
    }
    if (!status.ok() && in_transaction) session.transaction = TransactionState::failed;
    if (!in_transaction && kind != sql::Kind::begin) status.ok() ? variables.commit() : variables.rollback();
    if (kind == sql::Kind::set || kind == sql::Kind::reset || kind == sql::Kind::use) variables.apply_to(session);
    co_return status;
}

// A statement that no node ran has ended well.
void GatewayService::end_local(const EntryPtr &entry) {
    meta::StatementRecord &record = entry->info.record;
    record.status = meta::StatementStatus::done;
    record.finished_us = core_->clock.wall_us();
    if (record.running_us == 0) record.running_us = record.finished_us;
    record.has_result = false;
    core_->meta.record_statement(record, durable_callback(entry, Record::end));
}

}  // namespace roost::service
