// What became of a write whose answer was lost. The catalog says whether it is committed: the statement's id is in the
// commit. That it will not be committed later is known once its node has said hello again: a node rolls back what came
// over an earlier link before it does (cluster/node_agent.h), and a new process of it can't begin before the old one
// has ended (it locks the node's directory). Loop thread only, but for the look-up, which runs on the blocking thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "lake/lake_location.h"
#include "net/async.h"

namespace roost::service {

struct Core;

// A write that may or may not have been committed.
struct UnsettledCommit {
    Uuid statement;  // whose id the commit bears
    std::string catalog;
    Uuid node;           // nil: any of those that were known when the gateway began
    uint64_t joins = 0;  // of that node when the statement was sent to it
};

struct CommitOutcome {
    enum class Kind : uint8_t { committed, not_committed, unknown } kind = Kind::unknown;
    uint64_t snapshot = 0;  // committed: the snapshot it made
    Status why;             // unknown: what the catalog said, ok when only the node is missing
};

class CommitOutcomes {
public:
    // The snapshot a statement made, or nothing. Blocking.
    using Find = std::function<Result<std::optional<uint64_t>>(const LakeLocation &, const Uuid &)>;

    CommitOutcomes(net::asio::any_io_executor executor, Find find) : changed_(std::move(executor)), find_(find) {}

    // The nodes that may still be busy with an earlier gateway's statements.
    void expect(std::set<Uuid> nodes) { expected_ = std::move(nodes); }
    // A node said hello.
    void note_join(const Uuid &node);
    uint64_t joins(const Uuid &node) const;

    // Asks until it is known, `wait_ms` at most. `over`: the node itself says that the statement has ended there.
    // `has_lease`: the caller holds the catalog's write lease. Others wait for it: a look-up in SQLite that finds
    // nothing writes (lake/ducklake_sqlite.h), which would end the transaction of a writer under way.
    net::Task<CommitOutcome> learn(Core &core, UnsettledCommit commit, int64_t wait_ms, bool over, bool has_lease);

private:
    net::Task<Result<std::optional<uint64_t>>> look_up(Core &core, const LakeLocation &lake, Uuid statement,
                                                       int64_t wait_ms, bool has_lease);
    bool is_over(const UnsettledCommit &commit) const;

    net::Event changed_;
    const Find find_;
    std::map<Uuid, uint64_t> joins_;
    std::set<Uuid> expected_;  // of those, the ones that have not said hello
};

}  // namespace roost::service
