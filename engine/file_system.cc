#include "engine/file_system.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/wall.h"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/multi_file/multi_file_list.hpp"
#include "engine/object_key.h"

namespace roost {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string &path, std::string_view rule, std::string_view why) {
    throw duckdb::PermissionException("Access to \"" + path + "\" is refused: " + std::string(why) + " (rule " +
                                      std::string(rule) + ")");
}

// `path` is `root` or below it; both without trailing slash.
bool is_within(std::string_view path, std::string_view root) {
    return !root.empty() && path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

bool has_parent_component(std::string_view path) {
    size_t from = 0;
    while (from <= path.size()) {
        const size_t to = std::min(path.find('/', from), path.size());
        if (path.substr(from, to - from) == "..") return true;
        from = to + 1;
    }
    return false;
}

// Where `path` leads: links resolved as far as it exists, the rest as it is.
std::string real_path(const std::string &path) {
    std::error_code error;
    fs::path resolved = fs::weakly_canonical(path, error);
    if (error) return {};
    std::string text = resolved.string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return text;
}

// The directory that a pattern starts from: everything before the first component with a wildcard.
std::string fixed_part(const std::string &pattern) {
    const size_t wildcard = pattern.find_first_of("*?[{");
    if (wildcard == std::string::npos) return pattern;
    const size_t slash = pattern.rfind('/', wildcard);
    return slash == std::string::npos ? std::string() : pattern.substr(0, slash);
}

class WalledFileSystem final : public duckdb::FileSystem {
public:
    explicit WalledFileSystem(std::shared_ptr<FileWall> wall) : wall_(std::move(wall)) {}

    using Access = FileWall::Access;
    using Opener = duckdb::optional_ptr<duckdb::FileOpener>;

    duckdb::unique_ptr<duckdb::FileHandle> OpenFile(const std::string &path, duckdb::FileOpenFlags flags,
                                                    Opener opener) override {
        wall_->check_open(duckdb::OpenFileInfo(path), access_of(flags));
        return local_.OpenFile(path, flags, opener);
    }
    bool DirectoryExists(const std::string &directory, Opener opener) override {
        wall_->check(directory, Access::list);
        return local_.DirectoryExists(directory, opener);
    }
    void CreateDirectory(const std::string &directory, Opener opener) override {
        wall_->check(directory, Access::write);
        local_.CreateDirectory(directory, opener);
    }
    void RemoveDirectory(const std::string &directory, Opener opener) override {
        if (wall_->check_removal(directory)) return;
        local_.RemoveDirectory(directory, opener);
    }
    void MoveFile(const std::string &source, const std::string &target, Opener opener) override {
        wall_->check(source, Access::remove);
        wall_->check(target, Access::write);
        local_.MoveFile(source, target, opener);
    }
    bool FileExists(const std::string &filename, Opener opener) override {
        wall_->check(filename, Access::read);
        return local_.FileExists(filename, opener);
    }
    bool IsPipe(const std::string &filename, Opener opener) override {
        wall_->check(filename, Access::read);
        return local_.IsPipe(filename, opener);
    }
    void RemoveFile(const std::string &filename, Opener opener) override {
        if (wall_->check_removal(filename)) return;
        local_.RemoveFile(filename, opener);
    }
    bool TryRemoveFile(const std::string &filename, Opener opener) override {
        if (wall_->check_removal(filename)) return true;
        return local_.TryRemoveFile(filename, opener);
    }
    void RemoveFiles(const duckdb::vector<std::string> &filenames, Opener opener) override {
        for (const auto &filename : filenames) TryRemoveFile(filename, opener);
    }
    std::string CanonicalizePath(const std::string &path, Opener opener) override {
        // Touches the disk (links), so it would tell whether a foreign path exists.
        wall_->check(path, Access::read);
        return local_.CanonicalizePath(path, opener);
    }
    duckdb::vector<duckdb::OpenFileInfo> Glob(const std::string &path, duckdb::FileOpener *opener) override {
        check_pattern(path);
        auto found = local_.Glob(path, opener);
        drop_outsiders(found);
        return found;
    }

    // Handles come from the local file system and carry it, so these are only reached by a handle of another layer.
    void Read(duckdb::FileHandle &handle, void *buffer, int64_t bytes, duckdb::idx_t at) override {
        local_.Read(handle, buffer, bytes, at);
    }
    void Write(duckdb::FileHandle &handle, void *buffer, int64_t bytes, duckdb::idx_t at) override {
        local_.Write(handle, buffer, bytes, at);
    }
    int64_t Read(duckdb::FileHandle &handle, void *buffer, int64_t bytes) override {
        return local_.Read(handle, buffer, bytes);
    }
    int64_t Write(duckdb::FileHandle &handle, void *buffer, int64_t bytes) override {
        return local_.Write(handle, buffer, bytes);
    }
    bool Trim(duckdb::FileHandle &handle, duckdb::idx_t offset_bytes, duckdb::idx_t length_bytes) override {
        return local_.Trim(handle, offset_bytes, length_bytes);
    }
    int64_t GetFileSize(duckdb::FileHandle &handle) override { return local_.GetFileSize(handle); }
    duckdb::timestamp_t GetLastModifiedTime(duckdb::FileHandle &handle) override {
        return local_.GetLastModifiedTime(handle);
    }
    std::string GetVersionTag(duckdb::FileHandle &handle) override { return local_.GetVersionTag(handle); }
    duckdb::FileType GetFileType(duckdb::FileHandle &handle) override { return local_.GetFileType(handle); }
    duckdb::FileMetadata Stats(duckdb::FileHandle &handle) override { return local_.Stats(handle); }
    void Truncate(duckdb::FileHandle &handle, int64_t size) override { local_.Truncate(handle, size); }
    void FileSync(duckdb::FileHandle &handle) override { local_.FileSync(handle); }
    void Seek(duckdb::FileHandle &handle, duckdb::idx_t at) override { local_.Seek(handle, at); }
    duckdb::idx_t SeekPosition(duckdb::FileHandle &handle) override { return local_.SeekPosition(handle); }
    bool OnDiskFile(duckdb::FileHandle &handle) override { return local_.OnDiskFile(handle); }
    bool CanSeek() override { return true; }
    bool IsPathAbsolute(const std::string &path) override { return local_.IsPathAbsolute(path); }
    bool CanHandleFile(const std::string &) override { return false; }
    // Otherwise DuckDB makes a second local file system, without a wall, for what it thinks of as its own files.
    bool IsLocalFileSystem() const override { return true; }
    std::string GetName() const override { return "LocalFileSystem"; }

protected:
    bool SupportsOpenFileExtended() const override { return true; }
    duckdb::unique_ptr<duckdb::FileHandle> OpenFileExtended(const duckdb::OpenFileInfo &file,
                                                            duckdb::FileOpenFlags flags, Opener opener) override {
        wall_->check_open(file, access_of(flags));
        return static_cast<duckdb::FileSystem &>(local_).OpenFile(file, flags, opener);
    }
    bool SupportsListFilesExtended() const override { return true; }
    bool ListFilesExtended(const std::string &directory, const std::function<void(duckdb::OpenFileInfo &)> &callback,
                           Opener opener) override {
        wall_->check(directory, Access::list);
        return static_cast<duckdb::FileSystem &>(local_).ListFiles(directory, callback, opener);
    }
    bool SupportsGlobExtended() const override { return true; }
    duckdb::unique_ptr<duckdb::MultiFileList> GlobFilesExtended(const std::string &path,
                                                                const duckdb::FileGlobInput &input,
                                                                Opener opener) override {
        check_pattern(path);
        auto list = static_cast<duckdb::FileSystem &>(local_).Glob(path, input, opener);
        duckdb::vector<duckdb::OpenFileInfo> found = list->GetAllFiles();
        drop_outsiders(found);
        return duckdb::make_uniq<duckdb::SimpleMultiFileList>(std::move(found));
    }

private:
    static Access access_of(const duckdb::FileOpenFlags &flags) {
        return flags.OpenForWriting() ? Access::write : Access::read;
    }
    // What a pattern matches below an allowed directory may lead out of it, through a link.
    void drop_outsiders(duckdb::vector<duckdb::OpenFileInfo> &found) const {
        std::erase_if(found, [this](const auto &file) { return !wall_->allows(file.path, Access::read); });
    }
    void check_pattern(const std::string &pattern) const {
        if (stands(Wall::files) && has_parent_component(pattern))
            refuse(pattern, "files.parent", "a path may not hold '..'");
        wall_->check(fixed_part(pattern), Access::list);
    }

    std::shared_ptr<FileWall> wall_;
    duckdb::LocalFileSystem local_;
};

}  // namespace

