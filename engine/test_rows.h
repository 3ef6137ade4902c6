// For tests and benchmarks of the encoders: a bare in-memory DuckDB, rows of any type from it, and readers of what was
// encoded. What goes wrong throws.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "duckdb/common/types/data_chunk.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/main/materialized_query_result.hpp"
#include "engine/encode.h"

namespace roost {

struct TestRows {
    std::vector<std::string> names;
    std::vector<duckdb::LogicalType> types;
    std::vector<std::unique_ptr<duckdb::DataChunk>> chunks;
};

class TestDb {
public:
    explicit TestDb(const std::string &time_zone = "UTC") : db_(nullptr), connection_(db_) {
        exec("SET TimeZone = '" + time_zone + "'");
    }

    duckdb::Connection &connection() { return connection_; }
    duckdb::ClientContext &context() { return *connection_.context; }

    void exec(const std::string &sql) {
        const auto result = connection_.Query(sql);
        if (result->HasError()) throw std::runtime_error(sql + ": " + result->GetError());
    }
    TestRows rows(const std::string &sql) {
        TestRows out;
        auto result = connection_.SendQuery(sql);
        if (result->HasError()) throw std::runtime_error(sql + ": " + result->GetError());
        out.names.assign(result->names.begin(), result->names.end());
        out.types.assign(result->types.begin(), result->types.end());
        while (auto chunk = result->Fetch()) {
            if (chunk->size() == 0) break;
            out.chunks.push_back(std::unique_ptr<duckdb::DataChunk>(chunk.release()));
        }
        return out;
    }
    duckdb::Value value(const std::string &sql) {
        const auto found = rows(sql);
        return found.chunks.empty() ? duckdb::Value() : found.chunks[0]->GetValue(0, 0);
    }

private:
    duckdb::DuckDB db_;
    duckdb::Connection connection_;
};

using PgRow = std::vector<std::optional<std::string>>;

// Takes DataRow messages apart.
inline std::vector<PgRow> read_data_rows(std::string_view bytes) {
    std::vector<PgRow> rows;
    const auto take = [&](size_t size) {
        if (size > bytes.size()) throw std::runtime_error("a DataRow is cut short");
        const std::string_view out = bytes.substr(0, size);
        bytes.remove_prefix(size);
        return out;
    };
    const auto number = [&](size_t size) {
        const std::string_view digits = take(size);
        int64_t value = static_cast<int8_t>(digits[0]) < 0 ? -1 : 0;
        for (const char c : digits) value = value << 8 | static_cast<uint8_t>(c);
        return value;
    };
    while (!bytes.empty()) {
        if (take(1) != "D") throw std::runtime_error("not a DataRow");
        const size_t before = bytes.size();
        const auto length = static_cast<size_t>(number(4));
        PgRow row;
        for (int64_t left = number(2); left > 0; --left) {
            const int64_t size = number(4);
            if (size < -1) throw std::runtime_error("a value's length is negative");
            row.emplace_back();
            if (size >= 0) row.back() = std::string(take(static_cast<size_t>(size)));
        }
        if (before - bytes.size() != length) throw std::runtime_error("a DataRow's length is wrong");
        rows.push_back(std::move(row));
    }
    return rows;
}

// All rows of a query as PostgreSQL rows.
inline std::vector<PgRow> pg_rows(TestDb &db, const TestRows &rows, std::vector<int16_t> formats,
                                  const std::string &time_zone = "UTC") {
    auto encoder = PgRowEncoder::make(rows.types, std::move(formats), time_zone, db.context());
    if (!encoder.ok()) throw std::runtime_error(encoder.status().to_string());
    std::string bytes;
    for (const auto &chunk : rows.chunks) {
        const auto status = (*encoder)->append(*chunk, 0, chunk->size(), bytes);
        if (!status.ok()) throw std::runtime_error(status.to_string());
    }
    return read_data_rows(bytes);
}

// The columns of every type, as SQL expressions of `i` with NULLs among them, for properties over random values.
struct RandomColumn {
    const char *type;
    const char *expression;
};
inline const std::vector<RandomColumn> &random_columns() {
    static const std::vector<RandomColumn> columns = {
        {"BOOLEAN", "hash(i) % 2 = 0"},
        {"TINYINT", "(hash(i) % 256)::INTEGER - 128"},
        {"UTINYINT", "hash(i) % 256"},
        {"SMALLINT", "(hash(i) % 65536)::INTEGER - 32768"},
        {"USMALLINT", "hash(i) % 65536"},
        {"INTEGER", "(hash(i) >> (hash(i + 1) % 32 + 32)::INTEGER)::BIGINT - 2147483648"},
        {"UINTEGER", "hash(i) >> (hash(i + 1) % 32 + 32)::INTEGER"},
        {"BIGINT", "(hash(i) >> (hash(i + 1) % 63 + 1)::INTEGER)::BIGINT * (CASE WHEN i % 3 = 0 THEN -1 ELSE 1 END)"},
        {"UBIGINT", "hash(i) >> (hash(i + 1) % 64)::INTEGER"},
        {"HUGEINT", "((hash(i)::HUGEINT << 62) + hash(i + 1)::HUGEINT) >> (hash(i + 2) % 126)::INTEGER"},
        {"HUGEINT", "-(((hash(i)::HUGEINT << 62) + hash(i + 1)::HUGEINT) >> (hash(i + 2) % 126)::INTEGER)"},
        {"UHUGEINT", "((hash(i)::UHUGEINT << 64) + hash(i + 1)::UHUGEINT) >> (hash(i + 2) % 128)::UHUGEINT"},
        {"BIGNUM", "((hash(i)::HUGEINT << 62) - hash(i + 1)::HUGEINT)::VARCHAR || repeat('7', (i % 90)::INTEGER)"},
        {"DECIMAL(4,1)", "((hash(i) % 19999)::INTEGER - 9999) / 10"},
        {"DECIMAL(9,2)", "((hash(i) % 1999999999)::BIGINT - 999999999)::DECIMAL(18,0) / 100"},
        {"DECIMAL(18,0)", "(hash(i) % 999999999999999999)::BIGINT"},
        {"DECIMAL(18,6)",
         "((hash(i) % 999999999999999999)::BIGINT::DECIMAL(18,0)::VARCHAR::DECIMAL(38,0) * 0.000001::DECIMAL(6,6))"},
        {"DECIMAL(18,18)", "('0.' || lpad((hash(i) % 1000000000000000000)::VARCHAR, 18, '0'))"},
        {"DECIMAL(38,0)", "(hash(i)::VARCHAR || lpad((hash(i + 1) % 10000000000000000)::VARCHAR, 16, '0'))"},
        {"DECIMAL(38,10)", "('-' || hash(i)::VARCHAR || '.' || lpad((hash(i + 1) % 10000000000)::VARCHAR, 10, '0'))"},
        {"DECIMAL(38,37)", "('0.' || lpad(hash(i)::VARCHAR, 37, '0'))"},
        {"FLOAT", "(hash(i)::DOUBLE / 3e10) * pow(10, (hash(i + 1) % 40)::INTEGER - 25)"},
        {"DOUBLE", "(hash(i)::DOUBLE / 3e10) * pow(10, (hash(i + 1) % 300)::INTEGER - 150)"},
        {"DOUBLE", "((hash(i) % 2000000)::INTEGER - 1000000) / 100"},
        {"VARCHAR", "chr((hash(i) % 1000)::INTEGER + 32) || repeat('x\"\\{,', (i % 9)::INTEGER) || hash(i)::VARCHAR"},
        {"VARCHAR",
         "substr('🦆é abcdefghijklmnopqrstuvwxyz0123456789', (i % 30 + 1)::INTEGER, (hash(i) % 40)::INTEGER)"},
        {"BLOB", "unhex(md5(i::VARCHAR) || repeat('00ff', (i % 20)::INTEGER))"},
        {"BIT", "substr((hash(i) >> 1)::BIGINT::BIT::VARCHAR, 1, (hash(i + 1) % 40 + 1)::INTEGER)"},
        {"DATE", "DATE '1970-01-01' + ((hash(i) % 8000000)::INTEGER - 4000000)"},
        {"DATE", "DATE '1992-01-01' + (hash(i) % 3000)::INTEGER"},
        {"TIME", "TIME '00:00:00' + INTERVAL ((hash(i) % 86400000000)::BIGINT) MICROSECONDS"},
        {"TIME WITH TIME ZONE",
         "(TIME '00:00:00' + INTERVAL ((hash(i) % 86400)::BIGINT) SECONDS)::VARCHAR || CASE WHEN i % 2 = 0 THEN "
         "'+05:30' ELSE '-11' END"},
        {"TIMESTAMP", "make_timestamp((hash(i) % 9000000000000000000)::BIGINT - 4500000000000000000)"},
        {"TIMESTAMP", "make_timestamp((hash(i) % 2000000000)::BIGINT * 1000000)"},
        {"TIMESTAMP_S", "make_timestamp(((hash(i) % 8000000000000)::BIGINT - 4000000000000) * 1000000)"},
        {"TIMESTAMP_MS", "make_timestamp(((hash(i) % 8000000000000000)::BIGINT - 4000000000000000) * 1000)"},
        {"TIMESTAMP WITH TIME ZONE",
         "to_timestamp(0) + INTERVAL ((hash(i) % 8000000000000000)::BIGINT - 4000000000000000) MICROSECONDS"},
        {"INTERVAL",
         "to_months((hash(i) % 5000)::INTEGER - 2500) + to_days((hash(i + 1) % 5000)::INTEGER - 2500) + "
         "to_microseconds((hash(i + 2) % 900000000000)::BIGINT - 450000000000)"},
        {"UUID", "md5(i::VARCHAR)"},
        {"ENUM('a', 'b c', '\"quoted\"', '')", "(['a', 'b c', '\"quoted\"', ''])[(i % 4 + 1)::INTEGER]"},
        {"JSON", "'{\"a\": [' || i || ', null, \"x\"]}'"},
        {"INTEGER[]", "CASE WHEN i % 4 = 0 THEN [] ELSE [i, NULL, -i] END"},
        {"VARCHAR[]", "['a', NULL, '', 'NULL', 'x\"y\\z', '{,}', ' lead', hash(i)::VARCHAR]"},
        {"DATE[]", "[DATE '2020-01-01' + i::INTEGER % 1000, NULL]"},
        {"DOUBLE[3]", "[i / 7, NULL, -0.5]"},
        {"BLOB[]", "[unhex(md5(i::VARCHAR)), ''::BLOB]"},
        {"DECIMAL(9,2)[]", "[(i % 1000)::DECIMAL(9,2), 0.05, NULL]"},
    };
    return columns;
}
// `i` from 0 to rows - 1 in each; every eleventh value NULL.
inline std::string random_select(const RandomColumn &column, uint64_t rows) {
    return "SELECT CASE WHEN hash(i + 7) % 11 = 0 THEN NULL ELSE (" + std::string(column.expression) +
           ") END::" + column.type + " AS v FROM range(" + std::to_string(rows) + ") t(i)";
}

}  // namespace roost
