// How much memory a node's statements are to ask for under `auto`: what their plans say, and what earlier runs of the
// same shape used (admission/shape_memory.h). Drops what it remembers of shapes over tables that are written here, and
// over those whose size a plan finds changed: somebody else wrote to them. Thread-safe. Owned by the node's agent.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "admission/shape_memory.h"
#include "base/mutex.h"
#include "engine/engine.h"

namespace roost::cluster {

class StatementSizes {
public:
    explicit StatementSizes(admission::ShapeMemoryOptions options) : memory_(options) {}

    // What its next run is to ask for, planned at `now_us`; nothing: nothing is known (the plan neither). Of a shape
    // that has run: what it used, with a margin.
    std::optional<admission::ShapeMemory::Known> planned(const StatementSpec &spec, const PlanInfo &plan,
                                                         int64_t now_us) ROOST_EXCLUDES(mutex_);
    // It ran to its end, alone in its instance.
    void ran(const StatementSpec &spec, const PlanInfo &plan, const Completion &completion, int64_t now_us)
        ROOST_EXCLUDES(mutex_);
    // It committed what it wrote.
    void wrote(const StatementSpec &spec, const PlanInfo &plan) ROOST_EXCLUDES(mutex_);

    // Equal keys are one shape: the statement without its literals, bound to the same tables and columns. Empty: its
    // shape is not known.
    static std::string key_of(const StatementSpec &spec, const PlanInfo &plan);

private:
    void note_size(const PlanInfo::Table &table) ROOST_REQUIRES(mutex_);

    Mutex mutex_;
    admission::ShapeMemory memory_ ROOST_GUARDED_BY(mutex_);
    std::unordered_map<std::string, uint64_t> rows_ ROOST_GUARDED_BY(mutex_);  // of a table, when it was last noted
};

}  // namespace roost::cluster
