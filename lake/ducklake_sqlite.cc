#include "lake/ducklake_sqlite.h"

#include <sqlite3.h>

#include <memory>
#include <string_view>

namespace roost {

namespace {

constexpr int kBusyTimeoutMs = 1'000;

struct CloseDatabase {
    void operator()(sqlite3 *database) const { sqlite3_close(database); }
};
struct FinalizeStatement {
    void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Prepared = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

Status sqlite_error(sqlite3 *database, std::string_view what) {
    const int code = database ? sqlite3_errcode(database) : SQLITE_NOMEM;
    const std::string text = database ? sqlite3_errmsg(database) : "out of memory";
    const Code kind = code == SQLITE_BUSY || code == SQLITE_LOCKED ? Code::unavailable : Code::io_error;
    return Status(kind, std::string(what) + ": " + text).with_retryable(kind == Code::unavailable);
}

Status run(sqlite3 *database, const std::string &sql) {
    if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return Status();
    return sqlite_error(database, "the lake's catalog can't be written");
}

// The first column of the first row.
Result<std::optional<int64_t>> number(sqlite3 *database, const char *sql, const std::string &parameter) {
    sqlite3_stmt *raw = nullptr;
    if (sqlite3_prepare_v2(database, sql, -1, &raw, nullptr) != SQLITE_OK) {
        return sqlite_error(database, "the lake's catalog can't be read");
    }
    const Prepared query(raw);
    if (sqlite3_bind_parameter_count(raw) == 1) {
        sqlite3_bind_text(raw, 1, parameter.data(), static_cast<int>(parameter.size()), SQLITE_STATIC);
    }
    switch (sqlite3_step(raw)) {
        case SQLITE_ROW:
            return std::optional<int64_t>(sqlite3_column_int64(raw, 0));
        case SQLITE_DONE:
            return std::optional<int64_t>();
        default:
            return sqlite_error(database, "the lake's catalog can't be read");
    }
}

Result<std::optional<int64_t>> find(sqlite3 *database, const std::string &mark) {
    return number(database,
                  "SELECT snapshot_id FROM ducklake_snapshot_changes WHERE commit_extra_info = ?1 "
                  "ORDER BY snapshot_id DESC LIMIT 1",
                  mark);
}

Result<std::optional<uint64_t>> snapshot_of(const std::optional<int64_t> &found) {
    return found ? std::optional<uint64_t>(static_cast<uint64_t>(*found)) : std::nullopt;
}

}  // namespace

Result<std::optional<uint64_t>> find_sqlite_commit(const std::string &path, const std::string &mark) {
    sqlite3 *raw = nullptr;
    const int opened = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
    const Database database(raw);
    if (opened != SQLITE_OK) return sqlite_error(raw, "the lake's catalog can't be opened");
    sqlite3_busy_timeout(raw, kBusyTimeoutMs);
    ROOST_ASSIGN_OR_RETURN(const auto seen, find(raw, mark));
    if (seen) return snapshot_of(seen);

    ROOST_RETURN_IF_ERROR(run(raw, "BEGIN IMMEDIATE"));  // waits for whoever commits now
    ROOST_ASSIGN_OR_RETURN(const auto found, find(raw, mark));
    if (found) return snapshot_of(found);
    ROOST_ASSIGN_OR_RETURN(const auto version, number(raw, "PRAGMA user_version", mark));
    ROOST_RETURN_IF_ERROR(run(raw, "PRAGMA user_version = " + std::to_string(version.value_or(0))));
    ROOST_RETURN_IF_ERROR(run(raw, "COMMIT"));
    return std::optional<uint64_t>();
}

}  // namespace roost
