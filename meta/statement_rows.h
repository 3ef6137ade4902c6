// The history table: how a record becomes a row and back, and the queries of its listings with their cursors.
// Pure but for the connection it is given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "meta/sqlite_db.h"
#include "meta/store.h"

namespace roost::meta {

// Inserts the record; where its id is known, updates what can change while a statement lives. Who ran what, where and
// when it came in stays as first written.
Status write_record(Db &db, const StatementRecord &record);

// Column list that read_record reads.
std::string_view record_columns();
StatementRecord read_record(Query &query);
// Bytes that the record takes in memory, about.
size_t record_bytes(const StatementRecord &record);

// A listing as SQL with its values in order. It gives the row numbers alone: sorting whole records, texts and all, took
// three times as long, and a page of long texts would not fit in memory.
struct ListQuery {
    using Value = std::variant<int64_t, std::string, Uuid>;
    std::string sql;
    std::vector<Value> values;
};
// `now_us`: a statement that still runs has been slow until now. Gives one row more than the limit, to know whether
// there are more. Errors: invalid_argument; invalid_cursor for a cursor that isn't one, or of a listing with another
// order.
Result<ListQuery> build_list_query(const StatementFilter &filter, int64_t now_us);
uint32_t page_limit(const StatementFilter &filter);
// The cursor that continues after `last`.
std::string cursor_after(const StatementFilter &filter, const StatementRecord &last);

}  // namespace roost::meta
