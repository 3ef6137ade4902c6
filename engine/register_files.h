// What registering files in place asks for, as it travels from the gateway to the node: an internal statement whose
// text is kRegisterFiles, with the rest as its parameters. Plain data; no DuckDB types.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/statement.h"

namespace roost {

inline constexpr std::string_view kRegisterFiles = "REGISTER FILES";

struct RegisterFiles {
    Uuid commit;  // the id that the transaction's commit will bear
    std::string schema, table;
    std::vector<std::string> patterns;      // files, globs, folders (they end with a slash)
    bool allow_missing = false;             // a file may lack columns of the table
    bool ignore_extra = false;              // a file may have columns that the table has not
    bool skip_registered = false;           // files of the table are passed over instead of refused
    std::optional<bool> hive_partitioning;  // KEY=VALUE in a path is a column; unset: where all paths agree
    bool operator==(const RegisterFiles &) const = default;
};

std::vector<Param> parameters_of(const RegisterFiles &request);
// Errors: internal (parameters that parameters_of did not make).
Result<RegisterFiles> register_files_of(const std::vector<Param> &parameters);

}  // namespace roost
