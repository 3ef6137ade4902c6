// Errors as values. A Status is either ok or an Error that carries what a person needs (message, hint, position) and
// what a program needs (code, wire name, SQLSTATE). Result<T> is a Status or a T. Not thread-safe; copy it across
// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace roost {

// The class of a failure. It decides the default SQLSTATE and HTTP status; `Error::name` may be more specific.
enum class Code : uint8_t {
    ok = 0,
    invalid_argument,     // the caller's input is wrong                    22023  422
    syntax_error,         // text that no parser accepts                    42601  422
    not_allowed,          // the guard refused it; `rule` says which rule   42501  422
    permission_denied,    // authenticated, but not granted                 42501  403
    unauthenticated,      // no or wrong credentials                        28P01  401
    not_found,            //                                                42704  404
    already_exists,       //                                                42710  409
    failed_precondition,  // right request, wrong state                     55000  409
    conflict,             // lost a race; safe to run again                 40001  409
    resource_exhausted,   // memory, slots, queue                           53200  429
    timeout,              //                                                57014  504
    cancelled,            //                                                57014  499
    unavailable,          // node or gateway lost; retry later              57P01  503
    unimplemented,        //                                                0A000  501
    io_error,             // disk, store, catalog                           58030  500
    engine_error,         // DuckDB rejected or failed the statement        per error; HTTP: a failed statement
    data_loss,            // checksum or framing broken                     XX001  500
    internal,             // a fault of roost's own                         XX000  500
};

// The snake_case name of a code, e.g. "not_found". Also the default wire name.
std::string_view code_name(Code code);
std::string_view default_sqlstate(Code code);
int default_http_status(Code code);

struct Error {
    Code code = Code::internal;
    std::string name;       // wire code in snake_case; empty: code_name(code)
    std::string sqlstate;   // empty: default_sqlstate(code)
    std::string message;    // for a person: what was wrong and where
    std::string detail;     // more of it, may be empty
    std::string hint;       // what to do about it, may be empty
    std::string rule;       // guard rule name when code is not_allowed
    uint32_t position = 0;  // 1-based character in the statement's text, 0 when unknown
    bool retryable = false;
};

class [[nodiscard]] Status {
public:
    Status() = default;
    Status(Code code, std::string message);
    explicit Status(Error error);
    Status(const Status &other);
    Status(Status &&) noexcept = default;
    Status &operator=(const Status &other);
    Status &operator=(Status &&) noexcept = default;
    ~Status() = default;

    bool ok() const { return !error_; }
    explicit operator bool() const { return ok(); }
    Code code() const { return error_ ? error_->code : Code::ok; }
    // REQUIRES: !ok()
    const Error &error() const { return *error_; }
    const std::string &message() const;
    std::string_view name() const;
    std::string_view sqlstate() const;
    bool retryable() const { return error_ && error_->retryable; }

    // Builders, to be chained on a fresh error; no effect on an ok status.
    Status with_name(std::string name) &&;
    Status with_sqlstate(std::string sqlstate) &&;
    Status with_detail(std::string detail) &&;
    Status with_hint(std::string hint) &&;
    Status with_rule(std::string rule) &&;
    Status with_position(uint32_t position) &&;
    Status with_retryable(bool retryable) &&;

    // "code: message (hint)" for logs.
    std::string to_string() const;

private:
    std::unique_ptr<Error> error_;
};

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<1>, std::move(value)) {}  // NOLINT: implicit by design
    // REQUIRES: !status.ok(). An ok one becomes an internal error: passed on, it would look like success without a
    // value.
    Result(Status status)  // NOLINT: implicit by design
        : state_(std::in_place_index<0>,
                 status.ok() ? Status(Code::internal, "an answer without a value") : std::move(status)) {}

    bool ok() const { return state_.index() == 1; }
    explicit operator bool() const { return ok(); }
    // REQUIRES: ok()
    T &value() & { return std::get<1>(state_); }
    const T &value() const & { return std::get<1>(state_); }
    T &&value() && { return std::get<1>(std::move(state_)); }
    T &operator*() & { return value(); }
    const T &operator*() const & { return value(); }
    T &&operator*() && { return std::move(*this).value(); }
    T *operator->() { return &value(); }
    const T *operator->() const { return &value(); }
    // The status: ok when there is a value.
    Status status() const { return ok() ? Status() : std::get<0>(state_); }

private:
    std::variant<Status, T> state_;
};

// Returns early with the status when `expr` (a Status) is not ok.
#define ROOST_RETURN_IF_ERROR(expr)                    \
    do {                                               \
        ::roost::Status roost_status_ = (expr);        \
        if (!roost_status_.ok()) return roost_status_; \
    } while (false)

#define ROOST_CONCAT_INNER_(a, b) a##b
#define ROOST_CONCAT_(a, b) ROOST_CONCAT_INNER_(a, b)
// ROOST_ASSIGN_OR_RETURN(auto x, f()): unwraps a Result or returns its status.
#define ROOST_ASSIGN_OR_RETURN(decl, expr) \
    ROOST_ASSIGN_OR_RETURN_IMPL_(ROOST_CONCAT_(roost_result_, __LINE__), decl, expr)
#define ROOST_ASSIGN_OR_RETURN_IMPL_(result, decl, expr) \
    auto result = (expr);                                \
    if (!result.ok()) return result.status();            \
    decl = std::move(result).value()

}  // namespace roost
