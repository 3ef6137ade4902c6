#include "engine/plan_estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "duckdb/catalog/catalog.hpp"
#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/execution/operator/aggregate/physical_hash_aggregate.hpp"
#include "duckdb/execution/operator/aggregate/physical_perfecthash_aggregate.hpp"
#include "duckdb/execution/operator/aggregate/physical_ungrouped_aggregate.hpp"
#include "duckdb/execution/operator/join/physical_delim_join.hpp"
#include "duckdb/execution/operator/join/physical_hash_join.hpp"
#include "duckdb/execution/operator/order/physical_order.hpp"
#include "duckdb/execution/operator/order/physical_top_n.hpp"
#include "duckdb/execution/operator/persistent/physical_copy_to_file.hpp"
#include "duckdb/execution/operator/persistent/physical_merge_into.hpp"
#include "duckdb/execution/operator/scan/physical_column_data_scan.hpp"
#include "duckdb/execution/operator/scan/physical_table_scan.hpp"
#include "duckdb/execution/operator/set/physical_cte.hpp"
#include "duckdb/execution/physical_operator.hpp"
#include "duckdb/planner/expression/bound_aggregate_expression.hpp"
#include "duckdb/storage/statistics/node_statistics.hpp"

namespace roost {

namespace {

using duckdb::PhysicalOperator;
using duckdb::PhysicalOperatorType;

// DuckDB's estimates of products reach 2^64; beyond this nothing changes.
constexpr double kMaxRows = 1e15;
constexpr double kBlockBytes = 256.0 * 1024;    // what DuckDB's row collections grow by
constexpr double kJoinPartitions = 16;          // of a hash join's build side, each with blocks of its own, a thread
constexpr double kGroupTableEntries = 262'144;  // of a thread's table of groups, at most while it takes rows in
constexpr double kHashBytes = 8;
// Groups that are said to be so many of the rows are not known; then rows to this power.
constexpr double kKnownShare = 0.9;
constexpr double kUnknownGroups = 0.8;
constexpr double kRowGroupRows = 122'880;
constexpr double kVectorRows = 2'048;
// Of a partitioned write: rows that a thread gathers before it hands them to the files, and files open at a time.
constexpr double kPartitionedRows = 524'288;
constexpr double kOpenFiles = 100;
constexpr double kRowIdBytes = 48;  // a deleted row's place, in a set of them

// Measured (plan_estimate_test.cc): what a thread's scan of Parquet holds of a column, by the bytes of a row group.
constexpr double kScanShare = 0.5;
constexpr double kScanColumnBytes = 128.0 * 1024;
// The rows, and as many that are encoded.
constexpr double kWriterCopies = 2;
// Rows of a window beside the sorted ones: what its functions are computed from.
constexpr double kWindowCopies = 2;

double engine_rows(const PhysicalOperator &op) {
    return std::min(static_cast<double>(op.estimated_cardinality), kMaxRows);
}

double table_bytes(double entries) {
    if (entries > 1e12) return entries * 8;
    return 8.0 * static_cast<double>(std::bit_ceil(static_cast<uint64_t>(std::max(entries, 1.0))));
}

// Aggregates whose state grows with their input.
bool grows(const duckdb::BoundAggregateExpression &aggregate) {
    static constexpr std::string_view kGrowing[] = {
        "list",   "array_agg",        "string_agg",        "group_concat",  "listagg", "histogram",
        "median", "quantile",         "quantile_cont",     "quantile_disc", "mode",    "mad",
        "map",    "json_group_array", "json_group_object", "entropy",
    };
    if (aggregate.order_bys) return true;
    return std::find(std::begin(kGrowing), std::end(kGrowing), aggregate.function.name) != std::end(kGrowing);
}

// What is alive of a part of a plan, bytes.
struct Alive {
    double before = 0;  // most, until its last pipeline begins
    double held = 0;    // while that one gives rows, without the scan at its beginning
    double scan = 0;
    double kept = 0;     // of held: stays to the end of the statement
    double workers = 1;  // threads that have something to do in that pipeline
    double running() const { return held + scan; }
    double most() const { return std::max(before, running()); }
};

class Walk {
public:
    Walk(duckdb::ClientContext &context, const PlanEstimateOptions &options)
        : context_(context), threads_(std::max(1u, options.threads)), widths_(options.text_length) {}

