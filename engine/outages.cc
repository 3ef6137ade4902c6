#include "engine/outages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "duckdb/common/error_data.hpp"

namespace roost {

namespace {

template <size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N> &parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// libpq's and the server's words, and those that the Postgres extension puts around them.
constexpr std::array<std::string_view, 4> kTooManyConnections = {"too many clients already",
                                                                 "remaining connection slots are reserved",
                                                                 "too many connections for", "Connection pool timeout"};
constexpr std::array<std::string_view, 6> kRefusedLogin = {
    "password authentication failed", "no pg_hba.conf entry",           "no password supplied",
    "is not permitted to log in",     "authentication failed for user", "permission denied for database"};
constexpr std::array<std::string_view, 2> kLockTimeout = {"canceling statement due to lock timeout",
                                                          "deadlock detected"};
constexpr std::array<std::string_view, 17> kLostCatalog = {
    "Unable to connect to Postgres",
    "server closed the connection",
    "terminating connection due to",
    "could not receive data from server",
    "could not send data to server",
    "no connection to the server",
    "connection to server at",
    "connection to server on socket",
    "connection to server was lost",
    "SSL connection has been closed",
    "SSL SYSCALL error",
    "the database system is",
    "canceling statement due to statement timeout",
    "canceling statement due to conflict with recovery",
    "timeout expired",
    "Connection reset failure",
    "PQconsumeInput",
};
// What a statement of the catalog's own says of itself when the server refuses it.
constexpr std::array<std::string_view, 4> kCatalogSql = {"Failed to execute query \"", "Failed to prepare query \"",
                                                         "Failed to execute COPY", "Failed to prepare COPY"};

Status lost_catalog() {
    return Status(Code::unavailable, "the lake's catalog can't be reached")
        .with_sqlstate("57P03")
        .with_hint("try again; the log has the database's own words")
        .with_retryable(true);
}

// The extension throws without a type, or as I/O; other types may quote the statement's own text.
bool may_be_of_catalog(duckdb::ExceptionType type, std::string_view text) {
    using duckdb::ExceptionType;
    if (type == ExceptionType::BINDER) return has_any(text, kCatalogSql);
    return type == ExceptionType::INVALID || type == ExceptionType::IO || type == ExceptionType::TRANSACTION ||
           type == ExceptionType::UNKNOWN_TYPE;
}

std::optional<Status> catalog_outage(std::string_view text) {
    if (has_any(text, kTooManyConnections)) {
        return Status(Code::resource_exhausted, "the lake's catalog has no connection to spare")
            .with_sqlstate("53300")
            .with_name("too_many_connections")
            .with_hint("try again; fewer open transactions, or a larger max_connections of Postgres, prevent it")
            .with_retryable(true);
    }
    if (has_any(text, kRefusedLogin)) {
        return Status(Code::io_error, "the lake's catalog refused roost's login")
            .with_hint("--catalog names the user; the log has the database's own words")
            .with_retryable(false);
    }
    if (has_any(text, kLockTimeout)) {
        return Status(Code::conflict, "could not serialize access: another writer held the lake's catalog for too long")
            .with_hint("run the transaction again")
            .with_retryable(true);
    }
    if (has_any(text, kLostCatalog)) return lost_catalog();
    if (has_any(text, kCatalogSql)) {
        return Status(Code::io_error, "the lake's catalog refused a statement of the engine")
            .with_hint("the log has the database's own words");
    }
    return std::nullopt;
}

// The object that a request was for, without the store's address: the last part of the URL in quotes.
std::string object_in(std::string_view text) {
    const size_t scheme = text.find("://");
    const size_t begin = scheme == std::string_view::npos ? scheme : text.find_last_of("'\"", scheme);
    if (begin == std::string_view::npos) return "";
    std::string_view url = text.substr(scheme + 3, text.find(text[begin], scheme) - scheme - 3);
    url = url.substr(0, url.find('?'));
    const size_t slash = url.rfind('/');
    return slash == std::string_view::npos ? "" : std::string(url.substr(slash + 1));
}

// With the object's name in front of what is wrong.
Status naming(Status status, std::string_view object) {
    if (object.empty()) return status;
    Error error = status.error();
    error.message = std::string(object) + ": " + error.message;
    return Status(std::move(error));
}

int http_status(const duckdb::ErrorData &error) {
    const auto entry = error.ExtraInfo().find("status_code");
    int status = 0;
    if (entry != error.ExtraInfo().end()) {
        std::from_chars(entry->second.data(), entry->second.data() + entry->second.size(), status);
    }
    return status;
}

std::string_view http_body(const duckdb::ErrorData &error) {
    const auto entry = error.ExtraInfo().find("response_body");
    return entry == error.ExtraInfo().end() ? std::string_view() : entry->second;
}

Status store_answered(int status, std::string_view body) {
    const std::string answer = " (HTTP " + std::to_string(status) + ")";
    switch (status) {
        case 401:
        case 403:
            return Status(Code::io_error, "the lake's store refused roost's keys" + answer)
                .with_hint("the keys need to read, list, write and remove below the lake's prefix");
        case 404:
            if (body.find("NoSuchBucket") != std::string_view::npos) {
                return Status(Code::io_error, "the lake's bucket does not exist" + answer)
                    .with_hint("roost does not make buckets: make it, or correct --store");
            }
            // A HEAD request does not say which of them.
            return Status(Code::io_error, "an object of the lake, or its whole bucket, is not there" + answer)
                .with_hint("a snapshot that was expired meanwhile, or something removed by hand");
        case 408:
        case 429:
            break;
        default:
            if (status >= 400 && status < 500) {
                return Status(Code::io_error, "the lake's store refused a request" + answer)
                    .with_hint("the log has the store's own words");
            }
    }
    return Status(Code::unavailable, "the lake's store does not answer as it should" + answer)
        .with_sqlstate("58030")
        .with_hint("try again")
        .with_retryable(true);
}

// Only the store is asked by HTTP.
std::optional<Status> store_outage(const duckdb::ErrorData &error, std::string_view text) {
    using duckdb::ExceptionType;
    constexpr std::array<std::string_view, 6> kRequestFailed = {
        "error for HTTP ",     "error for URL",        "Failed to remove files: HTTP",
        "S3 multipart upload", "uploading part to S3", "Server sent back more data"};
    const bool by_http = error.Type() == ExceptionType::HTTP || error.Type() == ExceptionType::NETWORK;
    if (!by_http && !(error.Type() == ExceptionType::IO && has_any(text, kRequestFailed))) return std::nullopt;
    const std::string object = object_in(text);
    if (text.find("ETag on reading file") != std::string_view::npos) {
        return naming(Status(Code::io_error, "an object of the lake was overwritten while it was read"), object);
    }
    if (const int status = http_status(error); status >= 400) {
        return naming(store_answered(status, http_body(error)), object);
    }
    return naming(Status(Code::unavailable, "the lake's store can't be reached, or breaks off")
                      .with_sqlstate("58030")
                      .with_hint("try again; the log has the client's own words")
                      .with_retryable(true),
                  object);
}

}  // namespace

std::optional<Status> outage_of(const duckdb::ErrorData &error) {
    const std::string &text = error.Message();
    if (auto outage = store_outage(error, text)) return outage;
    if (!may_be_of_catalog(error.Type(), text)) return std::nullopt;
    return catalog_outage(text);
}

}  // namespace roost
