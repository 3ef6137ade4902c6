#include "engine/arrow_encoder.h"

#include <arrow/array.h>
#include <arrow/array/builder_binary.h>
#include <arrow/buffer.h>
#include <arrow/c/bridge.h>
#include <arrow/extension/uuid.h>
#include <arrow/extension_type.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>

#include <algorithm>

#include "duckdb/common/arrow/arrow_appender.hpp"
#include "duckdb/common/arrow/arrow_converter.hpp"
#include "duckdb/main/client_context.hpp"
#include "engine/duckdb_errors.h"
#include "engine/scalar_binary.h"
#include "engine/type_map.h"
#include "engine/value_writer.h"

namespace roost {

namespace {

constexpr duckdb::idx_t kBatchRows = 65'536;
// Batches are cut by size as well: clients hold one at a time, string offsets have 32 bits, and memory of this size is
// reused from batch to batch instead of being mapped anew.
constexpr uint64_t kBatchBytes = 1 << 20;
// More than a message's own fields take.
constexpr size_t kMessageBytes = 16 << 10;

using duckdb::LogicalTypeId;

Status status_of(const arrow::Status &status) {
    return status.ok() ? Status() : Status(Code::internal, "Arrow: " + status.message());
}

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

// True when `wanted` holds for the type or one inside it.
template <class Wanted>
bool any_type(const duckdb::LogicalType &type, const Wanted &wanted) {
    if (wanted(type)) return true;
    switch (type.id()) {
        case LogicalTypeId::LIST:
        case LogicalTypeId::ARRAY:
            return any_type(element_type(type), wanted);
        case LogicalTypeId::MAP:
            return any_type(duckdb::ListType::GetChildType(type), wanted);
        case LogicalTypeId::STRUCT:
        case LogicalTypeId::UNION: {
            const auto &members = duckdb::StructType::GetChildTypes(type);
            return std::any_of(members.begin(), members.end(),
                               [&](const auto &member) { return any_type(member.second, wanted); });
        }
        default:
            return false;
    }
}

bool has_uhugeint(const duckdb::LogicalType &type) {
    return any_type(type, [](const auto &inner) { return inner.id() == LogicalTypeId::UHUGEINT; });
}

// False when a UHUGEINT of the value has its top bit set.
bool fits_decimal128(const VectorView &view, duckdb::idx_t row) {
    if (view.is_null(row)) return true;
    const auto &type = view.vector->GetType();
    duckdb::idx_t begin = view.index(row), count = 1;
    switch (type.id()) {
        case LogicalTypeId::UHUGEINT:
            return view.value<duckdb::uhugeint_t>(row).upper >> 63 == 0;
        case LogicalTypeId::LIST:
        case LogicalTypeId::MAP:
            begin = view.value<duckdb::list_entry_t>(row).offset;
            count = view.value<duckdb::list_entry_t>(row).length;
            break;
        case LogicalTypeId::ARRAY:
            count = duckdb::ArrayType::GetSize(type);
            begin *= count;
            break;
        default:
            break;
    }
    for (const auto &child : view.children) {
        for (duckdb::idx_t i = begin; i < begin + count; ++i) {
            if (!fits_decimal128(child, i)) return false;
        }
    }
    return true;
}

// How a column gets into the batch.
enum class Passage : uint8_t {
    direct,  // by DuckDB's appender
    text,    // by the appender, as a VARCHAR that a writer makes
    uuid,    // by a builder of our own: the appender would make it a string
};

class IpcEncoder final : public ArrowEncoder {
public:
    IpcEncoder(const ResultSchema &schema, duckdb::ClientContext &context)
        : names_(schema.names), output_(std::make_shared<StringOutput>()) {
        properties_.time_zone = schema.time_zone.empty() ? "UTC" : schema.time_zone;
        properties_.client_context = &context;
        const bool zoned = std::any_of(schema.types.begin(), schema.types.end(), shows_time_zone);
        auto zone = zoned ? ZoneOffsets::make(properties_.time_zone, context) : ZoneOffsets::utc();
        if (!zone.ok()) throw duckdb::InvalidInputException(zone.status().message());
        zone_ = std::move(zone).value();
        for (size_t i = 0; i < schema.types.size(); ++i) add_column(i, schema.types[i]);
        make_schema();
        auto writer = arrow::ipc::MakeStreamWriter(output_, schema_);
        if (!writer.ok()) throw duckdb::InvalidInputException(writer.status().message());
        writer_ = *writer;
    }

