#include "lake/file_pins.h"

#include <sqlite3.h>

#include <array>
#include <chrono>
#include <span>
#include <thread>

#include "base/clock.h"
#include "lake/ducklake.h"
#include "lake/postgres_connection.h"
#include "lake/postgres_dsn.h"

namespace roost {

namespace {

constexpr std::chrono::milliseconds kBusyPause{2};
constexpr size_t kRowsAtOnce = 200;

constexpr std::array<const char *, 3> kMake = {
    "CREATE TABLE IF NOT EXISTS roost_pinned_file (commit_mark VARCHAR NOT NULL, snapshot_id BIGINT, path VARCHAR NOT "
    "NULL, size_bytes BIGINT NOT NULL, modified_ns BIGINT NOT NULL, etag VARCHAR NOT NULL, pinned_us BIGINT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS roost_pinned_file_path ON roost_pinned_file (path)",
    "CREATE INDEX IF NOT EXISTS roost_pinned_file_mark ON roost_pinned_file (commit_mark)"};

// The two databases as a writer of one transaction sees them.
class CatalogWriter {
public:
    virtual ~CatalogWriter() = default;
    virtual Status run(const std::string &sql) = 0;
    virtual uint64_t changes() const = 0;  // rows that the last run() changed
};

class SqliteWriter final : public CatalogWriter {
public:
    explicit SqliteWriter(const CallLimits &limits) : limits_(limits) {}
    ~SqliteWriter() override { sqlite3_close(database_); }

    Status open(const std::string &path) {
        if (sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) return error();
        sqlite3_busy_handler(
            database_,
            [](void *self, int) {
                if (static_cast<SqliteWriter *>(self)->limits_.over()) return 0;
                std::this_thread::sleep_for(kBusyPause);
                return 1;
            },
            this);
        return Status();
    }
    Status run(const std::string &sql) override {
        return sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? Status() : error();
    }
    uint64_t changes() const override { return static_cast<uint64_t>(sqlite3_changes(database_)); }

private:
    Status error() const {
        const int code = database_ ? sqlite3_errcode(database_) : SQLITE_NOMEM;
        const bool locked = code == SQLITE_BUSY || code == SQLITE_LOCKED;
        return Status(locked ? Code::unavailable : Code::io_error,
                      std::string("the lake's catalog can't be written: ") +
                          (database_ ? sqlite3_errmsg(database_) : "out of memory"))
            .with_retryable(locked);
    }

