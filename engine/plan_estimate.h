// What a plan will hold in memory and read, from DuckDB's own physical plan and cardinalities: enough to tell
// statements for the small lane from the others (docs/design.md, Admission; admission.md, Estimate). Pure; no DuckDB
// state is changed.
#pragma once

#include <cstdint>

namespace duckdb {
class ClientContext;
class PhysicalOperator;
}  // namespace duckdb

namespace roost {

struct PlanEstimate {
    double held_bytes = 0;    // sum over blocking operators: rows × width of what each holds
    double scanned_rows = 0;  // rows of the base tables and table functions it reads, before filters
    double largest_rows = 0;  // of any operator's output: a product of small tables can be large
};

PlanEstimate estimate_plan(const duckdb::PhysicalOperator &root, duckdb::ClientContext &context);

}  // namespace roost
