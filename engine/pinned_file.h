// Comparing a file of others with the version in which it was registered (lake/file_pins.h). Stateless, thread-safe.
// Called by the file systems of an instance when they open such a file.
#pragma once

#include <optional>
#include <string>

#include "duckdb/common/open_file_info.hpp"
#include "lake/file_pins.h"

namespace duckdb {
struct FileHandle;
class FileSystem;
}  // namespace duckdb

namespace roost {

// The version of the file at `path` in a directory; nothing: there is none.
std::optional<FileVersion> version_on_disk(const std::string &path);
// The version of an open object.
FileVersion version_of(duckdb::FileSystem &client, duckdb::FileHandle &object);
// From a listing of a store; nothing where it does not say.
std::optional<FileVersion> version_listed(const duckdb::OpenFileInfo &object);

// Throws duckdb::IOException, with the file, what changed and what to do, unless `found` is the version that was
// registered.
void check_pinned(const std::string &path, const FileVersion &registered, const std::optional<FileVersion> &found);

// One word for a version.
std::string tag_of(const FileVersion &version);

// What DuckLake says of a data file that it has a table read; nothing: somebody's path.
std::optional<DataFileKey> data_file_key(const duckdb::OpenFileInfo &file);

}  // namespace roost
