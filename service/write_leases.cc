#include "service/write_leases.h"

#include <algorithm>

namespace roost::service {

WriteLease::WriteLease(std::shared_ptr<WriteLeases> leases, std::string name)
    : leases_(std::move(leases)), name_(std::move(name)) {}

WriteLease::~WriteLease() { leases_->release(name_); }

void WriteLeases::release(const std::string &name) {
    const auto held = names_.find(name);
    if (held == names_.end()) return;
    auto &line = held->second.line;
    if (line.empty()) {
        names_.erase(held);
        return;
    }
    Waiter *next = line.front();
    line.pop_front();
    next->granted = true;
    next->changed->notify();
}

net::Task<Result<std::shared_ptr<WriteLease>>> WriteLeases::acquire(std::string name, int64_t wait_ms,
                                                                    net::Event &changed, const Status &cancelled) {
    const auto self = shared_from_this();
    if (names_.try_emplace(name).second) co_return std::make_shared<WriteLease>(self, std::move(name));
    Waiter waiter{false, &changed};
    // Leaves the line however the coroutine ends; a lease granted to a coroutine that is torn down goes to the next.
    struct InLine {
        WriteLeases &leases;
        const std::string &name;
        Waiter &waiter;
        bool taken = false;
        ~InLine() {
            const auto held = leases.names_.find(name);
            if (held != leases.names_.end()) std::erase(held->second.line, &waiter);
            if (waiter.granted && !taken) leases.release(name);
        }
    };
    names_[name].line.push_back(&waiter);
    InLine in_line{*self, name, waiter};
    const int64_t deadline_us = clock_.monotonic_us() + wait_ms * 1000;
    while (!waiter.granted) {
        if (!cancelled.ok()) co_return cancelled;
        const int64_t left_ms = (deadline_us - clock_.monotonic_us()) / 1000;
        if (left_ms <= 0) {
            co_return Status(Code::timeout, "the statement waited " + std::to_string(wait_ms) +
                                                " ms for its turn to write to '" + name + "' and did not get it")
                .with_name("write_lease_timeout")
                .with_sqlstate("55P03")
                .with_hint(
                    "writes to a SQLite catalog, and changes of one table that lost a race, run one at a time; "
                    "look for a long or idle write transaction");
        }
        co_await changed.wait_for(std::chrono::milliseconds(left_ms));
    }
    in_line.taken = true;
    co_return std::make_shared<WriteLease>(self, name);
}

}  // namespace roost::service
