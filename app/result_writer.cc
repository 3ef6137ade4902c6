#include "app/result_writer.h"

#include <wchar.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "app/json_slices.h"

namespace roost::app {
namespace {

constexpr size_t kRowsForWidths = 500;
constexpr size_t kWidestColumn = 60;

bool is_number(std::string_view type) {
    static constexpr std::array<std::string_view, 12> kNumbers{"TINYINT", "SMALLINT", "INTEGER",   "BIGINT",
                                                               "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
                                                               "UBIGINT", "UHUGEINT", "FLOAT",     "DOUBLE"};
    if (type.ends_with(']')) return false;
    return type.starts_with("DECIMAL") || std::find(kNumbers.begin(), kNumbers.end(), type) != kNumbers.end();
}

// The code point at the front, and how many bytes it took; an invalid byte stands for itself.
std::pair<uint32_t, size_t> decode(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t lead = byte(0);
    const size_t size = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    if (size == 1 || size > text.size()) return {lead, 1};
    uint32_t point = lead & (0x7fu >> size);
    for (size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {lead, 1};
        point = point << 6 | (byte(i) & 0x3f);
    }
    return {point, size};
}

class TableWriter final : public ResultWriter {
public:
    explicit TableWriter(std::ostream &out) : out_(out) {}

    void begin(const std::vector<ResultColumn> &columns) override {
        for (const ResultColumn &column : columns) {
            names_.push_back(printable(column.name));
            widths_.push_back(display_width(names_.back()));
            right_.push_back(is_number(column.type));
        }
    }

    void row(const ResultRow &row) override {
        std::vector<std::string> cells;
        for (const std::string_view value : row)
            cells.push_back(value == "null" ? "NULL" : printable(json_as_text(value)));
        ++rows_;
        if (!waiting_) return line(cells);
        first_.push_back(std::move(cells));
        if (first_.size() == kRowsForWidths) print_first();
    }

    void end() override {
        if (waiting_) print_first();
        out_ << "(" << rows_ << (rows_ == 1 ? " row)\n" : " rows)\n");
    }

private:
    void print_first() {
        waiting_ = false;
        for (const auto &cells : first_) {
            for (size_t i = 0; i < cells.size() && i < widths_.size(); ++i) {
                widths_[i] = std::max(widths_[i], std::min(display_width(cells[i]), kWidestColumn));
            }
        }
        line(names_);
        for (size_t i = 0; i < widths_.size(); ++i) out_ << (i == 0 ? "" : "+") << std::string(widths_[i] + 2, '-');
        out_ << '\n';
        for (const auto &cells : first_) line(cells);
        first_.clear();
    }

    void line(const std::vector<std::string> &cells) {
        for (size_t i = 0; i < cells.size() && i < widths_.size(); ++i) {
            const size_t width = display_width(cells[i]);
            const std::string padding(width < widths_[i] ? widths_[i] - width : 0, ' ');
            const bool last = i + 1 == widths_.size();
            out_ << (i == 0 ? " " : " | ");
            if (right_[i]) {
                out_ << padding << cells[i];
            } else {
                out_ << cells[i] << (last ? "" : padding);
            }
        }
        out_ << '\n';
    }

    std::ostream &out_;
    std::vector<std::string> names_;
    std::vector<size_t> widths_;
    std::vector<bool> right_;
    std::vector<std::vector<std::string>> first_;  // held back until the widths are known
    bool waiting_ = true;
    uint64_t rows_ = 0;
};

// RFC 4180 with \n; NULL is empty, an empty string is "".
class CsvWriter final : public ResultWriter {
public:
    explicit CsvWriter(std::ostream &out) : out_(out) {}

    void begin(const std::vector<ResultColumn> &columns) override {
        for (size_t i = 0; i < columns.size(); ++i) field(i, columns[i].name);
        out_ << '\n';
    }
    void row(const ResultRow &row) override {
        for (size_t i = 0; i < row.size(); ++i) {
            if (row[i] == "null") {
                out_ << (i == 0 ? "" : ",");
            } else {
                field(i, json_as_text(row[i]));
            }
        }
        out_ << '\n';
    }
    void end() override {}

private:
    void field(size_t index, std::string_view text) {
        if (index > 0) out_ << ',';
        if (!text.empty() && text.find_first_of(",\"\r\n") == std::string_view::npos) {
            out_ << text;
            return;
        }
        out_ << '"';
        for (const char c : text) {
            if (c == '"') out_ << '"';
            out_ << c;
        }
        out_ << '"';
    }
    std::ostream &out_;
};

// An array of objects, one a line.
class JsonWriter final : public ResultWriter {
public:
    explicit JsonWriter(std::ostream &out) : out_(out) {}

    void begin(const std::vector<ResultColumn> &columns) override {
        for (const ResultColumn &column : columns) {
            keys_.push_back(nlohmann::json(column.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        }
        out_ << '[';
    }
    void row(const ResultRow &row) override {
        out_ << (any_ ? ",\n {" : "\n {");
        any_ = true;
        for (size_t i = 0; i < row.size() && i < keys_.size(); ++i) {
            out_ << (i == 0 ? "" : ", ") << keys_[i] << ": " << row[i];
        }
        out_ << '}';
    }
    void end() override { out_ << (any_ ? "\n]\n" : "]\n"); }

private:
    std::ostream &out_;
    std::vector<std::string> keys_;
    bool any_ = false;
};

}  // namespace

Result<OutputFormat> parse_output_format(std::string_view name) {
    if (name == "table") return OutputFormat::table;
    if (name == "csv") return OutputFormat::csv;
    if (name == "json") return OutputFormat::json;
    return Status(Code::invalid_argument, "unknown format '" + std::string(name) + "': use table, csv or json");
}

std::unique_ptr<ResultWriter> make_result_writer(OutputFormat format, std::ostream &out) {
    switch (format) {
        case OutputFormat::csv:
            return std::make_unique<CsvWriter>(out);
        case OutputFormat::json:
            return std::make_unique<JsonWriter>(out);
        case OutputFormat::table:
            break;
    }
    return std::make_unique<TableWriter>(out);
}

size_t display_width(std::string_view utf8) {
    size_t width = 0;
    while (!utf8.empty()) {
        const auto [point, size] = decode(utf8);
        const int columns = point < 0x80 ? 1 : ::wcwidth(static_cast<wchar_t>(point));
        width += columns >= 0 ? static_cast<size_t>(columns) : 1;
        utf8.remove_prefix(size);
    }
    return width;
}

std::string printable(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto [point, size] = decode(text);
        const bool invalid = size == 1 && point >= 0x80;
        const bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
        if (point == '\n') {
            out += "\\n";
        } else if (point == '\t') {
            out += "\\t";
        } else if (point == '\r') {
            out += "\\r";
        } else if (invalid || control) {
            out += "\\x";
            out += kHex[point >> 4 & 15];
            out += kHex[point & 15];
        } else {
            out += text.substr(0, size);
        }
        text.remove_prefix(size);
    }
    return out;
}

}  // namespace roost::app
