// Which files a lake's catalog names: as data, as deletes, or as to be removed by DuckLake, of any snapshot. For
// finding those that nobody names. Immutable after loading.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lake/call_limits.h"
#include "lake/lake_location.h"

namespace roost {

// The last part of a path or key.
std::string_view file_name_of(std::string_view path);
// A name as DuckLake gives its files, each once: nothing else below the data path is anybody's orphan.
bool is_ducklake_name(std::string_view file_name);

class NamedFiles {
public:
    // Of the newest state. Errors: of reading the catalog.
    static Result<NamedFiles> load(const LakeLocation &lake, const CallLimits &limits);

    // By name, wherever it lies. May be true by chance (1 in 2^44 for a million files), never false by chance.
    bool has(std::string_view file_name) const;
    size_t size() const { return hashes_.size(); }

private:
    std::vector<uint64_t> hashes_;  // sorted; 8 bytes a file
};

}  // namespace roost
