// Variables of a session (SET VARIABLE): values as bytes that travel with its statements, lossless for every type. Only
// nodes of this version make and read them. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace duckdb {
class Value;
}

namespace roost {

// invalid_argument (54000): larger than kVariableMaxBytes.
Result<std::string> write_variable(const duckdb::Value &value);
// Throws DuckDB's exceptions when the bytes are none of write_variable's.
duckdb::Value read_variable(std::string_view bytes);

}  // namespace roost
