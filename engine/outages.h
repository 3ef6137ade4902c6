// What the engine says when the lake's catalog or its store is down, slow or refuses, as Status: what is wrong and
// whether to try again, without the words of libpq, of HTTP or of the catalog's SQL, which name hosts, users and
// metadata. Those go to the node's log. Stateless, thread-safe. Called by duckdb_errors.
#pragma once

#include <optional>

#include "base/status.h"

namespace duckdb {
class ErrorData;
}

namespace roost {

// Nothing when `error` is about something else. Errors: unavailable (57P03, retryable), io_error (58030; retryable
// where it may pass), conflict (40001: another writer held a lock for too long), resource_exhausted (53300: too many
// connections).
std::optional<Status> outage_of(const duckdb::ErrorData &error);

}  // namespace roost
