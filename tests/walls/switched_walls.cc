// Walls that can be taken away, for the binary of the canary tests alone (CMake target roost_switched_walls, which is
// never installed): CANARY_WALLS_DOWN lists those that are away, by their names in base/wall.h, with commas.
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/wall.h"

namespace roost {
namespace {

constexpr std::array<std::string_view, 8> kNames = {
    "guard", "statement_kinds", "functions", "replacement_scans", "configuration", "bound_plan", "files", "process",
};

std::array<bool, kNames.size()> read_switches() {
    const char *text = std::getenv("CANARY_WALLS_DOWN");
    const std::string down = "," + std::string(text == nullptr ? "" : text) + ",";
    std::array<bool, kNames.size()> standing{};
    for (size_t i = 0; i < kNames.size(); i++) {
        standing[i] = down.find("," + std::string(kNames[i]) + ",") == std::string::npos;
    }
    return standing;
}

}  // namespace

bool stands(Wall wall) {
    static const auto standing = read_switches();
    return standing[static_cast<size_t>(wall)];
}

}  // namespace roost
