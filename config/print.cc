// How settings are shown: `roost config`, --help.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/settings.h"

namespace roost::config {
namespace {

std::string shown_value(const Setting &setting, const Settings &settings) {
    std::string value = setting.get(settings);
    if (setting.secret) return value.empty() ? "" : "***";
    return mask_password(value);
}

std::string source_of(const Setting &setting, const Settings &settings) {
    const auto found = settings.sources.find(setting.name);
    return found == settings.sources.end() ? "default" : found->second.where;
}

// Characters and not bytes, so that columns line up.
size_t width_of(std::string_view text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

std::string padded(std::string text, size_t width) {
    const size_t now = width_of(text);
    return now < width ? text.append(width - now, ' ') : text;
}

}  // namespace

std::string print_text(const Settings &settings, Command command) {
    struct Row {
        std::string name, value, source, meaning;
    };
    std::vector<Row> rows = {{"NAME", "VALUE", "SOURCE", "MEANING"}};
    for (const Setting &setting : all_settings()) {
        if (!setting.takes(command)) continue;
        rows.push_back({setting.name, shown_value(setting, settings), source_of(setting, settings), setting.meaning});
    }
    size_t name_width = 0;
    size_t value_width = 0;
    size_t source_width = 0;
    // A long path or DSN widens its own line only.
    for (const Row &row : rows) {
        name_width = std::max(name_width, width_of(row.name));
        value_width = std::max(value_width, std::min<size_t>(width_of(row.value), 40));
        source_width = std::max(source_width, std::min<size_t>(width_of(row.source), 32));
    }
    std::string out;
    for (const Row &row : rows) {
        out += padded(row.name, name_width) + "  " + padded(row.value, value_width) + "  " +
               padded(row.source, source_width) + "  " + row.meaning + "\n";
    }
    return out;
}

std::string print_json(const Settings &settings, Command command) {
    auto list = nlohmann::ordered_json::array();
    for (const Setting &setting : all_settings()) {
        if (!setting.takes(command)) continue;
        list.push_back({{"name", setting.name},
                        {"value", shown_value(setting, settings)},
                        {"source", source_of(setting, settings)},
                        {"default", setting.standard},
                        {"form", setting.form},
                        {"flag", setting.flag()},
                        {"variable", setting.variable()},
                        {"meaning", setting.meaning}});
    }
    // Values come from outside; what is not UTF-8 in them must not throw.
    return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string print_flags(Command command) {
    std::string out;
    for (const Setting &setting : all_settings()) {
        if (!setting.takes(command) || setting.flag().empty()) continue;
        out += "  " + setting.flag() + " " + setting.form + "\n      " + setting.meaning;
        if (!setting.standard.empty()) out += " (default: " + setting.standard + ")";
        out += "\n";
    }
    return out;
}

}  // namespace roost::config
