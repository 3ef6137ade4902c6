// The cache's directory, as an interface: PosixDisk is the real one, tests put faults and crashes in its place. A Disk
// is one directory, opened by one process. Files are thread-safe: any number of reads and writes at once, of different
// places.
//
// Errors have a code by what the cache does about them:
//   resource_exhausted   no space (ENOSPC, EDQUOT): what is there can still be read
//   data_loss            the file ends before the range
//   not_found            no such file or directory
//   failed_precondition  another process has the directory
//   io_error             everything else
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace roost::cache {

class DiskFile {
public:
    virtual ~DiskFile() = default;
    // All of the range or an error.
    virtual Status read_at(uint64_t offset, char *buffer, size_t length) = 0;
    // The same of what the system has in memory, without asking the disk for anything; false: not all of it is there.
    // Only what this file was asked for by read_at, or was given by write_at, gets there: nothing is read ahead.
    virtual bool read_in_memory(uint64_t offset, char *buffer, size_t length) {
        (void)offset, (void)buffer, (void)length;
        return false;
    }
    virtual Status write_at(uint64_t offset, std::string_view bytes) = 0;
    // Gives the range back to the volume; it reads as zeros. Where the volume can't, nothing happens: `unimplemented`.
    virtual Status punch(uint64_t offset, uint64_t length) = 0;
    virtual Result<uint64_t> size_bytes() = 0;
};

class Disk {
public:
    virtual ~Disk() = default;
    // Makes the directory when its parent is there, and takes the lock that keeps other processes out until the Disk
    // goes. Called first, and again to come back after the directory was lost: earlier files are useless then.
    virtual Status mount() = 0;
    // A file for reading and writing; made when it is not there.
    virtual Result<std::unique_ptr<DiskFile>> open(const std::string &name) = 0;
    // Errors: not_found.
    virtual Result<std::string> read_whole(const std::string &name, size_t max_bytes) = 0;
    // The file has this content or its earlier one, whatever happens.
    virtual Status replace(const std::string &name, std::string_view content) = 0;
    // No error when there is none.
    virtual Status remove(const std::string &name) = 0;
    // Of the volume, for an ordinary user. Errors: not_found (the directory was removed, or another took its place).
    virtual Result<uint64_t> free_bytes() = 0;
    // Ok while the directory is still the one that mount() found, and can be written.
    virtual Status probe() = 0;
    virtual std::string description() const = 0;  // for people: the path
};

std::unique_ptr<Disk> make_posix_disk(std::string directory);

}  // namespace roost::cache
