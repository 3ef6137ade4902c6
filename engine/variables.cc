#include "engine/variables.h"

#include "duckdb/common/serializer/binary_deserializer.hpp"
#include "duckdb/common/serializer/binary_serializer.hpp"
#include "duckdb/common/types/value.hpp"
#include "engine/serialization.h"
#include "engine/statement.h"

namespace roost {

Result<std::string> write_variable(const duckdb::Value &value) {
    duckdb::MemoryStream stream;
    duckdb::BinarySerializer serializer(stream, newest_format());
    serializer.Begin();
    value.Serialize(serializer);
    serializer.End();
    if (stream.GetPosition() > kVariableMaxBytes) {
        return Status(Code::invalid_argument, "the value is larger than a variable may be (" +
                                                  std::to_string(kVariableMaxBytes >> 10) + " KiB)")
            .with_sqlstate("54000")
            .with_hint("keep it in a table");
    }
    return std::string(view_of(stream));
}

duckdb::Value read_variable(std::string_view bytes) {
    duckdb::MemoryStream stream(data_of(bytes), bytes.size());
    duckdb::BinaryDeserializer deserializer(stream);
    deserializer.Begin();
    duckdb::Value value = duckdb::Value::Deserialize(deserializer);
    deserializer.End();
    return value;
}

}  // namespace roost