    PlanEstimate estimate(const PhysicalOperator &root) {
        estimate_.peak_bytes = std::min(alive(root).most(), 1e18);
        return std::move(estimate_);
    }

private:
    Alive alive(const PhysicalOperator &op) {
        estimate_.largest_rows = std::max(estimate_.largest_rows, engine_rows(op));
        switch (op.type) {
            case PhysicalOperatorType::TABLE_SCAN:
                return scan(op.Cast<duckdb::PhysicalTableScan>());
            case PhysicalOperatorType::HASH_JOIN:
            case PhysicalOperatorType::NESTED_LOOP_JOIN:
            case PhysicalOperatorType::BLOCKWISE_NL_JOIN:
            case PhysicalOperatorType::CROSS_PRODUCT:
                return join(alive(child(op, 0)), child(op, 1), op);
            case PhysicalOperatorType::PIECEWISE_MERGE_JOIN:
            case PhysicalOperatorType::IE_JOIN:
            case PhysicalOperatorType::ASOF_JOIN:
                return sorted_join(op);
            case PhysicalOperatorType::LEFT_DELIM_JOIN:
            case PhysicalOperatorType::RIGHT_DELIM_JOIN:
                return delim_join(op.Cast<duckdb::PhysicalDelimJoin>());
            case PhysicalOperatorType::CTE:
            case PhysicalOperatorType::RECURSIVE_CTE:
            case PhysicalOperatorType::RECURSIVE_KEY_CTE:
                return common_table(op);
            case PhysicalOperatorType::UNION:
                return together(op);
            case PhysicalOperatorType::MERGE_INTO:
                return merged(op.Cast<duckdb::PhysicalMergeInto>());
            default:
                return unary(op);
        }
    }

    // Rows that come out of it: DuckDB's estimate, but for groups of which nothing is known, which it takes to be as
    // many as there are rows. Far fewer is likelier, and what is above an aggregate is smaller by the same factor.
    double rows_of(const PhysicalOperator &op) { return std::min(engine_rows(op) * factor_of(op), kMaxRows); }
    double factor_of(const PhysicalOperator &op) {
        const auto found = factors_.find(&op);
        if (found != factors_.end()) return found->second;
        double factor = 1;
        if (op.type == PhysicalOperatorType::CTE_SCAN) {
            const auto table = cte_factors_.find(op.Cast<duckdb::PhysicalColumnDataScan>().cte_index);
            if (table != cte_factors_.end()) factor = table->second;
        }
        for (const auto &input : op.children) factor *= factor_of(input.get());
        if (op.type == PhysicalOperatorType::HASH_GROUP_BY && !op.children.empty()) {
            const double input = engine_rows(child(op, 0));
            const double groups = engine_rows(op);
            if (groups >= kKnownShare * input)
                factor = std::min(1.0, std::pow(groups * factor, kUnknownGroups) / groups);
        }
        return factors_.emplace(&op, factor).first->second;
    }

    static const PhysicalOperator &child(const PhysicalOperator &op, size_t index) { return op.children[index].get(); }

