#include "engine/spooled_chunks.h"

#include "duckdb/main/database.hpp"
#include "duckdb/storage/buffer_manager.hpp"

namespace roost {

Status SpooledChunks::take_off(const Cancellation &wish) {
    if (!query_.active()) return Status();
    try {
        // What was kept before and not read yet is moved along: a collection that is read takes no more.
        auto kept = duckdb::make_uniq<duckdb::ColumnDataCollection>(instance_.buffer_manager(), query_.types());
        Status failure = append_rest(*kept, wish);
        kept_ = std::move(kept);
        kept_->InitializeScan(scan_, duckdb::ColumnDataScanProperties::DISALLOW_ZERO_COPY);
        if (!failure.ok() || !query_.active()) query_.close();
        if (!failure.ok()) {
            end_error_ = std::move(failure);
        }
    } catch (const std::exception &error) {
        query_.close();
        end_error_ = instance_.error(duckdb::ErrorData(error), "");
    }
    return wish.reason();
}

Status SpooledChunks::append_rest(duckdb::ColumnDataCollection &to, const Cancellation &wish) {
    duckdb::ColumnDataAppendState append;
    to.InitializeAppend(append);
    while (!wish.requested()) {
        ROOST_ASSIGN_OR_RETURN(const auto chunk, next());
        if (!chunk) break;
        to.Append(append, *chunk);
    }
    return Status();
}

Result<duckdb::unique_ptr<duckdb::DataChunk>> SpooledChunks::next() {
    if (kept_) {
        if (cancellation_.requested()) return cancellation_.reason();
        try {
            auto chunk = duckdb::make_uniq<duckdb::DataChunk>();
            kept_->InitializeScanChunk(scan_, *chunk);
            if (kept_->Scan(scan_, *chunk) && chunk->size() > 0) return chunk;
            scan_ = duckdb::ColumnDataScanState();
            kept_.reset();
        } catch (const std::exception &error) {
            return instance_.error(duckdb::ErrorData(error), "");
        }
    }
    if (!end_error_.ok()) return end_error_;
    return query_.next();
}

}  // namespace roost
