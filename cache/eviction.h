// Who stays in the cache: pure, over slot numbers; no I/O, no clock. Not thread-safe: BlockStore holds its lock around
// every call. The caller says what came (insert), what was asked for (touch) and how many bytes must go; the policy
// names a slot.
//
// The one in use is TinyLFU (Einziger, Friedman, Manes: TinyLFU, 2017) with a first-in-first-out window and a clock as
// the main part. Lru and S3Fifo are what it was chosen against: eviction_test.cc prints the table of all three over the
// same traces, docs/cache.md holds the figures.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace roost::cache {

// Index regions are footers, page indexes and what else every read of a file needs.
enum class BlockKind : uint8_t { data = 0, index = 1 };

class EvictionPolicy {
public:
    virtual ~EvictionPolicy() = default;
    // `key`: the same for the same block of the same file, whatever its slot. Counts as one use.
    virtual void insert(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) = 0;
    // As insert, for what an earlier run left: nobody asked for it now. In order of age, oldest first.
    virtual void restore(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) = 0;
    // A use of a block that is in the cache, by another statement than the last one.
    virtual void touch(uint32_t slot, BlockKind kind) = 0;
    // Gone for another reason than victim(). Of an unknown slot: no effect.
    virtual void erase(uint32_t slot) = 0;
    // Takes out the block that should go next and returns its slot; none when the cache is empty. A slot that can't be
    // given up now is put back by keep().
    virtual std::optional<uint32_t> victim() = 0;
    virtual void keep(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) = 0;
};

// `capacity_bytes`: what the blocks inserted may add up to; `blocks`: about how many there will be.
std::unique_ptr<EvictionPolicy> make_tiny_lfu(uint64_t capacity_bytes, uint64_t blocks);
std::unique_ptr<EvictionPolicy> make_s3_fifo(uint64_t capacity_bytes, uint64_t blocks);
std::unique_ptr<EvictionPolicy> make_lru(uint64_t capacity_bytes, uint64_t blocks);

}  // namespace roost::cache
