#include "app/import_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

namespace roost::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWildcards = "*?[";
constexpr size_t kLongestStagedName = 120;

bool ends_with_any_case(std::string_view text, std::string_view ending) {
    if (text.size() <= ending.size()) return false;
    return std::equal(ending.begin(), ending.end(), text.end() - static_cast<std::ptrdiff_t>(ending.size()),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
}

// Shell rules inside a segment, "**" for any number of segments. Both ranges are relative to the same directory.
bool matches(fs::path::const_iterator pattern, fs::path::const_iterator pattern_end, fs::path::const_iterator path,
             fs::path::const_iterator path_end) {
    if (pattern == pattern_end) return path == path_end;
    const auto rest = std::next(pattern);
    if (*pattern == "**") {
        if (matches(rest, pattern_end, path, path_end)) return true;
        return path != path_end && matches(pattern, pattern_end, std::next(path), path_end);
    }
    return path != path_end && ::fnmatch(pattern->c_str(), path->c_str(), FNM_PERIOD) == 0 &&
           matches(rest, pattern_end, std::next(path), path_end);
}

// Regular files at or below `base` for which `wanted` (given the path relative to base) holds, sorted. `depth`: how
// many segments a wanted path can have, so that a plain glob does not walk a whole disk.
Result<std::vector<fs::path>> walk(const fs::path &base, size_t depth, auto wanted) {
    std::vector<fs::path> out;
    std::error_code failed;
    fs::recursive_directory_iterator entries(base, fs::directory_options::follow_directory_symlink, failed);
    for (const fs::recursive_directory_iterator end; !failed && entries != end; entries.increment(failed)) {
        if (static_cast<size_t>(entries.depth()) + 1 >= depth) entries.disable_recursion_pending();
        std::error_code ignored;  // a dangling link is no regular file
        if (entries->is_regular_file(ignored) && wanted(entries->path().lexically_relative(base))) {
            out.push_back(entries->path());
        }
    }
    if (failed)
        return Status(Code::io_error, "could not read the directory " + base.string() + ": " + failed.message());
    std::sort(out.begin(), out.end());
    return out;
}

Result<std::vector<fs::path>> expand_directory(const fs::path &directory) {
    return walk(directory, static_cast<size_t>(-1), [](const fs::path &relative) {
        for (const fs::path &segment : relative) {
            if (segment.native().starts_with('.') || segment.native().starts_with('_')) return false;
        }
        return !import_format(relative.native()).empty();
    });
}

Result<std::vector<fs::path>> expand_glob(const fs::path &pattern) {
    fs::path base;
    auto segment = pattern.begin();
    while (segment != pattern.end() && segment->native().find_first_of(kWildcards) == std::string::npos)
        base /= *segment++;
    const bool any_depth = std::find(segment, pattern.end(), "**") != pattern.end();
    const auto depth = any_depth ? static_cast<size_t>(-1) : static_cast<size_t>(std::distance(segment, pattern.end()));
    const bool here = base.empty();
    std::error_code failed;
    if (!here && !fs::is_directory(base, failed)) return std::vector<fs::path>();
    ROOST_ASSIGN_OR_RETURN(std::vector<fs::path> found, walk(here ? "." : base, depth, [&](const fs::path &relative) {
                               return matches(segment, pattern.end(), relative.begin(), relative.end());
                           }));
    if (here) {
        for (fs::path &path : found) path = path.lexically_relative(".");
    }
    return found;
}

Result<std::vector<fs::path>> expand(const std::string &argument) {
    std::error_code failed;
    const fs::file_status status = fs::status(argument, failed);
    if (status.type() == fs::file_type::directory) {
        ROOST_ASSIGN_OR_RETURN(std::vector<fs::path> found, expand_directory(argument));
        if (found.empty()) return Status(Code::not_found, argument + " holds no .parquet, .csv or .tsv file");
        return found;
    }
    if (status.type() == fs::file_type::regular) return std::vector<fs::path>{argument};
    if (status.type() != fs::file_type::not_found) {
        return Status(Code::invalid_argument,
                      argument + " is not a regular file" + (failed ? ": " + failed.message() : ""));
    }
    if (argument.find_first_of(kWildcards) == std::string::npos)
        return Status(Code::not_found, "no such file: " + argument);
    ROOST_ASSIGN_OR_RETURN(std::vector<fs::path> found, expand_glob(argument));
    if (found.empty()) return Status(Code::not_found, "no file matches " + argument);
    return found;
}

// What the server accepts as a name and the engine can still tell the format by.
std::string staged_name(size_t number, const fs::path &path) {
    std::string name = path.filename().string();
    if (name.size() > kLongestStagedName) name.erase(0, name.size() - kLongestStagedName);
    for (char &c : name) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
        if (c >= 'A' && c <= 'Z') {
            c = static_cast<char>(c - 'A' + 'a');
        } else if (!plain) {
            c = '_';
        }
    }
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits + "-" + name;
}

}  // namespace

std::string_view import_format(std::string_view name) {
    for (const std::string_view ending : {".parquet", ".pq"}) {
        if (ends_with_any_case(name, ending)) return "parquet";
    }
    for (const std::string_view ending : {".csv", ".csv.gz", ".tsv", ".tsv.gz"}) {
        if (ends_with_any_case(name, ending)) return "csv";
    }
    return {};
}

Result<std::vector<ImportFile>> expand_import_files(const std::vector<std::string> &arguments) {
    if (arguments.empty()) return Status(Code::invalid_argument, "no file to import");
    std::vector<ImportFile> out;
    std::set<std::string> seen;
    for (const std::string &argument : arguments) {
        ROOST_ASSIGN_OR_RETURN(const std::vector<fs::path> found, expand(argument));
        for (const fs::path &path : found) {
            std::error_code failed;
            const fs::path canonical = fs::canonical(path, failed);
            if (failed) return Status(Code::not_found, "could not find " + path.string() + ": " + failed.message());
            if (!seen.insert(canonical.string()).second) continue;
            const std::string_view format = import_format(path.native());
            if (format.empty()) {
                return Status(Code::invalid_argument, "cannot tell the format of " + path.string() + " from its name")
                    .with_hint("names end in .parquet, .csv, .csv.gz, .tsv or .tsv.gz");
            }
            const uintmax_t size_bytes = fs::file_size(path, failed);
            if (failed) return Status(Code::io_error, "could not read " + path.string() + ": " + failed.message());
            out.push_back({path.string(), std::string(format), staged_name(out.size() + 1, path), size_bytes});
        }
    }
    return out;
}

Result<TableName> parse_table_name(std::string_view text) {
    const auto wrong = [&] {
        return Status(Code::invalid_argument, "'" + std::string(text) + "' is no table name")
            .with_hint("use TABLE or SCHEMA.TABLE, with \"double quotes\" around parts that need them");
    };
    std::vector<std::string> parts{""};
    bool quoted = false, was_quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
            parts.back() += text[i++];
        } else if (c == '"') {
            if (!quoted && (!parts.back().empty() || was_quoted)) return wrong();
            quoted = !quoted;
            was_quoted = true;
        } else if (quoted) {
            parts.back() += c;
        } else if (c == '.') {
            if (parts.back().empty()) return wrong();
            parts.emplace_back();
            was_quoted = false;
        } else if (was_quoted) {
            return wrong();
        } else {
            parts.back() += c;
        }
    }
    if (quoted || parts.back().empty() || parts.size() > 2) return wrong();
    if (parts.size() == 1) return TableName{"main", parts[0]};
    return TableName{parts[0], parts[1]};
}

}  // namespace roost::app
