#include "config/settings.h"

#include <algorithm>
#include <cstdlib>

#include "config/catalogs_file.h"
#include "config/groups_file.h"
#include "config/settings_file.h"

namespace roost::config {
namespace {

// A value as it was given, before it is parsed.
struct Given {
    std::string text;
    Source source;
};
// The best source so far of each setting, by name.
using Chosen = std::map<std::string, Given, std::less<>>;

const Setting *find(std::string_view name) {
    for (const Setting &setting : all_settings()) {
        if (setting.name == name) return &setting;
    }
    return nullptr;
}

Status unknown_flag(Command command, const std::string &flag) {
    std::vector<std::string> names;
    for (const Setting &setting : all_settings()) {
        if (!setting.flag().empty() && setting.flag() == flag) {
            return Status(Code::invalid_argument, flag + " is not a flag of this command").with_hint(setting.meaning);
        }
        if (setting.takes(command) && !setting.flag().empty()) names.push_back(setting.flag());
    }
    const std::string_view near = nearest(flag, {names.begin(), names.end()});
    return Status(Code::invalid_argument, "unknown flag " + flag.substr(0, 80))
        .with_hint(near.empty() ? "--help lists them" : "did you mean " + std::string(near) + "?");
}

Status read_flags(Command command, const std::vector<std::string> &flags, Chosen &chosen) {
    for (size_t i = 0; i < flags.size(); ++i) {
        const std::string &word = flags[i];
        if (word.size() < 3 || word.compare(0, 2, "--") != 0) {
            return Status(Code::invalid_argument, "'" + word.substr(0, 80) + "' is not a flag")
                .with_hint("--help lists them");
        }
        const size_t equals = word.find('=');
        const std::string flag = word.substr(0, equals);
        const auto &table = all_settings();
        const auto setting = std::find_if(table.begin(), table.end(), [&](const Setting &candidate) {
            return candidate.takes(command) && candidate.flag() == flag;
        });
        if (setting == table.end()) return unknown_flag(command, flag);
        if (equals == std::string::npos && i + 1 == flags.size()) {
            return Status(Code::invalid_argument, flag + " needs a value: " + flag + " " + setting->form);
        }
        std::string value = equals == std::string::npos ? flags[++i] : word.substr(equals + 1);
        chosen[setting->name] = Given{std::move(value), Source{Source::Kind::flag, flag}};
    }
    return {};
}

void read_variables(Command command, const Environment &environment, Chosen &chosen) {
    for (const Setting &setting : all_settings()) {
        if (!setting.takes(command) || chosen.contains(setting.name)) continue;
        std::vector<std::string> names = {setting.variable()};
        names.insert(names.end(), setting.other_variables.begin(), setting.other_variables.end());
        for (const std::string &name : names) {
            auto value = environment(name);
            // An empty variable is how scripts and unit files say "not set".
            if (!value || value->empty()) continue;
            chosen[setting.name] = Given{std::move(*value), Source{Source::Kind::variable, name}};
            break;
        }
    }
}

Status read_file(const std::string &path, Chosen &chosen) {
    ROOST_ASSIGN_OR_RETURN(const std::vector<FileEntry> entries, read_settings_file(path));
    for (const FileEntry &entry : entries) {
        const std::string where = path + ":" + std::to_string(entry.line);
        const Setting *setting = find(entry.key);
        if (setting == nullptr) {
            std::vector<std::string_view> names;
            for (const Setting &known : all_settings()) names.push_back(known.name);
            const std::string_view near = nearest(entry.key, names);
            return Status(Code::invalid_argument, where + ": unknown setting '" + entry.key.substr(0, 80) + "'")
                .with_hint(near.empty() ? "roost config lists them" : "did you mean " + std::string(near) + "?");
        }
        if (!setting->file) return Status(Code::invalid_argument, where + ": " + entry.key + " can't be set in a file");
        // Only where nothing better was given.
        chosen.emplace(entry.key, Given{entry.text, Source{Source::Kind::file, where}});
    }
    return {};
}

Status choose_file(const std::string &default_file, Chosen &chosen) {
    const auto named = chosen.find("config");
    if (named != chosen.end()) return read_file(named->second.text, chosen);
    if (default_file.empty() || !settings_file_exists(default_file)) return {};
    chosen["config"] = Given{default_file, Source{Source::Kind::standard, "default"}};
    return read_file(default_file, chosen);
}

std::string with_dir(std::string text, const std::string &dir) {
    const size_t at = text.find("{dir}");
    return at == std::string::npos ? text : text.replace(at, 5, dir);
}

Status apply(Chosen &chosen, Settings &settings) {
    for (const Setting &setting : all_settings()) {
        auto found = chosen.find(setting.name);
        Given given = found != chosen.end()
                          ? found->second
                          : Given{with_dir(setting.standard, settings.dir), Source{Source::Kind::standard, "default"}};
        Status status = setting.set(settings, given.text);
        if (!status.ok()) {
            const std::string where =
                given.source.kind == Source::Kind::flag ? "" : " (from " + given.source.where + ")";
            const std::string subject = given.source.kind == Source::Kind::flag ? given.source.where : setting.name;
            return Status(status.code(), subject + where + ": " + status.message()).with_hint(status.error().hint);
        }
        settings.sources[setting.name] = std::move(given.source);
    }
    return {};
}

Status check_together(Command command, const Settings &settings) {
    const auto bad = [](std::string message) { return Status(Code::invalid_argument, std::move(message)); };
    if (settings.dir.empty()) return bad("dir must not be empty");
    if (settings.node_drop_ms < 2 * settings.heartbeat_ms) {
        return bad("node_drop_ms (" + format_duration(settings.node_drop_ms) +
                   ") must be at least twice heartbeat_ms (" + format_duration(settings.heartbeat_ms) +
                   "), or nodes drop out for one late heartbeat");
    }
    if (settings.page_rows > settings.page_rows_max) return bad("page_rows must not be more than page_rows_max");
    if (settings.message_max_bytes < settings.sql_text_max_bytes) {
        return bad("message_max_bytes must not be less than sql_text_max_bytes, or no such text could arrive");
    }
    if (settings.s3_access_key_id.empty() != settings.s3_secret_access_key.empty()) {
        return bad("s3_access_key_id and s3_secret_access_key belong together; one of them is missing");
    }
    if (command == Command::node) {
        if (!settings.join) return bad("a node needs --join URL, the address of its gateway");
        if (settings.is_default("token_file")) return bad("a node needs --token-file FILE, the gateway's join token");
        if (settings.is_default("dir")) return bad("a node needs --dir DIR, its own directory");
    }
    return {};
}

}  // namespace

bool Settings::is_default(std::string_view name) const {
    const auto found = sources.find(name);
    return found == sources.end() || found->second.kind == Source::Kind::standard;
}

std::string Setting::flag() const {
    if (secret) return {};
    std::string out = "--" + name;
    std::replace(out.begin(), out.end(), '_', '-');
    return out;
}

std::string Setting::variable() const {
    std::string out = "ROOST_" + name;
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return out;
}

Environment process_environment() {
    return [](const std::string &name) -> std::optional<std::string> {
        const char *value = std::getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
}

Result<Settings> load(Command command, const std::vector<std::string> &flags, const Environment &environment,
                      const std::string &default_file) {
    Chosen chosen;
    ROOST_RETURN_IF_ERROR(read_flags(command, flags, chosen));
    read_variables(command, environment, chosen);
    ROOST_RETURN_IF_ERROR(choose_file(default_file, chosen));
    Settings settings;
    ROOST_RETURN_IF_ERROR(apply(chosen, settings));
    ROOST_RETURN_IF_ERROR(check_together(command, settings));
    ROOST_RETURN_IF_ERROR(read_catalogs(settings));
    ROOST_RETURN_IF_ERROR(read_groups(settings));
    return settings;
}

std::vector<std::pair<std::string, std::string>> variables_of(const Settings &settings, Command command) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Setting &setting : all_settings()) {
        if (!setting.takes(command) || setting.name == "config" || settings.is_default(setting.name)) continue;
        out.emplace_back(setting.variable(), setting.get(settings));
    }
    return out;
}

}  // namespace roost::config
