#include "cache/parquet_layout.h"

#include <algorithm>
#include <cstring>

namespace roost::cache {
namespace {

constexpr int kDepthMax = 16;
constexpr size_t kChunksMax = 1 << 20;

// Thrift's compact protocol, as far as reading goes. Sticky: after the first fault everything is empty and ok() false.
class Compact {
public:
    enum Type : uint8_t {
        stop = 0,
        yes = 1,
        no = 2,
        i8 = 3,
        i16 = 4,
        i32 = 5,
        i64 = 6,
        f64 = 7,
        binary = 8,
        list = 9,
        set = 10,
        map = 11,
        structure = 12
    };
    struct Field {
        Type type = stop;
        int64_t id = 0;
    };

    explicit Compact(std::string_view in) : in_(in) {}
    bool ok() const { return ok_; }

    // Fields of a struct, one after the other; the last has type stop. `last_id`: of the field before, 0 at first.
    Field field(int64_t last_id) {
        const uint8_t head = byte();
        if (!ok_ || (head & 0x0F) == stop) return {};
        const int64_t id = (head >> 4) != 0 ? last_id + (head >> 4) : number();
        return {type_of(head & 0x0F), id};
    }
    // Elements of a list.
    std::pair<Type, uint64_t> elements() {
        const uint8_t head = byte();
        const uint64_t count = (head >> 4) == 15 ? varint() : head >> 4;
        // Each takes at least a byte.
        if (count > in_.size()) fail();
        return {type_of(head & 0x0F), ok_ ? count : 0};
    }
    int64_t number() {
        const uint64_t zigzag = varint();
        return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
    }
    void skip(Type type, int depth = 0) {
        if (depth > kDepthMax) fail();
        if (!ok_) return;
        switch (type) {
            case stop:
                return fail();
            case yes:
            case no:
                return;
            case i8:
                return take(1);
            case i16:
            case i32:
            case i64:
                (void)varint();
                return;
            case f64:
                return take(8);
            case binary:
                return take(varint());
            case list:
            case set:
                return skip_list(depth);
            case map:
                return skip_map(depth);
            case structure:
                for (Field f = field(0); ok_ && f.type != stop; f = field(f.id)) skip(f.type, depth + 1);
                return;
        }
    }

private:
    Type type_of(uint8_t type) {
        if (type > structure) fail();
        return ok_ ? static_cast<Type>(type) : stop;
    }
    // In a list or a map a boolean is a byte of its own.
    void skip_element(Type type, int depth) { type == yes || type == no ? take(1) : skip(type, depth); }
    void skip_list(int depth) {
        const auto [type, count] = elements();
        for (uint64_t i = 0; i < count && ok_; ++i) skip_element(type, depth + 1);
    }
    void skip_map(int depth) {
        const uint64_t count = varint();
        if (count == 0) return;
        if (count > in_.size()) return fail();
        const uint8_t types = byte();
        const Type key = type_of(types >> 4), value = type_of(types & 0x0F);
        for (uint64_t i = 0; i < count && ok_; ++i) {
            skip_element(key, depth + 1);
            skip_element(value, depth + 1);
        }
    }
    uint8_t byte() {
        if (in_.empty()) fail();
        if (!ok_) return 0;
        const auto value = static_cast<uint8_t>(in_.front());
        in_.remove_prefix(1);
        return value;
    }
    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const uint8_t next = byte();
            value |= static_cast<uint64_t>(next & 0x7F) << shift;
            if (next < 0x80) return value;
        }
        fail();
        return 0;
    }
    void take(uint64_t count) {
        if (count > in_.size()) return fail();
        in_.remove_prefix(count);
    }
    void fail() {
        ok_ = false;
        in_ = {};
    }

    std::string_view in_;
    bool ok_ = true;
};

class LayoutParser {
public:
    LayoutParser(std::string_view metadata, uint64_t file_bytes) : in_(metadata), file_bytes_(file_bytes) {}

