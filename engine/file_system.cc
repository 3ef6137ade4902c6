#include "engine/file_system.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/wall.h"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/multi_file/multi_file_list.hpp"
#include "engine/object_key.h"
#include "engine/pinned_file.h"

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
        const auto version = wall_->check_open(duckdb::OpenFileInfo(path), access_of(flags));
        if (version) return open_pinned(path, flags, opener, *version);
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

    // Handles come from the local file system and carry it, so these are reached by those of pinned files only.
    void Read(duckdb::FileHandle &handle, void *buffer, int64_t bytes, duckdb::idx_t at) override {
        local_.Read(local_of(handle), buffer, bytes, at);
        check_version(handle);
    }
    int64_t Read(duckdb::FileHandle &handle, void *buffer, int64_t bytes) override {
        const int64_t read = local_.Read(local_of(handle), buffer, bytes);
        check_version(handle);
        return read;
    }
    void Write(duckdb::FileHandle &handle, void *buffer, int64_t bytes, duckdb::idx_t at) override {
        local_.Write(local_of(handle), buffer, bytes, at);
    }
    int64_t Write(duckdb::FileHandle &handle, void *buffer, int64_t bytes) override {
        return local_.Write(local_of(handle), buffer, bytes);
    }
    bool Trim(duckdb::FileHandle &handle, duckdb::idx_t offset_bytes, duckdb::idx_t length_bytes) override {
        return local_.Trim(local_of(handle), offset_bytes, length_bytes);
    }
    int64_t GetFileSize(duckdb::FileHandle &handle) override { return local_.GetFileSize(local_of(handle)); }
    duckdb::timestamp_t GetLastModifiedTime(duckdb::FileHandle &handle) override {
        return local_.GetLastModifiedTime(local_of(handle));
    }
    // Of a pinned file the time to the nanosecond: what is cached of it is told apart by this.
    std::string GetVersionTag(duckdb::FileHandle &handle) override {
        if (const auto *pinned = dynamic_cast<PinnedHandle *>(&handle)) return tag_of(pinned->version);
        return local_.GetVersionTag(handle);
    }
    duckdb::FileType GetFileType(duckdb::FileHandle &handle) override { return local_.GetFileType(local_of(handle)); }
    duckdb::FileMetadata Stats(duckdb::FileHandle &handle) override { return local_.Stats(local_of(handle)); }
    void Truncate(duckdb::FileHandle &handle, int64_t size) override { local_.Truncate(local_of(handle), size); }
    void FileSync(duckdb::FileHandle &handle) override { local_.FileSync(local_of(handle)); }
    void Seek(duckdb::FileHandle &handle, duckdb::idx_t at) override { local_.Seek(local_of(handle), at); }
    duckdb::idx_t SeekPosition(duckdb::FileHandle &handle) override { return local_.SeekPosition(local_of(handle)); }
    bool OnDiskFile(duckdb::FileHandle &handle) override { return local_.OnDiskFile(local_of(handle)); }
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
        const auto version = wall_->check_open(file, access_of(flags));
        if (version) return open_pinned(file.path, flags, opener, *version);
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
    // An open file of others. Whoever writes it meanwhile changes its time, which is looked at after each read.
    class PinnedHandle final : public duckdb::FileHandle {
    public:
        PinnedHandle(WalledFileSystem &files, duckdb::unique_ptr<duckdb::FileHandle> opened, FileVersion registered)
            : FileHandle(files, opened->GetPath(), opened->GetFlags()),
              local(std::move(opened)),
              version(std::move(registered)) {}
        void Close() override { local->Close(); }

        const duckdb::unique_ptr<duckdb::FileHandle> local;
        const FileVersion version;
    };

    static duckdb::FileHandle &local_of(duckdb::FileHandle &handle) {
        auto *pinned = dynamic_cast<PinnedHandle *>(&handle);
        return pinned ? *pinned->local : handle;
    }
    static void check_version(duckdb::FileHandle &handle) {
        if (const auto *pinned = dynamic_cast<PinnedHandle *>(&handle)) {
            check_pinned(handle.GetPath(), pinned->version, version_on_disk(handle.GetPath()));
        }
    }
    duckdb::unique_ptr<duckdb::FileHandle> open_pinned(const std::string &path, duckdb::FileOpenFlags flags,
                                                       Opener opener, const FileVersion &version) {
        check_pinned(path, version, version_on_disk(path));
        auto handle = duckdb::make_uniq<PinnedHandle>(*this, local_.OpenFile(path, flags, opener), version);
        check_version(*handle);  // of what was opened, or of what has taken its place since: then it is refused
        return handle;
    }
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
      spill_real_(real_path(options_.spill_dir)),
      staging_real_(options_.staging_dir.empty() ? std::string() : real_path(options_.staging_dir)) {
    for (const auto &[catalog, path] : options_.data_dirs) {
        const bool in_store = has_scheme(path);
        data_.push_back({catalog, in_store ? path : std::string(), in_store ? std::string() : real_path(path)});
    }
    for (const std::string &folder : options_.external) {
        if (has_scheme(folder)) {
            external_prefixes_.push_back(folder);
        } else if (std::string real = real_path(folder); !real.empty()) {
            external_real_.push_back(std::move(real));
        }
    }
}