bool has_scheme(std::string_view path) {
    const size_t colon = path.find("://");
    return colon != std::string_view::npos && colon > 0 && path.find('/') > colon;
}

FileWall::FileWall(FileWallOptions options)
    : options_(std::move(options)),
      data_prefix_(has_scheme(options_.data_dir) ? options_.data_dir : std::string()),
      data_real_(data_prefix_.empty() ? real_path(options_.data_dir) : std::string()),
      spill_real_(real_path(options_.spill_dir)),
      staging_real_(options_.staging_dir.empty() ? std::string() : real_path(options_.staging_dir)) {}

std::optional<FileWall::Refusal> FileWall::judge_object(const std::string &path, Access access) const {
    if (data_prefix_.empty() || !path.starts_with(data_prefix_)) {
        return Refusal{"files.outside_lake", "it is outside the lake"};
    }
    std::string_view key = std::string_view(path).substr(data_prefix_.size());
    // A listing starts from the prefix, or from a folder below it.
    if (access == Access::list && key.ends_with('/')) key.remove_suffix(1);
    if (access == Access::list && key.empty()) return std::nullopt;
    if (!is_plain_key(key)) return Refusal{"files.key", "it is not the plain key of an object"};
    return std::nullopt;
}

bool FileWall::is_data(const std::string &path) const {
    return data_prefix_.empty() ? is_within(real_path(path), data_real_) : path.starts_with(data_prefix_);
}

