#include "meta/audit_rows.h"

#include <algorithm>

namespace roost::meta {
namespace {

constexpr uint32_t kPageMaxRows = 1'000;
constexpr std::string_view kColumns =
    "seq, at_us, position, count, shape, event, front, peer, user, user_name, workspace, session, statement, rule, "
    "sqlstate, message, sql";

AuditRecord read_row(Query &row) {
    AuditRecord record;
    record.sequence = static_cast<uint64_t>(row.integer());
    record.at_us = row.integer();
    record.position = static_cast<uint32_t>(row.integer());
    record.count = static_cast<uint64_t>(row.integer());
    record.shape = static_cast<uint64_t>(row.integer());
    record.event = row.text();
    record.front = row.text();
    record.peer = row.text();
    record.user = row.id();
    record.user_name = row.text();
    record.workspace = row.text();
    record.session = row.id();
    record.statement = row.id();
    record.rule = row.text();
    record.sqlstate = row.text();
    record.message = row.text();
    record.sql = row.text();
    return record;
}

}  // namespace

Status write_audit(Db &db, const std::vector<AuditRecord> &records) {
    for (const AuditRecord &record : records) {
        Query query(db,
                    "INSERT INTO audit(at_us, position, count, shape, event, front, peer, user, user_name, workspace, "
                    "session, statement, rule, sqlstate, message, sql) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
        query.bind(record.at_us).bind(static_cast<int64_t>(record.position)).bind(static_cast<int64_t>(record.count));
        query.bind(static_cast<int64_t>(record.shape)).bind(record.event).bind(record.front).bind(record.peer);
        query.bind(record.user).bind(record.user_name).bind(record.workspace).bind(record.session);
        query.bind(record.statement).bind(record.rule).bind(record.sqlstate).bind(record.message).bind(record.sql);
        ROOST_RETURN_IF_ERROR(query.run());
    }
    return {};
}

Result<AuditPage> read_audit(Db &db, const AuditFilter &filter) {
    std::string sql = "SELECT " + std::string(kColumns) + " FROM audit WHERE 1";
    if (filter.before > 0) sql += " AND seq < ?";
    if (filter.since_us > 0) sql += " AND at_us >= ?";
    if (filter.until_us > 0) sql += " AND at_us < ?";
    if (!filter.event.empty()) sql += " AND event = ?";
    if (!filter.user_name.empty()) sql += " AND user_name = ?";
    if (!filter.rule.empty()) sql += " AND (rule = ? OR substr(rule, 1, instr(rule, ':') - 1) = ?)";
    sql += " ORDER BY seq DESC LIMIT ?";
    const uint32_t limit = std::clamp<uint32_t>(filter.limit, 1, kPageMaxRows);
    Query query(db, sql);
    if (filter.before > 0) query.bind(static_cast<int64_t>(filter.before));
    if (filter.since_us > 0) query.bind(filter.since_us);
    if (filter.until_us > 0) query.bind(filter.until_us);
    if (!filter.event.empty()) query.bind(filter.event);
    if (!filter.user_name.empty()) query.bind(filter.user_name);
    if (!filter.rule.empty()) query.bind(filter.rule).bind(filter.rule);
    query.bind(static_cast<int64_t>(limit) + 1);
    AuditPage page;
    while (query.step()) page.items.push_back(read_row(query));
    if (!query.status().ok()) return query.status();
    page.has_more = page.items.size() > limit;
    if (page.has_more) page.items.pop_back();
    return page;
}

Result<uint64_t> prune_audit(Db &db, int64_t before_us, uint64_t keep_rows, uint64_t limit) {
    Query query(db,
                "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at_us < ? OR seq <= "
                "(SELECT max(seq) FROM audit) - ? ORDER BY seq LIMIT ?) RETURNING seq");
    query.bind(before_us).bind(static_cast<int64_t>(keep_rows)).bind(static_cast<int64_t>(limit));
    uint64_t removed = 0;
    while (query.step()) removed++;
    if (!query.status().ok()) return query.status();
    return removed;
}

}  // namespace roost::meta
