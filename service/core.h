// What the parts of the service share: the pool, the stores, the limits, and the statements that run now. Owned by
// GatewayService; loop thread only, except `blocking`, whose work runs on a thread of its own.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/gateway_hub.h"
#include "lake/lake_location.h"
#include "meta/store.h"
#include "obs/log.h"
#include "obs/metrics.h"
#include "routing/policy.h"
#include "service/session.h"
#include "service/shape_memory.h"
#include "service/write_leases.h"

namespace roost::service {

class RunStream;

struct ServiceLimits {
    int64_t statement_timeout_ms = 600'000;
    int64_t admission_wait_ms = 300'000;
    int64_t idle_transaction_timeout_ms = 60'000;
    int64_t history_retention_ms = 7LL * 86'400'000;
    uint32_t sql_text_max_bytes = 16 * 1024 * 1024;
    size_t stored_entries_max = 5'000;  // finished HTTP statements whose state is kept in memory
};

struct Core {
    Core(cluster::GatewayHub &h, meta::Store &m, std::unique_ptr<routing::Policy> p, obs::Metrics &mt, obs::Log &l,
         const Clock &c, net::asio::io_context &lp, ServiceLimits lim)
        : hub(h),
          meta(m),
          policy(std::move(p)),
          metrics(mt),
          log(l),
          clock(c),
          loop(lp),
          limits(lim),
          leases(std::make_shared<WriteLeases>(lp.get_executor(), c)),
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
    std::shared_ptr<WriteLeases> leases;
    ShapeMemory shapes;
    std::set<RunStream *> running;
    net::Event ended;  // a statement ended (for draining)
    bool draining = false;
    net::asio::thread_pool blocking_pool{1};

    routing::ClusterSnapshot snapshot() const;

    // Runs `work` on the blocking thread and resumes on the loop.
    template <class F>
    net::Task<std::invoke_result_t<F>> blocking(F work) {
        using T = std::invoke_result_t<F>;
        // Asio wants a result that can be made empty.
        std::optional<T> result = co_await net::asio::co_spawn(
            blocking_pool, [work = std::move(work)]() -> net::Task<std::optional<T>> { co_return work(); },
            net::asio::use_awaitable);
        co_return std::move(*result);
    }
};

}  // namespace roost::service
