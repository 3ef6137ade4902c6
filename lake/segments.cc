#include "lake/segments.h"

#include <algorithm>
#include <array>

namespace roost {

namespace {

// A record: the id, flags, then what they announce. Numbers are LEB128.
enum Flag : uint32_t {
    kFooter = 1,
    kRowIdStart = 2,
    kPartition = 4,
    kMapping = 8,
    kPartialMax = 16,
    kOrder = 32,
    kAbsolute = 64,
    kEncrypted = 128,
    kOtherFormat = 256,
    kUuidName = 512,
};
enum StatFlag : uint32_t {
    kValueCount = 1,
    kNullCount = 2,
    kSize = 4,
    kMin = 8,
    kMax = 16,
    kNanKnown = 32,
    kNan = 64,
    kExtra = 128,
};

constexpr std::string_view kParquet = "parquet";
// Files are named ducklake-UUID.parquet: 16 bytes do for 53.
constexpr std::string_view kNameStart = "ducklake-";
constexpr std::string_view kNameEnd = ".parquet";
constexpr size_t kUuidText = 36;
constexpr size_t kNameSize = 9 + kUuidText + 8;

void put(std::string &out, uint64_t value) {
    while (value >= 0x80) {
        out.push_back(static_cast<char>(value | 0x80));
        value >>= 7;
    }
    out.push_back(static_cast<char>(value));
}
void put_text(std::string &out, std::string_view text) {
    put(out, text.size());
    out.append(text);
}
// Small differences of either sign are small numbers.
uint64_t zigzag(int64_t value) { return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63); }
int64_t unzigzag(uint64_t value) { return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1); }