    // One input, or none.
    Alive unary(const PhysicalOperator &op) {
        if (op.type == PhysicalOperatorType::EXTENSION) note_written(op);
        if (op.children.empty()) return {};
        if (op.children.size() > 1) return together(op);
        const Alive input = alive(child(op, 0));
        switch (op.type) {
            case PhysicalOperatorType::HASH_GROUP_BY:
            case PhysicalOperatorType::PERFECT_HASH_GROUP_BY:
            case PhysicalOperatorType::PARTITIONED_AGGREGATE:
            case PhysicalOperatorType::UNGROUPED_AGGREGATE:
            case PhysicalOperatorType::ORDER_BY:
            case PhysicalOperatorType::TOP_N:
            case PhysicalOperatorType::WINDOW:
            case PhysicalOperatorType::PIVOT:
            case PhysicalOperatorType::RESERVOIR_SAMPLE:
                return gathered(input, held_by(op, input.workers), workers_for(rows_of(op)));
            case PhysicalOperatorType::COPY_TO_FILE:
            case PhysicalOperatorType::BATCH_COPY_TO_FILE:
                return gathered(input, written(op));
            case PhysicalOperatorType::EXTENSION:
                return gathered(input, rows_named(op));
            case PhysicalOperatorType::INSERT:
            case PhysicalOperatorType::BATCH_INSERT:
            case PhysicalOperatorType::UPDATE:
                return gathered(input, rows_of(child(op, 0)) * row_bytes(child(op, 0)));
            default:
                return input;
        }
    }

    // How pipelines follow each other.

    // All of the input is taken in, `bytes` of it held, before the first row comes out.
    static Alive gathered(const Alive &input, double bytes, double workers = 1) {
        Alive result;
        result.before = std::max(input.before, input.running() + bytes);
        result.held = bytes + input.kept;
        result.kept = input.kept;
        result.workers = workers;
        return result;
    }
    // The build side is taken in whole, while pipelines before the probe's own may run too; it stays until the probe
    // ends.
    static Alive joined(const Alive &probe, const Alive &build, double bytes) {
        Alive result;
        result.before = std::max(build.before, build.running() + bytes) + probe.before;
        result.held = probe.held + bytes + build.kept;
        result.scan = probe.scan;
        result.kept = probe.kept + build.kept;
        result.workers = probe.workers;
        return result;
    }
    // Inputs that don't wait for each other.
    Alive together(const PhysicalOperator &op) {
        Alive result;
        for (const auto &input : op.children) {
            const Alive side = alive(input.get());
            result.before += side.before;
            result.held += side.held;
            result.scan = std::max(result.scan, side.scan);
            result.kept += side.kept;
            result.workers = std::max(result.workers, side.workers);
        }
        return result;
    }
    Alive join(const Alive &probe, const PhysicalOperator &build, const PhysicalOperator &op) {
        const Alive side = alive(build);
        return joined(probe, side, built(op, build, side.workers));
    }
    Alive sorted_join(const PhysicalOperator &op) {
        Alive result{.before = 0, .held = 0, .scan = 0, .kept = 0, .workers = threads_};
        for (const auto &input : op.children) {
            const Alive side = alive(input.get());
            const double bytes = blocks(rows_of(input.get()), widths_.of(input.get()), 2 * kHashBytes, side.workers, 1);
            const Alive sorted = gathered(side, bytes);
            result.before += sorted.before;
            result.held += sorted.held;
            result.kept += sorted.kept;
        }
        return result;
    }
    // One pipeline, then another while what the first gathered is held.
    static Alive followed(const Alive &first, const Alive &rest) {
        return {.before = std::max(first.before, first.held + rest.before),
                .held = first.held + rest.held,
                .scan = rest.scan,
                .kept = first.kept + rest.kept,
                .workers = rest.workers};
    }
    Alive common_table(const PhysicalOperator &op) {
        const bool recursive = op.type != PhysicalOperatorType::CTE;
        const double rows = recursive ? std::max(rows_of(op), rows_of(child(op, 0))) : rows_of(child(op, 0));
        const double bytes = rows * row_bytes(recursive ? op : child(op, 0)) * (recursive ? 2 : 1);
        Alive first = gathered(alive(child(op, 0)), bytes);
        first.kept += bytes;
        if (!recursive) cte_factors_[op.Cast<duckdb::PhysicalCTE>().table_index] = factor_of(child(op, 0));
        const Alive rest = alive(child(op, 1));
        return followed(first, rest);
    }
    Alive delim_join(const duckdb::PhysicalDelimJoin &op) {
        const Alive input = alive(child(op, 0));
        const double values = rows_of(op.distinct);
        const double distinct = blocks(values, widths_.of(op.distinct), kHashBytes, input.workers, threads_) +
                                group_tables(values, input.workers);
        if (op.type == PhysicalOperatorType::LEFT_DELIM_JOIN) {
            const double bytes = blocks(rows_of(child(op, 0)), widths_.of(child(op, 0)), 0, input.workers, 1);
            return join(gathered(input, bytes + distinct, threads_), child(op.join, 1), op.join);
        }
        const Alive side = gathered(input, built(op.join, child(op, 0), input.workers) + distinct);
        const Alive probe = alive(child(op.join, 0));
        return followed(side, probe);
    }
    Alive merged(const duckdb::PhysicalMergeInto &op) {
        Alive result = alive(child(op, 0));
        double bytes = 0;
        for (const auto &action : op.actions) {
            if (!action->op) continue;
            note_written(*action->op);
            const PhysicalOperator *writer = &*action->op;
            while (!writer->children.empty() && writer->type != PhysicalOperatorType::COPY_TO_FILE) {
                writer = &child(*writer, 0);
            }
            bytes += writer_bytes(*writer, rows_of(child(op, 0)), row_bytes(child(op, 0)));
            bytes += rows_of(child(op, 0)) * kRowIdBytes;
        }
        return gathered(result, bytes);
    }

