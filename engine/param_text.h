// Values of statement parameters from PostgreSQL's text input syntax. Errors carry a SQLSTATE and say what was wrong;
// the caller adds which parameter. Not thread-safe. Called by decode_param and the other parameter forms.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "duckdb/common/types/value.hpp"
#include "engine/datetime_text.h"

namespace duckdb {
class ClientContext;
}

namespace roost {

class ParamText {
public:
    // `context` (may be null) resolves what depends on the session's time zone. Without one such text becomes a VARCHAR
    // value, which the statement's own cast then resolves.
    explicit ParamText(duckdb::ClientContext *context) : context_(context) {}

    // `type` decides the syntax; UNKNOWN stands for text. A numeric becomes the DECIMAL that holds its digits.
    Result<duckdb::Value> parse(const duckdb::LogicalType &type, std::string_view text) const;

private:
    Result<duckdb::Value> parse_scalar(const duckdb::LogicalType &type, std::string_view text) const;
    Result<duckdb::Value> parse_temporal(const duckdb::LogicalType &type, std::string_view text) const;
    Result<duckdb::Value> parse_timestamptz(const DateTimeText &parts, std::string_view text) const;
    Result<duckdb::Value> parse_array(const duckdb::LogicalType &type, std::string_view text) const;

    duckdb::ClientContext *context_;
};

// Exact: DECIMAL(p,s) of as many digits as the text has. Beyond 38 of them HUGEINT, UHUGEINT or BIGNUM for whole
// numbers, DOUBLE for others, for NaN and for infinities.
Result<duckdb::Value> parse_numeric(std::string_view text);
// A list whose elements are of one type, the type of `element` when it is empty or all NULL.
duckdb::Value make_list(const duckdb::LogicalType &element, duckdb::vector<duckdb::Value> values);

// 22P02, 22003, 22021 with PostgreSQL's words.
Status invalid_text(std::string_view type_name, std::string_view text);
Status out_of_range(std::string_view type_name, std::string_view text);
// ok, or 22021 when the bytes are not UTF-8 or hold a NUL.
Status check_utf8(std::string_view text);
// PostgreSQL's name of a type, for messages.
std::string pg_type_name(const duckdb::LogicalType &type);

}  // namespace roost
