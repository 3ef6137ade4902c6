// Table scans over files of others. DuckLake takes every file of a lake for one that never changes and lets DuckDB
// answer from what it has cached of it, without opening it; for files of others that would be the rows of another
// version. Stateless, thread-safe. Called where parquet_scan is bound for the lake (walls.cc).
#pragma once

#include <memory>

#include "duckdb/function/function.hpp"
#include "duckdb/main/client_context.hpp"

namespace roost {

class FileWall;

// Makes the scan open each file of others, each time it reads it: the file system compares its version then, and the
// cache what it holds. What is bound otherwise stays as it is. `bound`: of parquet_scan, for a table of the lake.
void open_foreign_files_anew(duckdb::ClientContext &context, duckdb::FunctionData &bound);

// Tells the instance of `context` which wall it has. Called once, before its first scan.
void remember_wall(duckdb::ClientContext &context, std::shared_ptr<const FileWall> wall);

}  // namespace roost
