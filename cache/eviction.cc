#include "cache/eviction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <unordered_set>
#include <vector>

namespace roost::cache {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
enum List : uint8_t { kOutside = 0, kWindow = 1, kMain = 2 };

// Slots in two lists, each first in first out, linked by slot number.
class SlotLists {
public:
    struct Node {
        uint64_t key = 0;
        uint32_t bytes = 0;
        uint32_t before = kNone, after = kNone;
        uint8_t list = kOutside;
        uint8_t uses = 0;
        BlockKind kind = BlockKind::data;
    };
    explicit SlotLists(uint64_t blocks) { nodes_.reserve(std::min<uint64_t>(blocks, 1 << 16)); }

    Node &node(uint32_t slot) { return nodes_[slot]; }
    bool holds(uint32_t slot) const { return slot < nodes_.size() && nodes_[slot].list != kOutside; }
    bool empty(List list) const { return ends_[list].first == kNone; }
    uint32_t head(List list) const { return ends_[list].first; }
    uint64_t bytes(List list) const { return ends_[list].bytes; }

    void add(List list, uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) {
        if (slot >= nodes_.size()) nodes_.resize(slot + 1);
        take(slot);
        nodes_[slot] = {key, bytes, kNone, kNone, kOutside, 0, kind};
        append(list, slot);
    }
    void append(List list, uint32_t slot) {
        Node &node = nodes_[slot];
        Ends &ends = ends_[list];
        node.before = ends.last;
        node.after = kNone;
        node.list = list;
        (ends.last == kNone ? ends.first : nodes_[ends.last].after) = slot;
        ends.last = slot;
        ends.bytes += node.bytes;
    }
    // Out of its list; the node keeps what it says.
    void take(uint32_t slot) {
        Node &node = nodes_[slot];
        if (node.list == kOutside) return;
        Ends &ends = ends_[node.list];
        (node.before == kNone ? ends.first : nodes_[node.before].after) = node.after;
        (node.after == kNone ? ends.last : nodes_[node.after].before) = node.before;
        ends.bytes -= node.bytes;
        node.list = kOutside;
    }
    void move(List list, uint32_t slot) {
        take(slot);
        append(list, slot);
    }

private:
    struct Ends {
        uint32_t first = kNone, last = kNone;
        uint64_t bytes = 0;
    };
    std::vector<Node> nodes_;
    std::array<Ends, 3> ends_;
};

uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD;
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53;
    return x ^ (x >> 33);
}

// About how often keys were used lately: a count-min sketch of saturating counters that are halved every so many uses.
class Sketch {
public:
    explicit Sketch(uint64_t blocks)
        : counters_(std::bit_ceil(std::max<uint64_t>(blocks, 64) * 16)),
          halve_after_(10 * std::max<uint64_t>(blocks, 64)) {}

    void add(uint64_t key) {
        const uint8_t now = count(key);
        if (now < kMost) {
            for (int row = 0; row < kRows; ++row) {
                uint8_t &counter = counters_[place(key, row)];
                if (counter == now) ++counter;  // the others are larger through other keys
            }
        }
        if (++uses_ < halve_after_) return;
        uses_ = 0;
        for (uint8_t &counter : counters_) counter /= 2;
    }
    uint8_t count(uint64_t key) const {
        uint8_t least = kMost;
        for (int row = 0; row < kRows; ++row) least = std::min(least, counters_[place(key, row)]);
        return least;
    }

private:
    static constexpr int kRows = 4;
    static constexpr uint8_t kMost = 63;
    size_t place(uint64_t key, int row) const {
        return mixed(key + static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15) & (counters_.size() - 1);
    }

    std::vector<uint8_t> counters_;
    const uint64_t halve_after_;
    uint64_t uses_ = 0;
};

class TinyLfu final : public EvictionPolicy {
public:
    TinyLfu(uint64_t capacity_bytes, uint64_t blocks)
        : window_bytes_(capacity_bytes / 10),
          main_bytes_(capacity_bytes - window_bytes_),
          lists_(blocks),
          sketch_(blocks) {}

