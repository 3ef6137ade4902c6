// The hash that placement is built on. It is part of what nodes and gateways of different builds must agree on, so it
// is spelled out here, works on 64-bit words (no byte order of the machine), and is pinned by golden.txt. Not for
// hostile input. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace roost::placement {

// Pelle Evensen's "moremur": a bijection in which each bit of the input flips each bit of the output half the time.
constexpr uint64_t mix64(uint64_t x) {
    x ^= x >> 27;
    x *= 0x3C79AC492BA7B653u;
    x ^= x >> 33;
    x *= 0x1C69B3F74AC4AE35u;
    x ^= x >> 27;
    return x;
}

inline constexpr uint64_t kHashStep = 0x9E3779B97F4A7C15u;

// Of a sequence of words; the start depends on how many there are.
constexpr uint64_t hash_words(std::initializer_list<uint64_t> words) {
    uint64_t hash = mix64(words.size() * kHashStep);
    for (const uint64_t word : words) hash = mix64((hash ^ word) + kHashStep);
    return hash;
}

// Of bytes: words of eight, the first byte lowest, the last word filled up with zeros; then their number.
constexpr uint64_t hash_bytes(std::string_view bytes) {
    uint64_t hash = mix64(kHashStep);
    for (size_t i = 0; i < bytes.size(); i += 8) {
        uint64_t word = 0;
        for (size_t j = i; j < bytes.size() && j < i + 8; ++j) {
            word |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[j])) << (8 * (j - i));
        }
        hash = mix64((hash ^ word) + kHashStep);
    }
    return mix64((hash ^ bytes.size()) + kHashStep);
}

}  // namespace roost::placement
