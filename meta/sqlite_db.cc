#include "meta/sqlite_db.h"

#include <sqlite3.h>

#include <cstring>

#include "base/clock.h"

namespace roost::meta {
namespace {

// Virtual machine steps between looks at the clock, about a tenth of a millisecond.
constexpr int kProgressSteps = 10'000;
constexpr size_t kStatementsMax = 256;

Code code_of(int result_code) {
    switch (result_code & 0xFF) {
        case SQLITE_CONSTRAINT:
            return Code::already_exists;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return Code::unavailable;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return Code::data_loss;
        case SQLITE_INTERRUPT:
            return Code::timeout;
        case SQLITE_NOMEM:
            return Code::resource_exhausted;
        case SQLITE_TOOBIG:
        case SQLITE_RANGE:
        case SQLITE_MISMATCH:
            return Code::invalid_argument;
        case SQLITE_ERROR:
        case SQLITE_MISUSE:
            return Code::internal;
        default:
            return Code::io_error;
    }
}

std::string hint_of(int result_code, const std::string &path) {
    switch (result_code & 0xFF) {
        case SQLITE_NOTADB:
            return path + " is no SQLite database; name another file, or move this one away";
        case SQLITE_CORRUPT:
            return "the file is damaged; put back a copy of it, or move it away and start afresh";
        case SQLITE_FULL:
            return "the disk is full";
        case SQLITE_READONLY:
        case SQLITE_PERM:
        case SQLITE_CANTOPEN:
            return "check the permissions of " + path + " and of its directory";
        case SQLITE_BUSY:
            return "another process holds " + path;
        default:
            return {};
    }
}

}  // namespace

Result<std::unique_ptr<Db>> Db::open(const std::string &path, Mode mode, int busy_timeout_ms) {
    auto db = std::unique_ptr<Db>(new Db());
    db->path_ = path;
    // Readers need write access to the shared memory of the WAL, so they open for writing too and are held back by a
    // pragma.
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int opened = sqlite3_open_v2(path.c_str(), &db->handle_, flags, nullptr);
    if (opened != SQLITE_OK) return db->failure(opened);
    sqlite3_busy_timeout(db->handle_, busy_timeout_ms);
    sqlite3_progress_handler(db->handle_, kProgressSteps, &Db::on_progress, db.get());
    if (mode == Mode::read) ROOST_RETURN_IF_ERROR(db->execute("PRAGMA query_only = 1"));
    return db;
}

Db::~Db() {
    for (const auto &[sql, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(handle_);
}

int Db::on_progress(void *self) {
    const auto *db = static_cast<const Db *>(self);
    return db->deadline_us_ != 0 && SystemClock().monotonic_us() > db->deadline_us_ ? 1 : 0;
}

Status Db::failure(int result_code) const {
    const char *reason = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(result_code);
    if ((result_code & 0xFF) == SQLITE_INTERRUPT) reason = "took too long";
    return Status(code_of(result_code), path_ + ": " + reason).with_hint(hint_of(result_code, path_));
}

Status Db::execute(const std::string &sql) {
    const int done = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
    return done == SQLITE_OK ? Status() : failure(done);
}

Result<int64_t> Db::integer(const std::string &sql) {
    Query query(*this, sql);
    if (query.step()) return query.integer();
    if (!query.status().ok()) return query.status();
    return Status(Code::internal, path_ + ": no answer to " + sql);
}

int64_t Db::changes() const { return sqlite3_changes64(handle_); }

bool Db::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

Result<sqlite3_stmt *> Db::prepared(std::string_view sql) {
    const auto known = statements_.find(sql);
    if (known != statements_.end()) return known->second;
    if (statements_.size() >= kStatementsMax) {
        // Shapes of listings are few; a flood of new ones is not worth a smarter rule.
        for (auto it = statements_.begin(); it != statements_.end();) {
            const bool running = sqlite3_stmt_busy(it->second) != 0;
            if (!running) sqlite3_finalize(it->second);
            it = running ? std::next(it) : statements_.erase(it);
        }
    }
    sqlite3_stmt *statement = nullptr;
    const int done = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (done != SQLITE_OK) return failure(done);
    statements_.emplace(sql, statement);
    return statement;
}

Query::Query(Db &db, std::string_view sql) : db_(db) {
    auto statement = db.prepared(sql);
    if (statement.ok()) {
        statement_ = *statement;
    } else {
        status_ = statement.status();
    }
}

Query::~Query() {
    if (statement_ == nullptr) return;
    sqlite3_reset(statement_);
    // The texts that were bound may be gone when it runs next.
    sqlite3_clear_bindings(statement_);
}

void Query::check(int result_code) {
    if (result_code != SQLITE_OK && status_.ok()) status_ = db_.failure(result_code);
}

Query &Query::bind(int64_t value) {
    if (status_.ok()) check(sqlite3_bind_int64(statement_, ++bound_, value));
    return *this;
}

Query &Query::bind(std::string_view value) {
    // A null pointer would bind NULL.
    const char *data = value.data() != nullptr ? value.data() : "";
    if (status_.ok()) check(sqlite3_bind_text64(statement_, ++bound_, data, value.size(), SQLITE_STATIC, SQLITE_UTF8));
    return *this;
}

Query &Query::bind_blob(std::string_view bytes) {
    const char *data = bytes.data() != nullptr ? bytes.data() : "";
    if (status_.ok()) check(sqlite3_bind_blob64(statement_, ++bound_, data, bytes.size(), SQLITE_STATIC));
    return *this;
}

Query &Query::bind(const Uuid &id) { return id.is_nil() ? bind_null() : bind_blob(id.raw()); }

Query &Query::bind_null() {
    if (status_.ok()) check(sqlite3_bind_null(statement_, ++bound_));
    return *this;
}

bool Query::step() {
    if (!status_.ok()) return false;
    column_ = 0;
    const int done = sqlite3_step(statement_);
    if (done != SQLITE_ROW && done != SQLITE_DONE) check(done);
    return done == SQLITE_ROW;
}

Status Query::run() {
    while (step()) {
    }
    return status_;
}

int64_t Query::integer() { return sqlite3_column_int64(statement_, column_++); }

std::optional<int64_t> Query::integer_or_null() {
    if (sqlite3_column_type(statement_, column_) == SQLITE_NULL) {
        ++column_;
        return std::nullopt;
    }
    return integer();
}

std::string Query::text() {
    const auto *data = reinterpret_cast<const char *>(sqlite3_column_text(statement_, column_));
    const int size = sqlite3_column_bytes(statement_, column_++);
    return data == nullptr ? std::string() : std::string(data, static_cast<size_t>(size));
}

Uuid Query::id() {
    const void *data = sqlite3_column_blob(statement_, column_);
    const int size = sqlite3_column_bytes(statement_, column_++);
    Uuid id;
    if (data != nullptr && static_cast<size_t>(size) == id.bytes.size())
        std::memcpy(id.bytes.data(), data, id.bytes.size());
    return id;
}

}  // namespace roost::meta
