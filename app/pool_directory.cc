#include "app/pool_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "app/files.h"

namespace roost::app {
namespace {

namespace fs = std::filesystem;

// A directory that exists is taken over only when it is empty or has our lock file: its mode is going to change.
Status check_is_ours(const PoolPaths &paths) {
    std::error_code failed;
    const fs::file_status status = fs::status(paths.dir, failed);
    if (status.type() == fs::file_type::not_found) return {};
    if (status.type() != fs::file_type::directory) {
        return Status(Code::already_exists, paths.dir + " exists and is not a directory")
            .with_hint("choose another --dir");
    }
    if (fs::exists(paths.lock(), failed)) return {};
    // Somebody may write down the catalogs before the first start.
    bool empty = true;
    for (const auto &entry : fs::directory_iterator(paths.dir, failed)) {
        empty = empty && entry.path().filename() == "catalogs.toml";
    }
    if (failed) return errno_status("read", paths.dir, failed.value());
    if (empty) return {};
    return Status(Code::already_exists, paths.dir + " has files in it that are not roost's")
        .with_hint("choose another --dir, a new or an empty one");
}

Result<int> take_lock(const PoolPaths &paths) {
    const int fd = ::open(paths.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return errno_status("open", paths.lock(), errno);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int error = errno;
        char text[32] = {};
        const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
        ::close(fd);
        if (error != EWOULDBLOCK) return errno_status("lock", paths.lock(), error);
        std::string holder(text, static_cast<size_t>(n > 0 ? n : 0));
        while (!holder.empty() && holder.back() == '\n') holder.pop_back();
        return Status(Code::failed_precondition, "another `roost up` (pid " + holder + ") already uses " + paths.dir)
            .with_hint("stop it with: kill " + holder + "; or choose another --dir");
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
        Status failed = errno_status("write", paths.lock(), errno);
        ::close(fd);
        return failed;
    }
    return fd;
}

// A run that was killed leaves these; they name processes and ports that are gone.
Status remove_stale(const PoolPaths &paths) {
    for (const std::string &path : {paths.ready(), paths.run(), paths.socket()}) {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_status("remove", path, errno);
    }
    for (const char *name : {"/log", "/nodes"}) ROOST_RETURN_IF_ERROR(make_directory(paths.dir + name));
    return {};
}

}  // namespace

PoolPaths pool_paths(const std::string &dir) {
    std::error_code failed;
    const fs::path absolute = fs::absolute(dir.empty() ? "." : dir, failed).lexically_normal();
    std::string text = failed ? dir : absolute.string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return PoolPaths{text};
}

Result<PoolDirectory> PoolDirectory::open(const std::string &dir) {
    PoolPaths paths = pool_paths(dir);
    ROOST_RETURN_IF_ERROR(check_is_ours(paths));
    ROOST_RETURN_IF_ERROR(make_directory(paths.dir));
    ROOST_ASSIGN_OR_RETURN(const int lock_fd, take_lock(paths));
    PoolDirectory out(std::move(paths), lock_fd);
    if (::chmod(out.paths_.dir.c_str(), 0700) != 0) return errno_status("set the mode of", out.paths_.dir, errno);
    ROOST_RETURN_IF_ERROR(remove_stale(out.paths_));
    return out;
}

PoolDirectory::PoolDirectory(PoolDirectory &&other) noexcept
    : paths_(std::move(other.paths_)), lock_fd_(std::exchange(other.lock_fd_, -1)) {}

PoolDirectory::~PoolDirectory() {
    if (lock_fd_ >= 0) ::close(lock_fd_);
}

}  // namespace roost::app
