// DuckDB's own serialisation of values in memory, as this engine writes and reads it.
#pragma once

#include <string_view>

#include "duckdb/common/serializer/memory_stream.hpp"
#include "duckdb/common/serializer/serialization_data.hpp"
#include "duckdb/common/serializer/serializer.hpp"

namespace roost {

inline std::string_view view_of(duckdb::MemoryStream &stream) {
    return {reinterpret_cast<const char *>(stream.GetData()), stream.GetPosition()};
}

// For a stream that is only read: its constructor takes memory to write as well.
inline duckdb::data_ptr_t data_of(std::string_view bytes) {
    return reinterpret_cast<duckdb::data_ptr_t>(const_cast<char *>(bytes.data()));
}

// Constant and dictionary vectors stay what they are, and every type is known. No other version of the engine reads it.
inline duckdb::SerializationOptions newest_format() {
    duckdb::SerializationOptions options;
    options.serialization_compatibility = duckdb::SerializationCompatibility::Latest();
    return options;
}

}  // namespace roost