    // What each operator holds.

    double row_bytes(const PhysicalOperator &op) {
        double bytes = static_cast<double>(op.types.size() + 7) / 8;
        for (const ColumnWidth &column : widths_.of(op)) bytes += column.total();
        return bytes;
    }
    // Rows in collections of blocks, one for each partition of each thread that has rows: the last block of each is
    // half full, and what is not in the row itself has blocks of its own.
    static double blocks(double rows, double fixed_bytes, double heap_bytes, double workers, double partitions) {
        const double collections = workers * std::max(1.0, std::min(partitions, rows));
        const auto fill = [&](double bytes) {
            return bytes > 0 ? std::max(bytes + collections * kBlockBytes / 2, collections * kBlockBytes) : 0;
        };
        return fill(rows * fixed_bytes) + fill(rows * heap_bytes);
    }
    double blocks(double rows, const std::vector<ColumnWidth> &columns, double more_bytes, double workers,
                  double partitions) const {
        ColumnWidth width{more_bytes + static_cast<double>(columns.size() + 7) / 8, 0};
        for (const ColumnWidth &column : columns) {
            width.fixed_bytes += column.fixed_bytes;
            width.heap_bytes += column.heap_bytes;
        }
        return blocks(rows, width.fixed_bytes, width.heap_bytes, workers, partitions);
    }
    // A thread's own table, and the one all come together in.
    static double group_tables(double groups, double workers) {
        return workers * 8 * kGroupTableEntries + table_bytes(groups * 1.5) / 2;
    }

    // The build side of a join.
    double built(const PhysicalOperator &op, const PhysicalOperator &build, double workers) {
        const double rows = rows_of(build);
        if (op.type != PhysicalOperatorType::HASH_JOIN) return rows * row_bytes(build);
        const auto &join = op.Cast<duckdb::PhysicalHashJoin>();
        std::vector<ColumnWidth> held;
        for (const auto &condition : join.conditions) held.push_back(widths_.of(*condition.right, build));
        const auto &columns = widths_.of(build);
        for (const auto column : join.payload_columns.col_idxs) {
            held.push_back(column < columns.size() ? columns[column] : ColumnWidth{8, 0});
        }
        return blocks(rows, held, kHashBytes, workers, kJoinPartitions) + table_bytes(rows * 2);
    }

    double workers_for(double rows) const { return std::clamp(std::ceil(rows / kRowGroupRows), 1.0, threads_); }

