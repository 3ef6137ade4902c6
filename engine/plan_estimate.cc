#include "engine/plan_estimate.h"

#include <algorithm>

#include "duckdb/execution/operator/aggregate/physical_hash_aggregate.hpp"
#include "duckdb/execution/operator/aggregate/physical_ungrouped_aggregate.hpp"
#include "duckdb/execution/operator/order/physical_top_n.hpp"
#include "duckdb/execution/operator/scan/physical_table_scan.hpp"
#include "duckdb/execution/physical_operator.hpp"
#include "duckdb/planner/expression/bound_aggregate_expression.hpp"
#include "duckdb/storage/statistics/node_statistics.hpp"

namespace roost {

namespace {

using duckdb::PhysicalOperator;
using duckdb::PhysicalOperatorType;

// Bytes of one value where its width is not the type's: without column statistics a guess.
constexpr double kStringBytes = 32;
constexpr double kNestedBytes = 96;
constexpr double kRowOverheadBytes = 16;  // hash or sort key, pointer, validity
// DuckDB's estimates of products reach 2^64; beyond this nothing changes.
constexpr double kMaxRows = 1e15;
constexpr double kWriterRowGroupRows = 122'880;
constexpr double kWriterCopies = 2;  // the rows, and the row group being encoded

double width_of(const duckdb::vector<duckdb::LogicalType> &types) {
    double bytes = 0;
    for (const auto &type : types) {
        switch (type.InternalType()) {
            case duckdb::PhysicalType::VARCHAR:
            case duckdb::PhysicalType::BIT:
                bytes += kStringBytes;
                break;
            case duckdb::PhysicalType::LIST:
            case duckdb::PhysicalType::STRUCT:
            case duckdb::PhysicalType::ARRAY:
                bytes += kNestedBytes;
                break;
            default:
                bytes += static_cast<double>(duckdb::GetTypeIdSize(type.InternalType()));
        }
    }
    return bytes;
}

double rows_of(const PhysicalOperator &op) { return std::min(static_cast<double>(op.estimated_cardinality), kMaxRows); }

// Aggregates whose state grows with their input: list, string_agg, median and friends, DISTINCT, ORDER BY inside.
bool holds_input(const duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> &aggregates) {
    static constexpr std::string_view kGrowing[] = {
        "list",   "array_agg",        "string_agg",        "group_concat",  "listagg", "histogram",
        "median", "quantile",         "quantile_cont",     "quantile_disc", "mode",    "mad",
        "map",    "json_group_array", "json_group_object", "entropy",
    };
    return std::any_of(aggregates.begin(), aggregates.end(), [](const auto &expression) {
        if (expression->GetExpressionClass() != duckdb::ExpressionClass::BOUND_AGGREGATE) return false;
        const auto &aggregate = expression->template Cast<duckdb::BoundAggregateExpression>();
        if (aggregate.IsDistinct() || aggregate.order_bys) return true;
        return std::find(std::begin(kGrowing), std::end(kGrowing), aggregate.function.name) != std::end(kGrowing);
    });
}

class Walk {
public:
    explicit Walk(duckdb::ClientContext &context) : context_(context) {}

    void visit(const PhysicalOperator &op) {
        estimate_.largest_rows = std::max(estimate_.largest_rows, rows_of(op));
        estimate_.held_bytes += held_by(op);
        if (op.type == PhysicalOperatorType::TABLE_SCAN) estimate_.scanned_rows += base_rows(op);
        for (const auto &child : op.GetChildren()) visit(child.get());
    }
    PlanEstimate result() const { return estimate_; }

private:
    static double input_bytes(const PhysicalOperator &op, size_t child) {
        const auto children = op.GetChildren();
        if (children.size() <= child) return 0;
        const PhysicalOperator &input = children[child].get();
        return rows_of(input) * (width_of(input.types) + kRowOverheadBytes);
    }
    static double output_bytes(const PhysicalOperator &op) {
        return rows_of(op) * (width_of(op.types) + kRowOverheadBytes);
    }

    double held_by(const PhysicalOperator &op) const {
        switch (op.type) {
            case PhysicalOperatorType::HASH_JOIN:
            case PhysicalOperatorType::NESTED_LOOP_JOIN:
            case PhysicalOperatorType::BLOCKWISE_NL_JOIN:
            case PhysicalOperatorType::CROSS_PRODUCT:
                return input_bytes(op, 1);
            case PhysicalOperatorType::PIECEWISE_MERGE_JOIN:
            case PhysicalOperatorType::IE_JOIN:
            case PhysicalOperatorType::ASOF_JOIN:
                return input_bytes(op, 0) + input_bytes(op, 1);
            case PhysicalOperatorType::LEFT_DELIM_JOIN:
            case PhysicalOperatorType::RIGHT_DELIM_JOIN:
            case PhysicalOperatorType::ORDER_BY:
            case PhysicalOperatorType::WINDOW:
            case PhysicalOperatorType::CTE:
            case PhysicalOperatorType::RECURSIVE_CTE:
            case PhysicalOperatorType::RECURSIVE_KEY_CTE:
            case PhysicalOperatorType::PIVOT:
                return input_bytes(op, 0);
            case PhysicalOperatorType::TOP_N: {
                const auto &top = op.Cast<duckdb::PhysicalTopN>();
                const double rows =
                    std::min(static_cast<double>(top.limit) + static_cast<double>(top.offset), kMaxRows);
                return std::min(rows * (width_of(op.types) + kRowOverheadBytes), input_bytes(op, 0));
            }
            case PhysicalOperatorType::HASH_GROUP_BY: {
                const auto &aggregate = op.Cast<duckdb::PhysicalHashAggregate>();
                const bool grows = holds_input(aggregate.grouped_aggregate_data.aggregates);
                return output_bytes(op) + (grows ? input_bytes(op, 0) : 0);
            }
            case PhysicalOperatorType::PERFECT_HASH_GROUP_BY:
            case PhysicalOperatorType::PARTITIONED_AGGREGATE:
                return output_bytes(op);
            case PhysicalOperatorType::UNGROUPED_AGGREGATE:
                return holds_input(op.Cast<duckdb::PhysicalUngroupedAggregate>().aggregates) ? input_bytes(op, 0) : 0;
            case PhysicalOperatorType::COPY_TO_FILE:
            case PhysicalOperatorType::BATCH_COPY_TO_FILE:
                return writer_bytes(op);
            default:
                return 0;
        }
    }

    double writer_bytes(const PhysicalOperator &op) const {
        const auto children = op.GetChildren();
        if (children.empty()) return 0;
        const PhysicalOperator &input = children[0].get();
        return std::min(rows_of(input), kWriterRowGroupRows) * width_of(input.types) * kWriterCopies;
    }

    double base_rows(const PhysicalOperator &op) const {
        const auto &scan = op.Cast<duckdb::PhysicalTableScan>();
        double rows = rows_of(op);
        if (scan.function.cardinality) {
            const auto statistics = scan.function.cardinality(context_, scan.bind_data.get());
            if (statistics && statistics->has_estimated_cardinality) {
                rows = std::max(rows, static_cast<double>(statistics->estimated_cardinality));
            }
        }
        return std::min(rows, kMaxRows);
    }

    duckdb::ClientContext &context_;
    PlanEstimate estimate_;
};

}  // namespace

PlanEstimate estimate_plan(const PhysicalOperator &root, duckdb::ClientContext &context) {
    Walk walk(context);
    walk.visit(root);
    return walk.result();
}

}  // namespace roost
