// 16-byte ids (statements, sessions, nodes, users), printed as UUIDs. Made as UUID version 7, so they sort by time.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace roost {

struct Uuid {
    std::array<uint8_t, 16> bytes{};

    // A new version 7 id: wall clock in ms, then random bits of the system's generator. Thread-safe.
    static Uuid make();
    // Accepts the canonical 36-character form in either case.
    static std::optional<Uuid> parse(std::string_view text);
    // The same id for the same name, for things that have a name but need an id (version 8, from SHA-256).
    static Uuid from_name(std::string_view name);

    bool is_nil() const { return *this == Uuid{}; }
    std::string to_string() const;
    std::string_view raw() const { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }
    auto operator<=>(const Uuid &) const = default;
};

// `size` bytes of the system's generator, and the same in lower-case hex (twice as long).
std::string random_bytes(size_t size);
std::string random_hex(size_t size);
std::string to_hex(std::string_view bytes);

}  // namespace roost

template <>
struct std::hash<roost::Uuid> {
    size_t operator()(const roost::Uuid &id) const noexcept;
};
