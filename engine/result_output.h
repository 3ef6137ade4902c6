// Where the chunks of a statement go: encoded as pg rows to the sink, in batches, or to the result store. Keeps the
// place inside a chunk when the sink says enough. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/encode.h"
#include "engine/engine.h"
#include "engine/running_query.h"

namespace roost {

// The header that a prepared statement has.
ResultHeader header_of(const RunningQuery &query);

class ResultOutput {
public:
    // `store` outlives this object.
    explicit ResultOutput(ResultStore &store) : store_(store) {}

    // Makes the encoder or the store's writer. `context` outlives this object.
    Status open(const StatementSpec &spec, const RunningQuery &query, duckdb::ClientContext &context);
    // Takes chunks until the end (false) or until the sink says enough (true). Sends the header first.
    Result<bool> drain(ChunkSource &source, ResultSink &sink);

    uint64_t rows() const { return rows_; }
    uint64_t bytes() const { return bytes_; }
    const std::optional<uint64_t> &affected() const { return affected_; }
    const std::string &first_page() const { return first_page_; }
    int64_t encode_us() const { return encode_us_; }
    int64_t blocked_us() const { return blocked_us_; }

private:
    Result<bool> drain_rows(ChunkSource &source, ResultSink &sink);
    Status drain_to_store(ChunkSource &source);
    Status drain_count(ChunkSource &source);
    Status drain_value(ChunkSource &source, ResultSink &sink);
    Status encode_some();
    bool flush(ResultSink &sink);

    ResultStore &store_;
    ResultShape shape_ = ResultShape::nothing;
    ResultHeader header_;
    bool header_sent_ = false;
    bool is_value_ = false;
    Uuid id_;
    uint32_t first_page_rows_ = 0;
    std::unique_ptr<PgRowEncoder> encoder_;
    std::unique_ptr<StoredResultWriter> writer_;

    duckdb::unique_ptr<duckdb::DataChunk> chunk_;  // being encoded, rows from next_row_ on
    uint64_t next_row_ = 0;
    std::string batch_;
    uint32_t batch_rows_ = 0;
    uint64_t row_bytes_guess_ = 128 * 1024;  // of the rows encoded last; a wide one to begin with

    uint64_t rows_ = 0;
    uint64_t bytes_ = 0;
    std::optional<uint64_t> affected_;
    std::string first_page_;
    int64_t encode_us_ = 0;
    int64_t blocked_us_ = 0;
};

}  // namespace roost
