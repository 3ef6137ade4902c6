// Values of statement parameters from PostgreSQL's binary form, the inverse of scalar_binary.h and of the array form.
// Pure; thread-safe. Called by decode_param.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "duckdb/common/types/value.hpp"

namespace roost {

// 22P03 when the bytes are no value of the type, 22021 for text that is not UTF-8, 22008 and 22003 beyond the engine's
// ranges, 0A000 for a type without a binary form here.
Result<duckdb::Value> decode_binary_param(uint32_t oid, std::string_view bytes);

}  // namespace roost
