// What a statement's shape did last time: whether it fitted the small lane. Bounded: two generations, the older is
// dropped when the younger is full. Loop thread only.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace roost::service {

class ShapeMemory {
public:
    explicit ShapeMemory(size_t generation_max = 50'000) : generation_max_(generation_max) {}
    bool is_large(uint64_t shape) {
        if (const auto found = young_.find(shape); found != young_.end()) return found->second;
        const auto found = old_.find(shape);
        if (found == old_.end()) return false;
        const bool large = found->second;
        remember(shape, large);
        return large;
    }
    void remember(uint64_t shape, bool large) {
        if (young_.size() >= generation_max_ && !young_.contains(shape)) {
            old_ = std::move(young_);
            young_.clear();
        }
        young_[shape] = large;
    }

private:
    size_t generation_max_;
    std::unordered_map<uint64_t, bool> young_, old_;
};

}  // namespace roost::service
