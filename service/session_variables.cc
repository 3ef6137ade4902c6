#include "service/session_variables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "service/time_zones.h"
#include "sql/session_variables.h"

namespace roost::service {
namespace {

constexpr size_t kNameMaxBytes = 128;
constexpr size_t kValueMaxBytes = 16 * 1024;
constexpr size_t kVariablesMax = 1000;  // a client may invent names with a dot, but not without end

std::string to_lower(std::string_view text) {
    std::string out(text);
    for (char &c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    }
    return out;
}

std::string_view trim(std::string_view text) {
    const size_t from = text.find_first_not_of(" \t\r\n");
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

std::string join(const std::vector<std::string> &values) {
    std::string out;
    for (const std::string &value : values) out += (out.empty() ? "" : ", ") + value;
    return out;
}

Status invalid_value(std::string_view name, std::string_view value) {
    return Status(Code::invalid_argument,
                  "invalid value for parameter \"" + std::string(name) + "\": \"" + std::string(value) + "\"");
}

Status unsupported_value(std::string_view name, std::string_view value, std::string hint) {
    return Status(Code::unimplemented,
                  "value \"" + std::string(value) + "\" of parameter \"" + std::string(name) + "\" is not supported")
        .with_hint(std::move(hint));
}

std::optional<bool> parse_bool(std::string_view text) {
    const std::string value = to_lower(trim(text));
    if (value.empty()) return std::nullopt;
    const auto is = [&](std::string_view word, size_t least) {
        return value.size() >= least && word.starts_with(value);
    };
    if (is("true", 1) || is("yes", 1) || value == "on" || value == "1") return true;
    if (is("false", 1) || is("no", 1) || is("off", 2) || value == "0") return false;
    return std::nullopt;
}

struct Unit {
    std::string_view name;
    double factor;  // in the base unit
};
constexpr std::array<Unit, 6> kTimeUnits{
    {{"us", 0.001}, {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr std::array<Unit, 5> kMemoryUnits{
    {{"B", 1.0 / 1024}, {"kB", 1}, {"MB", 1024}, {"GB", 1048576}, {"TB", 1073741824}}};

// "1.5 min" in base units; nullopt when it is no number, the unit unknown or the outcome beyond int64.
template <size_t N>
std::optional<int64_t> parse_quantity(std::string_view text, const std::array<Unit, N> &units) {
    text = trim(text);
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
    const std::string_view unit = trim(text.substr(static_cast<size_t>(end - text.data())));
    double factor = 1;
    if (!unit.empty()) {
        const auto at = std::find_if(units.begin(), units.end(), [&](const Unit &u) { return u.name == unit; });
        if (at == units.end()) return std::nullopt;
        factor = at->factor;
    }
    const double value = std::nearbyint(number * factor);
    if (std::abs(value) > 9e15) return std::nullopt;
    return static_cast<int64_t>(value);
}

// In the largest unit that divides it, as PostgreSQL shows quantities.
template <size_t N>
std::string format_quantity(int64_t value, const std::array<Unit, N> &units) {
    if (value == 0) return "0";
    for (size_t i = N; i-- > 0;) {
        if (units[i].factor < 1) break;
        const auto factor = static_cast<int64_t>(units[i].factor);
        if (value % factor == 0) return std::to_string(value / factor) + std::string(units[i].name);
    }
    return std::to_string(value);
}

Result<std::string> normalize_quantity(const Variable &variable, std::string_view text) {
    const bool is_time = variable.type == VariableType::duration;
    const auto value = is_time ? parse_quantity(text, kTimeUnits) : parse_quantity(text, kMemoryUnits);
    if (!value) return invalid_value(variable.name, text);
    if (*value < variable.least || *value > variable.most) {
        return Status(Code::invalid_argument, std::to_string(*value) + (is_time ? " ms" : " kB") +
                                                  " is outside the valid range for parameter \"" +
                                                  std::string(variable.name) + "\"");
    }
    return is_time ? format_quantity(*value, kTimeUnits) : format_quantity(*value, kMemoryUnits);
}

Result<std::string> normalize_integer(const Variable &variable, std::string_view text) {
    text = trim(text);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return invalid_value(variable.name, text);
    if (value < variable.least || value > variable.most) {
        return Status(Code::invalid_argument, std::to_string(value) + " is outside the valid range for parameter \"" +
                                                  std::string(variable.name) + "\" (" + std::to_string(variable.least) +
                                                  " .. " + std::to_string(variable.most) + ")");
    }
    return std::to_string(value);
}

Result<std::string> normalize_real(const Variable &variable, std::string_view text) {
    text = trim(text);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
        return invalid_value(variable.name, text);
    }
    return std::string(text);
}

bool has_choice(std::string_view choices, std::string_view value) {
    while (!choices.empty()) {
        const size_t blank = choices.find(' ');
        if (choices.substr(0, blank) == value) return true;
        choices = blank == std::string_view::npos ? std::string_view() : choices.substr(blank + 1);
    }
    return false;
}

Result<std::string> normalize_choice(const Variable &variable, std::string_view text) {
    const std::string value = to_lower(trim(text));
    if (has_choice(variable.choices, value)) return value;
    // on and off may be spelled like any boolean.
    if (const auto flag = parse_bool(value); flag && has_choice(variable.choices, *flag ? "on" : "off")) {
        return std::string(*flag ? "on" : "off");
    }
    // Where one value is all there is, the others are PostgreSQL's, and answering in them would be wrong text.
    if (variable.choices.find(' ') == std::string_view::npos) {
        return unsupported_value(variable.name, text, "Only \"" + std::string(variable.choices) + "\" is supported.");
    }
    return invalid_value(variable.name, text);
}

Result<std::string> normalize_encoding(std::string_view text) {
    std::string value;
    for (const char c : to_lower(text)) {
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) value.push_back(c);
    }
    if (value == "utf8" || value == "unicode") return std::string("UTF8");
    return unsupported_value("client_encoding", text, "The only encoding is UTF8.");
}

Result<std::string> normalize_date_style(const std::vector<std::string> &values) {
    std::string order = "MDY";
    std::string all = to_lower(join(values));
    std::replace(all.begin(), all.end(), ',', ' ');
    std::string_view rest = all;
    while (!(rest = trim(rest)).empty()) {
        const std::string_view word = rest.substr(0, rest.find(' '));
        rest.remove_prefix(word.size());
        if (word == "iso" || word == "default") continue;
        if (word == "mdy" || word == "us" || word.starts_with("noneuro")) {
            order = "MDY";
        } else if (word == "dmy" || word.starts_with("euro")) {
            order = "DMY";
        } else if (word == "ymd") {
            order = "YMD";
        } else if (word == "sql" || word == "german" || word.starts_with("postgres")) {
            return unsupported_value("DateStyle", join(values), "Dates are always shown in ISO form.");
        } else {
            return invalid_value("DateStyle", join(values));
        }
    }
    return "ISO, " + order;
}

Result<std::string> normalize_time_zone(const std::vector<std::string> &values) {
    const std::string text(trim(join(values)));
    auto zone = find_time_zone(text);
    if (!zone) {
        return invalid_value("TimeZone", text)
            .with_hint("A name of the time zone database, or an offset of whole hours.");
    }
    return std::move(*zone);
}

Result<std::string> normalize_isolation(const Variable &variable, std::string_view text) {
    const std::string value = to_lower(trim(text));
    for (const std::string_view level : {"serializable", "repeatable read", "read committed", "read uncommitted"}) {
        if (value == level) return value;
    }
    return invalid_value(variable.name, text);
}

// The spellings of SET's grammar that are not the variable's name.
std::string_view plain_name(std::string_view key) {
    if (key == "time zone") return "timezone";
    if (key == "names" || key == "client encoding") return "client_encoding";
    if (key == "transaction isolation level") return "transaction_isolation";
    if (key == "session authorization") return "session_authorization";
    return key;
}

}  // namespace

std::string quote_identifier(std::string_view name) {
    const bool plain = !name.empty() && (name[0] == '_' || (name[0] >= 'a' && name[0] <= 'z')) &&
                       std::all_of(name.begin(), name.end(),
                                   [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
    if (plain) return std::string(name);
    std::string out = "\"";
    for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

std::optional<std::vector<std::string>> split_identifiers(std::string_view text) {
    std::vector<std::string> out;
    text = trim(text);
    if (text.empty()) return out;
    while (true) {
        std::string name;
        if (text.starts_with('"')) {
            size_t at = 1;
            for (; at < text.size(); at++) {
                if (text[at] != '"') {
                    name.push_back(text[at]);
                } else if (at + 1 < text.size() && text[at + 1] == '"') {
                    name.push_back('"');
                    at++;
                } else {
                    break;
                }
            }
            if (at >= text.size()) return std::nullopt;
            text = trim(text.substr(at + 1));
        } else {
            const std::string_view word = text.substr(0, text.find_first_of(", \t\r\n"));
            if (word.empty() || word.find('"') != std::string_view::npos) return std::nullopt;
            name = to_lower(word);
            text = trim(text.substr(word.size()));
        }
        out.push_back(std::move(name));
        if (text.empty()) return out;
        if (text[0] != ',') return std::nullopt;
        text = trim(text.substr(1));
    }
}

SessionVariables::SessionVariables(Identity identity) : identity_(std::move(identity)) {}

Result<std::string> SessionVariables::resolve(std::string_view name) const {
    std::string key(plain_name(to_lower(trim(name))));
    if (find_variable(key) != nullptr) return key;
    const bool is_custom = key.find('.') != std::string::npos && key.front() != '.' && key.back() != '.';
    if (is_custom && key.size() <= kNameMaxBytes) return key;
    switch (sql::setting_rule(key)) {
        case sql::SettingRule::unknown:
            break;
        case sql::SettingRule::allowed:
            return Status(Code::unimplemented, "setting \"" + key + "\" of the engine can't be set for a session");
        case sql::SettingRule::readable:
        case sql::SettingRule::forbidden:
            return Status(Code::not_allowed, "setting \"" + key + "\" belongs to the pool, not to a session")
                .with_rule("locked_setting");
    }
    return Status(Code::not_found, "unrecognized configuration parameter \"" + key.substr(0, kNameMaxBytes) + "\"");
}

Result<std::string> SessionVariables::normalize(const std::string &key, const std::vector<std::string> &values) const {
    const Variable *variable = find_variable(key);
    if (variable == nullptr) return join(values);
    const std::string first = values.empty() ? std::string() : values[0];
    const bool is_list = variable->type == VariableType::search_path || variable->type == VariableType::date_style ||
                         variable->type == VariableType::time_zone;
    if (values.size() > 1 && !is_list) {
        return Status(Code::invalid_argument, "SET " + std::string(variable->name) + " takes only one argument");
    }
    switch (variable->type) {
        case VariableType::text:
            return first;
        case VariableType::boolean:
        case VariableType::transaction_read_only: {
            const auto flag = parse_bool(first);
            if (!flag)
                return Status(Code::invalid_argument,
                              "parameter \"" + std::string(variable->name) + "\" requires a Boolean value");
            return std::string(*flag ? "on" : "off");
        }
        case VariableType::integer:
            return normalize_integer(*variable, first);
        case VariableType::real:
            return normalize_real(*variable, first);
        case VariableType::duration:
        case VariableType::memory:
            return normalize_quantity(*variable, first);
        case VariableType::choice:
            return normalize_choice(*variable, first);
        case VariableType::encoding:
            return normalize_encoding(first);
        case VariableType::date_style:
            return normalize_date_style(values);
        case VariableType::time_zone:
            return normalize_time_zone(values);
        case VariableType::isolation:
        case VariableType::transaction_isolation:
            return normalize_isolation(*variable, first);
        case VariableType::search_path: {
            std::vector<std::string> quoted;
            for (const std::string &value : values) quoted.push_back(quote_identifier(value));
            return join(quoted);
        }
        case VariableType::role:
            if (key == "role" && to_lower(first) == "none") return std::string("none");
            if (first == identity_.user) return first;
            return Status(Code::permission_denied,
                          "permission denied to set " + std::string(variable->name) + " \"" + first + "\"");
        case VariableType::fixed:
            break;
    }
    return Status(Code::failed_precondition, "parameter \"" + std::string(variable->name) + "\" cannot be changed")
        .with_sqlstate("55P02");
}

void SessionVariables::assign(const std::string &key, std::optional<std::string> value, bool is_local) {
    Value &slot = values_[key];
    if (is_local) {
        slot.local = value ? std::move(*value) : default_of(key);
    } else {
        undo_.try_emplace(key, slot.session);
        slot.session = std::move(value);
        slot.local.reset();
    }
    version_++;
}

std::string SessionVariables::default_of(const std::string &key) const {
    if (const auto at = defaults_.find(key); at != defaults_.end()) return at->second;
    if (key == "session_authorization") return identity_.user;
    if (key == "server_version") return identity_.server_version;
    if (key == "transaction_isolation") return current("default_transaction_isolation");
    if (key == "transaction_read_only") return current("default_transaction_read_only");
    const Variable *variable = find_variable(key);
    return variable != nullptr ? std::string(variable->initial) : std::string();
}

std::string SessionVariables::current(const std::string &key) const {
    const auto at = values_.find(key);
    if (at != values_.end() && at->second.local) return *at->second.local;
    if (at != values_.end() && at->second.session) return *at->second.session;
    return default_of(key);
}

std::string SessionVariables::display_name(const std::string &key) const {
    const Variable *variable = find_variable(key);
    return variable != nullptr ? std::string(variable->name) : key;
}

Status SessionVariables::set_default(std::string_view name, std::string_view value) {
    ROOST_ASSIGN_OR_RETURN(std::string key, resolve(name));
    std::vector<std::string> values{std::string(value)};
    if (key == "search_path") {
        auto names = split_identifiers(value);
        if (!names) return invalid_value("search_path", value);
        values = std::move(*names);
    }
    if (value.size() > kValueMaxBytes || defaults_.size() >= kVariablesMax)
        return invalid_value(key, value.substr(0, 64));
    ROOST_ASSIGN_OR_RETURN(std::string normal, normalize(key, values));
    defaults_[std::move(key)] = std::move(normal);
    version_++;
    return {};
}

Status SessionVariables::set(std::string_view name, const std::vector<std::string> &values, bool is_local) {
    ROOST_ASSIGN_OR_RETURN(const std::string key, resolve(name));
    size_t size_bytes = 0;
    for (const std::string &value : values) size_bytes += value.size();
    if (size_bytes > kValueMaxBytes || (values_.size() >= kVariablesMax && !values_.contains(key))) {
        return Status(Code::resource_exhausted, "too many or too long session variables").with_sqlstate("54000");
    }
    if (key == "timezone" && values.size() == 1 && to_lower(values[0]) == "local") return reset(key, is_local);
    ROOST_ASSIGN_OR_RETURN(std::string normal, normalize(key, values));
    const bool of_transaction = key == "transaction_isolation" || key == "transaction_read_only";
    assign(key, std::move(normal), is_local || of_transaction);
    return {};
}

Status SessionVariables::reset(std::string_view name, bool is_local) {
    ROOST_ASSIGN_OR_RETURN(const std::string key, resolve(name));
    const Variable *variable = find_variable(key);
    if (variable != nullptr && variable->type == VariableType::fixed) return normalize(key, {}).status();
    assign(key, std::nullopt, is_local);
    return {};
}

void SessionVariables::reset_all() {
    for (auto &[key, value] : values_) {
        undo_.try_emplace(key, value.session);
        value = Value{};
    }
    version_++;
}

Result<SessionVariables::Shown> SessionVariables::show(std::string_view name) const {
    ROOST_ASSIGN_OR_RETURN(const std::string key, resolve(name));
    const Variable *variable = find_variable(key);
    if (variable == nullptr && !values_.contains(key) && !defaults_.contains(key)) {
        return Status(Code::not_found, "unrecognized configuration parameter \"" + key + "\"");
    }
    return Shown{display_name(key), current(key),
                 variable != nullptr ? std::string(variable->description) : std::string()};
}

std::vector<SessionVariables::Shown> SessionVariables::show_all() const {
    std::vector<Shown> out;
    for (const Variable &variable : variables()) {
        out.push_back(
            {std::string(variable.name), current(to_lower(variable.name)), std::string(variable.description)});
    }
    return out;
}

void SessionVariables::begin_transaction(const std::optional<std::string> &isolation, std::optional<bool> read_only) {
    assign("transaction_isolation", isolation, true);
    assign("transaction_read_only", read_only ? std::optional<std::string>(*read_only ? "on" : "off") : std::nullopt,
           true);
}

bool SessionVariables::transaction_read_only() const { return current("transaction_read_only") == "on"; }

void SessionVariables::commit() {
    bool had_local = false;
    for (auto &[key, value] : values_) {
        had_local = had_local || value.local.has_value();
        value.local.reset();
    }
    undo_.clear();
    if (had_local) version_++;
}

void SessionVariables::rollback() {
    if (!undo_.empty()) version_++;
    for (auto &[key, before] : undo_) values_[key].session = std::move(before);
    commit();
}

std::vector<std::pair<std::string_view, std::string>> SessionVariables::all_reports() {
    reported_.clear();
    reported_version_ = 0;
    return take_reports();
}

std::vector<std::pair<std::string_view, std::string>> SessionVariables::take_reports() {
    std::vector<std::pair<std::string_view, std::string>> out;
    if (reported_version_ == version_) return out;
    reported_version_ = version_;
    for (const Variable &variable : variables()) {
        if (!variable.reported) continue;
        std::string value = current(to_lower(variable.name));
        auto [at, is_new] = reported_.try_emplace(variable.name);
        if (!is_new && at->second == value) continue;
        at->second = value;
        out.emplace_back(variable.name, std::move(value));
    }
    return out;
}

int64_t SessionVariables::duration_ms(std::string_view name) const {
    return parse_quantity(current(std::string(name)), kTimeUnits).value_or(0);
}

void SessionVariables::apply_to(Session &session) const {
    std::vector<std::string> path;
    for (std::string &name : split_identifiers(current("search_path")).value_or(std::vector<std::string>())) {
        // The catalogs of the system are searched anyway, and a schema named after the user exists only if it was made.
        if (name.empty() || name == "$user" || name == "pg_catalog" || name == "information_schema") continue;
        if (name == "public") name = "main";
        if (std::find(path.begin(), path.end(), name) == path.end()) path.push_back(std::move(name));
    }
    if (path.size() == 1 && path[0] == "main") path.clear();
    session.settings.search_path = std::move(path);
    session.settings.time_zone = current("timezone");
    session.statement_timeout_ms = duration_ms("statement_timeout");
    session.default_read_only = current("default_transaction_read_only") == "on";
    session.client_name = current("application_name");
}

}  // namespace roost::service
