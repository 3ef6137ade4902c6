#include "engine/arrow_encoder.h"

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/c/bridge.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>

#include "duckdb/common/arrow/arrow_appender.hpp"
#include "duckdb/common/arrow/arrow_converter.hpp"
#include "duckdb/main/client_context.hpp"
#include "engine/duckdb_errors.h"

namespace roost {

namespace {

constexpr duckdb::idx_t kBatchRows = 65'536;
// Batches of wide rows are cut by size: clients hold one batch at a time, and its string offsets have 32 bits.
constexpr uint64_t kBatchBytes = 8 << 20;

Status status_of(const arrow::Status &status) { return Status(Code::internal, "Arrow: " + status.message()); }

// Appends to a string that the caller changes from call to call.
class StringOutput final : public arrow::io::OutputStream {
public:
    void point_to(std::string *out) { out_ = out; }
    arrow::Status Write(const void *data, int64_t size) override {
        out_->append(static_cast<const char *>(data), static_cast<size_t>(size));
        position_ += size;
        return arrow::Status::OK();
    }
    arrow::Result<int64_t> Tell() const override { return position_; }
    arrow::Status Close() override {
        closed_ = true;
        return arrow::Status::OK();
    }
    bool closed() const override { return closed_; }

private:
    std::string *out_ = nullptr;
    int64_t position_ = 0;
    bool closed_ = false;
};

class IpcEncoder final : public ArrowEncoder {
public:
    IpcEncoder(const ResultSchema &schema, duckdb::ClientContext &context)
        : types_(schema.types.begin(), schema.types.end()) {
        properties_.time_zone = schema.time_zone.empty() ? "UTC" : schema.time_zone;
        properties_.client_context = &context;
        ArrowSchema exported;
        duckdb::ArrowConverter::ToArrowSchema(
            &exported, types_, duckdb::vector<std::string>(schema.names.begin(), schema.names.end()), properties_);
        auto imported = arrow::ImportSchema(&exported);
        if (!imported.ok()) throw duckdb::InvalidInputException(imported.status().message());
        schema_ = *imported;
        output_ = std::make_shared<StringOutput>();
        auto writer = arrow::ipc::MakeStreamWriter(output_, schema_);
        if (!writer.ok()) throw duckdb::InvalidInputException(writer.status().message());
        writer_ = *writer;
    }

    Status append(duckdb::DataChunk &chunk, uint64_t chunk_bytes, std::string &out) override {
        try {
            const duckdb::idx_t step = rows_at_once(chunk.size(), chunk_bytes);
            for (duckdb::idx_t from = 0; from < chunk.size(); from += step) {
                const duckdb::idx_t to = std::min(chunk.size(), from + step);
                if (!appender_) make_appender();
                appender_->Append(chunk, from, to, chunk.size());
                pending_bytes_ += chunk_bytes * (to - from) / chunk.size();
                if (appender_->RowCount() >= kBatchRows || pending_bytes_ >= kBatchBytes)
                    ROOST_RETURN_IF_ERROR(write_batch(out));
            }
            return {};
        } catch (const std::exception &e) {
            return roost::status_of(e, {}, {});
        }
    }

    Status end(std::string &out) override {
        if (appender_) ROOST_RETURN_IF_ERROR(write_batch(out));
        output_->point_to(&out);
        const auto closed = writer_->Close();
        return closed.ok() ? Status() : status_of(closed);
    }

private:
    // All of an ordinary chunk; few rows where they are wide.
    static duckdb::idx_t rows_at_once(duckdb::idx_t rows, uint64_t bytes) {
        if (bytes <= kBatchBytes) return rows;
        return std::max<duckdb::idx_t>(1, kBatchBytes / (bytes / rows + 1));
    }

    void make_appender() {
        pending_bytes_ = 0;
        appender_ = std::make_unique<duckdb::ArrowAppender>(
            types_, STANDARD_VECTOR_SIZE, properties_,
            duckdb::unordered_map<duckdb::idx_t, const duckdb::shared_ptr<duckdb::ArrowTypeExtensionData>>());
    }

    Status write_batch(std::string &out) {
        ArrowArray array = appender_->Finalize();
        appender_.reset();
        auto batch = arrow::ImportRecordBatch(&array, schema_);
        if (!batch.ok()) return status_of(batch.status());
        output_->point_to(&out);
        const auto written = writer_->WriteRecordBatch(**batch);
        return written.ok() ? Status() : status_of(written);
    }

    duckdb::vector<duckdb::LogicalType> types_;
    duckdb::ClientProperties properties_;
    std::shared_ptr<arrow::Schema> schema_;
    std::shared_ptr<StringOutput> output_;
    std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
    std::unique_ptr<duckdb::ArrowAppender> appender_;
    uint64_t pending_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<ArrowEncoder>> ArrowEncoder::make(const ResultSchema &schema, duckdb::ClientContext &context) {
    try {
        return std::unique_ptr<ArrowEncoder>(std::make_unique<IpcEncoder>(schema, context));
    } catch (const std::exception &e) {
        return roost::status_of(e, {}, {});
    }
}

}  // namespace roost
