// The rest of a result whose connection is needed for another statement: kept in buffers of its instance that may spill
// to the spill directory, under the instance's limits of memory and spill. Used by one thread at a time.
#pragma once

#include "duckdb/common/types/column/column_data_collection.hpp"
#include "engine/running_query.h"

namespace roost {

class SpooledChunks final : public ChunkSource {
public:
    // All references outlive this object. `cancellation` is that of the statement that the result belongs to.
    SpooledChunks(RunningQuery &query, Instance &instance, Cancellation &cancellation)
        : query_(query), instance_(instance), cancellation_(cancellation) {}

    // Moves what is left of the query here; an error of the query comes when the rows before it were read. Stops early,
    // with an error and without harm, when `wish` is cancelled.
    Status take_off(const Cancellation &wish);
    // What the rest failed with when it was moved.
    const Status &failure() const { return end_error_; }
    // What was moved, then what the query still has.
    Result<duckdb::unique_ptr<duckdb::DataChunk>> next() override;

private:
    Status append_rest(duckdb::ColumnDataCollection &to, const Cancellation &wish);

    RunningQuery &query_;
    Instance &instance_;
    Cancellation &cancellation_;
    duckdb::unique_ptr<duckdb::ColumnDataCollection> kept_;
    duckdb::ColumnDataScanState scan_;
    Status end_error_;
};

}  // namespace roost
