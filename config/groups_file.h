// The file of groups of the workload (`admission_groups`): whose statements take turns for memory together, and how
// many turns. Thread-safe. Called by load().
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/settings.h"

namespace roost::config {

// The section of all who are in no other.
inline constexpr std::string_view kDefaultGroup = "default";

// Fills settings.groups from the file that settings.admission_groups names. No file is fine unless somebody named it.
// Errors name the file, the line and what would do.
Status read_groups(Settings &settings);
// The same on text; `file` stands for the file in errors.
Result<std::vector<WorkloadGroup>> parse_groups(std::string_view text, const std::string &file);

}  // namespace roost::config
