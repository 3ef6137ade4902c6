#include "admission/budget.h"

#include <algorithm>

namespace roost::admission {

Effective effective_of(const config::Machine &machine, uint64_t configured_bytes, uint32_t configured_cpus) {
    Effective effective{machine.memory_bytes, machine.memory_source, machine.cpus};
    if (configured_bytes > 0 && configured_bytes < machine.memory_bytes) {
        effective.memory_bytes = configured_bytes;
        effective.memory_source = "setting";
    }
    if (configured_cpus > 0) effective.cpus = configured_cpus;
    return effective;
}

uint64_t usable_bytes(uint64_t memory_bytes) { return memory_bytes / 10 * 9; }

Result<uint64_t> budget_of(uint64_t memory_bytes, uint64_t cache_bytes) {
    const uint64_t usable = usable_bytes(memory_bytes);
    if (usable < kProcessReserveBytes + kBudgetMinBytes) {
        return Status(Code::invalid_argument, "a node of " + std::to_string(memory_bytes >> 20) + " MiB is too small")
            .with_hint("give each node at least 400 MiB (--node-memory, or --memory of `roost node`)");
    }
    return usable - kProcessReserveBytes - std::min(cache_bytes, usable - kProcessReserveBytes - kBudgetMinBytes);
}

}  // namespace roost::admission