class Cursor {
public:
    explicit Cursor(const char *at) : at_(at) {}
    uint64_t number() {
        uint64_t value = 0;
        for (int shift = 0;; shift += 7) {
            const auto byte = static_cast<unsigned char>(*at_++);
            value |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
    }
    std::string_view text() {
        const size_t size = number();
        return raw(size);
    }
    std::string_view raw(size_t size) {
        const std::string_view view(at_, size);
        at_ += size;
        return view;
    }

private:
    const char *at_;
};

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

bool is_dash(size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

bool pack_uuid(std::string_view text, std::array<char, 16> &into) {
    size_t digits = 0;
    for (size_t i = 0; i < kUuidText; i++) {
        if (is_dash(i)) {
            if (text[i] != '-') return false;
            continue;
        }
        const int digit = hex_digit(text[i]);
        if (digit < 0) return false;
        char &byte = into[digits / 2];
        byte = static_cast<char>(digits % 2 == 0 ? digit << 4 : byte | digit);
        digits++;
    }
    return true;
}

void append_uuid(std::string_view bytes, std::string &into) {
    static constexpr char kDigits[] = "0123456789abcdef";
    size_t at = 0;
    for (const char c : bytes) {
        if (is_dash(at)) {
            into.push_back('-');
            at++;
        }
        into.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
        into.push_back(kDigits[c & 15]);
        at += 2;
    }
}

std::optional<std::array<char, 16>> uuid_of_name(const std::string &path) {
    if (path.size() < kNameSize) return std::nullopt;
    const std::string_view name = std::string_view(path).substr(path.size() - kNameSize);
    std::array<char, 16> bytes{};
    if (!name.starts_with(kNameStart) || !name.ends_with(kNameEnd)) return std::nullopt;
    if (!pack_uuid(name.substr(kNameStart.size(), kUuidText), bytes)) return std::nullopt;
    return bytes;
}

void put_stats(std::string &out, const SegmentStats &stats, uint64_t record_count) {
    uint32_t flags = 0;
    if (stats.value_count) flags |= kValueCount;
    if (stats.null_count) flags |= kNullCount;
    if (stats.size_bytes) flags |= kSize;
    if (stats.min) flags |= kMin;
    if (stats.max) flags |= kMax;
    if (stats.contains_nan) flags |= kNanKnown | (*stats.contains_nan ? kNan : 0u);
    if (stats.extra) flags |= kExtra;
    put(out, stats.column_id);
    put(out, flags);
    if (stats.value_count) put(out, zigzag(static_cast<int64_t>(*stats.value_count - record_count)));
    if (stats.null_count) put(out, *stats.null_count);
    if (stats.size_bytes) put(out, *stats.size_bytes);
    if (stats.min) put_text(out, *stats.min);
    if (stats.max) put_text(out, *stats.max);
    if (stats.extra) put_text(out, *stats.extra);
}

void put_partition_value(std::string &out, const PartitionValue &value) {
    put(out, value.key_index * 2 + (value.value ? 1u : 0u));
    if (value.value) put_text(out, *value.value);
}

void put_head(std::string &out, const Segment &segment) {
    const auto uuid = uuid_of_name(segment.path);
    uint32_t flags = 0;
    if (segment.footer_size_bytes) flags |= kFooter;
    if (segment.row_id_start) flags |= kRowIdStart;
    if (segment.partition_id) flags |= kPartition;
    if (segment.mapping_id) flags |= kMapping;
    if (segment.partial_max) flags |= kPartialMax;
    if (segment.file_order) flags |= kOrder;
    if (!segment.path_is_relative) flags |= kAbsolute;
    if (!segment.encryption_key.empty()) flags |= kEncrypted;
    if (segment.format != kParquet) flags |= kOtherFormat;
    if (uuid) flags |= kUuidName;
    put(out, segment.data_file_id);
    put(out, flags);
    put(out, segment.begin_snapshot);
    put(out, segment.record_count);
    put(out, segment.file_size_bytes);
    for (const auto *number : {&segment.footer_size_bytes, &segment.row_id_start, &segment.partition_id,
                               &segment.mapping_id, &segment.partial_max, &segment.file_order}) {
        if (*number) put(out, **number);
    }
    if (!segment.encryption_key.empty()) put_text(out, segment.encryption_key);
    if (segment.format != kParquet) put_text(out, segment.format);
    put_text(out, std::string_view(segment.path).substr(0, segment.path.size() - (uuid ? kNameSize : 0)));
    if (uuid) out.append(uuid->data(), uuid->size());
}

// Every field is set or reset: what was there before is another segment's.
void get_stats(Cursor &in, SegmentStats &stats, uint64_t record_count) {
    stats.column_id = in.number();
    const auto flags = static_cast<uint32_t>(in.number());
    stats.value_count.reset();
    if (flags & kValueCount) stats.value_count = record_count + static_cast<uint64_t>(unzigzag(in.number()));
    stats.null_count.reset();
    if (flags & kNullCount) stats.null_count = in.number();
    stats.size_bytes.reset();
    if (flags & kSize) stats.size_bytes = in.number();
    const auto maybe_text = [&](uint32_t flag, std::optional<std::string_view> &text) {
        text.reset();
        if (flags & flag) text = in.text();
    };
    maybe_text(kMin, stats.min);
    maybe_text(kMax, stats.max);
    maybe_text(kExtra, stats.extra);
    stats.contains_nan.reset();
    if (flags & kNanKnown) stats.contains_nan = (flags & kNan) != 0;
}

}  // namespace

void SegmentBlock::add(const Packed &segment) {
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    bytes_.append(segment.head);
    put(bytes_, segment.partition_value_count);
    bytes_.append(segment.partition_values);
    put(bytes_, segment.stats_count);
    bytes_.append(segment.stats);
    record_count_ += segment.record_count;
    file_size_bytes_ += segment.file_size_bytes;
}

void SegmentBlock::add(const Segment &segment) {
    std::string head, values, stats;
    put_head(head, segment);
    for (const PartitionValue &each : segment.partition_values) put_partition_value(values, each);
    for (const SegmentStats &each : segment.stats) put_stats(stats, each, segment.record_count);
    add({.head = head,
         .partition_values = values,
         .stats = stats,
         .partition_value_count = static_cast<uint32_t>(segment.partition_values.size()),
         .stats_count = static_cast<uint32_t>(segment.stats.size()),
         .record_count = segment.record_count,
         .file_size_bytes = segment.file_size_bytes});
}

void SegmentBlock::shrink() {
    bytes_.shrink_to_fit();
    offsets_.shrink_to_fit();
}

uint64_t SegmentBlock::id(size_t index) const { return Cursor(bytes_.data() + offsets_[index]).number(); }

void SegmentBlock::get(size_t index, Segment &into, bool with_path) const {
    Cursor in(bytes_.data() + offsets_[index]);
    into.data_file_id = in.number();
    const auto flags = static_cast<uint32_t>(in.number());
    into.begin_snapshot = in.number();
    into.record_count = in.number();
    into.file_size_bytes = in.number();
    const auto maybe = [&](uint32_t flag, std::optional<uint64_t> &number) {
        number.reset();
        if (flags & flag) number = in.number();
    };
    maybe(kFooter, into.footer_size_bytes);
    maybe(kRowIdStart, into.row_id_start);
    maybe(kPartition, into.partition_id);
    maybe(kMapping, into.mapping_id);
    maybe(kPartialMax, into.partial_max);
    maybe(kOrder, into.file_order);
    into.path_is_relative = (flags & kAbsolute) == 0;
    into.encryption_key = flags & kEncrypted ? in.text() : std::string_view();
    into.format = flags & kOtherFormat ? in.text() : kParquet;
    const std::string_view path = in.text();
    const std::string_view uuid = flags & kUuidName ? in.raw(16) : std::string_view();
    into.path.clear();
    if (with_path) {
        into.path.append(path);
        if (!uuid.empty()) {
            into.path.append(kNameStart);
            append_uuid(uuid, into.path);
            into.path.append(kNameEnd);
        }
    }
    into.partition_values.resize(in.number());
    for (PartitionValue &value : into.partition_values) {
        const uint64_t key = in.number();
        value.key_index = static_cast<uint32_t>(key / 2);
        value.value.reset();
        if (key % 2 == 1) value.value = in.text();
    }
    into.stats.resize(in.number());
    for (SegmentStats &stats : into.stats) get_stats(in, stats, into.record_count);
}

std::optional<size_t> SegmentBlock::find(uint64_t data_file_id) const {
    size_t low = 0;
    size_t high = size();
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const uint64_t here = id(middle);
        if (here == data_file_id) return middle;
        (here < data_file_id ? low : high) = here < data_file_id ? middle + 1 : middle;
    }
    return std::nullopt;
}

