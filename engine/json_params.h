// Values of statement parameters from JSON: the parameters of the HTTP contract (section 9). Pure; thread-safe. Called
// by decode_param.
#pragma once

#include <string_view>

#include "base/status.h"
#include "duckdb/common/types/value.hpp"

namespace duckdb {
class ClientContext;
}

namespace roost {

// `json` is one JSON value (NaN and infinities bare are taken too). `type` is a DuckDB type, empty: the one the value
// itself suggests (integers INTEGER, BIGINT or HUGEINT by magnitude). BLOB is base64. `context` as for ParamText.
Result<duckdb::Value> decode_json_param(std::string_view json, std::string_view type, duckdb::ClientContext *context);

}  // namespace roost
