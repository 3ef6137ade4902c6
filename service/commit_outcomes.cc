#include "service/commit_outcomes.h"

#include <algorithm>

#include "service/core.h"

namespace roost::service {

namespace {

constexpr int64_t kAskAgainMs = 500;

}  // namespace

void CommitOutcomes::note_join(const Uuid &node) {
    joins_[node]++;
    expected_.erase(node);
    changed_.notify();
}

uint64_t CommitOutcomes::joins(const Uuid &node) const {
    const auto found = joins_.find(node);
    return found == joins_.end() ? 0 : found->second;
}

bool CommitOutcomes::is_over(const UnsettledCommit &commit) const {
    return commit.node.is_nil() ? expected_.empty() : joins(commit.node) > commit.joins;
}

net::Task<Result<std::optional<uint64_t>>> CommitOutcomes::look_up(Core &core, const LakeLocation &lake, Uuid statement,
                                                                   int64_t wait_ms, bool has_lease) {
    std::shared_ptr<WriteLease> lease;
    if (!has_lease && !lake.on_postgres) {
        auto leased = co_await core.leases->acquire(lake.catalog, std::max<int64_t>(wait_ms, 1), changed_, Status());
        if (!leased.ok()) co_return leased.status();
        lease = std::move(*leased);
    }
    auto found = co_await core.blocking([find = find_, lake, statement] { return find(lake, statement); });
    // Whoever has read before may not write any more.
    if (found.ok() && !found->has_value() && !lake.on_postgres) core.leases->count_commit(lake.catalog);
    co_return found;
}

net::Task<CommitOutcome> CommitOutcomes::learn(Core &core, UnsettledCommit commit, int64_t wait_ms, bool over,
                                               bool has_lease) {
    const auto lake = core.lakes.find(commit.catalog);
    if (lake == core.lakes.end()) {
        co_return CommitOutcome{CommitOutcome::Kind::unknown, 0,
                                Status(Code::not_found, "there is no catalog '" + commit.catalog + "' any more")};
    }
    const int64_t end_us = core.clock.monotonic_us() + wait_ms * 1000;
    for (;;) {
        // Asked before the look-up: what is over by then can't commit after it.
        over = over || is_over(commit);
        const int64_t wait_left_ms = std::max<int64_t>((end_us - core.clock.monotonic_us()) / 1000, kAskAgainMs);
        auto found = co_await look_up(core, lake->second, commit.statement, wait_left_ms, has_lease);
        if (found.ok() && found->has_value()) co_return CommitOutcome{CommitOutcome::Kind::committed, **found, {}};
        if (found.ok() && over) co_return CommitOutcome{CommitOutcome::Kind::not_committed, 0, {}};
        const int64_t left_ms = (end_us - core.clock.monotonic_us()) / 1000;
        if (left_ms <= 0) co_return CommitOutcome{CommitOutcome::Kind::unknown, 0, found.status()};
        co_await changed_.wait_for(std::chrono::milliseconds(std::min(left_ms, kAskAgainMs)));
    }
}

}  // namespace roost::service
