#include "lake/named_files.h"

#include <algorithm>
#include <functional>

#include "base/ids.h"
#include "lake/metadata_reader.h"

namespace roost {

namespace {

constexpr std::string_view kPrefix = "ducklake-";
constexpr size_t kUuidSize = 36;

uint64_t hash_of(std::string_view file_name) { return std::hash<std::string_view>()(file_name); }

}  // namespace

std::string_view file_name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_ducklake_name(std::string_view file_name) {
    if (!file_name.starts_with(kPrefix)) return false;
    const std::string_view rest = file_name.substr(kPrefix.size());
    if (rest.size() < kUuidSize || !Uuid::parse(rest.substr(0, kUuidSize))) return false;
    const std::string_view ending = rest.substr(kUuidSize);
    return ending == ".parquet" || ending == "-delete.parquet" || ending == "-delete.puffin";
}

Result<NamedFiles> NamedFiles::load(const LakeLocation &lake, const CallLimits &limits) {
    NamedFiles named;
    const auto reader = make_metadata_reader(metadata_address(lake));
    for (const char *table : {"ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion"}) {
        ROOST_RETURN_IF_ERROR(reader->select(
            std::string("SELECT path FROM ") + table,
            [&named](const MetadataRow &row) {
                named.hashes_.push_back(hash_of(file_name_of(row.text(0))));
                return true;
            },
            limits));
    }
    std::ranges::sort(named.hashes_);
    return named;
}

bool NamedFiles::has(std::string_view file_name) const {
    return std::ranges::binary_search(hashes_, hash_of(file_name));
}

}  // namespace roost
