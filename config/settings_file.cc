#include "config/settings_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#define TOML_EXCEPTIONS 0
// toml++ 3.3 tells the optimiser that a key starts well, and then checks that it does: on "[:" an assertion in a debug
// build, undefined behaviour in a release. Without the promise its own check reports the error.
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expr) static_cast<void>(0)
#include <toml++/toml.h>

namespace roost::config {
namespace {

constexpr size_t kFileMaxBytes = 1U << 20;

Status bad(const std::string &name, uint32_t line, std::string_view message) {
    return Status(Code::invalid_argument, name + ":" + std::to_string(line) + ": " + std::string(message));
}

std::string number_text(double value) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value);
    return std::string(digits, end.ptr);
}

Result<std::string> text_of(const toml::node &node, const std::string &name, const std::string &key) {
    if (const auto *value = node.as_string()) return value->get();
    if (const auto *value = node.as_integer()) return std::to_string(value->get());
    if (const auto *value = node.as_floating_point()) return number_text(value->get());
    if (const auto *value = node.as_boolean()) return std::string(value->get() ? "true" : "false");
    const uint32_t line = node.source().begin.line;
    if (node.is_table())
        return bad(name, line, "unknown section or table '" + key + "'; settings stand at the top level");
    return bad(name, line, "'" + key + "' must be a string or a number");
}

}  // namespace

bool settings_file_exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

Result<std::vector<FileEntry>> read_settings_file(const std::string &path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return Status(Code::invalid_argument, "can't read the settings file " + path + ": " + std::strerror(errno));
    std::string text(kFileMaxBytes + 1, '\0');
    size_t size = 0;
    ssize_t got = 0;
    while (size < text.size() && (got = read(fd, text.data() + size, text.size() - size)) > 0)
        size += static_cast<size_t>(got);
    const int error = got < 0 ? errno : 0;
    close(fd);
    if (error != 0)
        return Status(Code::invalid_argument, "can't read the settings file " + path + ": " + std::strerror(error));
    if (size > kFileMaxBytes)
        return Status(Code::invalid_argument, "the settings file " + path + " is larger than 1 MiB");
    text.resize(size);
    return parse_settings_text(text, path);
}

Result<std::vector<FileEntry>> parse_settings_text(std::string_view text, const std::string &name) {
    const toml::parse_result parsed = toml::parse(text);
    if (parsed.failed()) return bad(name, parsed.error().source().begin.line, parsed.error().description());
    std::vector<FileEntry> entries;
    for (const auto &[key, node] : parsed.table()) {
        FileEntry entry;
        entry.key = std::string(key.str());
        entry.line = node.source().begin.line;
        ROOST_ASSIGN_OR_RETURN(entry.text, text_of(node, name, entry.key));
        entries.push_back(std::move(entry));
    }
    // The table is sorted by key; a person reads errors from the top.
    std::stable_sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) { return a.line < b.line; });
    return entries;
}

}  // namespace roost::config