size_t SegmentBlock::memory_bytes() const {
    return sizeof(SegmentBlock) + bytes_.capacity() + offsets_.capacity() * sizeof(uint32_t);
}

const SegmentDeletes *SegmentList::Part::deletes_of(uint64_t id, size_t &next) const {
    if (!deletes) return nullptr;
    while (next < deletes->size() && (*deletes)[next].first < id) next++;
    return next < deletes->size() && (*deletes)[next].first == id ? &(*deletes)[next].second : nullptr;
}

void SegmentList::append(std::shared_ptr<SegmentBlock> block) {
    block->shrink();
    parts_.push_back({.block = std::move(block), .deletes = nullptr});
}

SegmentList SegmentList::with_deletes(const Deletes &deletes) const { return changed({}, SegmentList(), &deletes); }

SegmentList SegmentList::changed(const std::set<uint64_t> &ended, const SegmentList &added,
                                 const Deletes *deletes) const {
    SegmentList list;
    list.parts_.reserve(parts_.size() + added.parts_.size());
    // Takes the segments of blocks that lose some, and of small blocks beside those and before new ones.
    std::shared_ptr<SegmentBlock> open;
    const auto close = [&] {
        if (open) list.append(std::move(open));
        open = nullptr;
    };
    Segment segment;
    const auto take_up = [&](const SegmentBlock &block) {
        for (size_t i = 0; i < block.size(); i++) {
            if (ended.contains(block.id(i))) continue;
            if (open && open->size() == SegmentBlock::kMaxSegments) close();
            if (!open) open = std::make_shared<SegmentBlock>();
            block.get(i, segment);
            open->add(segment);
        }
    };
    for (size_t i = 0; i < parts_.size(); i++) {
        const SegmentBlock &block = *parts_[i].block;
        const auto first = ended.lower_bound(block.first_id());
        const bool loses = first != ended.end() && *first <= block.last_id();
        const bool grows = i + 1 == parts_.size() && added.size() > 0 && block.size() < SegmentBlock::kMaxSegments;
        const bool small = open && open->size() + block.size() <= SegmentBlock::kMaxSegments;
        if (loses || grows || small) {
            take_up(block);
        } else {
            close();
            list.parts_.push_back(parts_[i]);
        }
    }
    for (const Part &part : added.parts_) take_up(*part.block);
    close();
    if (deletes != nullptr) {
        list.set_deletes(*deletes);
    } else {
        Deletes kept;
        for (const auto *parts : {&parts_, &added.parts_}) {
            for (const Part &part : *parts) {
                if (part.deletes) kept.insert(kept.end(), part.deletes->begin(), part.deletes->end());
            }
        }
        list.set_deletes(kept);
    }
    list.count();
    return list;
}

