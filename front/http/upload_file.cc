#include "front/http/upload_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/ids.h"

namespace roost::http {

UploadFile::UploadFile(std::string path) : path_(std::move(path)), part_path_(path_ + ".part-" + random_hex(8)) {}

UploadFile::~UploadFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (!committed_) ::unlink(part_path_.c_str());
}

Status UploadFile::append(std::string_view bytes) {
    if (fd_ < 0) fd_ = ::open(part_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0) return fail("create");
    while (!bytes.empty()) {
        const ssize_t written_bytes = ::write(fd_, bytes.data(), bytes.size());
        if (written_bytes < 0) {
            if (errno == EINTR) continue;
            return fail("write");
        }
        bytes.remove_prefix(static_cast<size_t>(written_bytes));
        size_bytes_ += static_cast<uint64_t>(written_bytes);
    }
    return {};
}

Status UploadFile::commit() {
    if (std::rename(part_path_.c_str(), path_.c_str()) != 0) return fail("name");
    committed_ = true;
    return {};
}

Status UploadFile::fail(const char *what) const {
    const int error = errno;
    const bool full = error == ENOSPC || error == EDQUOT;
    return Status(full ? Code::resource_exhausted : Code::io_error,
                  std::string("Can't ") + what + " the uploaded file: " + std::strerror(error) + ".")
        .with_name(full ? "disk_full" : "io_error");
}

}  // namespace roost::http
