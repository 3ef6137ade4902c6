#include "obs/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace roost::obs {
namespace {

constexpr int kStderrWaitMs = 1000;
// A pipe that polls as writable takes this much without blocking.
constexpr size_t kPipeBytes = 4096;

}  // namespace

std::unique_ptr<LogFile> LogFile::open(const std::string &path, LogRotation rotation, std::string &problem) {
    auto file = std::unique_ptr<LogFile>(new LogFile());
    file->path_ = path;
    file->rotation_ = rotation;
    if (path.empty() || !file->open_file()) {
        problem = path.empty() ? "no path" : std::strerror(errno);
        return nullptr;
    }
    return file;
}

std::unique_ptr<LogFile> LogFile::on_stderr() {
    auto file = std::unique_ptr<LogFile>(new LogFile());
    file->fd_ = STDERR_FILENO;
    return file;
}

LogFile::~LogFile() {
    if (!path_.empty()) close_file();
}

bool LogFile::open_file() {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (fd_ < 0) return false;
    struct stat info {};
    if (fstat(fd_, &info) != 0) {
        close_file();
        return false;
    }
    device_ = info.st_dev;
    inode_ = info.st_ino;
    size_bytes_ = static_cast<uint64_t>(info.st_size);
    return true;
}

void LogFile::close_file() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

// logrotate, or another process with the same log, may have moved the file away.
void LogFile::follow_path() {
    struct stat info {};
    const bool same = fd_ >= 0 && stat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
    if (same) {
        size_bytes_ = static_cast<uint64_t>(info.st_size);
        return;
    }
    close_file();
    open_file();
}

void LogFile::rotate() {
    close_file();
    for (int i = rotation_.files - 1; i > 0; --i) {
        const std::string from = i == 1 ? path_ : path_ + "." + std::to_string(i - 1);
        // A name that isn't there yet, or can't be moved, costs an old file and not the new lines.
        std::rename(from.c_str(), (path_ + "." + std::to_string(i)).c_str());
    }
    open_file();
}

bool LogFile::append(std::string_view lines) {
    if (!path_.empty()) {
        follow_path();
        if (fd_ >= 0 && size_bytes_ > 0 && size_bytes_ + lines.size() > rotation_.file_max_bytes) rotate();
    }
    if (fd_ < 0) return false;
    const uint64_t wanted = lines.size();
    if (torn_ && write_all("\n") == 0) return false;
    const uint64_t written = write_all(lines);
    torn_ = written > 0 && written < wanted;
    return written == wanted;
}

uint64_t LogFile::write_all(std::string_view bytes) {
    const bool is_stderr = path_.empty();
    const size_t total = bytes.size();
    while (!bytes.empty()) {
        if (is_stderr) {
            pollfd ready{fd_, POLLOUT, 0};
            if (poll(&ready, 1, kStderrWaitMs) != 1 || (ready.revents & POLLOUT) == 0) break;
        }
        const size_t piece = is_stderr ? std::min(bytes.size(), kPipeBytes) : bytes.size();
        const ssize_t written = ::write(fd_, bytes.data(), piece);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) break;
        bytes.remove_prefix(static_cast<size_t>(written));
    }
    const uint64_t written = total - bytes.size();
    size_bytes_ += written;
    return written;
}

}  // namespace roost::obs