void SegmentList::set_deletes(const Deletes &deletes) {
    size_t next = 0;
    for (Part &part : parts_) {
        auto mine = std::make_shared<Deletes>();
        while (next < deletes.size() && deletes[next].first < part.block->first_id()) next++;
        for (; next < deletes.size() && deletes[next].first <= part.block->last_id(); next++) {
            if (part.block->find(deletes[next].first)) mine->push_back(deletes[next]);
        }
        mine->shrink_to_fit();
        part.deletes = mine->empty() ? nullptr : std::move(mine);
    }
}

void SegmentList::count() {
    for (const Part &part : parts_) {
        size_ += part.block->size();
        record_count_ += part.block->record_count();
        file_size_bytes_ += part.block->file_size_bytes();
        if (!part.deletes) continue;
        for (const auto &[id, each] : *part.deletes) {
            deleted_rows_ += each.inlined_rows;
            if (!each.file) continue;
            delete_file_count_++;
            delete_file_size_bytes_ += each.file->file_size_bytes;
            deleted_rows_ += each.file->delete_count;
        }
    }
}

std::optional<Segment> SegmentList::find(uint64_t data_file_id) const {
    const auto part = std::lower_bound(parts_.begin(), parts_.end(), data_file_id,
                                       [](const Part &each, uint64_t id) { return each.block->last_id() < id; });
    if (part == parts_.end()) return std::nullopt;
    const auto index = part->block->find(data_file_id);
    if (!index) return std::nullopt;
    std::optional<Segment> found(std::in_place);
    part->block->get(*index, *found);
    return found;
}

const SegmentDeletes *SegmentList::deletes_of(uint64_t data_file_id) const {
    const auto part = std::lower_bound(parts_.begin(), parts_.end(), data_file_id,
                                       [](const Part &each, uint64_t id) { return each.block->last_id() < id; });
    size_t from = 0;
    return part == parts_.end() ? nullptr : part->deletes_of(data_file_id, from);
}

bool SegmentList::shares_block(size_t index, const SegmentList &other) const {
    return std::any_of(other.parts_.begin(), other.parts_.end(),
                       [&](const Part &part) { return part.block == parts_[index].block; });
}

size_t SegmentList::memory_bytes() const {
    size_t bytes = sizeof(SegmentList) + parts_.capacity() * sizeof(Part);
    for (const Part &part : parts_) {
        bytes += part.block->memory_bytes();
        if (!part.deletes) continue;
        bytes += part.deletes->capacity() * sizeof(Deletes::value_type);
        for (const auto &[id, each] : *part.deletes) bytes += each.file ? each.file->path.capacity() : 0;
    }
    return bytes;
}

// Bytes of rows until they are packed, and where each file's are.
struct SegmentPacker::State {
    static constexpr size_t kChunkBytes = 1 << 20;
    static constexpr uint32_t kNone = UINT32_MAX;
    struct File {
        uint64_t table_id, id, record_count, file_size_bytes;
        const char *head;
        uint32_t head_bytes;
        uint32_t last_stats = kNone;
        uint32_t last_value = kNone;
    };
    // A chain from the row that came last to the first.
    struct Piece {
        const char *bytes;
        uint32_t size;
        uint32_t key;
        uint32_t before;
    };

