// A file that arrives: written beside its place under a name of its own, moved there when it is whole. Blocking; used
// by one thread at a time (the front's file thread). What is not committed is removed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace roost::http {

class UploadFile {
public:
    // `path`: where the whole file is to be.
    explicit UploadFile(std::string path);
    ~UploadFile();
    UploadFile(const UploadFile &) = delete;
    UploadFile &operator=(const UploadFile &) = delete;

    // Opens at the first call, so that an empty file needs an append("") too.
    Status append(std::string_view bytes);
    // Moves it into place. Not synced: after a crash of the machine an import starts over.
    Status commit();
    uint64_t size_bytes() const { return size_bytes_; }

private:
    Status fail(const char *what) const;

    const std::string path_, part_path_;
    int fd_ = -1;
    uint64_t size_bytes_ = 0;
    bool committed_ = false;
};

}  // namespace roost::http
