// Prepared statements and portals of one connection. Plain state; the rules are in Connection.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "front/pg/row_cursor.h"
#include "sql/statement.h"

namespace roost::pg {

struct Prepared {
    std::string name;  // empty: the unnamed one
    sql::Statement statement;
    std::vector<uint32_t> declared_oids;  // as the client gave them; 0: to be inferred
    size_t param_count = 0;

    // What the engine said of it, when last asked.
    bool is_described = false;
    bool has_grid = false;
    std::vector<Column> columns;
    std::vector<uint32_t> param_oids;
    bool is_shown = false;  // the client has been told `columns`: they must not change under it
};

struct Portal {
    std::string name;
    std::shared_ptr<Prepared> prepared;
    std::vector<Param> params;
    std::vector<int16_t> formats;     // of the result, as Bind gave them
    std::optional<RowCursor> cursor;  // since the first Execute
};

}  // namespace roost::pg
