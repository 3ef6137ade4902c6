#include "cluster/statement_sizes.h"

#include <algorithm>

namespace roost::cluster {

namespace {

constexpr size_t kTablesMax = 16'384;
// A table that is smaller or larger by more than this share is another one for those who read it.
constexpr double kOtherSize = 0.1;

std::vector<std::string> names_of(const PlanInfo &plan) {
    std::vector<std::string> names;
    for (const PlanInfo::Table &table : plan.tables) names.push_back(table.name);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace

std::string StatementSizes::key_of(const StatementSpec &spec, const PlanInfo &plan) {
    if (spec.shape == 0) return {};
    return std::to_string(spec.shape) + " " + spec.settings.catalog + " " + plan.bound_to;
}

void StatementSizes::note_size(const PlanInfo::Table &table) {
    if (table.rows == 0) return;  // not known
    const auto [known, is_new] = rows_.try_emplace(table.name, table.rows);
    if (is_new) {
        if (rows_.size() > kTablesMax) rows_.clear();
        return;
    }
    const auto before = static_cast<double>(known->second);
    const auto now = static_cast<double>(table.rows);
    if (std::abs(now - before) <= kOtherSize * before) return;
    known->second = table.rows;
    memory_.changed(table.name);
}

std::optional<admission::ShapeMemory::Known> StatementSizes::planned(const StatementSpec &spec, const PlanInfo &plan,
                                                                     int64_t now_us) {
    const std::string key = key_of(spec, plan);
    MutexLock lock(mutex_);
    for (const PlanInfo::Table &table : plan.tables) note_size(table);
    if (!key.empty()) {
        // An abandoned estimate says nothing, but runs may have.
        if (plan.estimated_bytes > 0) memory_.planned(key, names_of(plan), plan.estimated_bytes, now_us);
        if (auto known = memory_.find(key, now_us)) return known;
    }
    if (plan.estimated_bytes == 0) return std::nullopt;
    return admission::ShapeMemory::Known{.bytes = plan.estimated_bytes, .estimate = plan.estimated_bytes};
}

void StatementSizes::ran(const StatementSpec &spec, const PlanInfo &plan, const Completion &completion,
                         int64_t now_us) {
    const std::string key = key_of(spec, plan);
    if (key.empty() || !completion.status.ok()) return;
    MutexLock lock(mutex_);
    memory_.ran(key, names_of(plan), completion.peak_memory_bytes, completion.granted_bytes,
                completion.memory.spilled_bytes > 0, now_us);
}

void StatementSizes::wrote(const StatementSpec &spec, const PlanInfo &plan) {
    const std::string key = key_of(spec, plan);
    MutexLock lock(mutex_);
    for (const PlanInfo::Table &table : plan.tables) {
        if (table.written) memory_.changed(table.name, key);
    }
}

}  // namespace roost::cluster