    Result<uint64_t> append(duckdb::DataChunk &chunk, uint64_t from, uint64_t chunk_bytes, std::string &out) override {
        try {
            if (from == 0) ROOST_RETURN_IF_ERROR(convert(chunk));
            const uint64_t bytes_a_row = bytes_a_row_of(chunk, chunk_bytes);
            while (from < chunk.size()) {
                if (!appender_) make_appender(bytes_a_row);
                const uint64_t room_rows = std::max<uint64_t>(1, (kBatchBytes - pending_bytes_) / bytes_a_row);
                const uint64_t to =
                    std::min({uint64_t{chunk.size()}, from + room_rows, from + kBatchRows - appender_->RowCount()});
                appender_->Append(converted_, from, to, converted_.size());
                for (auto &uuids : uuids_) ROOST_RETURN_IF_ERROR(append_uuids(uuids, chunk, from, to));
                pending_bytes_ += bytes_a_row * (to - from);
                from = to;
                if (appender_->RowCount() < kBatchRows && pending_bytes_ < kBatchBytes) continue;
                ROOST_RETURN_IF_ERROR(write_batch(out));
                break;
            }
            return from;
        } catch (const std::exception &e) {
            return roost::status_of(e, {}, {});
        }
    }

    Status end(std::string &out) override {
        if (appender_) ROOST_RETURN_IF_ERROR(write_batch(out));
        output_->point_to(&out);
        return status_of(writer_->Close());
    }

private:
    struct UuidColumn {
        size_t column;
        std::unique_ptr<arrow::FixedSizeBinaryBuilder> builder;
    };

    void add_column(size_t column, const duckdb::LogicalType &type) {
        passages_.push_back(passage_of(type));
        writers_.emplace_back();
        switch (passages_.back()) {
            case Passage::direct:
                types_.push_back(type);
                break;
            case Passage::text: {
                const bool scalar = type.id() == LogicalTypeId::BIT || type.id() == LogicalTypeId::BIGNUM;
                writers_.back() =
                    scalar ? make_pg_text_writer(type, *zone_) : make_json_writer(type, JsonDialect::page, *zone_);
                types_.push_back(duckdb::LogicalType::VARCHAR);
                break;
            }
            case Passage::uuid:
                types_.push_back(duckdb::LogicalType::SQLNULL);
                uuids_.push_back(
                    {column, std::make_unique<arrow::FixedSizeBinaryBuilder>(arrow::fixed_size_binary(16))});
                break;
        }
    }

    Passage passage_of(const duckdb::LogicalType &type) {
        if (type.id() == LogicalTypeId::UUID) return Passage::uuid;
        if (type.id() == LogicalTypeId::BIT || type.id() == LogicalTypeId::BIGNUM) return Passage::text;
        if (any_type(type, [](const auto &inner) { return inner.id() == LogicalTypeId::VARIANT; }))
            return Passage::text;
        try {
            ArrowSchema probe;
            duckdb::ArrowConverter::ToArrowSchema(&probe, {type}, {"probe"}, properties_);
            probe.release(&probe);
            return Passage::direct;
        } catch (const std::exception &) {
            return Passage::text;  // a type that the export does not know
        }
    }

    void make_schema() {
        ArrowSchema exported;
        duckdb::ArrowConverter::ToArrowSchema(&exported, types_,
                                              duckdb::vector<std::string>(names_.begin(), names_.end()), properties_);
        auto imported = arrow::ImportSchema(&exported);
        if (!imported.ok()) throw duckdb::InvalidInputException(imported.status().message());
        appended_schema_ = *imported;
        arrow::FieldVector fields = appended_schema_->fields();
        for (const auto &uuids : uuids_)
            fields[uuids.column] = arrow::field(names_[uuids.column], arrow::extension::uuid());
        schema_ = arrow::schema(std::move(fields));
    }

    // What a row takes about. The stored size misleads where one value stands for many rows.
    uint64_t bytes_a_row_of(duckdb::DataChunk &chunk, uint64_t chunk_bytes) const {
        const uint64_t rows = std::max<uint64_t>(chunk.size(), 1);
        uint64_t repeated = 0;
        for (auto &vector : chunk.data) {
            if (vector.GetVectorType() == duckdb::VectorType::FLAT_VECTOR) continue;
            if (vector.GetType().InternalType() == duckdb::PhysicalType::VARCHAR) {
                repeated += string_bytes(vector, chunk.size());
            } else if (vector.GetType().IsNested()) {
                repeated += chunk_bytes > kBatchBytes ? chunk_bytes * rows : 0;
            }
        }
        return (chunk_bytes + repeated) / rows + 1;
    }

    static uint64_t string_bytes(duckdb::Vector &vector, duckdb::idx_t count) {
        VectorView view;
        view.bind(vector, count);
        uint64_t bytes = 0;
        for (duckdb::idx_t row = 0; row < count; ++row) {
            if (!view.is_null(row)) bytes += view.value<duckdb::string_t>(row).GetSize();
        }
        return bytes;
    }

