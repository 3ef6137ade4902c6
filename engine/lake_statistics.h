// What DuckLake says of a table's values, held against the columns that the table has. DuckLake 1.5.5 keeps a table's
// statistics until a file is added; ALTER … TYPE adds none. From then on the optimizer is told bounds of the type that
// the column had: it fails on them, or reads their bytes as the new type's and leaves out rows (FLOAT altered to
// DOUBLE: `x >= 14` finds all rows). The same when a table is read AT a time before its ALTER. Stateless, thread-safe.
#pragma once

namespace duckdb {
class TableFunction;
}

namespace roost {

// Of a scan of a lake's table, while it is bound: it tells no statistics but those of its columns' own types.
void distrust_statistics(duckdb::TableFunction &scan);

}  // namespace roost
