#include "lake/metadata_reader.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lake/ducklake.h"
#include "lake/postgres_connection.h"
#include "lake/postgres_dsn.h"

namespace roost {

namespace {

// How many of SQLite's steps pass between two looks at the limits: tens of microseconds.
constexpr int kProgressSteps = 5'000;
constexpr int kBusyPause_us = 1'000;

class SqliteRow final : public MetadataRow {
public:
    explicit SqliteRow(sqlite3_stmt *statement) : statement_(statement) {}
    bool is_null(int column) const override { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
    int64_t integer(int column) const override { return sqlite3_column_int64(statement_, column); }
    bool boolean(int column) const override {
        if (sqlite3_column_type(statement_, column) == SQLITE_INTEGER) return integer(column) != 0;
        const std::string_view value = text(column);
        return value == "true" || value == "1" || value == "t";
    }
    std::string_view text(int column) const override {
        const auto *bytes = reinterpret_cast<const char *>(sqlite3_column_text(statement_, column));
        return bytes == nullptr
                   ? std::string_view()
                   : std::string_view(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
    }

private:
    sqlite3_stmt *statement_;
};

class SqliteReader final : public MetadataReader {
public:
    explicit SqliteReader(std::string path) : path_(std::move(path)) {}
    ~SqliteReader() override { close(); }

    Status begin(const CallLimits &limits) override {
        end();
        ROOST_RETURN_IF_ERROR(open());
        ROOST_RETURN_IF_ERROR(run("BEGIN", limits));
        in_transaction_ = true;
        return Status();
    }
    void end() override {
        if (!in_transaction_) return;
        in_transaction_ = false;
        sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);  // a read: nothing is lost if it fails
    }
    Status select(std::string_view sql, const RowFunction &row, const CallLimits &limits) override {
        if (!in_transaction_) ROOST_RETURN_IF_ERROR(open());
        limits_ = &limits;
        sqlite3_stmt *statement = nullptr;
        int code = sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
        if (code == SQLITE_OK) {
            const SqliteRow view(statement);
            while ((code = sqlite3_step(statement)) == SQLITE_ROW && row(view)) {
            }
        }
        const Status status = code == SQLITE_DONE || code == SQLITE_ROW ? Status() : error(limits);
        sqlite3_finalize(statement);
        limits_ = nullptr;
        return status;
    }
    Result<std::vector<std::string>> tables_like(std::string_view prefix, const CallLimits &limits) override {
        std::vector<std::string> names;
        ROOST_RETURN_IF_ERROR(select(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, " + std::to_string(prefix.size()) +
                ") = " + quote_literal(prefix),
            [&](const MetadataRow &row) {
                names.push_back(row.string(0));
                return true;
            },
            limits));
        return names;
    }
    // SQLite gives a new row the highest rowid and one more.
    std::string_view newest_first() const override { return " ORDER BY rowid DESC"; }

private:
    // Another file may have taken the path since: an open one that was unlinked would look unchanged for ever.
    Status open() {
        struct stat now = {};
        if (stat(path_.c_str(), &now) != 0) {
            close();
            return Status(Code::io_error, "the lake's catalog can't be opened: no such file");
        }
        if (database_ != nullptr && now.st_dev == device_ && now.st_ino == inode_) return Status();
        close();
        device_ = now.st_dev;
        inode_ = now.st_ino;
        const int opened =
            sqlite3_open_v2(path_.c_str(), &database_, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
        if (opened != SQLITE_OK) {
            const Status failed(Code::io_error, std::string("the lake's catalog can't be opened: ") +
                                                    (database_ ? sqlite3_errmsg(database_) : "out of memory"));
            close();
            return failed;
        }
        sqlite3_progress_handler(
            database_, kProgressSteps, [](void *self) { return static_cast<SqliteReader *>(self)->over() ? 1 : 0; },
            this);
        sqlite3_busy_handler(
            database_,
            [](void *self, int) {
                if (static_cast<SqliteReader *>(self)->over()) return 0;
                usleep(kBusyPause_us);
                return 1;
            },
            this);
        return Status();
    }
    void close() {
        in_transaction_ = false;
        sqlite3_close(database_);
        database_ = nullptr;
    }
    bool over() const { return limits_ != nullptr && limits_->over(); }
    Status run(const char *sql, const CallLimits &limits) {
        limits_ = &limits;
        const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
        limits_ = nullptr;
        return code == SQLITE_OK ? Status() : error(limits);
    }
    Status error(const CallLimits &limits) const {
        const int code = sqlite3_errcode(database_);
        const bool locked = code == SQLITE_BUSY || code == SQLITE_LOCKED;
        if ((locked || code == SQLITE_INTERRUPT) && limits.over()) return limits.end("reading the lake's catalog");
        return Status(locked ? Code::unavailable : Code::io_error,
                      std::string("the lake's catalog can't be read: ") + sqlite3_errmsg(database_))
            .with_retryable(locked);
    }

    std::string path_;
    sqlite3 *database_ = nullptr;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    bool in_transaction_ = false;
    const CallLimits *limits_ = nullptr;
};

class PostgresMetadataRow final : public MetadataRow {
public:
    explicit PostgresMetadataRow(const PostgresRow &row) : row_(row) {}
    bool is_null(int column) const override { return row_.is_null(column); }
    int64_t integer(int column) const override { return row_.integer(column); }
    bool boolean(int column) const override { return row_.boolean(column); }
    std::string_view text(int column) const override { return row_.text(column); }

private:
    const PostgresRow &row_;
};

class PostgresReader final : public MetadataReader {
public:
    explicit PostgresReader(const MetadataAddress &address)
        : connection_(address.where, address.schema), schema_(address.schema) {}

    Status begin(const CallLimits &limits) override { return connection_.begin_read(limits); }
    void end() override { connection_.end_read(); }
    Status select(std::string_view sql, const RowFunction &row, const CallLimits &limits) override {
        bool more = true;
        return connection_.query(
            sql,
            [&](const PostgresRow &each) {
                more = more && row(PostgresMetadataRow(each));
                return Status();
            },
            limits);
    }
    Result<std::vector<std::string>> tables_like(std::string_view prefix, const CallLimits &limits) override {
        std::vector<std::string> names;
        ROOST_RETURN_IF_ERROR(select(
            "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = " + quote_literal(schema_) +
                " AND left(tablename, " + std::to_string(prefix.size()) + ") = " + quote_literal(prefix),
            [&](const MetadataRow &row) {
                names.push_back(row.string(0));
                return true;
            },
            limits));
        return names;
    }
    std::string_view newest_first() const override { return {}; }

private:
    PostgresConnection connection_;
    std::string schema_;
};

}  // namespace

MetadataAddress metadata_address(const LakeLocation &lake) {
    if (!lake.on_postgres) return {.kind = MetadataAddress::Kind::sqlite, .where = lake.metadata_path};
    // What can't be completed fails when it is used, with words that don't repeat it.
    const auto dsn = complete_dsn(lake.metadata_path);
    return {.kind = MetadataAddress::Kind::postgres, .where = dsn.ok() ? *dsn : lake.metadata_path};
}

std::unique_ptr<MetadataReader> make_metadata_reader(const MetadataAddress &address) {
    if (address.kind == MetadataAddress::Kind::postgres) return std::make_unique<PostgresReader>(address);
    return std::make_unique<SqliteReader>(address.where);
}

}  // namespace roost
