// Looking a commit up in a DuckLake catalog that is a SQLite file. Stateless, thread-safe. Called by find_commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"

namespace roost {

// The snapshot whose commit_extra_info is `mark`, or nothing. Nothing is final: a commit whose process died while it
// was writing can't become visible later. Such a commit can be whole in the write-ahead log and unknown to the log's
// index; it would be found when the index is next made anew, which is when all processes have closed the file. So
// before it says that there is nothing it commits a change of its own (to the file's user_version, which nothing else
// uses, and to the value that it has), which takes the place of what lies in the log beyond its indexed end. Errors:
// io_error (no such file, not a lake), unavailable (locked for longer than a second).
Result<std::optional<uint64_t>> find_sqlite_commit(const std::string &path, const std::string &mark);

}  // namespace roost