bool FileWall::is_external(const std::string &path) const {
    if (!has_external() || has_parent_component(path)) return false;
    if (has_scheme(path)) {
        return std::ranges::any_of(external_prefixes_, [&](const auto &prefix) { return path.starts_with(prefix); });
    }
    if (external_real_.empty()) return false;
    const std::string real = real_path(path);
    return std::ranges::any_of(external_real_, [&](const auto &folder) { return is_within(real, folder); });
}

void FileWall::expect(const std::vector<FilePin> &pins) {
    for (const FilePin &pin : pins) expected_.insert_or_assign(pin.path, pin.version);
}

std::optional<FileWall::Refusal> FileWall::judge_object(const std::string &path, Access access) const {
    std::string_view key = path;
    if (const Data *data = data_of(path)) {
        key.remove_prefix(data->prefix.size());
    } else {
        const auto prefix =
            std::ranges::find_if(external_prefixes_, [&](const auto &p) { return path.starts_with(p); });
        if (prefix == external_prefixes_.end()) return Refusal{"files.outside_lake", "it is outside the lake"};
        if (const auto refusal = judge_external(access)) return refusal;
        key.remove_prefix(prefix->size());
    }
    // A listing starts from the prefix, or from a folder below it.
    if (access == Access::list && key.ends_with('/')) key.remove_suffix(1);
    if (access == Access::list && key.empty()) return std::nullopt;
    if (!is_plain_key(key)) return Refusal{"files.key", "it is not the plain key of an object"};
    return std::nullopt;
}

const FileWall::Data *FileWall::data_of(const std::string &path) const {
    const bool in_store = has_scheme(path);
    const std::string real = in_store ? std::string() : real_path(path);
    const auto found = std::ranges::find_if(data_, [&](const Data &data) {
        return in_store ? !data.prefix.empty() && path.starts_with(data.prefix) : is_within(real, data.real);
    });
    return found == data_.end() ? nullptr : &*found;
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
    const auto holds = [&real](const Data &data) { return is_within(real, data.real); };
    if (std::ranges::any_of(data_, holds) || is_within(real, spill_real_)) return std::nullopt;
    if (is_within(real, staging_real_)) {
        if (access == Access::read || access == Access::list) return std::nullopt;
        return Refusal{"files.staging", "uploaded files are read only"};
    }
    if (std::ranges::any_of(external_real_, [&](const auto &folder) { return is_within(real, folder); })) {
        return judge_external(access);
    }
    return Refusal{"files.outside_lake", "it is outside the lake"};
}

// What any path says, without a file of a table behind it.
std::optional<FileWall::Refusal> FileWall::judge_external(Access access) const {
    if (access == Access::write || access == Access::remove) {
        return Refusal{"files.external", "it is somebody else's, and read only"};
    }
    if (by_tenants()) return Refusal{"files.not_of_a_table", "no table was read that it belongs to"};
    return std::nullopt;
}

void FileWall::check(const std::string &path, Access access) const {
    if (const auto refusal = judge(path, access)) refuse(path, refusal->rule, refusal->why);
}

std::optional<FileVersion> FileWall::check_open(const duckdb::OpenFileInfo &file, Access access) const {
    if (stands(Wall::files) && access == Access::read && is_external(file.path)) return check_external(file);
    check(file.path, access);
    // Internal statements are roost's own.
    if (access != Access::read || !by_tenants() || !stands(Wall::files) || !data_of(file.path)) return std::nullopt;
    const auto &info = file.extended_info;
    if (info && info->options.find("file_size") != info->options.end()) return std::nullopt;
    refuse(file.path, "files.not_of_a_table", "no table was read that it belongs to");
}

std::optional<FileVersion> FileWall::check_external(const duckdb::OpenFileInfo &file) const {
    if (!by_tenants()) {
        check(file.path, Access::read);
        const auto expected = expected_.find(file.path);
        return expected == expected_.end() ? std::nullopt : std::optional<FileVersion>(expected->second);
    }
    const auto key = data_file_key(file);
    if (!key) refuse(file.path, "files.not_of_a_table", "no table was read that it belongs to");
    auto version = options_.pin_of ? options_.pin_of(*key) : Result<std::optional<FileVersion>>(std::nullopt);
    if (!version.ok()) throw duckdb::IOException(version.status().message());
    if (!*version) {
        refuse(file.path, "files.not_pinned",
               "it was added to its table by another client, which notes no version of it; add it with roost import "
               "--in-place");
    }
    return *std::move(version);
}

bool FileWall::check_removal(const std::string &path) const {
    // DuckLake's clean-up goes by the paths that its catalog has. It is answered as if the file were gone.
    if (sealed_.load(std::memory_order_acquire) && is_external(path)) return true;
    check(path, Access::remove);
    if (!sealed_.load(std::memory_order_acquire) || commits_.load() == 0) return false;
    const Data *data = data_of(path);
    if (!data) return false;
    if (options_.on_deferred_removal) options_.on_deferred_removal(data->catalog, path);
    return true;
}

duckdb::unique_ptr<duckdb::FileSystem> make_walled_file_system(std::shared_ptr<FileWall> wall) {
    return duckdb::make_uniq<WalledFileSystem>(std::move(wall));
}

}  // namespace roost
