// Little-endian binary encoding of control messages and frames. Writer appends to a string it owns. Reader is
// bounds-checked and sticky: after the first short read or broken limit every read returns a zero value and ok() is
// false, so a decoder reads all its fields and checks once. Not thread-safe.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace roost {

static_assert(std::endian::native == std::endian::little, "roost's link encoding assumes a little-endian host");

class Writer {
public:
    template <std::integral T>
    void put(T value) {
        char raw[sizeof(T)];
        std::memcpy(raw, &value, sizeof(T));
        out_.append(raw, sizeof(T));
    }
    void put_f64(double value) { put(std::bit_cast<uint64_t>(value)); }
    void put_bool(bool value) { put<uint8_t>(value ? 1 : 0); }
    // u32 length and the bytes.
    void put_string(std::string_view value) {
        put<uint32_t>(static_cast<uint32_t>(value.size()));
        out_.append(value);
    }
    void put_raw(std::string_view value) { out_.append(value); }
    const std::string &bytes() const { return out_; }
    std::string take() { return std::move(out_); }

private:
    std::string out_;
};

class Reader {
public:
    explicit Reader(std::string_view in) : in_(in) {}

    template <std::integral T>
    T get() {
        T value{};
        if (!take(sizeof(T))) return value;
        std::memcpy(&value, in_.data() + at_ - sizeof(T), sizeof(T));
        return value;
    }
    double get_f64() { return std::bit_cast<double>(get<uint64_t>()); }
    bool get_bool() { return get<uint8_t>() != 0; }
    std::string_view get_view() {
        const auto size = get<uint32_t>();
        if (!take(size)) return {};
        return in_.substr(at_ - size, size);
    }
    std::string get_string() { return std::string(get_view()); }
    std::string_view get_raw(size_t size) {
        if (!take(size)) return {};
        return in_.substr(at_ - size, size);
    }
    // A count of items that take at least `least_bytes` each; more than the rest can hold is an error.
    uint32_t get_count(size_t least_bytes) {
        const auto count = get<uint32_t>();
        if (least_bytes > 0 && count > remaining() / least_bytes) {
            ok_ = false;
            return 0;
        }
        return count;
    }
    size_t remaining() const { return ok_ ? in_.size() - at_ : 0; }
    bool ok() const { return ok_; }
    // All read and nothing left over.
    bool done() const { return ok_ && at_ == in_.size(); }

private:
    bool take(size_t size) {
        if (!ok_ || size > in_.size() - at_) {
            ok_ = false;
            return false;
        }
        at_ += size;
        return true;
    }

    std::string_view in_;
    size_t at_ = 0;
    bool ok_ = true;
};

}  // namespace roost
