#include "engine/files_ahead.h"

#include <algorithm>
#include <utility>

#include "duckdb/common/multi_file/multi_file_states.hpp"
#include "duckdb/execution/operator/scan/physical_table_scan.hpp"
#include "duckdb/execution/physical_operator.hpp"
#include "engine/object_cache.h"

namespace roost {

namespace {

constexpr size_t kFilesMax = 4'096;
constexpr size_t kAheadMax = 16;

std::vector<FilesAhead::File> files_of(const duckdb::MultiFileList &list) {
    std::vector<FilesAhead::File> files;
    duckdb::MultiFileListScanData scan;
    list.InitializeScan(scan);
    for (duckdb::OpenFileInfo file; files.size() < kFilesMax && list.Scan(scan, file);) {
        if (const auto size_bytes = ObjectCache::size_of(file)) files.push_back({file.path, *size_bytes});
    }
    return files;
}

}  // namespace

void FilesAhead::will_read(std::vector<File> files) {
    MutexLock lock(mutex_);
    if (files.size() < 2 || places_.size() + files.size() > kFilesMax) return;
    // A file that several scans read is the first one's.
    for (size_t i = 0; i < files.size(); ++i) places_.try_emplace(files[i].path, Place{scans_.size(), i});
    scans_.push_back({std::move(files), 0, 0});
}

std::vector<FilesAhead::File> FilesAhead::after(const std::string &path) {
    MutexLock lock(mutex_);
    const auto place = places_.find(path);
    if (place == places_.end()) return {};
    const auto [number, file] = place->second;
    places_.erase(place);  // each thread opens it, the first counts
    Scan &scan = scans_[number];
    const size_t ahead = std::min(kAheadMax, size_t{1} << std::min<size_t>(scan.opened++, 10));
    const size_t upto = std::min(scan.files.size(), file + 1 + ahead);
    scan.named = std::max(scan.named, file + 1);
    std::vector<File> next;
    for (; scan.named < upto; ++scan.named) next.push_back(scan.files[scan.named]);
    return next;
}

void note_files(const duckdb::PhysicalOperator &root, FilesAhead &ahead) {
    if (root.type == duckdb::PhysicalOperatorType::TABLE_SCAN) {
        const auto &scan = root.Cast<duckdb::PhysicalTableScan>();
        const auto *data = dynamic_cast<const duckdb::MultiFileBindData *>(scan.bind_data.get());
        if (data != nullptr && data->file_list) ahead.will_read(files_of(*data->file_list));
    }
    for (const auto &child : root.GetChildren()) note_files(child.get(), ahead);
}

}  // namespace roost
