// The wall around a whole process: from then on the kernel (Landlock) lets it open only the files and dial only the
// ports that are named here, whatever code runs in it. The last wall behind the guard, the engine's own walls and its
// filesystem: each is assumed to fail. It can't be taken down again, and child processes inherit it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace roost::app {

struct ProcessWallOptions {
    // Folders (with all below them) and files. A path that is not there is left out: nothing can be opened under it
    // later either.
    std::vector<std::string> read_only;
    std::vector<std::string> read_write;
    // TCP ports that may be dialled, on any host. Listening on TCP is never allowed.
    std::vector<uint16_t> connect_ports;
};

// What the kernel offered. `files`: ABI 1 (Linux 5.13), `ports`: ABI 4 (6.7), `signals`: no signals and no abstract
// sockets to other processes, ABI 6 (6.12).
struct ProcessWall {
    int abi = 0;
    bool files = false, ports = false, signals = false;
};

// Raises the wall around the calling thread and all that it starts later. REQUIRES: there is no other thread yet.
// A kernel without Landlock is no error: the answer says what stands. Errors: io_error (the kernel refused).
Result<ProcessWall> raise_process_wall(const ProcessWallOptions &options);

}  // namespace roost::app
