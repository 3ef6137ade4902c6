#include "app/json_slices.h"

#include <nlohmann/json.hpp>

namespace roost::app {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

Status malformed() { return Status(Code::data_loss, "the server's answer is not whole JSON"); }

// Takes tokens off the front of a text.
class Scanner {
public:
    explicit Scanner(std::string_view text) : rest_(text) { skip_space(); }

    bool at(char c) const { return !rest_.empty() && rest_[0] == c; }
    bool take(char c) {
        if (!at(c)) return false;
        rest_.remove_prefix(1);
        skip_space();
        return true;
    }

    // One value; empty when it does not end.
    std::string_view value() {
        const size_t size = rest_.empty()                        ? 0
                            : rest_[0] == '"'                    ? string_size(0)
                            : rest_[0] == '{' || rest_[0] == '[' ? nested_size()
                                                                 : bare_size();
        const std::string_view out = rest_.substr(0, size);
        rest_.remove_prefix(size);
        skip_space();
        return out;
    }

private:
    void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpace), rest_.size())); }

    // Of the string that begins at `start`, quotes included; 0 when it does not end.
    size_t string_size(size_t start) const {
        for (size_t i = start + 1; i < rest_.size(); ++i) {
            if (rest_[i] == '\\') {
                ++i;
            } else if (rest_[i] == '"') {
                return i + 1 - start;
            }
        }
        return 0;
    }

    size_t nested_size() const {
        size_t depth = 0;
        for (size_t i = 0; i < rest_.size(); ++i) {
            const char c = rest_[i];
            if (c == '"') {
                const size_t size = string_size(i);
                if (size == 0) return 0;
                i += size - 1;
            } else if (c == '{' || c == '[') {
                ++depth;
            } else if ((c == '}' || c == ']') && --depth == 0) {
                return i + 1;
            }
        }
        return 0;
    }

    size_t bare_size() const { return std::min(rest_.find_first_of(",]} \t\r\n"), rest_.size()); }

    std::string_view rest_;
};

}  // namespace

Result<std::vector<std::pair<std::string, std::string_view>>> json_members(std::string_view text) {
    Scanner scanner(text);
    std::vector<std::pair<std::string, std::string_view>> out;
    if (!scanner.take('{')) return malformed();
    if (scanner.take('}')) return out;
    do {
        const std::string_view name = scanner.value();
        if (!name.starts_with('"') || !scanner.take(':')) return malformed();
        const std::string_view value = scanner.value();
        if (value.empty()) return malformed();
        out.emplace_back(json_as_text(name), value);
    } while (scanner.take(','));
    if (!scanner.take('}')) return malformed();
    return out;
}

Result<std::vector<std::string_view>> json_elements(std::string_view text) {
    Scanner scanner(text);
    std::vector<std::string_view> out;
    if (!scanner.take('[')) return malformed();
    if (scanner.take(']')) return out;
    do {
        out.push_back(scanner.value());
        if (out.back().empty()) return malformed();
    } while (scanner.take(','));
    if (!scanner.take(']')) return malformed();
    return out;
}

std::string json_as_text(std::string_view value) {
    if (!value.starts_with('"')) return std::string(value);
    if (value.find('\\') == std::string_view::npos) return std::string(value.substr(1, value.size() - 2));
    const nlohmann::json parsed = nlohmann::json::parse(value, nullptr, false);
    return parsed.is_string() ? parsed.get<std::string>() : std::string(value);
}

}  // namespace roost::app
