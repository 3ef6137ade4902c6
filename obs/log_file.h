// The file behind a log: appends batches of whole lines, rotates, survives being moved away and a full disk.
// Used by one thread, the log's writer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace roost::obs {

struct LogRotation {
    uint64_t file_max_bytes = 64U << 20;
    int files = 3;  // at least 2: the one written and the older ones: PATH, PATH.1, PATH.2
};

class LogFile {
public:
    // Null and a reason in `problem` when the file can't be opened.
    static std::unique_ptr<LogFile> open(const std::string &path, LogRotation rotation, std::string &problem);
    // Never blocks for longer than a second: what a stuck reader of stderr doesn't take is lost.
    static std::unique_ptr<LogFile> on_stderr();
    ~LogFile();
    LogFile(const LogFile &) = delete;
    LogFile &operator=(const LogFile &) = delete;

    // False when not all of it could be written.
    bool append(std::string_view lines);

private:
    LogFile() = default;
    bool open_file();
    void close_file();
    void follow_path();
    void rotate();
    // As much as the file takes; says how much that was.
    uint64_t write_all(std::string_view bytes);

    std::string path_;  // empty: stderr
    LogRotation rotation_;
    int fd_ = -1;
    uint64_t size_bytes_ = 0;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    bool torn_ = false;  // the last write stopped inside a line
};

}  // namespace roost::obs
