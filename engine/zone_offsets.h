// Offsets from UTC of one time zone, by ICU inside DuckDB. Remembers each day asked for, so a column of timestamps
// costs one evaluation a day of data, and an instance keeps what was learnt for the next statement. Not thread-safe:
// one for each encoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace duckdb {
class ClientContext;
}

namespace roost {

class ZoneOffsets {
public:
    virtual ~ZoneOffsets() = default;
    static std::unique_ptr<ZoneOffsets> utc();
    // Error 22023 when ICU does not know the zone. The context must outlive the offsets; its own time zone does not
    // matter.
    static Result<std::unique_ptr<ZoneOffsets>> make(const std::string &time_zone, duckdb::ClientContext &context);
    // Seconds east of Greenwich at `micros` UTC (a finite timestamp).
    virtual int32_t seconds_east(int64_t micros) = 0;
};

}  // namespace roost
