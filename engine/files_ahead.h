// The files that the scans of a statement will open, one after the other, so that those which come next are on their
// way while one is read: a table of many small files costs the store's latency once in a while instead of twice a file.
// Knows names and sizes only; who opens a file is told which to fetch (object_store.cc). Thread-safe. One a statement.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"

namespace duckdb {
class PhysicalOperator;
}

namespace roost {

class FilesAhead {
public:
    struct File {
        std::string path;
        uint64_t size_bytes = 0;
    };
    // One scan, in the order in which it opens its files. Past some thousands nothing more is noted.
    void will_read(std::vector<File> files);
    // This one is opened: those to fetch now. The first opened names one more, each further one twice as many as the
    // last, up to sixteen beyond it, so that a statement that stops early has fetched little. Each file is named once.
    std::vector<File> after(const std::string &path);

private:
    struct Scan {
        std::vector<File> files;
        size_t opened = 0;
        size_t named = 0;  // files before it have been named or opened
    };
    struct Place {
        size_t scan, file;
    };
    Mutex mutex_;
    std::vector<Scan> scans_ ROOST_GUARDED_BY(mutex_);
    std::unordered_map<std::string, Place> places_ ROOST_GUARDED_BY(mutex_);
};

// Notes the scans of lakes below `root`. Throws what the lake throws when it is asked for its files: not to be ignored,
// for its transaction has failed then.
void note_files(const duckdb::PhysicalOperator &root, FilesAhead &ahead);

}  // namespace roost
