// Looking up a commit in a catalog that is in Postgres. Blocking, for at most 10 s; stateless, thread-safe. Called
// by find_commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"

namespace roost {

// As find_commit of lake/ducklake.h. Errors: unavailable (can't be reached; retryable), io_error (not a lake).
Result<std::optional<uint64_t>> find_postgres_commit(const std::string &dsn, const std::string &mark);

}  // namespace roost