    double held_by(const PhysicalOperator &op, double workers) {
        const PhysicalOperator &input = child(op, 0);
        switch (op.type) {
            case PhysicalOperatorType::HASH_GROUP_BY:
                return grouped(op.Cast<duckdb::PhysicalHashAggregate>(), workers);
            case PhysicalOperatorType::PERFECT_HASH_GROUP_BY: {
                const auto &groups = op.Cast<duckdb::PhysicalPerfectHashAggregate>();
                size_t bits = 0;
                for (const auto count : groups.required_bits) bits += count;
                return workers * std::ldexp(1, static_cast<int>(std::min<size_t>(bits, 32))) *
                           (kHashBytes + states_bytes(groups.aggregates)) +
                       grown(groups.aggregates, input);
            }
            case PhysicalOperatorType::PARTITIONED_AGGREGATE:
                return blocks(rows_of(op), widths_.of(op), 0, workers, 1);
            case PhysicalOperatorType::UNGROUPED_AGGREGATE: {
                const auto &aggregates = op.Cast<duckdb::PhysicalUngroupedAggregate>().aggregates;
                return grown(aggregates, input) + distinct(aggregates, input, {}, workers);
            }
            case PhysicalOperatorType::ORDER_BY: {
                const auto &order = op.Cast<duckdb::PhysicalOrder>();
                std::vector<ColumnWidth> held = widths_.of(op);
                for (const auto &key : order.orders) held.push_back(widths_.of(*key.expression, input));
                return blocks(rows_of(input), held, kHashBytes, workers, 1);
            }
            case PhysicalOperatorType::TOP_N: {
                const auto &top = op.Cast<duckdb::PhysicalTopN>();
                const double rows = static_cast<double>(top.limit) + static_cast<double>(top.offset);
                const double held = std::max(2 * rows, 5 * kVectorRows) * threads_;
                return std::min(held, rows_of(input)) * row_bytes(input) * 2;
            }
            case PhysicalOperatorType::WINDOW:
                return blocks(rows_of(input) * kWindowCopies, widths_.of(op), 0, workers, 1);
            default:
                return blocks(rows_of(input), widths_.of(input), 0, workers, 1);
        }
    }

    double grouped(const duckdb::PhysicalHashAggregate &op, double workers) {
        const PhysicalOperator &input = child(op, 0);
        const auto &data = op.grouped_aggregate_data;
        std::vector<ColumnWidth> keys;
        for (const auto &group : data.groups) keys.push_back(widths_.of(*group, input));
        // Threads meet the same groups.
        const double rows = rows_of(op);
        const double groups = std::min(rows * workers, std::max(rows, rows_of(input)));
        const double sets = static_cast<double>(std::max<size_t>(1, op.grouping_sets.size()));
        return blocks(groups, keys, kHashBytes + states_bytes(data.aggregates), workers, threads_) +
               group_tables(rows, workers) * sets + grown(data.aggregates, input) +
               distinct(data.aggregates, input, keys, workers);
    }

    template <class Aggregates>
    static double states_bytes(const Aggregates &aggregates) {
        double bytes = 0;
        for (const auto &expression : aggregates) {
            if (expression->GetExpressionClass() != duckdb::ExpressionClass::BOUND_AGGREGATE) continue;
            const auto &aggregate = expression->template Cast<duckdb::BoundAggregateExpression>();
            if (aggregate.function.HasStateSizeCallback()) {
                bytes += static_cast<double>(aggregate.function.GetStateSizeCallback()(aggregate.function));
            }
        }
        return bytes;
    }
    // What the arguments of growing aggregates come to.
    template <class Aggregates>
    double grown(const Aggregates &aggregates, const PhysicalOperator &input) {
        double width = 0;
        each(aggregates, [&](const duckdb::BoundAggregateExpression &aggregate) {
            if (!grows(aggregate)) return;
            width += kHashBytes;
            for (const auto &argument : aggregate.children) width += widths_.of(*argument, input).total();
        });
        return rows_of(input) * width * 1.5;  // lists grow by doubling
    }
    // Tables of distinct values, in each group.
    template <class Aggregates>
    double distinct(const Aggregates &aggregates, const PhysicalOperator &input, const std::vector<ColumnWidth> &keys,
                    double workers) {
        double bytes = 0;
        each(aggregates, [&](const duckdb::BoundAggregateExpression &aggregate) {
            if (!aggregate.IsDistinct()) return;
            std::vector<ColumnWidth> held = keys;
            for (const auto &argument : aggregate.children) held.push_back(widths_.of(*argument, input));
            bytes +=
                blocks(rows_of(input), held, kHashBytes, workers, threads_) + group_tables(rows_of(input), workers);
        });
        return bytes;
    }
    template <class Aggregates, class Do>
    static void each(const Aggregates &aggregates, Do &&act) {
        for (const auto &expression : aggregates) {
            if (expression->GetExpressionClass() == duckdb::ExpressionClass::BOUND_AGGREGATE) {
                act(expression->template Cast<duckdb::BoundAggregateExpression>());
            }
        }
    }