std::optional<FileWall::Refusal> FileWall::judge(const std::string &path, Access access) const {
    if (!stands(Wall::files)) return std::nullopt;
    // Nothing of an instance's set-up is in a store.
    if (has_scheme(path)) return judge_object(path, access);
    if (!sealed_.load(std::memory_order_acquire)) return std::nullopt;
    if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos) {
        return Refusal{"files.absolute", "only absolute local paths exist here"};
    }
    if (has_parent_component(path)) return Refusal{"files.parent", "a path may not hold '..'"};
    const std::string real = real_path(path);
    if (is_within(real, data_real_) || is_within(real, spill_real_)) return std::nullopt;
    if (is_within(real, staging_real_)) {
        if (access == Access::read || access == Access::list) return std::nullopt;
        return Refusal{"files.staging", "uploaded files are read only"};
    }
    return Refusal{"files.outside_lake", "it is outside the lake"};
}

void FileWall::check(const std::string &path, Access access) const {
    if (const auto refusal = judge(path, access)) refuse(path, refusal->rule, refusal->why);
}

void FileWall::check_open(const duckdb::OpenFileInfo &file, Access access) const {
    check(file.path, access);
    // Internal statements are roost's own.
    const bool by_tenants = sealed_.load(std::memory_order_acquire) && options_.staging_dir.empty();
    if (access != Access::read || !by_tenants || !stands(Wall::files) || !is_data(file.path)) return;
    const auto &info = file.extended_info;
    if (info && info->options.find("file_size") != info->options.end()) return;
    refuse(file.path, "files.not_of_a_table", "no table was read that it belongs to");
}

bool FileWall::check_removal(const std::string &path) const {
    check(path, Access::remove);
    if (!sealed_.load(std::memory_order_acquire) || commits_.load() == 0) return false;
    if (!is_data(path)) return false;
    if (options_.on_deferred_removal) options_.on_deferred_removal(path);
    return true;
}

duckdb::unique_ptr<duckdb::FileSystem> make_walled_file_system(std::shared_ptr<FileWall> wall) {
    return duckdb::make_uniq<WalledFileSystem>(std::move(wall));
}

}  // namespace roost
