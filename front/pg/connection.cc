#include "front/pg/connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "front/pg/login.h"

namespace roost::pg {
namespace {

namespace asio = net::asio;

// What waits in the output before it is sent without being asked for.
constexpr size_t kFlushBytes = 64 * 1024;

bool ends_transaction(sql::Kind kind) {
    return kind == sql::Kind::commit || kind == sql::Kind::rollback || kind == sql::Kind::rollback_to;
}

Status shutting_down() {
    return Status(Code::unavailable, "terminating connection due to administrator command").with_sqlstate("57P01");
}

Status client_left() { return Status(Code::cancelled, "the client left"); }

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)), channel_(std::move(socket)) {
    shared_->connections.insert(this);
    shared_->service.connection_opened("pg");
    login_until_ms_ = shared_->clock.monotonic_ms() + shared_->options.login_max_ms;
}

Connection::~Connection() { end(); }

net::Task<void> Connection::run(std::shared_ptr<Connection> self) { co_await self->live(); }

net::Task<void> Connection::live() {
    Login login(channel_, *shared_);
    std::optional<Login::Outcome> outcome = co_await login.run();
    if (outcome) {
        session_ = std::move(outcome->session);
        variables_ = std::move(outcome->variables);
        greet();
        co_await serve();
    }
    if (last_words_) {
        channel_.out().clear();
        put_error(channel_.out(), *last_words_, Severity::fatal);
        channel_.flush_now();
    }
    end();
}

void Connection::greet() {
    key_ = shared_->cancels.add(*this);
    for (const auto &[name, value] : variables_->all_reports()) put_parameter_status(channel_.out(), name, value);
    put_backend_key(channel_.out(), key_->pid, key_->secret);
    put_ready(channel_.out(), 'I');
}

net::Task<void> Connection::serve() {
    if (!co_await channel_.flush()) co_return;
    if (shared_->draining) end_with(shutting_down());
    while (!last_words_) {
        const std::optional<Message> message = co_await next_message();
        if (!message || !co_await handle(*message)) co_return;
    }
}

net::Task<std::optional<Message>> Connection::next_message() {
    channel_.consume(std::exchange(message_bytes_, 0));
    while (true) {
        const std::string_view input = channel_.input();
        const Result<std::optional<MessageSize>> size = message_size(input);
        if (!size.ok()) {
            last_words_ = size.status();
            co_return std::nullopt;
        }
        const size_t total_bytes = size->has_value() ? (*size)->total_bytes : 0;
        if (total_bytes > 0 && input.size() >= total_bytes) {
            message_bytes_ = total_bytes;
            co_return Message{(*size)->type, input.substr(5, total_bytes - 5)};
        }
        phase_ = input.empty() ? Phase::idle : Phase::reading;
        if (!co_await channel_.fill(total_bytes)) co_return std::nullopt;
    }
}

net::Task<bool> Connection::handle(const Message &message) {
    if (skip_until_sync_ && message.type != 'S' && message.type != 'X') {
        // Discarded, but a client that asked for answers waits for the error.
        co_return message.type != 'H' || co_await channel_.flush();
    }
    switch (message.type) {
        case 'Q':
            co_return co_await on_query(message.body);
        case 'P':
            co_await on_parse(message.body);
            break;
        case 'B':
            co_await on_bind(message.body);
            break;
        case 'D':
            co_await on_describe(message.body);
            break;
        case 'E':
            co_await on_execute(message.body);
            break;
        case 'C':
            co_await on_close(message.body);
            break;
        case 'S':
            co_return co_await on_sync();
        case 'H': {
            Status status = co_await resolve();
            if (!status.ok()) co_await fail_group(std::move(status));
            co_return co_await channel_.flush();
        }
        case 'F':
            co_await fail(Status(Code::unimplemented, "the function call protocol is not supported"));
            settle(false);
            co_return co_await ready();
        case 'X':
            co_return false;
        default:
            break;  // CopyData and the like outside COPY: PostgreSQL ignores them too
    }
    co_return !channel_.gone();
}

