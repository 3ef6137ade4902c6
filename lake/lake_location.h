// Where one DuckLake is: its catalog and its files. A plain value.
#pragma once

#include <string>

namespace roost {

struct LakeLocation {
    std::string catalog;        // the name SQL uses, e.g. "lake"
    std::string metadata_path;  // SQLite file
    std::string data_path;      // directory of data files, absolute
    std::string staging_path;   // directory of uploaded files that internal statements may read
};

}  // namespace roost
