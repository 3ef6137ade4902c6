#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cache/disk.h"

namespace roost::cache {
namespace {

Status failed(int error, const std::string &what, const std::string &path) {
    Code code = Code::io_error;
    if (error == ENOSPC || error == EDQUOT) code = Code::resource_exhausted;
    if (error == ENOENT || error == ENOTDIR) code = Code::not_found;
    return Status(code, what + " " + path + ": " + strerror(error));
}

// A descriptor that closes itself.
class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor &operator=(Descriptor &&other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }

private:
    int fd_;
};

class PosixFile final : public DiskFile {
public:
    PosixFile(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {
        // Nothing is read ahead; where that can't be told, nothing may be taken from memory.
        can_peek_ = ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM) == 0;
    }

    Status read_at(uint64_t offset, char *buffer, size_t length) override {
        while (length > 0) {
            const ssize_t n = ::pread(fd_.get(), buffer, length, static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return failed(errno, "reading", path_);
            if (n == 0) return Status(Code::data_loss, "the end of " + path_ + " is missing");
            buffer += n;
            offset += static_cast<uint64_t>(n);
            length -= static_cast<size_t>(n);
        }
        return Status();
    }
    bool read_in_memory(uint64_t offset, char *buffer, size_t length) override {
        if (!can_peek_.load(std::memory_order_relaxed)) return false;
        iovec part{buffer, length};
        const ssize_t n = ::preadv2(fd_.get(), &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
        if (n < 0 && errno == EOPNOTSUPP) can_peek_.store(false, std::memory_order_relaxed);
        return n == static_cast<ssize_t>(length);
    }
    Status write_at(uint64_t offset, std::string_view bytes) override {
        while (!bytes.empty()) {
            const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return failed(errno, "writing", path_);
            if (n == 0) return Status(Code::io_error, "writing " + path_ + ": nothing was taken");
            bytes.remove_prefix(static_cast<size_t>(n));
            offset += static_cast<uint64_t>(n);
        }
        return Status();
    }
    Status punch(uint64_t offset, uint64_t length) override {
        if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                        static_cast<off_t>(length)) == 0) {
            return Status();
        }
        if (errno == EOPNOTSUPP) return Status(Code::unimplemented, path_ + ": the volume can't give a range back");
        return failed(errno, "shrinking", path_);
    }
    Result<uint64_t> size_bytes() override {
        struct stat info {};
        if (::fstat(fd_.get(), &info) != 0) return failed(errno, "looking at", path_);
        return static_cast<uint64_t>(info.st_size);
    }

private:
    Descriptor fd_;
    const std::string path_;
    std::atomic<bool> can_peek_{false};
};

class PosixDisk final : public Disk {
public:
    explicit PosixDisk(std::string directory) : directory_(std::move(directory)) {}

    Status mount() override {
        lock_ = Descriptor();
        directory_fd_ = Descriptor();
        if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) return failed(errno, "making", directory_);
        directory_fd_ = Descriptor(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!directory_fd_.valid()) return failed(errno, "opening", directory_);
        Descriptor lock(::openat(directory_fd_.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!lock.valid()) return failed(errno, "opening the lock in", directory_);
        if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK) return failed(errno, "locking", directory_);
            return Status(Code::failed_precondition, "another process uses the cache directory " + directory_)
                .with_hint("give each node a cache directory of its own");
        }
        lock_ = std::move(lock);
        return Status();
    }
    Result<std::unique_ptr<DiskFile>> open(const std::string &name) override {
        Descriptor fd(::openat(directory_fd_.get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!fd.valid()) return failed(errno, "opening", path(name));
        return std::unique_ptr<DiskFile>(std::make_unique<PosixFile>(std::move(fd), path(name)));
    }
    Result<std::string> read_whole(const std::string &name, size_t max_bytes) override {
        Descriptor fd(::openat(directory_fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        if (!fd.valid()) return failed(errno, "opening", path(name));
        PosixFile file(std::move(fd), path(name));
        ROOST_ASSIGN_OR_RETURN(const uint64_t size, file.size_bytes());
        if (size > max_bytes) return Status(Code::data_loss, path(name) + " is too large");
        std::string content(size, '\0');
        ROOST_RETURN_IF_ERROR(file.read_at(0, content.data(), content.size()));
        return content;
    }
    Status replace(const std::string &name, std::string_view content) override {
        const std::string temporary = name + ".new";
        Descriptor fd(::openat(directory_fd_.get(), temporary.c_str(),
                               O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!fd.valid()) return failed(errno, "opening", path(temporary));
        const int raw = fd.get();
        PosixFile file(std::move(fd), path(temporary));
        ROOST_RETURN_IF_ERROR(file.write_at(0, content));
        if (::fsync(raw) != 0) return failed(errno, "writing", path(temporary));
        if (::renameat(directory_fd_.get(), temporary.c_str(), directory_fd_.get(), name.c_str()) != 0) {
            return failed(errno, "renaming", path(temporary));
        }
        if (::fsync(directory_fd_.get()) != 0) return failed(errno, "writing", directory_);
        return Status();
    }
    Status remove(const std::string &name) override {
        if (::unlinkat(directory_fd_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return Status();
        return failed(errno, "removing", path(name));
    }
    Result<uint64_t> free_bytes() override {
        ROOST_RETURN_IF_ERROR(same_directory());
        struct statvfs info {};
        if (::fstatvfs(directory_fd_.get(), &info) != 0) return failed(errno, "looking at", directory_);
        return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    }
    Status probe() override {
        ROOST_RETURN_IF_ERROR(same_directory());
        Descriptor fd(::openat(directory_fd_.get(), "probe", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!fd.valid()) return failed(errno, "opening", path("probe"));
        return PosixFile(std::move(fd), path("probe")).write_at(0, std::string(4096, 'p'));
    }
    std::string description() const override { return directory_; }

private:
    std::string path(const std::string &name) const { return directory_ + "/" + name; }
    // Files that were removed can still be written, so that nothing else would tell.
    Status same_directory() const {
        struct stat now {
        }, opened{};
        if (::stat(directory_.c_str(), &now) != 0) return failed(errno, "looking at", directory_);
        if (!directory_fd_.valid() || ::fstat(directory_fd_.get(), &opened) != 0 || now.st_ino != opened.st_ino ||
            now.st_dev != opened.st_dev) {
            return Status(Code::not_found, directory_ + " is not the directory that was opened");
        }
        struct stat locked {};
        if (::fstatat(directory_fd_.get(), "lock", &locked, AT_SYMLINK_NOFOLLOW) != 0) {
            return failed(errno, "looking for the lock in", directory_);
        }
        return Status();
    }

    const std::string directory_;
    Descriptor directory_fd_;
    Descriptor lock_;
};

}  // namespace

std::unique_ptr<Disk> make_posix_disk(std::string directory) {
    return std::make_unique<PosixDisk>(std::move(directory));
}

}  // namespace roost::cache
