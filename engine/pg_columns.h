// The columns of a result as PostgreSQL values, block by block: each column turns a run of rows into cells, which the
// row encoder then interleaves. Internal to pg_encoder.cc. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/value_writer.h"

namespace roost {

// One value: its bytes, or size −1 for NULL. The bytes live in the arena or in the chunk. At least min(12, …) bytes
// behind `data` may be read when size is at most 12, so short values are copied without branching on their length.
struct Cell {
    const char *data;
    int32_t size;
};
inline constexpr int32_t kNullSize = -1;
inline constexpr int32_t kReadableBytes = 12;

// Memory for the cells of one block, given back all at once.
class CellArena {
public:
    // `bytes` in one piece; pointers stay valid until reset(). commit() tells how far it was used.
    char *reserve(size_t bytes);
    void commit(const char *end) { at_ = static_cast<size_t>(end - blocks_[block_].data.get()); }
    void reset();

private:
    struct Block {
        std::unique_ptr<char[]> data;
        size_t size;
    };
    std::vector<Block> blocks_;
    size_t block_ = 0;
    size_t at_ = 0;
};

class PgColumn {
public:
    virtual ~PgColumn() = default;
    // Text or binary form; `zone` must outlive the column.
    static std::unique_ptr<PgColumn> make(const duckdb::LogicalType &type, bool binary, ZoneOffsets &zone);

    void bind(duckdb::Vector &vector, duckdb::idx_t count) {
        constant_ = vector.GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
        view_.bind(vector, count);
    }
    // Cells of rows [from, from + count) of the bound vector.
    void render(duckdb::idx_t from, duckdb::idx_t count, CellArena &arena, Cell *cells);

protected:
    virtual void render_rows(duckdb::idx_t from, duckdb::idx_t count, CellArena &arena, Cell *cells) = 0;
    VectorView view_;

private:
    bool constant_ = false;
};

}  // namespace roost
