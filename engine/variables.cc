#include "engine/variables.h"

#include "duckdb/common/serializer/binary_deserializer.hpp"
#include "duckdb/common/serializer/binary_serializer.hpp"
#include "duckdb/common/serializer/memory_stream.hpp"
#include "duckdb/common/types/value.hpp"
#include "engine/statement.h"

namespace roost {

Result<std::string> write_variable(const duckdb::Value &value) {
    duckdb::SerializationOptions options;
    options.serialization_compatibility = duckdb::SerializationCompatibility::Latest();
    duckdb::MemoryStream stream;
    duckdb::BinarySerializer serializer(stream, options);
    serializer.Begin();
    value.Serialize(serializer);
    serializer.End();
    if (stream.GetPosition() > kVariableMaxBytes) {
        return Status(Code::invalid_argument, "the value is larger than a variable may be (" +
                                                  std::to_string(kVariableMaxBytes >> 10) + " KiB)")
            .with_sqlstate("54000")
            .with_hint("keep it in a table");
    }
    return std::string(reinterpret_cast<const char *>(stream.GetData()), stream.GetPosition());
}

duckdb::Value read_variable(std::string_view bytes) {
    // The stream takes memory to write as well; it is only read here.
    auto *data = reinterpret_cast<duckdb::data_ptr_t>(const_cast<char *>(bytes.data()));
    duckdb::MemoryStream stream(data, bytes.size());
    duckdb::BinaryDeserializer deserializer(stream);
    deserializer.Begin();
    duckdb::Value value = duckdb::Value::Deserialize(deserializer);
    deserializer.End();
    return value;
}

}  // namespace roost
