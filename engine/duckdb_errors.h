// DuckDB's exceptions as Status: SQLSTATE (contracts/pgwire.md section 6), a message a person can act on, the place in
// the statement. Nothing of the node leaves with it: no paths, no stack, no words of an internal error. Stateless,
// thread-safe.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace duckdb {
class ErrorData;
}

namespace roost {

// What must not appear in a message, and what stands for it: the node's directories, the store's keys, the catalog's
// connection string.
using Redactions = std::vector<std::pair<std::string, std::string>>;

// `text` with everything in it that must not be shown replaced.
std::string redact(std::string text, const Redactions &redactions);

// REQUIRES: error.HasError(). `sql` is the statement, for the position; `redactions` longest first.
Status status_of(const duckdb::ErrorData &error, std::string_view sql, const Redactions &redactions);
Status status_of(const std::exception &error, std::string_view sql, const Redactions &redactions);

// The instance can't be trusted after this error: it must be replaced.
bool breaks_instance(const duckdb::ErrorData &error);

// DuckLake remembers in which tables of the catalog small writes are kept, and does not notice when another client's
// flush has dropped one (DuckLake 1.5.5; docs/mirror.md). An instance made anew knows.
bool is_stale_catalog(const duckdb::ErrorData &error);

// The hint of a statement's error, empty where it suggests names: not everybody may know them.
std::string hint_without_names(const Status &status);

}  // namespace roost
