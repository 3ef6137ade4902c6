// Files of others before a table reads them in place: which ones a pattern means, in which version they are, and which
// columns a table over all of them has. Used by one thread at a time; the helpers start threads of their own and join
// them. Called by RegisterExecution, in an internal instance.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "duckdb/common/types.hpp"
#include "duckdb/main/connection.hpp"
#include "engine/cancellation.h"
#include "engine/instance.h"
#include "lake/file_pins.h"

namespace roost {

// The files that `patterns` mean, each once, by name; folders (with a slash at their end, or directories on disk) stand
// for all *.parquet below them but what has a part that begins with '_' or '.'. With what a listing of a store says of
// their versions. Errors: not_allowed (outside the folders of others, rule files.outside_external), not_found (nothing
// matches), resource_exhausted (more than `files_max`), of the store.
struct ForeignFile {
    std::string path;
    std::optional<FileVersion> listed;
};
Result<std::vector<ForeignFile>> list_foreign_files(Instance &instance, const std::vector<std::string> &patterns,
                                                    size_t files_max);

// Runs `work` for 0 … count-1 on several threads, each with a connection of its own; the first failure ends it.
// DuckDB's exceptions become the instance's errors.
Status for_each_file(Instance &instance, size_t count, const Cancellation &cancellation,
                     const std::function<Status(duckdb::Connection &, size_t)> &work);

// The version of a file that is there now.
Result<FileVersion> look_at(Instance &instance, duckdb::Connection &connection, const std::string &path);

// The columns of a table over many files: added one by one, in the order of their paths. A column that several files
// have gets the type that holds all of theirs, where DuckLake reads files of those types under it (integers, floats,
// decimals, times of a day may grow); other types of one name clash.
class ForeignColumns {
public:
    // Of one file. Errors: conflict, with both files and the column.
    Status add(const std::string &path, const std::vector<std::string> &names,
               const std::vector<duckdb::LogicalType> &types);
    // KEY=VALUE parts of the paths as columns. `wanted` unset: where all files have the same keys. True: they are.
    // Errors: conflict (wanted, and the files disagree).
    Result<bool> add_partitions(const std::vector<ForeignFile> &files, std::optional<bool> wanted);
    // "(name TYPE, …)"
    std::string definition() const;
    bool empty() const { return columns_.empty(); }

private:
    struct ForeignColumn {
        std::string name;
        duckdb::LogicalType type;
        std::string from;  // the first file that has it, in that type
    };
    std::vector<ForeignColumn> columns_;
    std::map<std::string, size_t> by_name_;  // in lower case
};

// The type of a column that has files of both, or nothing.
std::optional<duckdb::LogicalType> common_type(const duckdb::LogicalType &a, const duckdb::LogicalType &b);

}  // namespace roost
