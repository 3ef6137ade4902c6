#include "lake/postgres_connection.h"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "lake/ducklake.h"

namespace roost {

namespace {

// A server that does not answer at all is given up after this even when the caller has more time: another attempt may
// meet another server.
constexpr std::chrono::seconds kConnectMax(10);

const PGresult *result_of(const void *result) { return static_cast<const PGresult *>(result); }

struct FreeResult {
    void operator()(PGresult *result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, FreeResult>;

std::string password_of(const std::string &connection_string) {
    std::string password;
    PQconninfoOption *options = PQconninfoParse(connection_string.c_str(), nullptr);
    for (const PQconninfoOption *option = options; option != nullptr && option->keyword != nullptr; option++) {
        if (option->val != nullptr && std::string_view(option->keyword) == "password") password = option->val;
    }
    PQconninfoFree(options);
    return password;
}

std::string_view trimmed(const char *text) {
    std::string_view view = text == nullptr ? "" : text;
    while (!view.empty() && (view.back() == '\n' || view.back() == ' ')) view.remove_suffix(1);
    return view;
}

// Wakes a poll when its call is cancelled.
class Wake {
public:
    explicit Wake(const std::stop_token &token)
        : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), callback_(token, Signal{fd_}) {}
    ~Wake() {
        // The callback may be running on another thread: it ends before the descriptor does.
        callback_.reset();
        close(fd_);
    }
    int fd() const { return fd_; }

private:
    struct Signal {
        int fd;
        void operator()() const {
            const uint64_t one = 1;
            // Nothing to be done about a failure: the deadline ends the wait then.
            [[maybe_unused]] const ssize_t ignored = write(fd, &one, sizeof one);
        }
    };
    class Callback {
    public:
        Callback(const std::stop_token &token, Signal signal) : callback_(std::in_place, token, signal) {}
        void reset() { callback_.reset(); }

    private:
        std::optional<std::stop_callback<Signal>> callback_;
    };
    int fd_;
    Callback callback_;
};

// Waits until the socket is readable (or writable). False: the limits are over.
bool wait_for(int socket, short events, const CallLimits &limits) {
    const Wake wake(limits.cancelled);
    for (;;) {
        if (limits.over()) return false;
        pollfd polled[2] = {{.fd = socket, .events = events, .revents = 0},
                            {.fd = wake.fd(), .events = POLLIN, .revents = 0}};
        const int ready = poll(polled, 2, static_cast<int>(limits.left().count()));
        if (ready > 0 && polled[0].revents != 0) return true;
    }
}

}  // namespace

bool PostgresRow::is_null(int column) const { return PQgetisnull(result_of(result_), row_, column) != 0; }

std::string_view PostgresRow::text(int column) const {
    return {PQgetvalue(result_of(result_), row_, column),
            static_cast<size_t>(PQgetlength(result_of(result_), row_, column))};
}

int64_t PostgresRow::integer(int column) const {
    const std::string_view value = text(column);
    int64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    return number;
}

bool PostgresRow::boolean(int column) const {
    const std::string_view value = text(column);
    return value == "t" || value == "true" || value == "1";
}

struct PostgresConnection::State {
    std::string connection_string;
    std::string password;
    std::string schema;
    PGconn *connection = nullptr;
    bool in_transaction = false;

