// How wide the columns of a plan's operators are: fixed bytes by type, and for values of no fixed size what the lake's
// column statistics say of them, followed from the scans upwards through the plan. Not thread-safe: for one walk over
// one plan, which outlives it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "duckdb/common/types.hpp"

namespace duckdb {
class Expression;
class PhysicalOperator;
class PhysicalTableScan;
}  // namespace duckdb

namespace roost {

struct ColumnWidth {
    double fixed_bytes = 0;  // in a row; of text a pointer or, up to 12 bytes, the text itself
    double heap_bytes = 0;   // beside the row
    double total() const { return fixed_bytes + heap_bytes; }
};

// Mean length in bytes of the text in this column of the table that is scanned; nothing: not known.
using TextLength =
    std::function<std::optional<double>(const duckdb::PhysicalTableScan &scan, const std::string &column)>;

class PlanWidths {
public:
    explicit PlanWidths(TextLength text_length) : text_length_(std::move(text_length)) {}

    // Of a value of which only the type is known.
    static ColumnWidth of(const duckdb::LogicalType &type);
    static ColumnWidth of_text(double length_bytes);
    // Of the operator's output columns.
    const std::vector<ColumnWidth> &of(const duckdb::PhysicalOperator &op);
    // Of an expression over the operator's output.
    ColumnWidth of(const duckdb::Expression &expression, const duckdb::PhysicalOperator &input);

private:
    std::vector<ColumnWidth> columns_of(const duckdb::PhysicalOperator &op);
    std::vector<ColumnWidth> scanned(const duckdb::PhysicalTableScan &scan);
    std::vector<ColumnWidth> joined(const duckdb::PhysicalOperator &join);
    std::vector<ColumnWidth> passed(const duckdb::PhysicalOperator &op);

    const TextLength text_length_;
    std::unordered_map<const duckdb::PhysicalOperator *, std::vector<ColumnWidth>> known_;
};

}  // namespace roost
