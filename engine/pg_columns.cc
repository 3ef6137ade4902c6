#include "engine/pg_columns.h"

#include <algorithm>

#include "engine/scalar_binary.h"
#include "engine/scalar_text.h"
#include "engine/type_map.h"

namespace roost {

using duckdb::idx_t;
using duckdb::LogicalType;
using duckdb::LogicalTypeId;
using duckdb::string_t;

namespace {

constexpr size_t kArenaBlockBytes = 64 * 1024;

Cell cell_of(const string_t &text) { return {text.GetData(), static_cast<int32_t>(text.GetSize())}; }

// `Format` writes a fixed-size scalar into at most Format::kRoom bytes.
template <class Format>
class FixedColumn final : public PgColumn {
public:
    explicit FixedColumn(Format format) : format_(format) {}

protected:
    void render_rows(idx_t from, idx_t count, CellArena &arena, Cell *cells) override {
        using Value = typename Format::Value;
        const auto *values = reinterpret_cast<const Value *>(view_.format.data);
        const auto &validity = view_.format.validity;
        const auto &sel = *view_.format.sel;
        const bool all_valid = validity.AllValid();
        char *at = arena.reserve(count * Format::kRoom);
        for (idx_t i = 0; i < count; ++i) {
            const idx_t index = sel.get_index(from + i);
            if (!all_valid && !validity.RowIsValidUnsafe(index)) {
                cells[i] = {at, kNullSize};
                continue;
            }
            char *end = format_(at, values[index]);
            cells[i] = {at, static_cast<int32_t>(end - at)};
            at = end;
        }
        arena.commit(at);
    }

private:
    Format format_;
};

// Values that are sent as they lie in the chunk.
class StringColumn final : public PgColumn {
protected:
    void render_rows(idx_t from, idx_t count, CellArena &, Cell *cells) override {
        const auto *values = reinterpret_cast<const string_t *>(view_.format.data);
        const auto &validity = view_.format.validity;
        for (idx_t i = 0; i < count; ++i) {
            const idx_t index = view_.index(from + i);
            cells[i] = validity.RowIsValid(index) ? cell_of(values[index]) : Cell{nullptr, kNullSize};
        }
    }
};

template <class T>
class EnumColumn final : public PgColumn {
public:
    explicit EnumColumn(const LogicalType &type) : type_(type) {
        const auto *values = duckdb::FlatVector::GetData<string_t>(duckdb::EnumType::GetValuesInsertOrder(type_));
        for (idx_t i = 0; i < duckdb::EnumType::GetSize(type_); ++i) names_.push_back(cell_of(values[i]));
    }

protected:
    void render_rows(idx_t from, idx_t count, CellArena &, Cell *cells) override {
        for (idx_t i = 0; i < count; ++i) {
            cells[i] = view_.is_null(from + i) ? Cell{nullptr, kNullSize} : names_[view_.value<T>(from + i)];
        }
    }

private:
    LogicalType type_;  // owns the names
    std::vector<Cell> names_;
};

class NullColumn final : public PgColumn {
protected:
    void render_rows(idx_t, idx_t count, CellArena &, Cell *cells) override {
        std::fill_n(cells, count, Cell{nullptr, kNullSize});
    }
};

// Everything whose size is known only when it is written.
class WriterColumn final : public PgColumn {
public:
    explicit WriterColumn(std::unique_ptr<ValueWriter> writer) : writer_(std::move(writer)) {}

protected:
    void render_rows(idx_t from, idx_t count, CellArena &arena, Cell *cells) override {
        for (idx_t i = 0; i < count; ++i) {
            if (view_.is_null(from + i)) {
                cells[i] = {nullptr, kNullSize};
                continue;
            }
            scratch_.clear();
            writer_->append(view_, from + i, scratch_);
            if (scratch_.size() > INT32_MAX)
                throw duckdb::OutOfRangeException("a value of more than 2 GiB can't be sent");
            char *to = arena.reserve(scratch_.size());
            std::memcpy(to, scratch_.data(), scratch_.size());
            arena.commit(to + scratch_.size());
            cells[i] = {to, static_cast<int32_t>(scratch_.size())};
        }
    }

private:
    std::unique_ptr<ValueWriter> writer_;
    std::string scratch_;
};

std::unique_ptr<PgColumn> make_enum_column(const LogicalType &type) {
    switch (type.InternalType()) {
        case duckdb::PhysicalType::UINT8:
            return std::make_unique<EnumColumn<uint8_t>>(type);
        case duckdb::PhysicalType::UINT16:
            return std::make_unique<EnumColumn<uint16_t>>(type);
        default:
            return std::make_unique<EnumColumn<uint32_t>>(type);
    }
}

}  // namespace

char *CellArena::reserve(size_t bytes) {
    // Short values may be read past their end.
    const size_t needed = bytes + kReadableBytes;
    if (blocks_.empty() || blocks_[block_].size - at_ < needed) {
        if (!blocks_.empty()) ++block_;
        if (block_ < blocks_.size() && blocks_[block_].size < needed) blocks_.resize(block_);
        if (block_ >= blocks_.size()) {
            const size_t size = std::max(needed, kArenaBlockBytes);
            blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
            block_ = blocks_.size() - 1;
        }
        at_ = 0;
    }
    return blocks_[block_].data.get() + at_;
}

void CellArena::reset() {
    // What one huge value needed is not kept for the small ones after it.
    std::erase_if(blocks_, [](const Block &block) { return block.size > 16 * kArenaBlockBytes; });
    block_ = 0;
    at_ = 0;
}

void PgColumn::render(idx_t from, idx_t count, CellArena &arena, Cell *cells) {
    if (!constant_ || count == 0) return render_rows(from, count, arena, cells);
    render_rows(from, 1, arena, cells);
    std::fill(cells + 1, cells + count, cells[0]);
}

std::unique_ptr<PgColumn> PgColumn::make(const LogicalType &type, bool binary, ZoneOffsets &zone) {
    std::unique_ptr<PgColumn> column;
    const auto take = [&](auto format) { column = std::make_unique<FixedColumn<decltype(format)>>(format); };
    if (binary ? scalar_binary::visit_type(type, take) : scalar_text::visit_type(type, zone, take)) return column;
    switch (type.id()) {
        case LogicalTypeId::VARCHAR:
        case LogicalTypeId::CHAR:
            return std::make_unique<StringColumn>();
        case LogicalTypeId::BLOB:
            if (binary) return std::make_unique<StringColumn>();
            break;
        case LogicalTypeId::ENUM:
            return make_enum_column(type);
        case LogicalTypeId::SQLNULL:
            return std::make_unique<NullColumn>();
        default:
            break;
    }
    return std::make_unique<WriterColumn>(binary ? make_pg_binary_writer(type, zone) : make_pg_text_writer(type, zone));
}

}  // namespace roost
