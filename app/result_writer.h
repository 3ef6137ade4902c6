// Prints a result as it arrives, page by page: an aligned table, CSV or JSON. A table's widths come from its first
// rows, so memory stays flat however long the result is; a later, wider value pushes its line out instead of being cut.
// Not thread-safe. Used by `roost sql` and the other subcommands that print grids.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace roost::app {

struct ResultColumn {
    std::string name;
    std::string type;  // decides alignment; may be empty
};

// One row: the raw JSON text of each value, in the order of the columns. "null" is NULL.
using ResultRow = std::vector<std::string_view>;

class ResultWriter {
public:
    virtual ~ResultWriter() = default;
    // Once, first.
    virtual void begin(const std::vector<ResultColumn> &columns) = 0;
    virtual void row(const ResultRow &row) = 0;
    // Once, last.
    virtual void end() = 0;
};

enum class OutputFormat { table, csv, json };
// invalid_argument with the names there are.
Result<OutputFormat> parse_output_format(std::string_view name);

// `out` must outlive the writer.
std::unique_ptr<ResultWriter> make_result_writer(OutputFormat format, std::ostream &out);

// Columns that a terminal takes for the text: East Asian wide characters count twice, combining ones not at all.
size_t display_width(std::string_view utf8);

// The text with control characters written as escapes: a value can neither break the grid nor command the terminal.
std::string printable(std::string_view text);

}  // namespace roost::app
