#include "app/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/ids.h"

namespace roost::app {
namespace {

// Owns a descriptor for the length of a function.
class Descriptor {
public:
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const { return fd_; }

private:
    int fd_;
};

Status write_all(int fd, std::string_view content, const std::string &path) {
    while (!content.empty()) {
        const ssize_t n = ::write(fd, content.data(), content.size());
        if (n < 0) {
            if (errno == EINTR) continue;
            return errno_status("write", path, errno);
        }
        content.remove_prefix(static_cast<size_t>(n));
    }
    return {};
}

}  // namespace

Status errno_status(std::string_view what, const std::string &path, int error) {
    const Code code = error == ENOENT                                       ? Code::not_found
                      : error == EACCES || error == EPERM || error == EROFS ? Code::permission_denied
                      : error == EEXIST                                     ? Code::already_exists
                                                                            : Code::io_error;
    return Status(code, "could not " + std::string(what) + " " + path + ": " + std::generic_category().message(error));
}

Result<std::string> read_file(const std::string &path, size_t max_bytes) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return errno_status("open", path, errno);
    std::string content;
    char buffer[16 * 1024];
    for (;;) {
        const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
        if (n < 0) {
            if (errno == EINTR) continue;
            return errno_status("read", path, errno);
        }
        if (n == 0) return content;
        content.append(buffer, static_cast<size_t>(n));
        if (content.size() > max_bytes) {
            return Status(Code::invalid_argument, path + " is larger than " + std::to_string(max_bytes) + " bytes");
        }
    }
}

Status write_file_atomically(const std::string &path, std::string_view content, mode_t mode) {
    const std::string temporary = path + ".new-" + random_hex(4);
    {
        const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
        if (file.get() < 0) return errno_status("write", path, errno);
        Status written =
            ::fchmod(file.get(), mode) == 0 ? write_all(file.get(), content, path) : errno_status("write", path, errno);
        if (written.ok() && ::fsync(file.get()) != 0) written = errno_status("write", path, errno);
        if (!written.ok()) {
            ::unlink(temporary.c_str());
            return written;
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        Status failed = errno_status("write", path, errno);
        ::unlink(temporary.c_str());
        return failed;
    }
    return {};
}

Status make_directory(const std::string &path, mode_t mode) {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    std::error_code failed;
    if (!parent.empty()) std::filesystem::create_directories(parent, failed);
    if (failed) return errno_status("make the directory", parent.string(), failed.value());
    if (::mkdir(path.c_str(), mode) == 0) {
        if (::chmod(path.c_str(), mode) != 0) return errno_status("set the mode of", path, errno);
        return {};
    }
    if (errno != EEXIST) return errno_status("make the directory", path, errno);
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return errno_status("look at", path, errno);
    if (!S_ISDIR(info.st_mode)) return Status(Code::already_exists, path + " exists and is not a directory");
    return {};
}

std::string last_lines(const std::string &path, size_t max_lines, off_t from) {
    constexpr off_t kMostBytes = 64 * 1024;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return {};
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    // A file that shrank was rotated: all of it is new.
    if (from > size) from = 0;
    const off_t begin = std::max(from, size - kMostBytes);
    std::string text(static_cast<size_t>(std::max<off_t>(size - begin, 0)), '\0');
    const ssize_t n = ::pread(file.get(), text.data(), text.size(), begin);
    text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    size_t start = text.size();
    for (size_t lines = 0; lines < max_lines && start != std::string::npos && start != 0; ++lines) {
        start = text.rfind('\n', start - 1);
    }
    if (start == std::string::npos || text.empty()) return text;
    return start < text.size() && text[start] == '\n' ? text.substr(start + 1) : text.substr(start);
}

off_t file_size(const std::string &path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

}  // namespace roost::app
