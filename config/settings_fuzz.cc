// Any text as a settings file, as a flag's value and as each kind of value. What a parser takes must read back the
// same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/settings.h"
#include "config/settings_file.h"

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace roost::config;
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const auto entries = parse_settings_text(text, "fuzz");
    if (!entries.ok()) require(!entries.status().message().empty());
    for (const Setting &setting : all_settings()) {
        Settings settings;
        if (!setting.set(settings, text).ok()) continue;
        const std::string written = setting.get(settings);
        Settings again;
        require(setting.set(again, written).ok());
        require(setting.get(again) == written);
    }
    mask_password(text);
    // No variables and no default file: nothing but the flag.
    const auto nothing = [](const std::string &) -> std::optional<std::string> { return std::nullopt; };
    if (text.find("config") == std::string_view::npos) (void)load(Command::any, {std::string(text)}, nothing, "");
    return 0;
}
