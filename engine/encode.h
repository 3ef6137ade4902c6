// The seam inside engine/ between execution (engine.cc and friends) and encoding (encoders, parameters, result store).
// DuckDB types appear only by forward declaration. All of it is used from one thread at a time unless said otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/statement.h"

namespace duckdb {
class ClientContext;
class DataChunk;
class LogicalType;
class Value;
}  // namespace duckdb

namespace roost {

// The column description for one DuckDB type (contracts' type table: pgwire section 5). `type` is
// LogicalType::ToString().
Column describe_column(const std::string &name, const duckdb::LogicalType &type);
// The pg oid a parameter of this DuckDB type is announced with; 25 (text) where unknown.
uint32_t pg_oid_of_param(const duckdb::LogicalType &type);
// The DuckDB type that a declared parameter oid stands for; SQLNULL/UNKNOWN for 0 or an oid we don't know.
duckdb::LogicalType type_of_pg_oid(uint32_t oid);
// Makes output names unique the way CREATE TABLE AS does: a, a_1, … (case-insensitively).
std::vector<std::string> unique_names(std::vector<std::string> names);

// Turns a wire parameter into a DuckDB value. `inferred` is the engine's own idea of its type (may be UNKNOWN).
// Errors: 22P02, 22003, 22007/22008, 22P03 (wrong binary length), 22021 (invalid UTF-8), with the parameter's number
// (`index` + 1). `context` resolves local times in its own time zone; without one a TIMESTAMPTZ text that names no
// offset becomes a VARCHAR value. A numeric becomes the DECIMAL that its digits need, whatever was inferred.
Result<duckdb::Value> decode_param(const Param &param, size_t index, const duckdb::LogicalType &inferred,
                                   duckdb::ClientContext *context = nullptr);

// Encodes chunks as PostgreSQL DataRow messages. Text and binary as in pgwire section 5; TIMESTAMPTZ in `time_zone`.
class PgRowEncoder {
public:
    virtual ~PgRowEncoder() = default;
    // `formats`: empty, one for all, or one for each column; checked by the caller. `context` is only for ICU time zone
    // offsets and casts.
    static Result<std::unique_ptr<PgRowEncoder>> make(std::vector<duckdb::LogicalType> types,
                                                      std::vector<int16_t> formats, const std::string &time_zone,
                                                      duckdb::ClientContext &context);
    // Appends rows [from, to) of the chunk to `out`.
    virtual Status append(duckdb::DataChunk &chunk, uint64_t from, uint64_t to, std::string &out) = 0;
};

// Rows kept on the node's disk, losslessly, for paging: chunks as the engine made them, the schema beside them, an
// index of row offsets at the end. One file a result; a file without its end is dropped at start. ResultStore is
// thread-safe.
class StoredResultWriter {
public:
    virtual ~StoredResultWriter() = default;
    virtual Status append(duckdb::DataChunk &chunk) = 0;
    // Makes the result readable; no append after it.
    virtual Status finish() = 0;
    virtual uint64_t rows() const = 0;
    virtual uint64_t bytes() const = 0;
};

class StoredResultReader;

class ResultStore {
public:
    virtual ~ResultStore() = default;
    // Opens (or makes) the folder, dropping unfinished files. A DuckDB instance of its own (in memory, no extensions
    // but icu) serves casts and Arrow conversion.
    static Result<std::unique_ptr<ResultStore>> open(std::string dir, int64_t retention_ms, uint64_t max_bytes);
    // `names` are made unique here. A second result with the same id replaces the first.
    virtual Result<std::unique_ptr<StoredResultWriter>> create(const Uuid &id, std::vector<std::string> names,
                                                               std::vector<duckdb::LogicalType> types,
                                                               const std::string &time_zone) = 0;
    // JSON array of row objects (duckhaven-http section 8), [offset, offset + limit).
    virtual Result<std::string> read_page(const Uuid &id, uint64_t offset_rows, uint32_t limit_rows) = 0;
    virtual Result<std::unique_ptr<StoredResultReader>> open_arrow(const Uuid &id) = 0;
    virtual Status drop(const Uuid &id) = 0;
    virtual void sweep() = 0;
};

}  // namespace roost
