// Reads the tables in which DuckLake keeps a lake's metadata, with SQL that SQLite and Postgres both understand. One
// read transaction at a time: everything selected between begin() and end() is of one state of the catalog, and no
// writer waits for it (SQLite: in WAL mode, which roost's lakes are in; a lake of another client in the rollback
// journal mode holds a committing writer up for as long as the transaction lasts). Errors: unavailable (locked, server
// gone; retryable), io_error (not there, not a lake), timeout, cancelled. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lake/call_limits.h"
#include "lake/lake_location.h"

namespace roost {

// Where a lake's metadata is.
struct MetadataAddress {
    enum class Kind : uint8_t { sqlite, postgres };
    Kind kind = Kind::sqlite;
    std::string where;              // path of the SQLite file, or a Postgres connection string (it may hold a password)
    std::string schema = "public";  // of the tables, on Postgres
};

MetadataAddress metadata_address(const LakeLocation &lake);

// A row, valid only inside the callback that gets it.
class MetadataRow {
public:
    virtual bool is_null(int column) const = 0;
    virtual int64_t integer(int column) const = 0;  // 0 for NULL
    virtual bool boolean(int column) const = 0;     // false for NULL
    virtual std::string_view text(int column) const = 0;

    uint64_t id(int column) const { return static_cast<uint64_t>(integer(column)); }
    std::optional<uint64_t> maybe_id(int column) const {
        return is_null(column) ? std::nullopt : std::optional<uint64_t>(id(column));
    }
    std::string string(int column) const { return std::string(text(column)); }
    std::optional<std::string> maybe_string(int column) const {
        return is_null(column) ? std::nullopt : std::optional<std::string>(text(column));
    }

protected:
    ~MetadataRow() = default;
};

class MetadataReader {
public:
    virtual ~MetadataReader() = default;

    virtual Status begin(const CallLimits &limits) = 0;
    virtual void end() = 0;
    // `row` says whether it wants more. Outside begin/end the statement sees the newest state.
    using RowFunction = std::function<bool(const MetadataRow &)>;
    virtual Status select(std::string_view sql, const RowFunction &row, const CallLimits &limits) = 0;
    // Names of the tables that begin with `prefix`.
    virtual Result<std::vector<std::string>> tables_like(std::string_view prefix, const CallLimits &limits) = 0;
    // An ORDER BY under which rows come newest first without a sort, or nothing where there is none.
    virtual std::string_view newest_first() const = 0;
};

// Opens nothing before the first call.
std::unique_ptr<MetadataReader> make_metadata_reader(const MetadataAddress &address);

}  // namespace roost
