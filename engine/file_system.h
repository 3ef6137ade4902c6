// The file layer of a DuckDB instance: the local file system behind a wall. Before seal() everything passes (instance
// set-up: extensions, control groups, the lake's catalog); after it only
//   the lake's data directory   read, write, list, create and remove below it
//   the instance's spill directory   the same
//   the staging directory       read and list, only where the options name one
//   folders of others' files    read, a file at a time: as a data file that the catalog names, in the version that was
//                               registered (engine/pinned_file.h); an internal instance reads and lists them freely.
//                               Nothing is written there, and what DuckDB removes there stays
// and everything else is refused with a PermissionException that names the rule. Paths are judged by where they really
// lead: a `..` component is refused, symbolic links are resolved. A lake whose data is in an object store has
// s3://BUCKET/PREFIX/ in place of the directory: below it exact keys of plain characters are let through, nothing else
// that has a scheme ever is. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "duckdb/common/local_file_system.hpp"
#include "lake/file_pins.h"

namespace roost {

struct FileWallOptions {
    struct DataDir {
        std::string catalog;
        std::string path;  // or s3://BUCKET/PREFIX/
    };
    std::vector<DataDir> data_dirs;
    std::string spill_dir;
    std::string staging_dir;            // empty: no access
    std::vector<std::string> external;  // folders of others' files, as of LakeLocation
    // The version in which a data file below `external` was registered; nothing: it was not, by roost.
    std::function<Result<std::optional<FileVersion>>(const DataFileKey &file)> pin_of;
    // Told of each file below a data directory whose removal was put off, see DeferRemovals.
    std::function<void(const std::string &catalog, const std::string &path)> on_deferred_removal;
};

// State shared by the file system (owned by DuckDB) and the instance that made it.
class FileWall {
public:
    explicit FileWall(FileWallOptions options);

    void seal() { sealed_.store(true, std::memory_order_release); }

    // While at least one is alive, files below the data directories are kept when DuckDB removes them. DuckLake removes
    // the new files of a commit on any exception, though the commit may have reached the catalog: whoever cleans up
    // later looks there first.
    class DeferRemovals {
    public:
        explicit DeferRemovals(FileWall &wall) : wall_(wall) { wall_.commits_.fetch_add(1); }
        ~DeferRemovals() { wall_.commits_.fetch_sub(1); }
        DeferRemovals(const DeferRemovals &) = delete;
        DeferRemovals &operator=(const DeferRemovals &) = delete;

    private:
        FileWall &wall_;
    };

    enum class Access : uint8_t { read, list, write, remove };
    // Throws duckdb::PermissionException when `path` may not be used that way.
    void check(const std::string &path, Access access) const;
    bool allows(const std::string &path, Access access) const { return !judge(path, access); }
    // As check(), for a file that is about to be opened. One of the lake's data can be read only as a file that
    // DuckLake names: with what its catalog says of it (no SQL can say that), and not as somebody's path.
    // A version comes back for a file of others: what is opened must be that.
    std::optional<FileVersion> check_open(const duckdb::OpenFileInfo &file, Access access) const;
    // As check(remove). True: leave the file, its removal was put off.
    bool check_removal(const std::string &path) const;

    bool has_external() const { return !options_.external.empty(); }
    // Below one of the folders of others.
    bool is_external(const std::string &path) const;
    // For an internal instance: from now on these files must be of these versions when they are opened. Called by one
    // thread while no other opens files.
    void expect(const std::vector<FilePin> &pins);

private:
    struct Refusal {
        const char *rule;
        const char *why;
    };
    std::optional<Refusal> judge(const std::string &path, Access access) const;
    std::optional<Refusal> judge_object(const std::string &path, Access access) const;
    std::optional<Refusal> judge_external(Access access) const;
    bool by_tenants() const { return sealed_.load(std::memory_order_acquire) && options_.staging_dir.empty(); }
    std::optional<FileVersion> check_external(const duckdb::OpenFileInfo &file) const;
    // Where the catalog of a lake keeps its data.
    struct Data {
        std::string catalog;
        std::string prefix;  // of an object store, with its slash; empty: data is in a directory
        std::string real;    // links resolved, no slash at the end
    };
    // The lake that `path` is data of; null: none.
    const Data *data_of(const std::string &path) const;

    const FileWallOptions options_;
    std::vector<Data> data_;  // constant
    const std::string spill_real_;
    const std::string staging_real_;
    std::vector<std::string> external_prefixes_;  // of object stores, with their slashes
    std::vector<std::string> external_real_;      // directories, as data_real_
    std::unordered_map<std::string, FileVersion> expected_;
    std::atomic<bool> sealed_{false};
    std::atomic<int> commits_{0};
};

// `path` names a place in some store: it has a scheme.
bool has_scheme(std::string_view path);

// The file system to put below DuckDB's VirtualFileSystem.
duckdb::unique_ptr<duckdb::FileSystem> make_walled_file_system(std::shared_ptr<FileWall> wall);

}  // namespace roost
