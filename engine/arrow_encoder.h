// Chunks as an Arrow IPC stream: schema, record batches, end marker. Types as the HTTP contract's section 7 and
// DuckDB's own export have them. Not thread-safe. Called by the result store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/result_file.h"

namespace duckdb {
class ClientContext;
}

namespace roost {

class ArrowEncoder {
public:
    virtual ~ArrowEncoder() = default;
    // The context serves the conversion of extension types; it must outlive the encoder.
    static Result<std::unique_ptr<ArrowEncoder>> make(const ResultSchema &schema, duckdb::ClientContext &context);

    // Takes a chunk of about `chunk_bytes`; appends the batches it completes, the schema in front of the first.
    virtual Status append(duckdb::DataChunk &chunk, uint64_t chunk_bytes, std::string &out) = 0;
    // Appends the last batch (without any: the schema) and the end marker. Once, last.
    virtual Status end(std::string &out) = 0;
};

}  // namespace roost
