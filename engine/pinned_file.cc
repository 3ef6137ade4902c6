#include "engine/pinned_file.h"

#include <sys/stat.h>

#include <cstdio>
#include <ctime>
#include <string_view>

#include "duckdb/common/exception.hpp"
#include "duckdb/common/file_system.hpp"
#include "engine/file_system.h"

namespace roost {

namespace {

constexpr int64_t kSecond_ns = 1'000'000'000;

// Stores write them with quotes, in listings some without.
std::string plain_etag(std::string_view etag) {
    if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
    return std::string(etag);
}

std::string time_text(int64_t modified_ns) {
    const time_t seconds = modified_ns / kSecond_ns;
    tm utc = {};
    ::gmtime_r(&seconds, &utc);
    char text[64];
    const size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
    char fraction[16];
    std::snprintf(fraction, sizeof fraction, ".%09d UTC", static_cast<int>(modified_ns % kSecond_ns));
    return std::string(text, size) + fraction;
}

std::string difference(const FileVersion &registered, const FileVersion &found) {
    if (registered.size_bytes != found.size_bytes) {
        return "it had " + std::to_string(registered.size_bytes) + " bytes and has " + std::to_string(found.size_bytes);
    }
    if (registered.etag != found.etag) {
        return "its ETag was " + registered.etag + " and is " + (found.etag.empty() ? "not told" : found.etag);
    }
    return "it was of " + time_text(registered.modified_ns) + " and is of " + time_text(found.modified_ns);
}

constexpr const char *kWhatToDo =
    "\nPut the registered version back, or drop the table and register its files again (roost import --in-place)";

std::optional<uint64_t> number(const duckdb::OpenFileInfo &file, const char *option) {
    const auto found = file.extended_info->options.find(option);
    if (found == file.extended_info->options.end() || found->second.IsNull()) return std::nullopt;
    return found->second.GetValue<uint64_t>();
}

}  // namespace

std::optional<FileVersion> version_on_disk(const std::string &path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) return std::nullopt;
    return FileVersion{.size_bytes = static_cast<uint64_t>(about.st_size),
                       .modified_ns = about.st_mtim.tv_sec * kSecond_ns + about.st_mtim.tv_nsec,
                       .etag = {}};
}

FileVersion version_of(duckdb::FileSystem &client, duckdb::FileHandle &object) {
    return {.size_bytes = static_cast<uint64_t>(object.GetFileSize()),
            .modified_ns = 0,
            .etag = plain_etag(client.GetVersionTag(object))};
}

std::optional<FileVersion> version_listed(const duckdb::OpenFileInfo &object) {
    if (!object.extended_info || !has_scheme(object.path)) return std::nullopt;
    const auto size_bytes = number(object, "file_size");
    const auto etag = object.extended_info->options.find("etag");
    if (!size_bytes || etag == object.extended_info->options.end() || etag->second.IsNull()) return std::nullopt;
    std::string plain = plain_etag(duckdb::StringValue::Get(etag->second));
    if (plain.empty() || plain.find('&') != std::string::npos) return std::nullopt;  // escaped: ask for it
    return FileVersion{.size_bytes = *size_bytes, .modified_ns = 0, .etag = std::move(plain)};
}

void check_pinned(const std::string &path, const FileVersion &registered, const std::optional<FileVersion> &found) {
    if (found == registered) return;
    if (!found) {
        throw duckdb::IOException("the file \"" + path + "\", which a table reads in place, is gone" + kWhatToDo);
    }
    throw duckdb::IOException("the file \"" + path +
                              "\" was changed after it was registered: " + difference(registered, *found) + kWhatToDo);
}

std::string tag_of(const FileVersion &version) {
    return std::to_string(version.size_bytes) + "-" +
           (version.etag.empty() ? std::to_string(version.modified_ns) : version.etag);
}

std::optional<DataFileKey> data_file_key(const duckdb::OpenFileInfo &file) {
    if (!file.extended_info || !number(file, "file_size")) return std::nullopt;
    return DataFileKey{.path = file.path,
                       .mapping_id = number(file, "mapping_id").value_or(0),
                       .row_id_start = number(file, "row_id_start").value_or(0)};
}

}  // namespace roost
