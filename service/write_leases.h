// One writer a catalog: a SQLite catalog takes one, and a transaction that has read can't turn writer after another's
// commit. So a writing statement leases the writer before its first read, first come first served, and gives it back
// when its transaction has ended. Also counts commits, by which a transaction that has read notices that it may not
// write any more. Loop thread only.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/async.h"

namespace roost::service {

class WriteLeases;

// Held: this is the writer. Dropping it lets the next one in.
class WriteLease {
public:
    WriteLease(std::shared_ptr<WriteLeases> leases, std::string catalog);
    ~WriteLease();
    WriteLease(const WriteLease &) = delete;
    WriteLease &operator=(const WriteLease &) = delete;

private:
    std::shared_ptr<WriteLeases> leases_;
    std::string catalog_;
};

class WriteLeases : public std::enable_shared_from_this<WriteLeases> {
public:
    WriteLeases(net::asio::any_io_executor executor, const Clock &clock)
        : executor_(std::move(executor)), clock_(clock) {}

    // Waits for the lease at most `wait_ms`. `cancelled` is looked at whenever `changed` is notified; once it is not ok
    // the wait ends with it. Errors: timeout (write_lease_timeout, 55P03).
    net::Task<Result<std::shared_ptr<WriteLease>>> acquire(std::string catalog, int64_t wait_ms, net::Event &changed,
                                                           const Status &cancelled);
    // Commits on this catalog through this gateway so far.
    uint64_t commits(const std::string &catalog) { return catalogs_[catalog].commits; }
    void count_commit(const std::string &catalog) { catalogs_[catalog].commits++; }
    size_t waiting(const std::string &catalog) { return catalogs_[catalog].line.size(); }

private:
    friend class WriteLease;
    struct Waiter {
        bool granted = false;
        net::Event *changed = nullptr;
    };
    struct CatalogState {
        bool held = false;
        uint64_t commits = 0;
        std::deque<Waiter *> line;
    };
    void release(const std::string &catalog);

    net::asio::any_io_executor executor_;
    const Clock &clock_;
    std::map<std::string, CatalogState> catalogs_;
};

}  // namespace roost::service
