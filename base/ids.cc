#include "base/ids.h"

#include <openssl/rand.h>
#include <openssl/sha.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace roost {
namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_dash_place(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

}  // namespace

std::string random_bytes(size_t size) {
    std::string out(size, '\0');
    // Without random numbers neither ids nor secrets are safe, and nothing can be done about it.
    if (RAND_bytes(reinterpret_cast<unsigned char *>(out.data()), static_cast<int>(size)) != 1) std::abort();
    return out;
}

std::string to_hex(std::string_view bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        out += digits[static_cast<uint8_t>(c) >> 4];
        out += digits[static_cast<uint8_t>(c) & 15];
    }
    return out;
}

std::string random_hex(size_t size) { return to_hex(random_bytes(size)); }

Uuid Uuid::make() {
    // RAND_bytes costs microseconds a call, so a thread draws for many ids at once.
    thread_local std::string pool;
    thread_local size_t used = 0;
    if (used + 10 > pool.size()) {
        pool = random_bytes(1000);
        used = 0;
    }
    Uuid id;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto ms = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
    for (int i = 0; i < 6; ++i) id.bytes[i] = static_cast<uint8_t>(ms >> (8 * (5 - i)));
    std::memcpy(id.bytes.data() + 6, pool.data() + used, 10);
    used += 10;
    id.bytes[6] = static_cast<uint8_t>((id.bytes[6] & 0x0f) | 0x70);
    id.bytes[8] = static_cast<uint8_t>((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

Uuid Uuid::from_name(std::string_view name) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char *>(name.data()), name.size(), digest);
    Uuid id;
    std::memcpy(id.bytes.data(), digest, id.bytes.size());
    id.bytes[6] = static_cast<uint8_t>((id.bytes[6] & 0x0f) | 0x80);
    id.bytes[8] = static_cast<uint8_t>((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
    if (text.size() != 36) return std::nullopt;
    Uuid id;
    size_t at = 0;
    for (size_t i = 0; i < 36;) {
        if (is_dash_place(i)) {
            if (text[i++] != '-') return std::nullopt;
            continue;
        }
        const int high = hex_value(text[i]);
        const int low = hex_value(text[i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        id.bytes[at++] = static_cast<uint8_t>(high * 16 + low);
        i += 2;
    }
    return id;
}

std::string Uuid::to_string() const {
    const std::string hex = to_hex(raw());
    std::string out;
    out.reserve(36);
    for (size_t i = 0; i < 32; ++i) {
        if (is_dash_place(out.size())) out += '-';
        out += hex[i];
    }
    return out;
}

}  // namespace roost

size_t std::hash<roost::Uuid>::operator()(const roost::Uuid &id) const noexcept {
    uint64_t high;
    uint64_t low;
    std::memcpy(&high, id.bytes.data(), 8);
    std::memcpy(&low, id.bytes.data() + 8, 8);
    // The bits that differ between ids made together stand anywhere in the words; tables look at the lowest of the
    // hash.
    uint64_t mixed = (high * 0x9e3779b97f4a7c15ULL) ^ low;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93ULL;
    return mixed ^ (mixed >> 32);
}