    const CallLimits &limits_;
    sqlite3 *database_ = nullptr;
};

class PostgresWriter final : public CatalogWriter {
public:
    PostgresWriter(std::string dsn, const CallLimits &limits)
        : connection_(std::move(dsn), "public"), limits_(limits) {}
    Status run(const std::string &sql) override {
        const bool counts = sql.starts_with("DELETE");
        changes_ = 0;
        return connection_.query(
            counts ? sql + " RETURNING 1" : sql,
            [this](const PostgresRow &) {
                changes_++;
                return Status();
            },
            limits_);
    }
    uint64_t changes() const override { return changes_; }

private:
    PostgresConnection connection_;
    const CallLimits &limits_;
    uint64_t changes_ = 0;
};

Result<std::unique_ptr<CatalogWriter>> open_writer(const LakeLocation &lake, const CallLimits &limits) {
    if (lake.on_postgres) {
        ROOST_ASSIGN_OR_RETURN(std::string dsn, complete_dsn(lake.metadata_path, lake.catalog_timeout_ms));
        return std::unique_ptr<CatalogWriter>(std::make_unique<PostgresWriter>(std::move(dsn), limits));
    }
    auto writer = std::make_unique<SqliteWriter>(limits);
    ROOST_RETURN_IF_ERROR(writer->open(lake.metadata_path));
    return std::unique_ptr<CatalogWriter>(std::move(writer));
}

std::string row_of(const std::string &mark, const FilePin &pin, int64_t now_us) {
    return "(" + quote_literal(mark) + ", NULL, " + quote_literal(pin.path) + ", " +
           std::to_string(pin.version.size_bytes) + ", " + std::to_string(pin.version.modified_ns) + ", " +
           quote_literal(pin.version.etag) + ", " + std::to_string(now_us) + ")";
}

Status insert(CatalogWriter &writer, const std::string &mark, std::span<const FilePin> pins) {
    const int64_t now_us = SystemClock().wall_us();
    while (!pins.empty()) {
        std::string sql = "INSERT INTO roost_pinned_file VALUES ";
        const auto some = pins.first(std::min(pins.size(), kRowsAtOnce));
        for (const FilePin &pin : some) sql += (&pin == some.data() ? "" : ", ") + row_of(mark, pin, now_us);
        ROOST_RETURN_IF_ERROR(writer.run(sql));
        pins = pins.subspan(some.size());
    }
    return Status();
}

// Two may make the table at once, and on Postgres the second fails.
Status make_table(CatalogWriter &writer, bool on_postgres) {
    if (on_postgres) ROOST_RETURN_IF_ERROR(writer.run("SELECT pg_advisory_xact_lock(8247311)"));
    for (const char *sql : kMake) ROOST_RETURN_IF_ERROR(writer.run(sql));
    return Status();
}

// No names of hosts, users or files in what a client may see.
Status in_our_words(Status status) {
    if (status.ok() || status.code() == Code::cancelled || status.code() == Code::timeout) return status;
    const bool there = status.code() == Code::io_error;
    return Status(status.code(), there ? "the lake's catalog does not take the versions of the files"
                                       : "the lake's catalog can't be reached, or is busy")
        .with_retryable(!there);
}

Status settle(CatalogWriter &writer, int64_t before_us) {
    ROOST_RETURN_IF_ERROR(writer.run(
        "UPDATE roost_pinned_file SET snapshot_id = (SELECT max(c.snapshot_id) FROM ducklake_snapshot_changes c WHERE "
        "c.commit_extra_info = roost_pinned_file.commit_mark) WHERE snapshot_id IS NULL AND commit_mark IN (SELECT "
        "commit_extra_info FROM ducklake_snapshot_changes)"));
    return writer.run(
        "DELETE FROM roost_pinned_file WHERE pinned_us < " + std::to_string(before_us) +
        " AND (snapshot_id IS NULL OR path NOT IN (SELECT path FROM ducklake_data_file WHERE begin_snapshot = "
        "roost_pinned_file.snapshot_id))");
}

}  // namespace

Status write_pins(const LakeLocation &lake, const Uuid &statement, const std::vector<FilePin> &pins,
                  const CallLimits &limits) {
    if (pins.empty()) return Status();
    ROOST_ASSIGN_OR_RETURN(const auto writer, open_writer(lake, limits));
    const auto write = [&]() -> Status {
        ROOST_RETURN_IF_ERROR(writer->run(lake.on_postgres ? "BEGIN" : "BEGIN IMMEDIATE"));
        ROOST_RETURN_IF_ERROR(make_table(*writer, lake.on_postgres));
        ROOST_RETURN_IF_ERROR(insert(*writer, commit_mark(statement), pins));
        return writer->run("COMMIT");
    };
    return in_our_words(write());
}

Result<uint64_t> settle_pins(const LakeLocation &lake, int64_t now_us, int64_t keep_us, const CallLimits &limits) {
    const auto reader = make_metadata_reader(metadata_address(lake));
    ROOST_ASSIGN_OR_RETURN(const auto tables, reader->tables_like("roost_pinned_file", limits));
    if (tables.empty()) return uint64_t{0};
    // Most times there is nothing to do, and a SQLite catalog has one writer.
    bool work = false;
    ROOST_RETURN_IF_ERROR(reader->select(
        "SELECT 1 FROM roost_pinned_file WHERE snapshot_id IS NULL OR (pinned_us < " +
            std::to_string(now_us - keep_us) + " AND path NOT IN (SELECT path FROM ducklake_data_file)) LIMIT 1",
        [&work](const MetadataRow &) { return !(work = true); }, limits));
    if (!work) return uint64_t{0};
    ROOST_ASSIGN_OR_RETURN(const auto writer, open_writer(lake, limits));
    ROOST_RETURN_IF_ERROR(in_our_words(writer->run(lake.on_postgres ? "BEGIN" : "BEGIN IMMEDIATE")));
    ROOST_RETURN_IF_ERROR(in_our_words(settle(*writer, now_us - keep_us)));
    const uint64_t dropped = writer->changes();
    ROOST_RETURN_IF_ERROR(in_our_words(writer->run("COMMIT")));
    return dropped;
}

uint64_t FilePins::hash_of(const DataFileKey &file) {
    uint64_t hash = std::hash<std::string>()(file.path);
    for (const uint64_t part : {file.mapping_id, file.row_id_start}) {
        hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

Result<std::optional<FileVersion>> FilePins::find(const DataFileKey &file, const CallLimits &limits) {
    const uint64_t hash = hash_of(file);
    MutexLock lock(mutex_);
    auto found = kept_.find(hash);
    if (found == kept_.end()) {
        ROOST_RETURN_IF_ERROR(in_our_words(load(file.path, limits)));
        found = kept_.find(hash);
    }
    if (found == kept_.end()) return std::optional<FileVersion>();
    return std::optional<FileVersion>(found->second);
}

// All pins of the registrations that `path` was in.
Status FilePins::load(const std::string &path, const CallLimits &limits) {
    ROOST_ASSIGN_OR_RETURN(const auto tables, reader_->tables_like("roost_pinned_file", limits));
    if (tables.empty()) return Status();
    if (kept_.size() > kKeptMax) kept_.clear();
    struct Registration {
        std::string mark;
        std::optional<uint64_t> snapshot;
    };
    std::vector<Registration> registrations;
    ROOST_RETURN_IF_ERROR(reader_->select(
        "SELECT DISTINCT p.commit_mark, COALESCE(p.snapshot_id, (SELECT max(c.snapshot_id) FROM "
        "ducklake_snapshot_changes c WHERE c.commit_extra_info = p.commit_mark)) FROM roost_pinned_file p WHERE "
        "p.path = " +
            quote_literal(path),
        [&](const MetadataRow &row) {
            registrations.push_back({row.string(0), row.maybe_id(1)});
            return true;
        },
        limits));
    std::vector<std::pair<uint64_t, FileVersion>> found;
    for (const Registration &registration : registrations) {
        if (!registration.snapshot) continue;  // it was not committed
        // Joined here: the catalog has no index of paths.
        std::unordered_map<std::string, FileVersion> versions;
        ROOST_RETURN_IF_ERROR(reader_->select(
            "SELECT path, size_bytes, modified_ns, etag FROM roost_pinned_file WHERE commit_mark = " +
                quote_literal(registration.mark),
            [&versions](const MetadataRow &row) {
                versions.insert_or_assign(row.string(0), FileVersion{row.id(1), row.integer(2), row.string(3)});
                return true;
            },
            limits));
        ROOST_RETURN_IF_ERROR(reader_->select(
            "SELECT path, mapping_id, row_id_start FROM ducklake_data_file WHERE begin_snapshot = " +
                std::to_string(*registration.snapshot),
            [&](const MetadataRow &row) {
                const auto version = versions.find(row.string(0));
                if (version == versions.end()) return true;
                found.emplace_back(hash_of({row.string(0), row.id(1), row.id(2)}), version->second);
                return true;
            },
            limits));
    }
    for (auto &[hash, version] : found) kept_.insert_or_assign(hash, std::move(version));
    return Status();
}

}  // namespace roost
