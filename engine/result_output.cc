#include "engine/result_output.h"

#include <algorithm>

#include "engine/stopwatch.h"
#include "engine/variables.h"

namespace roost {

namespace {

constexpr size_t kBatchBytes = 128 * 1024;
constexpr size_t kBatchSlackBytes = 64 * 1024;
constexpr size_t kFewRows = 256;
// Between two looks at the size: a row may be a thousand times as wide as the one before.
constexpr uint64_t kRowsAtOnce = 128;

}  // namespace

ResultHeader header_of(const RunningQuery &query) {
    ResultHeader header;
    if (query.shape() != ResultShape::grid) return header;
    header.has_grid = true;
    header.columns.reserve(query.types().size());
    for (size_t i = 0; i < query.types().size(); i++) {
        header.columns.push_back(describe_column(query.names()[i], query.types()[i]));
    }
    return header;
}

Status ResultOutput::open(const StatementSpec &spec, const RunningQuery &query, duckdb::ClientContext &context) {
    shape_ = query.shape();
    header_ = header_of(query);
    id_ = spec.id;
    first_page_rows_ = spec.first_page_rows;
    if (shape_ != ResultShape::grid) return Status();
    is_value_ = spec.format == ResultFormat::value;
    if (is_value_) return Status();
    const std::vector<duckdb::LogicalType> types(query.types().begin(), query.types().end());
    if (spec.format == ResultFormat::pg_rows) {
        if (spec.result_formats.size() > 1 && spec.result_formats.size() != types.size()) {
            return Status(Code::invalid_argument, "there are " + std::to_string(spec.result_formats.size()) +
                                                      " result formats for " + std::to_string(types.size()) +
                                                      " columns")
                .with_sqlstate("08P01");
        }
        ROOST_ASSIGN_OR_RETURN(encoder_,
                               PgRowEncoder::make(types, spec.result_formats, spec.settings.time_zone, context));
        return Status();
    }
    std::vector<std::string> names(query.names().begin(), query.names().end());
    ROOST_ASSIGN_OR_RETURN(writer_, store_.create(spec.id, names, types, spec.settings.time_zone));
    // Stored rows are read back by name: the header says the same names.
    names = unique_names(std::move(names));
    for (size_t i = 0; i < names.size(); i++) header_.columns[i].name = names[i];
    return Status();
}

Result<bool> ResultOutput::drain(ChunkSource &source, ResultSink &sink) {
    if (!header_sent_) {
        header_sent_ = true;
        sink.header(header_);
    }
    if (encoder_) return drain_rows(source, sink);
    Status status = is_value_ ? drain_value(source, sink) : writer_ ? drain_to_store(source) : drain_count(source);
    if (!status.ok()) return status;
    return false;
}

Result<bool> ResultOutput::drain_rows(ChunkSource &source, ResultSink &sink) {
    for (;;) {
        if (!chunk_) {
            ROOST_ASSIGN_OR_RETURN(chunk_, source.next());
            next_row_ = 0;
            if (!chunk_) {
                flush(sink);
                return false;
            }
        }
        while (next_row_ < chunk_->size()) {
            ROOST_RETURN_IF_ERROR(encode_some());
            if (batch_.size() >= kBatchBytes && !flush(sink)) return true;
        }
        chunk_.reset();
    }
}

// Rows of the chunk up to about the size of a batch, by the width of the rows so far.
Status ResultOutput::encode_some() {
    const Stopwatch watch;
    // A block of this size comes from the kernel, so a handful of rows does without.
    if (chunk_->size() > kFewRows && batch_.empty()) batch_.reserve(kBatchBytes + kBatchSlackBytes);
    const uint64_t room = (kBatchBytes - std::min(batch_.size(), kBatchBytes)) / row_bytes_guess_ + 1;
    const uint64_t until = std::min<uint64_t>(chunk_->size(), next_row_ + std::min(room, kRowsAtOnce));
    const size_t before = batch_.size();
    ROOST_RETURN_IF_ERROR(encoder_->append(*chunk_, next_row_, until, batch_));
    row_bytes_guess_ = std::max<uint64_t>(1, (batch_.size() - before) / (until - next_row_));
    batch_rows_ += static_cast<uint32_t>(until - next_row_);
    next_row_ = until;
    encode_us_ += watch.elapsed_us();
    return Status();
}

bool ResultOutput::flush(ResultSink &sink) {
    if (batch_rows_ == 0) return true;
    rows_ += batch_rows_;
    bytes_ += batch_.size();
    const Stopwatch watch;
    const bool more = sink.rows(std::exchange(batch_rows_, 0), std::exchange(batch_, {}));
    blocked_us_ += watch.elapsed_us();
    return more;
}

Status ResultOutput::drain_to_store(ChunkSource &source) {
    for (;;) {
        ROOST_ASSIGN_OR_RETURN(const auto chunk, source.next());
        if (!chunk) break;
        const Stopwatch watch;
        ROOST_RETURN_IF_ERROR(writer_->append(*chunk));
        encode_us_ += watch.elapsed_us();
    }
    ROOST_RETURN_IF_ERROR(writer_->finish());
    rows_ = writer_->rows();
    bytes_ = writer_->bytes();
    if (first_page_rows_ == 0) return Status();
    ROOST_ASSIGN_OR_RETURN(first_page_, store_.read_page(id_, 0, first_page_rows_));
    return Status();
}

Status ResultOutput::drain_value(ChunkSource &source, ResultSink &sink) {
    std::string value;
    for (;;) {
        ROOST_ASSIGN_OR_RETURN(const auto chunk, source.next());
        if (!chunk) break;
        if (chunk->size() == 0) continue;
        rows_ += chunk->size();
        if (rows_ > 1 || chunk->ColumnCount() != 1) {
            return Status(Code::invalid_argument, "a variable takes one value, and this query gives more")
                .with_sqlstate("21000");
        }
        ROOST_ASSIGN_OR_RETURN(value, write_variable(chunk->GetValue(0, 0)));
    }
    if (rows_ == 0) {
        ROOST_ASSIGN_OR_RETURN(value, write_variable(duckdb::Value()));
    }
    bytes_ = value.size();
    sink.rows(1, std::move(value));
    return Status();
}

// DML gives one row with the number of changed rows, DDL nothing worth keeping.
Status ResultOutput::drain_count(ChunkSource &source) {
    uint64_t changed = 0;
    for (;;) {
        ROOST_ASSIGN_OR_RETURN(const auto chunk, source.next());
        if (!chunk) break;
        if (shape_ != ResultShape::changes) continue;
        for (duckdb::idx_t row = 0; row < chunk->size(); row++) {
            changed += static_cast<uint64_t>(chunk->GetValue(0, row).GetValue<int64_t>());
        }
    }
    if (shape_ == ResultShape::changes) affected_ = changed;
    return Status();
}

}  // namespace roost
