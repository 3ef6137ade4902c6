// DuckLake's statistics of a whole table, which its client merges at each commit and never looks at again, can miss
// rows of the table (docs/mirror.md): the optimizer then leaves these rows out. A scan of a live lake tells it none but
// how many rows there are. Frozen catalogs have statistics that were held against those of the files (lake/bounds.h).
// Stateless, thread-safe.
#pragma once

namespace duckdb {
class TableFunction;
}

namespace roost {

// Of a scan of a lake's table, while it is bound.
void tell_no_bounds(duckdb::TableFunction &scan);

}  // namespace roost