net::Task<bool> Connection::ready() {
    sync_settings();
    for (const auto &[name, value] : variables_->take_reports()) put_parameter_status(channel_.out(), name, value);
    put_ready(channel_.out(), !is_in_transaction() ? 'I' : is_failed() ? 'E' : 'T');
    const bool sent = co_await channel_.flush();
    if (shared_->draining) end_with(shutting_down());
    co_return sent;
}

bool Connection::next_is_sync() const {
    const std::string_view input = channel_.input();
    return input.size() > message_bytes_ && input[message_bytes_] == 'S';
}

void Connection::end_with(Status last_words) {
    if (!last_words_) last_words_ = std::move(last_words);
    channel_.interrupt();
}

void Connection::end() {
    if (phase_ == Phase::ended) return;
    phase_ = Phase::ended;
    channel_.close();
    portals_.clear();
    if (key_) shared_->cancels.remove(*key_);
    if (session_) shared_->service.close_session(session_);
    shared_->connections.erase(this);
    shared_->service.connection_closed("pg");
}

// --- from outside

void Connection::cancel_running() {
    if (!running_.active) return;
    running_.cancelled = true;
    if (running_.cursor != nullptr) {
        running_.cursor->cancel(Status(Code::cancelled, "canceling statement due to user request"));
    }
}

void Connection::track(RowCursor &cursor) {
    running_.cursor = &cursor;
    if (running_.cancelled) cancel_running();
}

void Connection::drain() {
    const bool is_quiet = phase_ == Phase::idle && channel_.reading() && channel_.out().empty() && !pending_.any();
    if (is_quiet) end_with(shutting_down());
}

void Connection::cut() {
    if (!last_words_) last_words_ = shutting_down();
    if (running_.cursor != nullptr) running_.cursor->cancel(*last_words_);
    if (session_) shared_->service.close_session(session_);
    if (channel_.writing()) {
        channel_.close();
    } else {
        channel_.interrupt();
    }
}

void Connection::sweep(int64_t now_ms) {
    if (phase_ == Phase::login) {
        if (now_ms > login_until_ms_) channel_.close();
        return;
    }
    if (channel_.progress() != swept_progress_ || phase_ != swept_phase_) {
        swept_progress_ = channel_.progress();
        swept_phase_ = phase_;
        swept_since_ms_ = now_ms;
    }
    const int64_t unchanged_ms = now_ms - swept_since_ms_;
    if (channel_.writing() || phase_ == Phase::reading) {
        sweep_stalled(unchanged_ms);
    } else if (phase_ == Phase::idle) {
        sweep_idle(unchanged_ms);
    }
    if (phase_ == Phase::running && unchanged_ms >= shared_->options.watch_after_ms) watch();
}

void Connection::sweep_stalled(int64_t stalled_ms) {
    if (channel_.writing()) {
        if (stalled_ms > shared_->options.write_stall_max_ms) channel_.close();
    } else if (stalled_ms > shared_->options.message_stall_max_ms) {
        end_with(protocol_violation("incomplete message from client"));
    }
}

void Connection::sweep_idle(int64_t idle_ms) {
    const auto is_over = [&](int64_t limit_ms) { return limit_ms > 0 && idle_ms > limit_ms; };
    if (!is_in_transaction()) {
        if (is_over(idle_session_max_ms_)) {
            end_with(
                Status(Code::timeout, "terminating connection due to idle-session timeout").with_sqlstate("57P05"));
        }
        return;
    }
    if (is_over(idle_transaction_max_ms_)) {
        end_with(
            Status(Code::timeout, "terminating connection due to idle-in-transaction timeout").with_sqlstate("25P03"));
    }
}

void Connection::watch() {
    if (channel_.watching() || channel_.gone()) return;
    asio::co_spawn(channel_.socket().get_executor(), watch_client(shared_from_this()), asio::detached);
}

net::Task<void> Connection::watch_client(std::shared_ptr<Connection> self) {
    const bool gone = co_await self->channel_.watch();
    if (!gone || self->phase_ != Phase::running) co_return;
    if (self->running_.cursor != nullptr) self->running_.cursor->cancel(client_left());
    self->shared_->service.close_session(self->session_);
}

// --- transactions

