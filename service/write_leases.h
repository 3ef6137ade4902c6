// Leases by name, first come first served. A SQLite catalog takes one writer, and a transaction that has read can't
// turn writer after another's commit: so a writing statement leases the catalog before its first read, and gives it
// back when its transaction has ended. What changes rows of a Postgres catalog takes turns by table (write_turns.h).
// Also counts commits, by which a transaction that has read notices that it may not write any more. Loop thread only.
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
    WriteLease(std::shared_ptr<WriteLeases> leases, std::string name);
    ~WriteLease();
    WriteLease(const WriteLease &) = delete;
    WriteLease &operator=(const WriteLease &) = delete;

private:
    std::shared_ptr<WriteLeases> leases_;
    std::string name_;
};

class WriteLeases : public std::enable_shared_from_this<WriteLeases> {
public:
    WriteLeases(net::asio::any_io_executor executor, const Clock &clock)
        : executor_(std::move(executor)), clock_(clock) {}

    // Waits for the lease at most `wait_ms`. `cancelled` is looked at whenever `changed` is notified; once it is not ok
    // the wait ends with it. Errors: timeout (write_lease_timeout, 55P03).
    net::Task<Result<std::shared_ptr<WriteLease>>> acquire(std::string name, int64_t wait_ms, net::Event &changed,
                                                           const Status &cancelled);
    // Commits on this catalog through this gateway so far.
    uint64_t commits(const std::string &catalog) { return commits_[catalog]; }
    void count_commit(const std::string &catalog) { commits_[catalog]++; }
    size_t waiting(const std::string &name) { return is_held(name) ? names_[name].line.size() : 0; }
    bool is_held(const std::string &name) const { return names_.contains(name); }

private:
    friend class WriteLease;
    struct Waiter {
        bool granted = false;
        net::Event *changed = nullptr;
    };
    struct Held {
        std::deque<Waiter *> line;
    };
    void release(const std::string &name);

    net::asio::any_io_executor executor_;
    const Clock &clock_;
    std::map<std::string, Held> names_;        // that somebody has; it passes from hand to hand
    std::map<std::string, uint64_t> commits_;  // by catalog
};

}  // namespace roost::service
