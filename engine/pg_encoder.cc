#include <algorithm>
#include <cstring>

#include "duckdb/common/types/data_chunk.hpp"
#include "duckdb/main/client_context.hpp"
#include "engine/duckdb_errors.h"
#include "engine/encode.h"
#include "engine/pg_columns.h"
#include "engine/scalar_binary.h"
#include "engine/value_writer.h"

namespace roost {

using duckdb::idx_t;
using scalar_binary::put_be16;
using scalar_binary::put_be32;

namespace {

// Rows rendered at a time: their cells and bytes stay in the second-level cache between rendering and interleaving.
constexpr idx_t kBlockRows = 256;
constexpr size_t kRowHeaderBytes = 7;  // 'D', int32 length, int16 columns
// Room behind the last row that copy_cell may write into.
constexpr size_t kOvershootBytes = 16;

inline void copy_eight(char *to, const char *from) { std::memcpy(to, from, 8); }

// Copies a value; writes up to kOvershootBytes past its end, reads never past what Cell allows.
inline char *copy_cell(char *to, const Cell &cell) {
    const auto size = static_cast<uint32_t>(cell.size);
    to = put_be32(to, size);
    if (size <= kReadableBytes) {
        copy_eight(to, cell.data);
        std::memcpy(to + 8, cell.data + 8, 4);
        return to + size;
    }
    if (cell.size < 0) return to;
    if (size <= 16) {
        copy_eight(to, cell.data);
        copy_eight(to + size - 8, cell.data + size - 8);
    } else if (size <= 32) {
        std::memcpy(to, cell.data, 16);
        std::memcpy(to + size - 16, cell.data + size - 16, 16);
    } else {
        std::memcpy(to, cell.data, size);
    }
    return to + size;
}

class RowEncoder final : public PgRowEncoder {
public:
    RowEncoder(const std::vector<duckdb::LogicalType> &types, const std::vector<int16_t> &formats,
               std::unique_ptr<ZoneOffsets> zone)
        : zone_(std::move(zone)), cells_(types.size() * kBlockRows) {
        for (size_t i = 0; i < types.size(); ++i) {
            const bool binary = !formats.empty() && formats[formats.size() == 1 ? 0 : i] == 1;
            columns_.push_back(PgColumn::make(types[i], binary, *zone_));
        }
    }

    Status append(duckdb::DataChunk &chunk, uint64_t from, uint64_t to, std::string &out) override {
        const size_t before = out.size();
        try {
            for (size_t i = 0; i < columns_.size(); ++i) columns_[i]->bind(chunk.data[i], chunk.size());
            for (uint64_t row = from; row < to; row += kBlockRows) {
                ROOST_RETURN_IF_ERROR(append_block(row, std::min<uint64_t>(kBlockRows, to - row), out));
            }
            return {};
        } catch (const std::exception &e) {
            out.resize(before);
            return status_of(e, {}, {});
        }
    }

private:
    Status append_block(idx_t from, idx_t count, std::string &out) {
        arena_.reset();
        uint64_t sizes[kBlockRows];
        std::fill_n(sizes, count, kRowHeaderBytes + 4 * columns_.size());
        for (size_t c = 0; c < columns_.size(); ++c) {
            Cell *cells = cells_.data() + c * kBlockRows;
            columns_[c]->render(from, count, arena_, cells);
            for (idx_t r = 0; r < count; ++r) sizes[r] += static_cast<uint64_t>(std::max(cells[r].size, 0));
        }
        size_t total = 0;
        for (idx_t r = 0; r < count; ++r) {
            if (sizes[r] > INT32_MAX)
                return Status(Code::resource_exhausted, "a row of more than 2 GiB can't be sent")
                    .with_sqlstate("54000");
            total += sizes[r];
        }
        const size_t begin = out.size();
        out.resize(begin + total + kOvershootBytes);
        interleave(count, sizes, out.data() + begin);
        out.resize(begin + total);
        return {};
    }

    void interleave(idx_t count, const uint64_t *sizes, char *to) const {
        const size_t columns = columns_.size();
        for (idx_t r = 0; r < count; ++r) {
            *to = 'D';
            put_be32(to + 1, static_cast<uint32_t>(sizes[r] - 1));
            to = put_be16(to + 5, static_cast<uint16_t>(columns));
            for (size_t c = 0; c < columns; ++c) to = copy_cell(to, cells_[c * kBlockRows + r]);
        }
    }

    std::unique_ptr<ZoneOffsets> zone_;
    std::vector<std::unique_ptr<PgColumn>> columns_;
    std::vector<Cell> cells_;  // columns × kBlockRows
    CellArena arena_;
};

}  // namespace

Result<std::unique_ptr<PgRowEncoder>> PgRowEncoder::make(std::vector<duckdb::LogicalType> types,
                                                         std::vector<int16_t> formats, const std::string &time_zone,
                                                         duckdb::ClientContext &context) {
    try {
        auto zone = ZoneOffsets::utc();
        if (std::any_of(types.begin(), types.end(), shows_time_zone)) {
            ROOST_ASSIGN_OR_RETURN(zone, ZoneOffsets::make(time_zone, context));
        }
        return std::unique_ptr<PgRowEncoder>(std::make_unique<RowEncoder>(types, formats, std::move(zone)));
    } catch (const std::exception &e) {
        return status_of(e, {}, {});
    }
}

}  // namespace roost
