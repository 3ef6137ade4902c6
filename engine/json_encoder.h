// Rows as the HTTP contract sends them: a JSON array of objects keyed by column name. Not thread-safe. Called by the
// result store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/value_writer.h"

namespace duckdb {
class DataChunk;
}

namespace roost {

class JsonPageEncoder {
public:
    // `names` are unique already. `zone` shows TIMESTAMP WITH TIME ZONE.
    JsonPageEncoder(const std::vector<std::string> &names, const std::vector<duckdb::LogicalType> &types,
                    std::unique_ptr<ZoneOffsets> zone);

    // Appends rows [from, to) of the chunk as objects, each behind a comma unless `out` is just the opening bracket.
    // Throws what DuckDB throws.
    void append(duckdb::DataChunk &chunk, uint64_t from, uint64_t to, std::string &out);

private:
    std::unique_ptr<ZoneOffsets> zone_;
    std::vector<std::string> keys_;  // {"a": and ,"b":
    std::vector<std::unique_ptr<ValueWriter>> writers_;
    std::vector<VectorView> views_;
};

}  // namespace roost
