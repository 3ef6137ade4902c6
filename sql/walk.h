// Visits every node of a parse tree: queries with their CTEs, FROM items, expressions wherever the grammar lets them
// stand (defaults, CHECKs, frames, AT clauses, RETURNING, COPY options, types…), and the names of what they touch. A
// node kind that the walk does not know ends it with an error, so a visitor that judges can rely on having seen
// everything. DuckDB's own iterators leave out frames of views, AT clauses, types, SHOW bodies and most statements:
// hence this.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "sql/statement.h"

namespace duckdb {
class BaseTableRef;
class FunctionExpression;
class SelectNode;
class ShowRef;
class SQLStatement;
class TypeExpression;
class WindowExpression;
}  // namespace duckdb

namespace roost::sql {

// A name that stands for a table, view or other catalog object.
struct NameUse {
    enum class Place : uint8_t {
        read,    // in FROM
        write,   // target of INSERT, UPDATE, DELETE, MERGE, COPY FROM
        define,  // target of CREATE, ALTER, DROP, COMMENT
    };
    enum class Object : uint8_t { table, view, schema, macro, type, sequence, index, other };
    TableName name;  // for a schema: its name in `schema`
    Place place = Place::read;
    Object object = Object::table;
    bool from_item = false;            // bound as a FROM item: a miss would become a replacement scan
    std::optional<uint64_t> location;  // byte, where DuckDB knows it
};

// What the walk reports. Every method may end the walk with an error. The default accepts.
class Visitor {
public:
    virtual ~Visitor() = default;
    // Before the parts of a statement, nested ones included (EXPLAIN, the parts of a multi-statement, ENUM queries).
    virtual Status on_statement(const duckdb::SQLStatement &) { return Status(); }
    // A name that no CTE in scope explains.
    virtual Status on_name(const NameUse &) { return Status(); }
    // A call: in FROM, else as an expression. Its arguments are walked afterwards.
    virtual Status on_function(const duckdb::FunctionExpression &, bool /*in_from*/) { return Status(); }
    virtual Status on_window(const duckdb::WindowExpression &) { return Status(); }
    virtual Status on_type(const duckdb::TypeExpression &) { return Status(); }
    // SHOW, DESCRIBE, SUMMARIZE; the query inside is walked afterwards.
    virtual Status on_show(const duckdb::ShowRef &) { return Status(); }
    // Before the parts of a SELECT.
    virtual Status on_select(const duckdb::SelectNode &) { return Status(); }
};

Status walk(const duckdb::SQLStatement &statement, Visitor &visitor);

}  // namespace roost::sql
