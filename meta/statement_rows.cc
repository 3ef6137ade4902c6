#include "meta/statement_rows.h"

#include <algorithm>

#include "base/codec.h"

namespace roost::meta {
namespace {

constexpr uint32_t kPageMax = 1000;
// Past this SQLite's pattern matcher refuses, with a message nobody understands.
constexpr size_t kTextMaxBytes = 10'000;
constexpr size_t kFilterValuesMax = 100;
constexpr uint8_t kCursorVersion = 1;

// A statement that has not ended has no length yet; it sorts as the shortest so that its place does not move while one
// pages.
constexpr std::string_view kDurationUs = "(CASE WHEN finished_us = 0 THEN -1 ELSE finished_us - started_us END)";

int64_t duration_us(const StatementRecord &record) {
    return record.finished_us == 0 ? -1 : record.finished_us - record.started_us;
}

uint8_t order_bits(const StatementFilter &filter) {
    return static_cast<uint8_t>((filter.by_duration ? 1 : 0) | (filter.ascending ? 2 : 0));
}

struct Cursor {
    int64_t key = 0;
    Uuid id;
};

Status bad_cursor() {
    return Status(Code::invalid_argument, "the cursor is not one that this listing gave").with_name("invalid_cursor");
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

Result<Cursor> parse_cursor(const StatementFilter &filter) {
    std::string raw;
    const std::string &text = filter.cursor;
    if (text.size() != 2 * (2 + sizeof(int64_t) + sizeof(Uuid))) return bad_cursor();
    for (size_t i = 0; i < text.size(); i += 2) {
        const int high = hex_digit(text[i]);
        const int low = hex_digit(text[i + 1]);
        if (high < 0 || low < 0) return bad_cursor();
        raw += static_cast<char>(high * 16 + low);
    }
    Reader in(raw);
    if (in.get<uint8_t>() != kCursorVersion || in.get<uint8_t>() != order_bits(filter)) return bad_cursor();
    Cursor cursor;
    cursor.key = in.get<int64_t>();
    const std::string_view id = in.get_raw(cursor.id.bytes.size());
    if (!in.done()) return bad_cursor();
    std::copy(id.begin(), id.end(), cursor.id.bytes.begin());
    return cursor;
}

// The words of a WHERE clause and the values of its ? marks.
class Conditions {
public:
    explicit Conditions(ListQuery &query) : query_(query) {}

    void add(std::string_view condition) {
        query_.sql += first_ ? " WHERE " : " AND ";
        query_.sql += condition;
        first_ = false;
    }
    void add(std::string_view condition, ListQuery::Value value) {
        add(condition);
        query_.values.push_back(std::move(value));
    }
    void add_id(std::string_view column, const std::optional<Uuid> &id) {
        if (!id) return;
        // A nil id asks for the statements that have none.
        if (id->is_nil()) return add(std::string(column) + " IS NULL");
        add(std::string(column) + " = ?", *id);
    }
    void add_any_of(std::string_view column, std::vector<ListQuery::Value> values) {
        if (values.empty()) return;
        std::string marks;
        for (size_t i = 0; i < values.size(); ++i) marks += i == 0 ? "?" : ",?";
        add(std::string(column) + " IN (" + marks + ")");
        std::move(values.begin(), values.end(), std::back_inserter(query_.values));
    }

private:
    ListQuery &query_;
    bool first_ = true;
};

std::string like_pattern(std::string_view text) {
    std::string pattern = "%";
    for (const char c : text) {
        if (c == '%' || c == '_' || c == '\\') pattern += '\\';
        pattern += c;
    }
    return pattern + "%";
}

}  // namespace

Status write_record(Db &db, const StatementRecord &record) {
    Query query(
        db,
        "INSERT INTO statements(id, started_us, running_us, finished_us, status, writes, has_result, row_count, "
        "result_bytes, workspace, user, session, node, front, origin, kind, user_name, workspace_slug, catalog, "
        "error_code, sqlstate, error, sql, column_schema, profile) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
        "ON CONFLICT(id) DO UPDATE SET running_us = excluded.running_us, finished_us = excluded.finished_us, "
        "status = excluded.status, writes = excluded.writes, has_result = excluded.has_result, "
        "row_count = excluded.row_count, result_bytes = excluded.result_bytes, node = excluded.node, "
        "kind = excluded.kind, catalog = excluded.catalog, error_code = excluded.error_code, "
        "sqlstate = excluded.sqlstate, error = excluded.error, column_schema = excluded.column_schema, "
        "profile = excluded.profile");
    query.bind_blob(record.id.raw()).bind(record.started_us).bind(record.running_us).bind(record.finished_us);
    query.bind(static_cast<int64_t>(record.status)).bind(record.writes).bind(record.has_result);
    if (record.row_count) {
        query.bind(static_cast<int64_t>(*record.row_count));
    } else {
        query.bind_null();
    }
    query.bind(static_cast<int64_t>(record.result_bytes));
    query.bind(record.workspace).bind(record.user).bind(record.session).bind(record.node);
    query.bind(record.front).bind(record.origin).bind(record.kind);
    query.bind(record.user_name).bind(record.workspace_slug).bind(record.catalog);
    query.bind(record.error_code).bind(record.sqlstate).bind(record.error);
    query.bind(record.sql).bind(record.column_schema).bind(record.profile);
    return query.run();
}

std::string_view record_columns() {
    return "id, started_us, running_us, finished_us, status, writes, has_result, row_count, result_bytes, workspace, "
           "user, "
           "session, node, front, origin, kind, user_name, workspace_slug, catalog, error_code, sqlstate, error, sql, "
           "column_schema, profile";
}

StatementRecord read_record(Query &query) {
    StatementRecord record;
    record.id = query.id();
    record.started_us = query.integer();
    record.running_us = query.integer();
    record.finished_us = query.integer();
    // A number that we don't know can only come from a damaged file.
    record.status = static_cast<StatementStatus>(std::clamp<int64_t>(query.integer(), 0, 4));
    record.writes = query.integer() != 0;
    record.has_result = query.integer() != 0;
    if (const auto rows = query.integer_or_null()) record.row_count = static_cast<uint64_t>(*rows);
    record.result_bytes = static_cast<uint64_t>(query.integer());
    record.workspace = query.id();
    record.user = query.id();
    record.session = query.id();
    record.node = query.id();
    record.front = query.text();
    record.origin = query.text();
    record.kind = query.text();
    record.user_name = query.text();
    record.workspace_slug = query.text();
    record.catalog = query.text();
    record.error_code = query.text();
    record.sqlstate = query.text();
    record.error = query.text();
    record.sql = query.text();
    record.column_schema = query.text();
    record.profile = query.text();
    return record;
}

size_t record_bytes(const StatementRecord &record) {
    return sizeof(record) + record.sql.size() + record.column_schema.size() + record.profile.size() +
           record.error.size();
}

uint32_t page_limit(const StatementFilter &filter) { return std::clamp<uint32_t>(filter.limit, 1, kPageMax); }

Result<ListQuery> build_list_query(const StatementFilter &filter, int64_t now_us) {
    if (filter.text.size() > kTextMaxBytes || filter.text.find('\0') != std::string::npos) {
        return Status(Code::invalid_argument, "the text to look for is longer than " + std::to_string(kTextMaxBytes) +
                                                  " bytes, or holds a zero byte");
    }
    if (filter.statuses.size() > kFilterValuesMax || filter.kinds.size() > kFilterValuesMax) {
        return Status(Code::invalid_argument,
                      "more than " + std::to_string(kFilterValuesMax) + " values for one filter");
    }
    ListQuery query;
    query.sql = "SELECT seq FROM statements";
    Conditions where(query);
    where.add_id("workspace", filter.workspace);
    where.add_id("session", filter.session);
    where.add_id("user", filter.user);
    where.add_id("node", filter.node);
    std::vector<ListQuery::Value> statuses;
    for (const StatementStatus status : filter.statuses) statuses.emplace_back(static_cast<int64_t>(status));
    where.add_any_of("status", std::move(statuses));
    where.add_any_of("kind", {filter.kinds.begin(), filter.kinds.end()});
    if (!filter.origin.empty()) where.add("origin = ?", filter.origin);
    if (filter.since_us != 0) where.add("started_us >= ?", filter.since_us);
    if (filter.until_us != 0) where.add("started_us < ?", filter.until_us);
    if (filter.slower_than_ms > 0) {
        where.add("CASE WHEN finished_us = 0 THEN ? ELSE finished_us END - started_us > ?", now_us);
        query.values.emplace_back(std::min(filter.slower_than_ms, INT64_MAX / 1000) * 1000);
    }
    const std::string key(filter.by_duration ? kDurationUs : "started_us");
    if (!filter.cursor.empty()) {
        ROOST_ASSIGN_OR_RETURN(const Cursor cursor, parse_cursor(filter));
        where.add("(" + key + ", id) " + (filter.ascending ? ">" : "<") + " (?, ?)", cursor.key);
        query.values.emplace_back(cursor.id);
    }
    // Last, so that the cheap conditions have thinned the rows out.
    if (!filter.text.empty()) where.add("sql LIKE ? ESCAPE '\\'", like_pattern(filter.text));
    const std::string direction = filter.ascending ? " ASC" : " DESC";
    query.sql += " ORDER BY " + key + direction + ", id" + direction + " LIMIT ?";
    query.values.emplace_back(static_cast<int64_t>(page_limit(filter)) + 1);
    return query;
}

std::string cursor_after(const StatementFilter &filter, const StatementRecord &last) {
    Writer out;
    out.put<uint8_t>(kCursorVersion);
    out.put<uint8_t>(order_bits(filter));
    out.put<int64_t>(filter.by_duration ? duration_us(last) : last.started_us);
    out.put_raw(last.id.raw());
    return to_hex(out.bytes());
}

}  // namespace roost::meta