    std::shared_ptr<const FileLayout> parse() {
        for_fields([this](Compact::Field field) {
            if (field.id == 4 && field.type == Compact::list) return for_list([this] { row_group(); });
            in_.skip(field.type);
        });
        if (!in_.ok() || !right_) return nullptr;
        layout_.sort();
        return std::make_shared<const FileLayout>(std::move(layout_));
    }

private:
    template <class Visit>
    void for_fields(const Visit &visit) {
        for (Compact::Field field = in_.field(0); in_.ok() && field.type != Compact::stop;
             field = in_.field(field.id)) {
            visit(field);
        }
    }
    template <class Visit>
    void for_list(const Visit &visit) {
        const auto [type, count] = in_.elements();
        if (type != Compact::structure && count > 0) right_ = false;
        for (uint64_t i = 0; i < count && in_.ok() && right_; ++i) visit();
    }
    void row_group() {
        layout_.row_groups.emplace_back();
        for_fields([this](Compact::Field field) {
            if (field.id == 1 && field.type == Compact::list) return for_list([this] { column_chunk(); });
            in_.skip(field.type);
        });
    }
    void column_chunk() {
        ByteRange data, offsets, columns, bloom;
        bool elsewhere = false;
        for_fields([&](Compact::Field field) {
            if (field.id == 1) elsewhere = true;  // the chunk is in another file
            if (field.id == 3 && field.type == Compact::structure) return column_metadata(data, bloom);
            if (field.id == 4) return number(field, offsets.offset);
            if (field.id == 5) return number(field, offsets.length);
            if (field.id == 6) return number(field, columns.offset);
            if (field.id == 7) return number(field, columns.length);
            in_.skip(field.type);
        });
        if (elsewhere || ++chunks_ > kChunksMax || !fits(data)) right_ = false;
        if (!right_) return;
        layout_.row_groups.back().push_back(data);
        for (const ByteRange &range : {offsets, columns, bloom}) {
            if (range.length > 0 && fits(range)) layout_.index_regions.push_back(range);
        }
    }
    void column_metadata(ByteRange &data, ByteRange &bloom) {
        uint64_t first_page = 0, dictionary = 0;
        for_fields([&](Compact::Field field) {
            if (field.id == 7) return number(field, data.length);
            if (field.id == 9) return number(field, first_page);
            if (field.id == 11) return number(field, dictionary);
            if (field.id == 14) return number(field, bloom.offset);
            if (field.id == 15) return number(field, bloom.length);
            in_.skip(field.type);
        });
        data.offset = dictionary > 0 ? std::min(first_page, dictionary) : first_page;
    }
    void number(Compact::Field field, uint64_t &value) {
        if (field.type != Compact::i32 && field.type != Compact::i64) return in_.skip(field.type);
        const int64_t read = in_.number();
        if (read < 0) right_ = false;
        value = static_cast<uint64_t>(read);
    }
    bool fits(const ByteRange &range) const {
        return range.offset <= file_bytes_ && range.length <= file_bytes_ - range.offset;
    }

    Compact in_;
    const uint64_t file_bytes_;
    FileLayout layout_;
    size_t chunks_ = 0;
    bool right_ = true;
};

}  // namespace

std::optional<ByteRange> parquet_metadata_range(std::string_view last_8_bytes, uint64_t file_bytes) {
    if (last_8_bytes.size() != 8 || last_8_bytes.substr(4) != "PAR1") return std::nullopt;
    uint32_t length = 0;
    std::memcpy(&length, last_8_bytes.data(), sizeof(length));
    if (file_bytes < 12 || length > file_bytes - 12) return std::nullopt;
    return ByteRange{file_bytes - 8 - length, length};
}

std::shared_ptr<const FileLayout> parse_parquet_layout(std::string_view metadata, uint64_t file_bytes) {
    return LayoutParser(metadata, file_bytes).parse();
}

}  // namespace roost::cache
