// One connection to a Postgres server, used by roost itself (mirror, find_commit, meta): each call has a deadline and a
// cancellation, a connection that broke is made anew by the next call outside a transaction, and no message ever holds
// the password of the connection string. Not thread-safe: one thread at a time; cancel with the limits' stop token from
// any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "lake/call_limits.h"

namespace roost {

// A row of a result, in text format; valid only inside the callback.
class PostgresRow {
public:
    PostgresRow(const void *result, int row) : result_(result), row_(row) {}
    bool is_null(int column) const;
    std::string_view text(int column) const;
    // 0 where there is no number.
    int64_t integer(int column) const;
    bool boolean(int column) const;

private:
    const void *result_;
    int row_;
};

class PostgresConnection {
public:
    // "host=… dbname=…" or "postgresql://…". Connects nothing yet. `schema`: where unqualified names are looked up;
    // empty: the server's own setting.
    explicit PostgresConnection(std::string connection_string, std::string schema = "");
    ~PostgresConnection();
    PostgresConnection(const PostgresConnection &) = delete;
    PostgresConnection &operator=(const PostgresConnection &) = delete;

    // Runs one statement; `row` sees each row as it arrives (none is kept), and ends the query by an error of its own.
    // Parameters are $1…, as text; an empty optional is NULL. Ended early (deadline, cancellation, an error of `row`)
    // the connection is dropped, and the server ends the statement within a second. Errors: unavailable (no connection,
    // retryable), io_error (the server refused: its message, SQLSTATE as detail), timeout, cancelled.
    using RowFunction = std::function<Status(const PostgresRow &)>;
    Status query(std::string_view sql, std::span<const std::optional<std::string>> parameters, const RowFunction &row,
                 const CallLimits &limits);
    Status query(std::string_view sql, const RowFunction &row, const CallLimits &limits);
    // A statement without rows to look at.
    Status execute(std::string_view sql, const CallLimits &limits);

    // A transaction that reads one state of the database. What breaks in it ends it: begin anew.
    Status begin_read(const CallLimits &limits);
    void end_read();

    bool connected() const;
    void disconnect();
    // Counts up with every connection made: what was set or prepared in an older one is gone.
    uint64_t generation() const { return generation_; }

private:
    struct State;
    Status connect(const CallLimits &limits);
    Status ready(const CallLimits &limits);
    Status prepare_session(const CallLimits &limits);
    Status send(std::string_view sql, std::span<const std::optional<std::string>> parameters, const CallLimits &limits);
    Status receive(const RowFunction &row, const CallLimits &limits);
    Status lost();

    std::unique_ptr<State> state_;
    uint64_t generation_ = 0;
};

// `text` without the password of a connection string that may stand in it.
std::string without_password(std::string_view text);

}  // namespace roost
