// What is taken away from a DuckDB instance after its lake is attached and before the first statement of a tenant runs:
// see docs/design.md, Instances and walls, and README.md. Called once by Instance::make.
#pragma once

namespace duckdb {
class Connection;
class DatabaseInstance;
}  // namespace duckdb

namespace roost {

struct InstanceKind {
    bool internal = false;  // the readers of uploaded files stay
    bool frozen = false;    // the catalog's statistics can be believed
};

// Drops forbidden functions from the system catalogue, clears replacement scans, locks the configuration. Throws
// DuckDB's exceptions.
void raise_walls(duckdb::Connection &connection, const InstanceKind &kind);

// For an instance by a frozen catalog, which knows one snapshot: takes away what tells of others (ducklake_snapshots,
// ducklake_table_changes …), by whatever name a view or a macro calls it. Throws DuckDB's exceptions.
void drop_history_functions(duckdb::Connection &connection);

}  // namespace roost