    const char *keep(std::string_view bytes) {
        if (chunks.empty() || used + bytes.size() > chunk_bytes) {
            chunk_bytes = std::max(kChunkBytes, bytes.size());
            chunks.push_back(std::make_unique<char[]>(chunk_bytes));
            used = 0;
        }
        char *at = chunks.back().get() + used;
        std::copy(bytes.begin(), bytes.end(), at);
        used += bytes.size();
        return at;
    }
    File *find(uint64_t id) {
        if (!sorted) {
            std::sort(files.begin(), files.end(), [](const File &a, const File &b) { return a.id < b.id; });
            sorted = true;
        }
        // Rows mostly come file after file.
        for (const size_t near : {hint, hint + 1}) {
            if (near < files.size() && files[near].id == id) return &files[hint = near];
        }
        const auto found = std::lower_bound(files.begin(), files.end(), id,
                                            [](const File &file, uint64_t wanted) { return file.id < wanted; });
        if (found == files.end() || found->id != id) return nullptr;
        hint = static_cast<size_t>(found - files.begin());
        return &*found;
    }
    void attach(uint32_t &last, uint64_t key) {
        pieces.push_back({.bytes = keep(scratch),
                          .size = static_cast<uint32_t>(scratch.size()),
                          .key = static_cast<uint32_t>(key),
                          .before = last});
        last = static_cast<uint32_t>(pieces.size() - 1);
    }
    // The pieces of a chain by key, one after the other, in `scratch`-like `out`.
    uint32_t gather(uint32_t last, std::string &out) {
        chain.clear();
        for (uint32_t at = last; at != kNone; at = pieces[at].before) chain.push_back(&pieces[at]);
        std::stable_sort(chain.begin(), chain.end(), [](const Piece *a, const Piece *b) { return a->key < b->key; });
        out.clear();
        for (const Piece *piece : chain) out.append(piece->bytes, piece->size);
        return static_cast<uint32_t>(chain.size());
    }

    std::vector<File> files;
    std::vector<Piece> pieces;
    std::vector<const Piece *> chain;
    std::vector<std::unique_ptr<char[]>> chunks;
    size_t used = 0;
    size_t chunk_bytes = 0;
    std::string scratch;
    size_t hint = 0;
    bool sorted = false;
};

SegmentPacker::SegmentPacker() : state_(std::make_unique<State>()) {}
SegmentPacker::~SegmentPacker() = default;

size_t SegmentPacker::file_count() const { return state_->files.size(); }

void SegmentPacker::add_file(uint64_t table_id, const Segment &segment) {
    State &state = *state_;
    state.scratch.clear();
    put_head(state.scratch, segment);
    state.files.push_back({.table_id = table_id,
                           .id = segment.data_file_id,
                           .record_count = segment.record_count,
                           .file_size_bytes = segment.file_size_bytes,
                           .head = state.keep(state.scratch),
                           .head_bytes = static_cast<uint32_t>(state.scratch.size())});
    state.sorted = false;
}

void SegmentPacker::add_stats(uint64_t data_file_id, const SegmentStats &stats) {
    State::File *file = state_->find(data_file_id);
    if (file == nullptr) return;
    state_->scratch.clear();
    put_stats(state_->scratch, stats, file->record_count);
    state_->attach(file->last_stats, stats.column_id);
}

void SegmentPacker::add_partition_value(uint64_t data_file_id, const PartitionValue &value) {
    State::File *file = state_->find(data_file_id);
    if (file == nullptr) return;
    state_->scratch.clear();
    put_partition_value(state_->scratch, value);
    state_->attach(file->last_value, value.key_index);
}

std::map<uint64_t, SegmentList> SegmentPacker::take() {
    State &state = *state_;
    std::stable_sort(state.files.begin(), state.files.end(), [](const State::File &a, const State::File &b) {
        return std::pair(a.table_id, a.id) < std::pair(b.table_id, b.id);
    });
    std::map<uint64_t, SegmentList> lists;
    std::shared_ptr<SegmentBlock> open;
    std::string values, stats;
    for (size_t i = 0; i < state.files.size(); i++) {
        const State::File &file = state.files[i];
        SegmentList &list = lists[file.table_id];
        if (!open) open = std::make_shared<SegmentBlock>();
        const uint32_t value_count = state.gather(file.last_value, values);
        const uint32_t stats_count = state.gather(file.last_stats, stats);
        open->add({.head = {file.head, file.head_bytes},
                   .partition_values = values,
                   .stats = stats,
                   .partition_value_count = value_count,
                   .stats_count = stats_count,
                   .record_count = file.record_count,
                   .file_size_bytes = file.file_size_bytes});
        const bool last = i + 1 == state.files.size() || state.files[i + 1].table_id != file.table_id;
        if (last || open->size() == SegmentBlock::kMaxSegments) list.append(std::move(open));
    }
    for (auto &[table, list] : lists) list.count();
    state_ = std::make_unique<State>();
    return lists;
}

}  // namespace roost
