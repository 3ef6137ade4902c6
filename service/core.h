// What the parts of the service share: the pool, the stores, the limits, and the statements that run now. Owned by
// GatewayService; loop thread only, except `blocking` and `parsing`, whose work runs on threads of their own.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/gateway_hub.h"
#include "lake/ducklake.h"
#include "lake/lake_location.h"
#include "meta/store.h"
#include "obs/log.h"
#include "obs/metrics.h"
#include "routing/member_health.h"
#include "routing/policy.h"
#include "routing/table_uses.h"
#include "routing/trace_recorder.h"
#include "routing/warm_units.h"
#include "service/access.h"
#include "service/audit.h"
#include "service/commit_outcomes.h"
#include "service/lake_mirrors.h"
#include "service/session.h"
#include "service/shape_memory.h"
#include "service/write_leases.h"
#include "sql/statement_cache.h"

namespace roost::service {

class RunStream;

struct ServiceLimits {
    int64_t statement_timeout_ms = 600'000;
    int64_t admission_wait_ms = 300'000;
    std::map<std::string, std::string> group_of_user;  // of the workload, by user's name; the others are in none
    int64_t idle_transaction_timeout_ms = 60'000;
    bool http_sessions = false;                                               // whether there are any
    int64_t session_idle_timeout_ms = 900'000, session_life_ms = 14'400'000;  // of HTTP sessions
    int64_t cancel_max_ms = 5'000;  // a node that does not end a cancelled statement in this time is not waited for
    // How long the client of a write waits to hear whether it was committed when its node is lost: as long as a node
    // may be away.
    int64_t outcome_wait_max_ms = 30'000;
    uint32_t conflict_retries_max = 5;  // of a statement that lost a race for the catalog
    int64_t heartbeat_ms = 5'000;       // of nodes
    std::string engine_version;         // that nodes must have; empty: any
    int64_t history_retention_ms = 7LL * 86'400'000;
    int64_t audit_retention_ms = 90LL * 86'400'000;
    uint64_t audit_max_rows = 1'000'000;  // the oldest go first
    uint32_t sql_text_max_bytes = 16 * 1024 * 1024;
    // Longer texts are parsed on a thread of their own. A kilobyte takes some 70 µs (sql/README.md), so the loop is
    // held up for half a millisecond at most; the trip to the thread costs a tenth of that.
    size_t parse_inline_max_bytes = 8 * 1024;
    size_t unsettled_max = 10'000;
    size_t stored_entries_max = 5'000;  // finished HTTP statements whose state is kept in memory
};

struct Core {
    Core(cluster::GatewayHub &h, meta::Store &m, std::unique_ptr<routing::Policy> p, obs::Metrics &mt, obs::Log &l,
         const Clock &c, net::asio::io_context &lp, ServiceLimits lim, CommitOutcomes::Find find = find_commit)
        : hub(h),
          meta(m),
          policy(std::move(p)),
          metrics(mt),
          log(l),
          clock(c),
          loop(lp),
          limits(lim),
          statements({}, sql::ParseLimits{.text_max_bytes = lim.sql_text_max_bytes}),
          leases(std::make_shared<WriteLeases>(lp.get_executor(), c)),
          outcomes(lp.get_executor(), std::move(find)),
          mirrors(mt, l),
          warm(policy->directory()),
          audit(c),
          ended(lp.get_executor()) {}

    cluster::GatewayHub &hub;
    meta::Store &meta;
    std::unique_ptr<routing::Policy> policy;
    obs::Metrics &metrics;
    obs::Log &log;
    const Clock &clock;
    net::asio::io_context &loop;
    const ServiceLimits limits;
    std::map<std::string, LakeLocation> lakes;  // by catalog name
    sql::StatementCache statements;             // texts parsed lately; thread-safe
    std::shared_ptr<WriteLeases> leases;
    CommitOutcomes outcomes;
    LakeMirrors mirrors;
    std::deque<UnsettledCommit> unsettled;  // nobody knows yet; GatewayService asks again when their nodes are back
    ShapeMemory shapes;
    routing::TableEpochs epochs;
    routing::WarmUnits warm;
    std::unique_ptr<routing::TraceRecorder> trace;  // null: none is wanted
    Access access;
    Audit audit;
    std::set<RunStream *> running;
    std::map<std::string, bool> looking;  // look_again() is under way; true: and once more after that
    net::Event ended;                     // a statement ended (for draining)
    bool draining = false;
    std::map<Uuid, routing::MemberHealth> health;  // of members that had trouble, by id; anew with each incarnation
    std::set<Uuid> drained;                        // by an operator
    // Last: they end before what their work uses.
    net::asio::thread_pool blocking_pool{1};
    net::asio::thread_pool parse_pool{2};

    routing::ClusterSnapshot snapshot() const;
    // Why a connected node gets no statements: "stopping", "drained", "incompatible", "silent", "failing"; empty: it
    // does. For a person in `why`. The last two are hints, past which a statement goes when there is no other node.
    struct Standing {
        std::string_view state;
        std::string why;
        bool hint = false;
    };
    Standing standing(const cluster::Member &member) const;
    // A statement ended at the node with this status.
    void note_health(const Uuid &node, const Status &status);
    // The statement has been sent to a member.
    void note_dispatched(routing::Decision &decision, const Uuid &node);
    // Its decision's end: what its node has of the tables now, unless it failed.
    void note_ended(routing::Decision &decision, const Uuid &node, const Completion &completion, bool ok);
    // CATALOG.SCHEMA.TABLE whose files are in this folder; empty: not known.
    std::string table_in(const std::string &folder) const;
    // Somebody has just changed the lake: the mirror, which routing goes by, is brought forward now and not at its next
    // turn.
    void look_again(const std::string &catalog);
    // A node's heartbeat, for what is warm there.
    void note_heartbeat(const cluster::Member &member);
    // A node that has come in the place of another one, with a cache of its own: that one does not come back.
    void note_join(const cluster::Member &member, std::map<Uuid, meta::Member> &known);
    // What a statement reads and writes, for a policy that goes by it; of the mirrors as they are.
    routing::FoundTables tables_of(const sql::Statement &statement, const StatementSettings &settings);
    // Of the oldest nobody will hear any more when there are too many.
    void remember_unsettled(UnsettledCommit commit);

    // Runs `work` on the blocking thread and resumes on the loop. The work may outlive a caller that is destroyed
    // meanwhile, but not the core: what else it uses must be its own.
    template <class F>
    net::Task<std::invoke_result_t<F>> blocking(F work) {
        return away(blocking_pool, std::move(work));
    }
    // The same on one of the parse threads.
    template <class F>
    net::Task<std::invoke_result_t<F>> parsing(F work) {
        return away(parse_pool, std::move(work));
    }

private:
    template <class F>
    static net::Task<std::invoke_result_t<F>> away(net::asio::thread_pool &pool, F work) {
        using T = std::invoke_result_t<F>;
        // Asio wants a result that can be made empty.
        std::optional<T> result = co_await net::asio::co_spawn(
            pool, [work = std::move(work)]() mutable -> net::Task<std::optional<T>> { co_return work(); },
            net::asio::use_awaitable);
        co_return std::move(*result);
    }
};

}  // namespace roost::service
