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

    // Takes rows of a chunk of about `chunk_bytes` from row `from` on, and returns the first row it did not take: it
    // stops behind a batch that it completed (with the schema in front of the first one). REQUIRES: called until it
    // returns chunk.size().
    virtual Result<uint64_t> append(duckdb::DataChunk &chunk, uint64_t from, uint64_t chunk_bytes,
                                    std::string &out) = 0;
    // Appends the last batch (without any: the schema) and the end marker. Once, last.
    virtual Status end(std::string &out) = 0;
};

}  // namespace roost
