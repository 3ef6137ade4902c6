#include "service/write_leases.h"

#include <algorithm>

namespace roost::service {

WriteLease::WriteLease(std::shared_ptr<WriteLeases> leases, std::string catalog)
    : leases_(std::move(leases)), catalog_(std::move(catalog)) {}

WriteLease::~WriteLease() { leases_->release(catalog_); }

void WriteLeases::release(const std::string &catalog) {
    CatalogState &state = catalogs_[catalog];
    if (state.line.empty()) {
        state.held = false;
        return;
    }
    Waiter *next = state.line.front();
    state.line.pop_front();
    next->granted = true;  // held stays true: it passes from hand to hand
    next->changed->notify();
}

net::Task<Result<std::shared_ptr<WriteLease>>> WriteLeases::acquire(std::string catalog, int64_t wait_ms,
                                                                    net::Event &changed, const Status &cancelled) {
    const auto self = shared_from_this();
    CatalogState &state = catalogs_[catalog];
    if (!state.held) {
        state.held = true;
        co_return std::make_shared<WriteLease>(self, std::move(catalog));
    }
    Waiter waiter{false, &changed};
    // Leaves the line however the coroutine ends; a lease granted to a coroutine that is torn down goes to the next.
    struct InLine {
        WriteLeases &leases;
        const std::string &catalog;
        Waiter &waiter;
        bool taken = false;
        ~InLine() {
            std::erase(leases.catalogs_[catalog].line, &waiter);
            if (waiter.granted && !taken) leases.release(catalog);
        }
    };
    state.line.push_back(&waiter);
    InLine in_line{*self, catalog, waiter};
    const int64_t deadline_us = clock_.monotonic_us() + wait_ms * 1000;
    while (!waiter.granted) {
        if (!cancelled.ok()) co_return cancelled;
        const int64_t left_ms = (deadline_us - clock_.monotonic_us()) / 1000;
        if (left_ms <= 0) {
            co_return Status(Code::timeout, "the statement waited " + std::to_string(wait_ms) +
                                                " ms for its turn to write to catalog '" + catalog +
                                                "' and did not get it")
                .with_name("write_lease_timeout")
                .with_sqlstate("55P03")
                .with_hint("writes to a SQLite catalog run one at a time; look for a long or idle write transaction");
        }
        co_await changed.wait_for(std::chrono::milliseconds(left_ms));
    }
    in_line.taken = true;
    co_return std::make_shared<WriteLease>(self, catalog);
}

}  // namespace roost::service
