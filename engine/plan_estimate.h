// What a plan will hold in memory and read, from DuckDB's own physical plan and cardinalities, operator by operator
// (docs/admission.md, Estimate). Pure; no DuckDB state is changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan_widths.h"

namespace duckdb {
class ClientContext;
class PhysicalOperator;
}  // namespace duckdb

namespace roost {

struct PlanEstimate {
    // Most that its operators hold at one time, scans and writers with it: pipelines that can be alive together add up,
    // of those that can't the larger one counts.
    double peak_bytes = 0;
    double scanned_rows = 0;  // rows of the base tables and table functions it reads, before filters
    double largest_rows = 0;  // of any operator's output: a product of small tables can be large
    struct Table {
        std::string catalog, table;
        double rows = 0;
        bool written = false;
    };
    std::vector<Table> tables;
};

struct PlanEstimateOptions {
    uint32_t threads = 1;  // that it will run with
    TextLength text_length{};
};

PlanEstimate estimate_plan(const duckdb::PhysicalOperator &root, duckdb::ClientContext &context,
                           const PlanEstimateOptions &options);

}  // namespace roost