    double written(const PhysicalOperator &op) {
        return writer_bytes(op, rows_of(child(op, 0)), row_bytes(child(op, 0)));
    }
    double writer_bytes(const PhysicalOperator &op, double rows, double width) const {
        if (op.type == PhysicalOperatorType::COPY_TO_FILE && op.Cast<duckdb::PhysicalCopyToFile>().partition_output) {
            const double gathered_rows = std::min(rows, threads_ * kPartitionedRows);
            return gathered_rows * width + std::min(rows, kOpenFiles * kRowGroupRows) * width * kWriterCopies;
        }
        return std::min(rows, threads_ * kRowGroupRows) * width * kWriterCopies;
    }
    // Deletes and updates of a lake gather the places of their rows.
    double rows_named(const PhysicalOperator &op) {
        const std::string name = op.GetName();
        const bool names_rows = name.find("DELETE") != std::string::npos || name.find("UPDATE") != std::string::npos;
        return names_rows ? rows_of(child(op, 0)) * kRowIdBytes : 0;
    }

    void note_written(const PhysicalOperator &op) {
        const auto facts = op.ParamsToString();
        const auto name = facts.find("Table Name");
        if (name == facts.end()) return;
        estimate_.tables.push_back({.catalog = {}, .table = name->second, .rows = 0, .written = true});
    }

    Alive scan(const duckdb::PhysicalTableScan &op) {
        double rows = rows_of(op);
        if (op.function.cardinality) {
            const auto statistics = op.function.cardinality(context_, op.bind_data.get());
            if (statistics && statistics->has_estimated_cardinality) {
                rows = std::min(std::max(rows, static_cast<double>(statistics->estimated_cardinality)), kMaxRows);
            }
        }
        estimate_.scanned_rows += rows;
        if (op.function.get_bind_info) {
            if (const auto table = op.function.get_bind_info(op.bind_data.get()).table) {
                estimate_.tables.push_back(
                    {.catalog = table->ParentCatalog().GetName(), .table = table->name, .rows = rows});
            }
        }
        double bytes = 0;
        for (const auto &column : op.column_ids) {
            double width = 8;
            if (!column.IsVirtualColumn() && column.GetPrimaryIndex() < op.returned_types.size()) {
                width = PlanWidths::of(op.returned_types[column.GetPrimaryIndex()]).total();
            }
            bytes += std::min(rows, kRowGroupRows) * width * kScanShare + std::min(kScanColumnBytes, rows * width);
        }
        // More threads than row groups find nothing to do.
        const double workers = workers_for(rows);
        return {.before = 0, .held = 0, .scan = workers * bytes, .kept = 0, .workers = workers};
    }

    duckdb::ClientContext &context_;
    const double threads_;
    PlanWidths widths_;
    PlanEstimate estimate_;
    std::unordered_map<const PhysicalOperator *, double> factors_;
    std::unordered_map<duckdb::idx_t, double> cte_factors_;  // by number
};

}  // namespace

PlanEstimate estimate_plan(const PhysicalOperator &root, duckdb::ClientContext &context,
                           const PlanEstimateOptions &options) {
    return Walk(context, options).estimate(root);
}

}  // namespace roost
