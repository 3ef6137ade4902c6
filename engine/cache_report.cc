#include "engine/cache_report.h"

#include <algorithm>

#include "engine/object_cache.h"
#include "engine/object_key.h"

namespace roost {

namespace {

class Asked final : public cache::Cancellation {
public:
    explicit Asked(const std::function<bool()> &cancelled) : cancelled_(cancelled) {}
    bool requested() const override { return cancelled_(); }

private:
    const std::function<bool()> &cancelled_;
};

}  // namespace

CacheReport report_of(cache::SegmentCache &segments, bool all) {
    CacheReport report;
    report.on = true;
    report.all = all;
    std::vector<cache::UnitWarmth> units;
    auto changes = segments.blocks().take_changes(kWarmFoldersMax);
    if (all || changes.all) {
        units = segments.blocks().units();
        report.all = units.size() <= kWarmFoldersMax;
        if (units.size() > kWarmFoldersMax) {
            std::ranges::nth_element(units, units.begin() + kWarmFoldersMax, std::ranges::greater(),
                                     &cache::UnitWarmth::warm_bytes);
            units.resize(kWarmFoldersMax);
        }
    } else {
        units = std::move(changes.units);
    }
    for (cache::UnitWarmth &unit : units) {
        if (unit.tag.empty() || unit.tag.size() > kFolderMaxBytes) continue;
        report.folders.push_back({std::move(unit.tag), unit.warm_bytes, unit.files});
    }
    report.gauges = segments.gauges();
    return report;
}

Result<uint64_t> work_on(ObjectCache &objects, const std::string &data_path, const CacheWork &work,
                         const std::function<bool()> &cancelled) {
    const auto is_own = [&](const std::string &path, bool folder) {
        if (!path.starts_with(data_path)) return false;
        std::string_view key = std::string_view(path).substr(data_path.size());
        if (folder && key.ends_with('/')) key.remove_suffix(1);
        return is_plain_key(key);
    };
    if (!is_own(work.folder, true)) {
        return Status(Code::not_allowed, "not a folder of the lake's data: " + work.folder);
    }
    cache::BlockStore &blocks = objects.segments().blocks();
    if (work.action == CacheWork::Action::evict) return blocks.evict_unit(work.folder);
    const Asked asked(cancelled);
    cache::Patience patience;
    patience.cancellation = std::shared_ptr<const cache::Cancellation>(std::shared_ptr<void>(), &asked);
    for (const CacheWork::File &file : work.files) {
        if (!is_own(file.path, false)) {
            return Status(Code::not_allowed, "not a file of the lake's data: " + file.path);
        }
        if (work.action == CacheWork::Action::unpin) {
            (void)blocks.pin(file.path, false);
            continue;
        }
        const auto reader = objects.reader(file.path, file.size_bytes, nullptr);
        ROOST_RETURN_IF_ERROR(reader->warm(0, file.size_bytes, patience));
        if (work.action == CacheWork::Action::pin) (void)blocks.pin(file.path, true);
    }
    return blocks.unit_bytes(work.folder);
}

}  // namespace roost
