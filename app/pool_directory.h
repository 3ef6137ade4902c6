// The directory of one pool: what lies where, and the lock that lets one `roost up` use it at a time. Movable; the lock
// is held as long as the object lives. Not thread-safe. Made by `roost up`; the command line only uses the paths.
//
//   DIR/lock             locked while `roost up` runs; holds its process id
//   DIR/credentials      admin user, password and token     DIR/pgpass      the same for libpq
//   DIR/join-token       what nodes show to the gateway
//   DIR/ready.json       the ready file, there while the pool answers queries
//   DIR/run.json         of this run only: ports and process ids      DIR/gateway.sock   where its nodes join
//   DIR/log/             gateway.log, node-1.log …
//   DIR/lake/            data files and uploads            DIR/catalog/    the lake's catalog, apart from all secrets
//   DIR/nodes/N/         a node's own: identity, results, spill
#pragma once

#include <string>

#include "base/status.h"

namespace roost::app {

struct PoolPaths {
    std::string dir;  // absolute

    std::string lock() const { return dir + "/lock"; }
    std::string credentials() const { return dir + "/credentials"; }
    std::string passfile() const { return dir + "/pgpass"; }
    std::string join_token() const { return dir + "/join-token"; }
    std::string ready() const { return dir + "/ready.json"; }
    std::string run() const { return dir + "/run.json"; }
    std::string socket() const { return dir + "/gateway.sock"; }
    std::string log(const std::string &name) const { return dir + "/log/" + name + ".log"; }
    std::string node(unsigned index) const { return dir + "/nodes/" + std::to_string(index); }
};

// Absolute and without "." and ".."; the directory need not exist.
PoolPaths pool_paths(const std::string &dir);

class PoolDirectory {
public:
    // Makes the directory (mode 0700) if need be, locks it and removes what an earlier run left: run.json, ready.json,
    // gateway.sock. already_exists: it is there but was not made by roost. failed_precondition: another `roost up` uses
    // it.
    static Result<PoolDirectory> open(const std::string &dir);

    PoolDirectory(PoolDirectory &&other) noexcept;
    PoolDirectory &operator=(PoolDirectory &&) = delete;
    ~PoolDirectory();

    const PoolPaths &paths() const { return paths_; }

private:
    PoolDirectory(PoolPaths paths, int lock_fd) : paths_(std::move(paths)), lock_fd_(lock_fd) {}
    PoolPaths paths_;
    int lock_fd_;
};

}  // namespace roost::app
