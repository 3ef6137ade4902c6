// Offsets from UTC of one time zone, by ICU inside DuckDB. Remembers each day asked for, so a column of timestamps
// costs two evaluations a day of data. Not thread-safe: one for each encoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/status.h"

namespace duckdb {
class DatabaseInstance;
}

namespace roost {

class ZoneOffsets {
public:
    virtual ~ZoneOffsets() = default;
    static std::unique_ptr<ZoneOffsets> utc();
    // Error 22023 when ICU does not know the zone. Asks the engine only when a value is written.
    static Result<std::unique_ptr<ZoneOffsets>> make(const std::string &time_zone, duckdb::DatabaseInstance &db);
    // Seconds east of Greenwich at `micros` UTC (a finite timestamp).
    virtual int32_t seconds_east(int64_t micros) = 0;
};

}  // namespace roost