    std::string scrubbed(std::string_view message) const {
        std::string text(message);
        for (size_t at = 0; !password.empty() && (at = text.find(password, at)) != std::string::npos; at += 3) {
            text.replace(at, password.size(), "***");
        }
        return without_password(text);
    }
};

PostgresConnection::PostgresConnection(std::string connection_string, std::string schema)
    : state_(std::make_unique<State>()) {
    state_->schema = std::move(schema);
    state_->password = password_of(connection_string);
    state_->connection_string = std::move(connection_string);
}

PostgresConnection::~PostgresConnection() { disconnect(); }

bool PostgresConnection::connected() const {
    return state_->connection != nullptr && PQstatus(state_->connection) == CONNECTION_OK;
}

void PostgresConnection::disconnect() {
    if (state_->connection != nullptr) PQfinish(state_->connection);
    state_->connection = nullptr;
    state_->in_transaction = false;
}

Status PostgresConnection::lost() {
    const std::string message(trimmed(state_->connection == nullptr ? "" : PQerrorMessage(state_->connection)));
    const std::string scrubbed = state_->scrubbed(message);
    disconnect();
    return Status(Code::unavailable, "the Postgres server can't be reached: " + scrubbed).with_retryable(true);
}

// Names are resolved by libpq without a bound of ours; everything after that has one.
Status PostgresConnection::connect(const CallLimits &caller) {
    disconnect();
    CallLimits limits = caller;
    limits.deadline = std::min(limits.deadline, CallLimits::Clock::now() + kConnectMax);
    char *error = nullptr;
    PQconninfoOption *options = PQconninfoParse(state_->connection_string.c_str(), &error);
    PQfreemem(error);  // it may quote the password
    if (options == nullptr) {
        return Status(Code::invalid_argument, "the connection string of the Postgres catalog can't be read");
    }
    PQconninfoFree(options);
    state_->connection = PQconnectStart(state_->connection_string.c_str());
    if (state_->connection == nullptr) return Status(Code::resource_exhausted, "out of memory");
    if (PQstatus(state_->connection) == CONNECTION_BAD) return lost();
    for (PostgresPollingStatusType step = PGRES_POLLING_WRITING; step != PGRES_POLLING_OK;
         step = PQconnectPoll(state_->connection)) {
        if (step == PGRES_POLLING_FAILED) return lost();
        const short events = step == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (!wait_for(PQsocket(state_->connection), events, limits)) {
            disconnect();
            if (!caller.over()) {
                return Status(Code::unavailable, "the Postgres server does not answer").with_retryable(true);
            }
            return caller.end("connecting to the Postgres server");
        }
    }
    if (PQsetnonblocking(state_->connection, 1) != 0) return lost();
    PQsetNoticeReceiver(
        state_->connection, [](void *, const PGresult *) {}, nullptr);
    generation_++;
    return prepare_session(limits);
}

Status PostgresConnection::prepare_session(const CallLimits &limits) {
    const RowFunction no_rows = [](const PostgresRow &) { return Status(); };
    // Text is read as this prints it; a client that has gone is noticed while its statement runs.
    ROOST_RETURN_IF_ERROR(send("SET TimeZone = 'UTC'", {}, limits));
    ROOST_RETURN_IF_ERROR(receive(no_rows, limits));
    ROOST_RETURN_IF_ERROR(send("SET DateStyle = 'ISO'", {}, limits));
    ROOST_RETURN_IF_ERROR(receive(no_rows, limits));
    if (!state_->schema.empty()) {
        ROOST_RETURN_IF_ERROR(send("SET search_path = " + quote_identifier(state_->schema), {}, limits));
        ROOST_RETURN_IF_ERROR(receive(no_rows, limits));
    }
    ROOST_RETURN_IF_ERROR(send("SET client_connection_check_interval = 1000", {}, limits));
    const Status known = receive(no_rows, limits);
    // Servers on some systems can't; a statement that nobody waits for ends later there.
    return known.code() == Code::io_error ? Status() : known;
}

Status PostgresConnection::ready(const CallLimits &limits) {
    if (limits.over()) return limits.end("a query to the Postgres server");
    if (connected()) {
        // What arrived since the last call: mostly that the server has closed the connection.
        if (PQconsumeInput(state_->connection) != 0 && PQstatus(state_->connection) == CONNECTION_OK) return Status();
    }
    if (state_->in_transaction) return lost();
    return connect(limits);
}

Status PostgresConnection::send(std::string_view sql, std::span<const std::optional<std::string>> parameters,
                                const CallLimits &limits) {
    std::vector<const char *> values;
    for (const auto &parameter : parameters) values.push_back(parameter ? parameter->c_str() : nullptr);
    const std::string text(sql);
    if (PQsendQueryParams(state_->connection, text.c_str(), static_cast<int>(values.size()), nullptr, values.data(),
                          nullptr, nullptr, 0) == 0) {
        return lost();
    }
    PQsetSingleRowMode(state_->connection);
    for (;;) {
        const int unsent = PQflush(state_->connection);
        if (unsent == 0) return Status();
        if (unsent < 0) return lost();
        if (!wait_for(PQsocket(state_->connection), POLLIN | POLLOUT, limits)) {
            disconnect();
            return limits.end("a query to the Postgres server");
        }
        if (PQconsumeInput(state_->connection) == 0) return lost();
    }
}

Status PostgresConnection::receive(const RowFunction &row, const CallLimits &limits) {
    Status refused;
    for (;;) {
        while (PQisBusy(state_->connection) != 0) {
            if (!wait_for(PQsocket(state_->connection), POLLIN, limits)) {
                disconnect();
                return limits.end("a query to the Postgres server");
            }
            if (PQconsumeInput(state_->connection) == 0) return lost();
        }
        const ResultPtr result(PQgetResult(state_->connection));
        if (!result) break;
        switch (PQresultStatus(result.get())) {
            case PGRES_SINGLE_TUPLE:
            case PGRES_TUPLES_OK:
                for (int i = 0; i < PQntuples(result.get()); i++) {
                    Status seen = row(PostgresRow(result.get(), i));
                    if (seen.ok()) continue;
                    disconnect();
                    return seen;
                }
                break;
            case PGRES_COMMAND_OK:
            case PGRES_EMPTY_QUERY:
                break;
            default: {
                const char *state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
                const std::string_view message = trimmed(PQresultErrorMessage(result.get()));
                refused = Status(Code::io_error, state_->scrubbed(message)).with_detail(state == nullptr ? "" : state);
            }
        }
    }
    if (PQstatus(state_->connection) != CONNECTION_OK) return lost();
    return refused;
}

Status PostgresConnection::query(std::string_view sql, std::span<const std::optional<std::string>> parameters,
                                 const RowFunction &row, const CallLimits &limits) {
    ROOST_RETURN_IF_ERROR(ready(limits));
    ROOST_RETURN_IF_ERROR(send(sql, parameters, limits));
    return receive(row, limits);
}

Status PostgresConnection::query(std::string_view sql, const RowFunction &row, const CallLimits &limits) {
    return query(sql, {}, row, limits);
}

Status PostgresConnection::execute(std::string_view sql, const CallLimits &limits) {
    return query(
        sql, {}, [](const PostgresRow &) { return Status(); }, limits);
}

Status PostgresConnection::begin_read(const CallLimits &limits) {
    end_read();
    constexpr std::string_view kBegin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    const bool used_before = connected();
    Status begun = execute(kBegin, limits);
    // It may have been closed between the look at it and the send; a BEGIN can be said again.
    if (begun.code() == Code::unavailable && used_before) begun = execute(kBegin, limits);
    state_->in_transaction = begun.ok();
    return begun;
}

void PostgresConnection::end_read() {
    if (!state_->in_transaction) return;
    state_->in_transaction = false;
    if (!connected()) return;
    // A connection that can't even roll back is of no more use.
    if (!execute("ROLLBACK", CallLimits::in(std::chrono::seconds(2))).ok()) disconnect();
}

std::string without_password(std::string_view text) {
    std::string out(text);
    // key=value, with or without quotes
    for (size_t at = 0; (at = out.find("password", at)) != std::string::npos;) {
        at += 8;
        size_t from = out.find_first_not_of(' ', at);
        if (from == std::string::npos || out[from] != '=') continue;
        from = out.find_first_not_of(' ', from + 1);
        if (from == std::string::npos) break;
        const bool quoted = out[from] == '\'';
        size_t to = quoted ? from + 1 : from;
        while (to < out.size() && (quoted ? out[to] != '\'' : out[to] != ' ' && out[to] != '&')) {
            to += out[to] == '\\' && to + 1 < out.size() ? 2 : 1;
        }
        if (quoted && to < out.size()) to++;
        out.replace(from, to - from, "***");
        at = from + 3;
    }
    // scheme://user:password@host
    for (size_t at = 0; (at = out.find("://", at)) != std::string::npos;) {
        at += 3;
        const size_t end = out.find_first_of(" /?\n'\"", at);
        const size_t host = out.rfind('@', end);
        if (host == std::string::npos || host < at) continue;
        const size_t colon = out.find(':', at);
        if (colon == std::string::npos || colon > host) continue;
        out.replace(colon + 1, host - colon - 1, "***");
    }
    return out;
}

}  // namespace roost
