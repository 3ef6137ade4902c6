// Small files that must be whole or absent and must not be read by others: credentials, ready file, settings of a run.
// Thread-safe (no state). Blocking. Called by the command line and the supervisor.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace roost::app {

// The whole file. not_found when it is not there; invalid_argument when it is larger than `max_bytes`.
Result<std::string> read_file(const std::string &path, size_t max_bytes = 1 << 20);

// Writes beside the target and renames over it, so that a reader sees the old file or the new one. `mode` is exact
// whatever the umask.
Status write_file_atomically(const std::string &path, std::string_view content, mode_t mode = 0600);

// mkdir -p with an exact mode for the last component if it has to be made.
Status make_directory(const std::string &path, mode_t mode = 0700);

// The last `max_lines` lines of the file from byte `from` on; empty when there are none or the file cannot be read.
// Looks at the last 64 KiB only.
std::string last_lines(const std::string &path, size_t max_lines, off_t from = 0);

// Bytes; 0 when the file is not there.
off_t file_size(const std::string &path);

// "could not open FILE: Permission denied" with the matching code.
Status errno_status(std::string_view what, const std::string &path, int error);

}  // namespace roost::app