void Connection::sync_settings() {
    if (applied_version_ == variables_->version()) return;
    applied_version_ = variables_->version();
    variables_->apply_to(*session_);
    idle_session_max_ms_ = variables_->duration_ms("idle_session_timeout");
    idle_transaction_max_ms_ = variables_->duration_ms("idle_in_transaction_session_timeout");
}

Status Connection::check_not_failed(const sql::Statement &statement) {
    if (!is_failed() || ends_transaction(statement.kind) || statement.kind == sql::Kind::empty) return {};
    // Ended from outside (left idle): said once, then it is like any failed transaction.
    if (!session_->transaction_failure.ok()) return std::exchange(session_->transaction_failure, Status());
    return Status(Code::failed_precondition,
                  "current transaction is aborted, commands ignored until end of transaction block")
        .with_sqlstate("25P02");
}

net::Task<Status> Connection::control(sql::Statement statement) {
    // A BEGIN may wait for the write lease, so it can be cancelled; an end of a transaction can't be half done.
    const bool may_cancel = statement.kind == sql::Kind::begin;
    sync_settings();
    service::ExecuteRequest request{.statement = std::move(statement), .params = {}, .result_formats = {}};
    Result<Stream> stream = co_await shared_->service.execute(session_, std::move(request));
    if (!stream.ok()) co_return stream.status();
    if (*stream == nullptr) co_return Status();
    RowCursor cursor(std::move(stream).value());
    if (may_cancel && running_.active) track(cursor);
    Status status = co_await cursor.open();
    if (status.ok()) status = (co_await cursor.next(1)).status();
    running_.cursor = nullptr;
    co_return status;
}

net::Task<Status> Connection::begin_implicit() {
    Status status = co_await control(sql::Statement{.text = "BEGIN", .kind = sql::Kind::begin});
    implicit_ = status.ok();
    co_return status;
}

net::Task<Status> Connection::commit_implicit() {
    implicit_ = false;
    portals_.clear();
    co_return co_await control(sql::Statement{.text = "COMMIT", .kind = sql::Kind::commit});
}

net::Task<void> Connection::fail(Status status) {
    put_error(channel_.out(), status);
    portals_.clear();
    if (implicit_) {
        implicit_ = false;
        Status undone = co_await control(sql::Statement{.text = "ROLLBACK", .kind = sql::Kind::rollback});
        if (!undone.ok()) shared_->log.warn("pg_implicit_rollback_failed", {{"error", undone.to_string()}});
    } else if (is_in_transaction()) {
        session_->transaction = service::TransactionState::failed;
    }
}

void Connection::settle(bool ok) {
    if (is_in_transaction()) return;
    portals_.clear();
    if (ok) {
        variables_->commit();
    } else {
        variables_->rollback();
    }
}

// --- running

net::Task<Result<Connection::Stream>> Connection::start(const sql::Statement &statement, std::vector<Param> params,
                                                        std::vector<int16_t> formats) {
    if (sql::is_session_command(statement.kind)) {
        co_return co_await run_command(statement, std::move(params), std::move(formats));
    }
    sync_settings();
    service::ExecuteRequest request{
        .statement = statement, .params = std::move(params), .result_formats = std::move(formats)};
    co_return co_await shared_->service.execute(session_, std::move(request));
}

net::Task<Result<Connection::Relay>> Connection::relay(RowCursor &cursor, uint64_t rows_max, uint64_t &rows) {
    while (rows_max == 0 || rows < rows_max) {
        const uint64_t left = rows_max == 0 ? UINT32_MAX : std::min<uint64_t>(rows_max - rows, UINT32_MAX);
        const Result<std::optional<RowCursor::Slice>> slice = co_await cursor.next(static_cast<uint32_t>(left));
        if (!slice.ok()) co_return slice.status();
        if (!slice->has_value()) co_return Relay::complete;
        rows += (*slice)->rows;
        if (channel_.out().size() + (*slice)->bytes.size() < kFlushBytes) {
            channel_.out().append((*slice)->bytes);
        } else if (!co_await channel_.flush((*slice)->bytes)) {
            co_return client_left();
        }
    }
    co_return Relay::suspended;
}

}  // namespace roost::pg
