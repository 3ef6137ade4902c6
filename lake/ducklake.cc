#include "lake/ducklake.h"

#include <sqlite3.h>

#include <memory>

#include "lake/ducklake_postgres.h"
#include "lake/postgres_dsn.h"

namespace roost {

namespace {

constexpr int kLookupBusyTimeoutMs = 1'000;
constexpr std::string_view kMarkPrefix = "roost:";

std::string quoted(std::string_view text, char quote) {
    std::string out(1, quote);
    for (const char c : text) {
        if (c == quote) out.push_back(quote);
        out.push_back(c);
    }
    out.push_back(quote);
    return out;
}

struct CloseDatabase {
    void operator()(sqlite3 *database) const { sqlite3_close(database); }
};
struct FinalizeStatement {
    void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};

Status sqlite_error(sqlite3 *database, std::string_view what) {
    const int code = database ? sqlite3_errcode(database) : SQLITE_NOMEM;
    const std::string text = database ? sqlite3_errmsg(database) : "out of memory";
    const Code kind = code == SQLITE_BUSY || code == SQLITE_LOCKED ? Code::unavailable : Code::io_error;
    return Status(kind, std::string(what) + ": " + text).with_retryable(kind == Code::unavailable);
}

}  // namespace

std::string quote_identifier(std::string_view name) { return quoted(name, '"'); }
std::string quote_literal(std::string_view text) { return quoted(text, '\''); }

std::string attach_sql(const LakeLocation &lake, const AttachMode &mode) {
    std::string place, options;
    if (lake.on_postgres) {
        // A text that can't be parsed is left to the extension to refuse.
        const auto dsn = complete_dsn(lake.metadata_path);
        place = "postgres:" + (dsn.ok() ? *dsn : lake.metadata_path);
        options = ", META_SECRET_STORAGE_TABLE ''";  // no table of secrets is looked for
    } else {
        place = "sqlite:" + lake.metadata_path;
        // WAL: readers go on while one writes.
        options = ", META_JOURNAL_MODE 'WAL', META_BUSY_TIMEOUT " + std::to_string(mode.busy_timeout_ms);
    }
    return "ATTACH " + quote_literal("ducklake:" + place) + " AS " + quote_identifier(lake.catalog) + " (DATA_PATH " +
           quote_literal(lake.data_path) + options + ", CREATE_IF_NOT_EXISTS " + (mode.create ? "true" : "false") + ")";
}

std::string commit_mark(const Uuid &statement) { return std::string(kMarkPrefix) + statement.to_string(); }

std::string commit_message_sql(const LakeLocation &lake, const Uuid &statement) {
    return "CALL ducklake_set_commit_message(" + quote_literal(lake.catalog) + ", 'roost', '', extra_info => " +
           quote_literal(commit_mark(statement)) + ")";
}

Result<std::optional<uint64_t>> find_commit(const LakeLocation &lake, const Uuid &statement) {
    if (lake.on_postgres) return find_postgres_commit(lake.metadata_path, commit_mark(statement));
    sqlite3 *raw = nullptr;
    const int opened = sqlite3_open_v2(lake.metadata_path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    const std::unique_ptr<sqlite3, CloseDatabase> database(raw);
    if (opened != SQLITE_OK) return sqlite_error(raw, "the lake's catalog can't be opened");
    sqlite3_busy_timeout(raw, kLookupBusyTimeoutMs);

    sqlite3_stmt *prepared = nullptr;
    constexpr const char *kQuery =
        "SELECT snapshot_id FROM ducklake_snapshot_changes WHERE commit_extra_info = ?1 ORDER BY snapshot_id DESC "
        "LIMIT 1";
    if (sqlite3_prepare_v2(raw, kQuery, -1, &prepared, nullptr) != SQLITE_OK) {
        return sqlite_error(raw, "the lake's catalog can't be read");
    }
    const std::unique_ptr<sqlite3_stmt, FinalizeStatement> query(prepared);
    const std::string mark = commit_mark(statement);
    sqlite3_bind_text(prepared, 1, mark.data(), static_cast<int>(mark.size()), SQLITE_STATIC);
    switch (sqlite3_step(prepared)) {
        case SQLITE_ROW:
            return std::optional<uint64_t>(static_cast<uint64_t>(sqlite3_column_int64(prepared, 0)));
        case SQLITE_DONE:
            return std::optional<uint64_t>();
        default:
            return sqlite_error(raw, "the lake's catalog can't be read");
    }
}

}  // namespace roost