    // The chunk as the appender takes it.
    Status convert(duckdb::DataChunk &chunk) {
        converted_.Destroy();
        converted_.InitializeEmpty(types_);
        for (size_t i = 0; i < passages_.size(); ++i) {
            switch (passages_[i]) {
                case Passage::direct:
                    if (has_uhugeint(types_[i])) ROOST_RETURN_IF_ERROR(check_uhugeints(chunk, i));
                    converted_.data[i].Reference(chunk.data[i]);
                    break;
                case Passage::text:
                    converted_.data[i].Reference(text_of(chunk.data[i], chunk.size(), *writers_[i]));
                    break;
                case Passage::uuid:
                    converted_.data[i].Reference(duckdb::Value(duckdb::LogicalType::SQLNULL));
                    break;
            }
        }
        converted_.SetCapacity(chunk.size());
        converted_.SetCardinality(chunk.size());
        return {};
    }

    Status check_uhugeints(duckdb::DataChunk &chunk, size_t column) const {
        VectorView view;
        view.bind(chunk.data[column], chunk.size());
        for (duckdb::idx_t row = 0; row < chunk.size(); ++row) {
            if (fits_decimal128(view, row)) continue;
            return Status(Code::invalid_argument,
                          "column \"" + names_[column] + "\" holds a UHUGEINT too large for Arrow's decimal128(38,0)")
                .with_sqlstate("22003")
                .with_hint("cast it to VARCHAR");
        }
        return {};
    }

    static duckdb::Vector text_of(duckdb::Vector &source, duckdb::idx_t count, const ValueWriter &writer) {
        VectorView view;
        view.bind(source, count);
        duckdb::Vector out(duckdb::LogicalType::VARCHAR, count);
        auto *strings = duckdb::FlatVector::GetData<duckdb::string_t>(out);
        std::string text;
        for (duckdb::idx_t row = 0; row < count; ++row) {
            if (view.is_null(row)) {
                duckdb::FlatVector::SetNull(out, row, true);
                continue;
            }
            text.clear();
            writer.append(view, row, text);
            strings[row] = duckdb::StringVector::AddString(out, text);
        }
        return out;
    }

    static Status append_uuids(UuidColumn &uuids, duckdb::DataChunk &chunk, uint64_t from, uint64_t to) {
        VectorView view;
        view.bind(chunk.data[uuids.column], chunk.size());
        for (uint64_t row = from; row < to; ++row) {
            char bytes[16];
            if (!view.is_null(row)) scalar_binary::Uuid{}(bytes, view.value<duckdb::hugeint_t>(row));
            ROOST_RETURN_IF_ERROR(
                status_of(view.is_null(row) ? uuids.builder->AppendNull() : uuids.builder->Append(bytes)));
        }
        return {};
    }

    void make_appender(uint64_t bytes_a_row) {
        pending_bytes_ = 0;
        // Room for the whole batch at once, if it is to be a full one: a first, partial chunk tells nothing.
        const uint64_t rows = converted_.size() < STANDARD_VECTOR_SIZE
                                  ? converted_.size()
                                  : std::min(kBatchBytes / bytes_a_row + 1, kBatchRows);
        appender_ = std::make_unique<duckdb::ArrowAppender>(
            types_, rows, properties_,
            duckdb::unordered_map<duckdb::idx_t, const duckdb::shared_ptr<duckdb::ArrowTypeExtensionData>>());
    }

    Status write_batch(std::string &out) {
        ArrowArray array = appender_->Finalize();
        appender_.reset();
        auto batch = arrow::ImportRecordBatch(&array, appended_schema_);
        if (!batch.ok()) return status_of(batch.status());
        arrow::ArrayVector columns = (*batch)->columns();
        for (auto &uuids : uuids_) {
            auto finished = uuids.builder->Finish();
            if (!finished.ok()) return status_of(finished.status());
            columns[uuids.column] = arrow::ExtensionType::WrapArray(arrow::extension::uuid(), *finished);
        }
        const auto whole = arrow::RecordBatch::Make(schema_, (*batch)->num_rows(), std::move(columns));
        int64_t size = 0;
        ROOST_RETURN_IF_ERROR(status_of(arrow::ipc::GetRecordBatchSize(*whole, &size)));
        out.reserve(out.size() + static_cast<size_t>(size) + kMessageBytes);
        output_->point_to(&out);
        return status_of(writer_->WriteRecordBatch(*whole));
    }

    std::vector<std::string> names_;
    std::unique_ptr<ZoneOffsets> zone_;
    std::vector<Passage> passages_;
    std::vector<std::unique_ptr<ValueWriter>> writers_;  // of text columns
    std::vector<UuidColumn> uuids_;
    duckdb::vector<duckdb::LogicalType> types_;  // as the appender sees the columns
    duckdb::ClientProperties properties_;
    std::shared_ptr<arrow::Schema> appended_schema_, schema_;
    std::shared_ptr<StringOutput> output_;
    std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
    std::unique_ptr<duckdb::ArrowAppender> appender_;
    duckdb::DataChunk converted_;
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
