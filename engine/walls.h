// What is taken away from a DuckDB instance after its lake is attached and before the first statement of a tenant runs:
// see docs/design.md, Instances and walls, and README.md. Called once by Instance::make.
#pragma once

namespace duckdb {
class Connection;
class DatabaseInstance;
}  // namespace duckdb

namespace roost {

// Drops forbidden functions from the system catalogue, clears replacement scans, locks the configuration. With
// `internal` the readers of uploaded files stay. Throws DuckDB's exceptions.
void raise_walls(duckdb::Connection &connection, bool internal);

}  // namespace roost
