// Writes one value of a column as text or bytes: the form for nested and variable-size values, and for JSON. Fixed-size
// scalars of result rows go through the column kernels of pg_columns.h instead. Not thread-safe. Called by the
// encoders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "duckdb/common/types/vector.hpp"
#include "engine/zone_offsets.h"

namespace roost {

// A vector opened for reading, its children with it. Valid while the vector lives and is not written.
struct VectorView {
    duckdb::Vector *vector = nullptr;
    duckdb::UnifiedVectorFormat format;
    std::vector<VectorView> children;
    std::unique_ptr<duckdb::RecursiveUnifiedVectorFormat> variant;  // set for VARIANT

    // Opens `count` rows; may flatten a nested vector.
    void bind(duckdb::Vector &source, duckdb::idx_t count);
    duckdb::idx_t index(duckdb::idx_t row) const { return format.sel->get_index(row); }
    bool is_null(duckdb::idx_t row) const { return !format.validity.RowIsValid(index(row)); }
    template <class T>
    const T &value(duckdb::idx_t row) const {
        return reinterpret_cast<const T *>(format.data)[index(row)];
    }
};

class ValueWriter {
public:
    virtual ~ValueWriter() = default;
    // Appends the value of a row. REQUIRES: it is not NULL, and `view` is of the writer's type.
    virtual void append(const VectorView &view, duckdb::idx_t row, std::string &out) const = 0;
};

enum class JsonDialect {
    page,      // rows of the HTTP contract: DECIMAL and wide integers as strings, what its clients can't hold as null
    postgres,  // a json column: numbers exact and bare, temporal values in PostgreSQL's text
};

// PostgreSQL's text and binary forms. `zone` must outlive the writer.
std::unique_ptr<ValueWriter> make_pg_text_writer(const duckdb::LogicalType &type, ZoneOffsets &zone);
std::unique_ptr<ValueWriter> make_pg_binary_writer(const duckdb::LogicalType &type, ZoneOffsets &zone);
std::unique_ptr<ValueWriter> make_json_writer(const duckdb::LogicalType &type, JsonDialect dialect, ZoneOffsets &zone);

// True when values of the type show the session's time zone, so that their writer needs its offsets.
bool shows_time_zone(const duckdb::LogicalType &type);

// A JSON string: quotes, escapes.
void append_json_string(std::string &out, std::string_view text);

}  // namespace roost