    void insert(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override {
        sketch_.add(key);
        lists_.add(kWindow, slot, key, bytes, kind);
    }
    void restore(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override {
        lists_.add(lists_.bytes(kMain) + bytes <= main_bytes_ ? kMain : kWindow, slot, key, bytes, kind);
    }
    void touch(uint32_t slot, BlockKind kind) override {
        if (!lists_.holds(slot)) return;
        sketch_.add(lists_.node(slot).key);
        if (kind == BlockKind::index) lists_.node(slot).kind = kind;
    }
    void erase(uint32_t slot) override {
        if (lists_.holds(slot)) lists_.take(slot);
    }
    void keep(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override {
        lists_.add(kMain, slot, key, bytes, kind);
    }
    std::optional<uint32_t> victim() override {
        // Not less than its share: room is asked for before the block that needs it comes to the window.
        while (!lists_.empty(kWindow) && (lists_.bytes(kWindow) >= window_bytes_ || lists_.empty(kMain))) {
            const uint32_t candidate = lists_.head(kWindow);
            if (lists_.bytes(kMain) + lists_.node(candidate).bytes <= main_bytes_) {
                lists_.move(kMain, candidate);
                continue;
            }
            const uint32_t rival = least_of_main();
            if (rival == kNone || worth(candidate, 1) <= worth(rival)) return out(candidate);
            lists_.move(kMain, candidate);
            return out(rival);
        }
        const uint32_t slot = least_of_main();
        if (slot != kNone) return out(slot);
        return std::nullopt;
    }

private:
    uint32_t out(uint32_t slot) {
        lists_.take(slot);
        return slot;
    }
    // Uses a byte of room is worth. To fetch a block anew costs a request as well as its bytes; a request is taken as
    // 1 MiB, so short blocks are worth more for their size. Index regions are needed before anything else of a file.
    double worth(uint32_t slot, int less_uses = 0) {
        const auto &node = lists_.node(slot);
        const double bytes = std::max<uint32_t>(node.bytes, 4096);
        const double uses = sketch_.count(node.key) - less_uses + (node.kind == BlockKind::index ? 4 : 0);
        return uses * (bytes + (1 << 20)) / bytes;
    }
    // Of the next few of the main part the one worth least; the hand goes past all of them.
    uint32_t least_of_main() {
        uint32_t least = kNone;
        double least_worth = 0;
        for (int i = 0; i < kLooks && !lists_.empty(kMain); ++i) {
            const uint32_t slot = lists_.head(kMain);
            lists_.move(kMain, slot);
            const double its = worth(slot);
            if (least != kNone && its >= least_worth) continue;
            least = slot;
            least_worth = its;
        }
        return least;
    }

    static constexpr int kLooks = 8;
    const uint64_t window_bytes_, main_bytes_;
    SlotLists lists_;
    Sketch sketch_;
};

// Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are all you need for cache eviction, 2023.
class S3Fifo final : public EvictionPolicy {
public:
    S3Fifo(uint64_t capacity_bytes, uint64_t blocks)
        : small_bytes_(capacity_bytes / 10), ghosts_max_(blocks), lists_(blocks) {}

    void insert(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override {
        lists_.add(ghosts_.contains(key) ? kMain : kWindow, slot, key, bytes, kind);
    }
    void restore(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override {
        lists_.add(kMain, slot, key, bytes, kind);
    }
    void touch(uint32_t slot, BlockKind) override {
        if (lists_.holds(slot)) lists_.node(slot).uses = std::min(lists_.node(slot).uses + 1, 3);
    }
    void erase(uint32_t slot) override {
        if (lists_.holds(slot)) lists_.take(slot);
    }
    void keep(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override {
        lists_.add(kMain, slot, key, bytes, kind);
    }
    std::optional<uint32_t> victim() override {
        while (!lists_.empty(kWindow) || !lists_.empty(kMain)) {
            const bool small = !lists_.empty(kWindow) && (lists_.bytes(kWindow) >= small_bytes_ || lists_.empty(kMain));
            const uint32_t slot = lists_.head(small ? kWindow : kMain);
            auto &node = lists_.node(slot);
            if (small && node.uses > 0) {
                node.uses = 0;
                lists_.move(kMain, slot);
            } else if (!small && node.uses > 0) {
                --node.uses;
                lists_.move(kMain, slot);
            } else {
                lists_.take(slot);
                if (small) remember(node.key);
                return slot;
            }
        }
        return std::nullopt;
    }

private:
    void remember(uint64_t key) {
        if (!ghosts_.insert(key).second) return;
        order_.push_back(key);
        while (order_.size() > ghosts_max_) {
            ghosts_.erase(order_.front());
            order_.pop_front();
        }
    }

    const uint64_t small_bytes_, ghosts_max_;
    SlotLists lists_;
    std::unordered_set<uint64_t> ghosts_;
    std::deque<uint64_t> order_;
};

class Lru final : public EvictionPolicy {
public:
    explicit Lru(uint64_t blocks) : lists_(blocks) {}
    void insert(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override {
        lists_.add(kMain, slot, key, bytes, kind);
    }
    void restore(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override {
        insert(slot, key, bytes, kind);
    }
    void keep(uint32_t slot, uint64_t key, uint32_t bytes, BlockKind kind) override { insert(slot, key, bytes, kind); }
    void touch(uint32_t slot, BlockKind) override {
        if (lists_.holds(slot)) lists_.move(kMain, slot);
    }
    void erase(uint32_t slot) override {
        if (lists_.holds(slot)) lists_.take(slot);
    }
    std::optional<uint32_t> victim() override {
        if (lists_.empty(kMain)) return std::nullopt;
        const uint32_t slot = lists_.head(kMain);
        lists_.take(slot);
        return slot;
    }

private:
    SlotLists lists_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> make_tiny_lfu(uint64_t capacity_bytes, uint64_t blocks) {
    return std::make_unique<TinyLfu>(capacity_bytes, blocks);
}
std::unique_ptr<EvictionPolicy> make_s3_fifo(uint64_t capacity_bytes, uint64_t blocks) {
    return std::make_unique<S3Fifo>(capacity_bytes, blocks);
}
std::unique_ptr<EvictionPolicy> make_lru(uint64_t, uint64_t blocks) { return std::make_unique<Lru>(blocks); }

}  // namespace roost::cache
