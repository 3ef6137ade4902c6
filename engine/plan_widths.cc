#include "engine/plan_widths.h"

#include <algorithm>

#include "duckdb/execution/operator/aggregate/physical_hash_aggregate.hpp"
#include "duckdb/execution/operator/aggregate/physical_perfecthash_aggregate.hpp"
#include "duckdb/execution/operator/join/physical_hash_join.hpp"
#include "duckdb/execution/operator/order/physical_order.hpp"
#include "duckdb/execution/operator/projection/physical_projection.hpp"
#include "duckdb/execution/operator/scan/physical_table_scan.hpp"
#include "duckdb/execution/physical_operator.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"

namespace roost {

namespace {

using duckdb::PhysicalOperator;
using duckdb::PhysicalOperatorType;

constexpr double kInlineTextBytes = 12;  // DuckDB's string_t holds so much itself
constexpr double kTextBytes = 16;        // mean length of text where nothing is known of it
constexpr double kListEntries = 4;
constexpr double kListFixedBytes = 16;

double fixed_of(const duckdb::LogicalType &type) {
    return static_cast<double>(duckdb::GetTypeIdSize(type.InternalType()));
}

}  // namespace

ColumnWidth PlanWidths::of_text(double length_bytes) {
    return {16, length_bytes > kInlineTextBytes ? length_bytes : 0};
}

ColumnWidth PlanWidths::of(const duckdb::LogicalType &type) {
    switch (type.InternalType()) {
        case duckdb::PhysicalType::VARCHAR:
        case duckdb::PhysicalType::BIT:
            return of_text(kTextBytes);
        case duckdb::PhysicalType::LIST: {
            const ColumnWidth entry = of(duckdb::ListType::GetChildType(type));
            return {kListFixedBytes, kListEntries * entry.total()};
        }
        case duckdb::PhysicalType::ARRAY: {
            const ColumnWidth entry = of(duckdb::ArrayType::GetChildType(type));
            return {kListFixedBytes, static_cast<double>(duckdb::ArrayType::GetSize(type)) * entry.total()};
        }
        case duckdb::PhysicalType::STRUCT: {
            ColumnWidth sum;
            for (const auto &[name, child] : duckdb::StructType::GetChildTypes(type)) {
                const ColumnWidth width = of(child);
                sum.fixed_bytes += width.fixed_bytes;
                sum.heap_bytes += width.heap_bytes;
            }
            return sum;
        }
        default:
            return {fixed_of(type), 0};
    }
}

const std::vector<ColumnWidth> &PlanWidths::of(const PhysicalOperator &op) {
    if (const auto found = known_.find(&op); found != known_.end()) return found->second;
    auto columns = columns_of(op);
    // Whatever an operator adds to the columns that are understood: by type.
    for (size_t i = columns.size(); i < op.types.size(); ++i) columns.push_back(of(op.types[i]));
    columns.resize(op.types.size());
    return known_.emplace(&op, std::move(columns)).first->second;
}

ColumnWidth PlanWidths::of(const duckdb::Expression &expression, const PhysicalOperator &input) {
    if (expression.GetExpressionClass() == duckdb::ExpressionClass::BOUND_REF) {
        const auto &columns = of(input);
        const size_t index = expression.Cast<duckdb::BoundReferenceExpression>().index;
        if (index < columns.size()) return columns[index];
    }
    return of(expression.return_type);
}

std::vector<ColumnWidth> PlanWidths::scanned(const duckdb::PhysicalTableScan &scan) {
    std::vector<ColumnWidth> columns;
    for (size_t i = 0; i < scan.types.size(); ++i) {
        const size_t at = scan.projection_ids.empty() ? i : scan.projection_ids[i];
        columns.push_back(of(scan.types[i]));
        if (scan.types[i].InternalType() != duckdb::PhysicalType::VARCHAR || at >= scan.column_ids.size()) continue;
        if (scan.column_ids[at].IsVirtualColumn()) continue;
        const size_t column = scan.column_ids[at].GetPrimaryIndex();
        if (!text_length_ || column >= scan.names.size()) continue;
        if (const auto length = text_length_(scan, scan.names[column])) columns.back() = of_text(*length);
    }
    return columns;
}

std::vector<ColumnWidth> PlanWidths::joined(const PhysicalOperator &join) {
    std::vector<ColumnWidth> columns;
    if (join.type == PhysicalOperatorType::HASH_JOIN) {
        const auto &hash_join = join.Cast<duckdb::PhysicalHashJoin>();
        const auto &left = of(join.children[0].get());
        const auto &right = of(join.children[1].get());
        for (const auto column : hash_join.lhs_output_columns.col_idxs) {
            if (column < left.size()) columns.push_back(left[column]);
        }
        // Of the build side's columns the operator knows only where they are in its table, keys first.
        std::vector<ColumnWidth> held;
        for (const auto &condition : hash_join.conditions) held.push_back(of(*condition.right, join.children[1].get()));
        for (const auto column : hash_join.payload_columns.col_idxs) {
            held.push_back(column < right.size() ? right[column] : ColumnWidth{8, 0});
        }
        for (const auto column : hash_join.rhs_output_columns.col_idxs) {
            if (column < held.size()) columns.push_back(held[column]);
        }
        return columns;
    }
    for (const auto &child : join.children) {
        const auto &side = of(child.get());
        columns.insert(columns.end(), side.begin(), side.end());
    }
    return columns;
}

// The input's columns, where output and input are the same.
std::vector<ColumnWidth> PlanWidths::passed(const PhysicalOperator &op) {
    if (op.children.empty()) return {};
    const auto &input = op.children[0].get();
    const size_t same = std::min(op.types.size(), input.types.size());
    if (!std::equal(op.types.begin(), op.types.begin() + static_cast<int64_t>(same), input.types.begin())) return {};
    return of(input);
}

std::vector<ColumnWidth> PlanWidths::columns_of(const PhysicalOperator &op) {
    std::vector<ColumnWidth> columns;
    // A join over correlated columns has an aggregate without an input.
    if (op.children.empty() && op.type != PhysicalOperatorType::TABLE_SCAN) return columns;
    switch (op.type) {
        case PhysicalOperatorType::TABLE_SCAN:
            return scanned(op.Cast<duckdb::PhysicalTableScan>());
        case PhysicalOperatorType::PROJECTION:
            for (const auto &expression : op.Cast<duckdb::PhysicalProjection>().select_list) {
                columns.push_back(of(*expression, op.children[0].get()));
            }
            return columns;
        case PhysicalOperatorType::HASH_GROUP_BY:
            for (const auto &group : op.Cast<duckdb::PhysicalHashAggregate>().grouped_aggregate_data.groups) {
                columns.push_back(of(*group, op.children[0].get()));
            }
            return columns;
        case PhysicalOperatorType::PERFECT_HASH_GROUP_BY:
            for (const auto &group : op.Cast<duckdb::PhysicalPerfectHashAggregate>().groups) {
                columns.push_back(of(*group, op.children[0].get()));
            }
            return columns;
        case PhysicalOperatorType::ORDER_BY: {
            const auto &input = of(op.children[0].get());
            for (const auto column : op.Cast<duckdb::PhysicalOrder>().projections) {
                if (column < input.size()) columns.push_back(input[column]);
            }
            return columns;
        }
        case PhysicalOperatorType::HASH_JOIN:
        case PhysicalOperatorType::CROSS_PRODUCT:
        case PhysicalOperatorType::NESTED_LOOP_JOIN:
        case PhysicalOperatorType::BLOCKWISE_NL_JOIN:
            return joined(op);
        case PhysicalOperatorType::FILTER:
        case PhysicalOperatorType::LIMIT:
        case PhysicalOperatorType::STREAMING_LIMIT:
        case PhysicalOperatorType::LIMIT_PERCENT:
        case PhysicalOperatorType::TOP_N:
        case PhysicalOperatorType::WINDOW:
        case PhysicalOperatorType::STREAMING_WINDOW:
        case PhysicalOperatorType::UNION:
        case PhysicalOperatorType::RESERVOIR_SAMPLE:
        case PhysicalOperatorType::STREAMING_SAMPLE:
            return passed(op);
        default:
            return columns;
    }
}

}  // namespace roost
