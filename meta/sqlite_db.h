// SQLite with errors as values: a connection that keeps its prepared statements, and a query that binds and reads in
// order. Not thread-safe: a connection is used by one thread at a time. The only files that include sqlite3.h are these
// and sqlite_db.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace roost::meta {

class Db {
public:
    enum class Mode : uint8_t { read, write };
    // The file must exist. `busy_timeout_ms`: how long to wait for a lock that another process holds.
    static Result<std::unique_ptr<Db>> open(const std::string &path, Mode mode, int busy_timeout_ms);
    ~Db();
    Db(const Db &) = delete;
    Db &operator=(const Db &) = delete;

    // Runs statements that give no rows, several if need be.
    Status execute(const std::string &sql);
    // The single integer that `sql` gives.
    Result<int64_t> integer(const std::string &sql);
    int64_t changes() const;
    bool in_transaction() const;
    // Statements that run past this point in time (monotonic) fail with a timeout; 0: no limit.
    void set_deadline_us(int64_t deadline_us) { deadline_us_ = deadline_us; }
    // The status of the last failure, naming the file.
    Status failure(int result_code) const;

private:
    friend class Query;
    Db() = default;
    Result<sqlite3_stmt *> prepared(std::string_view sql);
    static int on_progress(void *self);

    sqlite3 *handle_ = nullptr;
    std::string path_;
    int64_t deadline_us_ = 0;
    // Statements of fixed text, and of listings, whose shapes are few.
    std::map<std::string, sqlite3_stmt *, std::less<>> statements_;
};

// One run of a statement. Texts that are bound must outlive it. Errors stick: bind and step as needed, then look once.
class Query {
public:
    Query(Db &db, std::string_view sql);
    ~Query();
    Query(const Query &) = delete;
    Query &operator=(const Query &) = delete;

    Query &bind(int64_t value);
    Query &bind(std::string_view value);
    Query &bind(const std::string &value) { return bind(std::string_view(value)); }
    Query &bind(const char *value) { return bind(std::string_view(value)); }
    Query &bind(bool value) { return bind(static_cast<int64_t>(value)); }
    Query &bind(const Uuid &id);  // nil is NULL
    Query &bind_blob(std::string_view bytes);
    Query &bind_null();

    // True when there is a row to read; false at the end or on an error.
    bool step();
    // Steps to the end.
    Status run();
    Status status() const { return status_; }

    // Columns of the row, from the left.
    int64_t integer();
    std::optional<int64_t> integer_or_null();
    std::string text();
    Uuid id();

private:
    void check(int result_code);

    Db &db_;
    sqlite3_stmt *statement_ = nullptr;
    Status status_;
    int bound_ = 0;
    int column_ = 0;
};

}  // namespace roost::meta
