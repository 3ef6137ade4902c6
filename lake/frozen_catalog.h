// Writes a lake at one snapshot, whole or cut down to some tables and segments, as a small DuckLake catalog in a DuckDB
// file: ATTACH 'ducklake:FILE' (READ_ONLY) gives the same rows as the lake itself did, including deletes, columns added
// later, renames, rows kept in the catalog, views and macros. A reader needs neither the catalog's credentials nor its
// scanner. Of an encrypted lake the file holds the keys of its files, as the catalog does.
//
// Rows kept in the catalog, and what they need to be read, are not in the mirror: they are read from the catalog when
// there are any, and it is made sure afterwards that no compaction has moved them meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "lake/call_limits.h"
#include "lake/lake_state.h"
#include "lake/metadata_reader.h"

namespace roost {

struct FrozenTable {
    uint64_t table_id = 0;
    std::optional<std::vector<uint64_t>> data_file_ids;  // ascending; none: all
    bool inlined_rows = true;                            // with the rows that are kept in the catalog
};

struct FrozenStats {
    uint64_t tables = 0;
    uint64_t segments = 0;
    uint64_t inlined_rows = 0;
    uint64_t file_bytes = 0;
};

// One DuckDB instance that writes such files. Not thread-safe.
class FrozenCatalogWriter {
public:
    struct Options {
        MetadataAddress address;
        std::string extension_dir;  // of sqlite_scanner and postgres_scanner; loaded when first needed
    };
    static Result<std::unique_ptr<FrozenCatalogWriter>> open(Options options);
    ~FrozenCatalogWriter();
    FrozenCatalogWriter(const FrozenCatalogWriter &) = delete;
    FrozenCatalogWriter &operator=(const FrozenCatalogWriter &) = delete;

    // Puts the file in place at once, over an older one. `tables`: none given: all. Views and macros are all there
    // either way. REQUIRES: the tables asked for have data in `state`. Errors: conflict (the catalog was compacted
    // since the state was made: refresh, and write again), not_found (no such table), io_error, timeout, cancelled, and
    // those of MetadataReader. Waits of the scanners are bounded by the connection string's own settings.
    Result<FrozenStats> write(const LakeState &state, const std::optional<std::vector<FrozenTable>> &tables,
                              const std::string &path, const CallLimits &limits);

private:
    struct Impl;
    explicit FrozenCatalogWriter(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// DuckDB's name of a column's type; nothing where DuckLake's name is not known here.
std::optional<std::string> sql_type(const LakeColumn &column);

}  // namespace roost
