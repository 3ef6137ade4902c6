// What BlockStore keeps its books of; for block_store*.cc only. All of it is guarded by the store's mutex, except what
// is const and what a lease holds still (an entry's length and checksums).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "cache/block_store.h"

namespace roost::cache {

constexpr uint32_t kNoSlot = UINT32_MAX;
constexpr size_t kStripes = 8;  // data files: a file system takes a lock on each while it writes

struct BlockStore::Unit {
    std::string tag;
    uint64_t warm_bytes = 0, files = 0, evicted_bytes = 0;
    uint64_t known = 0;  // File objects that point here
    bool changed = false;
};

struct BlockStore::File {
    File(FileKey its_key, uint32_t block_bytes)
        : key(std::move(its_key)),
          id(key.id()),
          block_bytes(block_bytes),
          blocks(static_cast<uint32_t>((key.size_bytes + block_bytes - 1) / block_bytes)) {}

    const FileKey key;
    const Uuid id;
    const uint32_t block_bytes;
    const uint32_t blocks;
    Unit *unit = nullptr;
    uint64_t warm_bytes = 0;
    uint32_t warm_blocks = 0;
    bool pinned = false;
    bool logged = false;    // the directory knows it, or is about to
    uint64_t sequence = 0;  // of its latest record

    uint64_t block_key(uint32_t block) const {
        uint64_t half = 0;
        for (size_t i = 8; i < 16; ++i) half = half << 8 | id.bytes[i];
        return half + block * 0x9E3779B97F4A7C15;
    }
    uint32_t length_of(uint32_t block) const {
        const uint64_t start = static_cast<uint64_t>(block) * block_bytes;
        return static_cast<uint32_t>(std::min<uint64_t>(block_bytes, key.size_bytes - start));
    }
    uint32_t slot(uint32_t block) const {
        const size_t page = block / kPage;
        return page < pages.size() && pages[page] ? (*pages[page])[block % kPage] : kNoSlot;
    }
    void set_slot(uint32_t block, uint32_t slot) {
        const size_t page = block / kPage;
        if (page >= pages.size()) pages.resize(page + 1);
        if (!pages[page]) {
            pages[page] = std::make_unique<Page>();
            pages[page]->fill(kNoSlot);
        }
        (*pages[page])[block % kPage] = slot;
    }
    template <class Visit>
    void for_each_slot(const Visit &visit) const {
        for (const auto &page : pages) {
            if (!page) continue;
            for (const uint32_t slot : *page) {
                if (slot != kNoSlot) visit(slot);
            }
        }
    }

private:
    static constexpr size_t kPage = 64;
    using Page = std::array<uint32_t, kPage>;
    std::vector<std::unique_ptr<Page>> pages;  // of slots, made where a block is
};

struct BlockStore::Entry {
    FileRef file;  // null: no block here
    uint32_t block = 0;
    uint32_t length_bytes = 0;
    uint32_t on_disk_bytes = 0;  // of the slot, at most
    uint32_t leases = 0;
    BlockKind kind = BlockKind::data;
    bool pinned = false;  // not the policy's
    uint64_t statement = 0;
    uint64_t sequence = 0;
    Checksums sums{};
    // Eighths that were checked since they came from the disk, or were written by this process: a bit each. Of those
    // what the system still has in memory need not be checked again; set by whoever leases the entry.
    std::atomic<uint8_t> checked{0};
};

struct BlockStore::Volume {
    std::array<std::unique_ptr<DiskFile>, kStripes> stripes;
    std::unique_ptr<DiskFile> index;
    uint64_t seed = 0;
    uint32_t block_bytes = 0;

    Mutex log_mutex;
    std::shared_ptr<DiskFile> log ROOST_GUARDED_BY(log_mutex);
    std::string log_name ROOST_GUARDED_BY(log_mutex);
    uint64_t log_end ROOST_GUARDED_BY(log_mutex) = 0;
    uint64_t log_records ROOST_GUARDED_BY(log_mutex) = 0;
    bool compacting ROOST_GUARDED_BY(log_mutex) = false;

    DiskFile &data(uint32_t slot) { return *stripes[slot % kStripes]; }
    uint64_t offset(uint32_t slot) const { return static_cast<uint64_t>(slot / kStripes) * block_bytes; }
    static uint64_t record_offset(uint32_t slot) { return static_cast<uint64_t>(slot) * kRecordBytes; }
};

// Room for a block, and what had to go for it.
struct BlockStore::Room {
    std::optional<uint32_t> slot;
    bool punch_first = false;     // the slot holds more than the block needs
    std::vector<uint32_t> limbo;  // to settle
};

}  // namespace roost::cache
