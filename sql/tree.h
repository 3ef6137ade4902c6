// The parse tree of one statement, made by DuckDB's bare parser: no connection, no I/O, nothing evaluated. Immutable,
// so it may be read from several threads. Only sql/ looks inside (walk.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace duckdb {
class SQLStatement;
}

namespace roost::sql {

class Tree {
public:
    // Parses `text`, which must be one statement without blanks or `;` after it. 42601 with a position when it is none
    // (or more than one), 54001 when it is nested deeper than depth_max, 0A000 for what DuckDB's grammar knows but
    // can't do. Positions are 1-based characters in `text`.
    static Result<std::shared_ptr<const Tree>> parse(std::string_view text, uint32_t depth_max);

    ~Tree();
    Tree(const Tree &) = delete;
    Tree &operator=(const Tree &) = delete;

    const duckdb::SQLStatement &root() const;
    const std::string &text() const { return text_; }
    // 1-based character of a byte offset that DuckDB gave for a node.
    uint32_t position(uint64_t byte) const;

private:
    struct Parsed;
    Tree(std::string text, std::unique_ptr<Parsed> parsed);

    std::string text_;
    std::unique_ptr<Parsed> parsed_;
};

}  // namespace roost::sql
