// The gateway's mirrors of its lakes (lake/mirror.h), one a catalog: asked on threads of their own, looked at on the
// loop. What they know is in the metrics. Loop thread only.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "lake/lake_location.h"
#include "lake/lake_state.h"
#include "net/async.h"
#include "obs/log.h"
#include "obs/metrics.h"

namespace roost {
class LakeMirror;
}

namespace roost::service {

class LakeMirrors {
public:
    LakeMirrors(obs::Metrics &metrics, obs::Log &log);
    ~LakeMirrors();
    LakeMirrors(const LakeMirrors &) = delete;
    LakeMirrors &operator=(const LakeMirrors &) = delete;

    void add(const LakeLocation &lake);
    // The lake as it is now: a commit that the caller has seen is in it. Errors: not_found (no such catalog),
    // unavailable, timeout, io_error (a catalog that can't be read).
    net::Task<Result<std::shared_ptr<const LakeState>>> refresh(std::string catalog, int64_t wait_ms);
    // The newest state known, without asking: for what may be behind by a look. Null before the first one.
    std::shared_ptr<const LakeState> current(const std::string &catalog) const;

private:
    void report(const std::string &catalog, const LakeMirror &mirror, const LakeState &state);

    obs::Metrics &metrics_;
    obs::Log &log_;
    std::map<std::string, std::shared_ptr<LakeMirror>> mirrors_;
    std::map<std::string, uint64_t> reported_;  // the snapshot that the metrics tell of
    std::stop_source stopping_;
    net::asio::thread_pool pool_{2};  // last: its work ends before what it uses
};

}  // namespace roost::service
