#include "service/lake_mirrors.h"

#include <boost/asio/co_spawn.hpp>
#include <optional>

#include "lake/mirror.h"

namespace roost::service {

LakeMirrors::LakeMirrors(obs::Metrics &metrics, obs::Log &log) : metrics_(metrics), log_(log) {}

LakeMirrors::~LakeMirrors() {
    stopping_.request_stop();
    pool_.join();
}

void LakeMirrors::add(const LakeLocation &lake) {
    mirrors_[lake.catalog] = std::make_shared<LakeMirror>(metadata_address(lake));
}

net::Task<Result<std::shared_ptr<const LakeState>>> LakeMirrors::refresh(std::string catalog, int64_t wait_ms) {
    const auto found = mirrors_.find(catalog);
    if (found == mirrors_.end()) {
        co_return Status(Code::not_found, "there is no catalog '" + catalog + "'").with_name("catalog_not_found");
    }
    using State = Result<std::shared_ptr<const LakeState>>;
    const std::shared_ptr<LakeMirror> mirror = found->second;
    const auto limits = CallLimits::in(std::chrono::milliseconds(wait_ms), stopping_.get_token());
    // Asio wants a result that can be made empty.
    auto result = co_await net::asio::co_spawn(
        pool_, [mirror, limits]() -> net::Task<std::optional<State>> { co_return mirror->refresh(limits); },
        net::asio::use_awaitable);
    State state = std::move(*result);
    if (state.ok()) {
        report(catalog, *mirror, **state);
    } else {
        log_.warn("mirror_not_refreshed", {{"catalog", catalog}, {"error", state.status().to_string()}});
    }
    co_return state;
}

std::shared_ptr<const LakeState> LakeMirrors::current(const std::string &catalog) const {
    const auto found = mirrors_.find(catalog);
    return found == mirrors_.end() ? nullptr : found->second->current();
}

// Counting the segments costs a look at each table: once a snapshot.
void LakeMirrors::report(const std::string &catalog, const LakeMirror &mirror, const LakeState &state) {
    const MirrorCounts counts = mirror.counts();
    obs::LakeGauges gauges;
    gauges.checks = counts.checks;
    gauges.advances = counts.advances;
    gauges.loads = counts.loads;
    const auto reported = reported_.find(catalog);
    if (reported == reported_.end() || reported->second != state.snapshot().id) {
        reported_[catalog] = state.snapshot().id;
        obs::LakeContents contents;
        contents.snapshot = state.snapshot().id;
        contents.tables = state.tables().size();
        contents.memory_bytes = state.memory_bytes();
        for (const auto &table : state.tables()) {
            contents.segments += table->data->segments.size();
            contents.bytes += table->data->segments.file_size_bytes();
        }
        gauges.contents = contents;
    }
    metrics_.lake(catalog, gauges);
}

}  // namespace roost::service
