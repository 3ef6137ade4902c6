// Reading roost.toml: the only file that knows TOML. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace roost::config {

struct FileEntry {
    std::string key;
    std::string text;  // as the setting's parser takes it: 5000, 2GiB, true
    uint32_t line = 0;
};

bool settings_file_exists(const std::string &path);
// The file's text; 1 MiB at most.
Result<std::string> read_text_file(const std::string &path);
// The keys of the file in its order. Errors name the file and the line.
Result<std::vector<FileEntry>> read_settings_file(const std::string &path);
// A file of more catalogs: each is a section with settings of its own. In the file's order.
struct FileSection {
    std::string name;
    uint32_t line = 0;
    std::vector<FileEntry> entries;
};
Result<std::vector<FileSection>> parse_sections_text(std::string_view text, const std::string &name);
// As read_settings_file on text; `name` stands for the file in errors.
Result<std::vector<FileEntry>> parse_settings_text(std::string_view text, const std::string &name);

}  // namespace roost::config
