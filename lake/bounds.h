// What a table's own statistics may say of a column, held against those of its files. DuckLake merges the former at
// each commit and never looks again; they can miss rows (docs/mirror.md). Pure.
#pragma once

#include "lake/lake_state.h"

namespace roost {

// `stats` without what does not hold: bounds that leave out a file's, or that stand beside a file with values but
// without bounds; bounds wider than all files' where DuckLake would answer MIN and MAX from them; "no NULL" and "no
// NaN" that a file contradicts or is silent about. Rows kept in the catalog itself say nothing. `table` has its data.
TableColumnStats held_stats(const TableState &table, const TableColumnStats &stats);

}  // namespace roost
