// The file of more catalogs (`catalogs`): what each of its sections means. Thread-safe. Called by load().
#pragma once

#include <string_view>

#include "base/status.h"
#include "config/settings.h"

namespace roost::config {

// The name of the lake that the settings `catalog` and `store` are about.
inline constexpr std::string_view kFirstCatalog = "lake";
inline constexpr std::string_view kFirstWorkspace = "main";

// Fills settings.more_catalogs from the file that settings.catalogs names. No file is fine unless somebody named it.
// Errors name the file, the line and what would do.
Status read_catalogs(Settings &settings);
// The same on text; `file` stands for the file in errors.
Result<std::vector<CatalogEntry>> parse_catalogs(std::string_view text, const std::string &file,
                                                 const Settings &settings);

}  // namespace roost::config
