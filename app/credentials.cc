#include "app/credentials.h"

#include <nlohmann/json.hpp>

#include "app/files.h"
#include "base/ids.h"

namespace roost::app {
namespace {

constexpr size_t kMostBytes = 64 * 1024;

Result<Credentials> parse(const std::string &path, const std::string &text) {
    const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
    Credentials out;
    for (auto [name, target] : {std::pair{"user", &out.user}, {"password", &out.password}, {"token", &out.token}}) {
        if (!parsed.is_object() || !parsed.contains(name) || !parsed[name].is_string() ||
            parsed[name].get_ref<const std::string &>().empty()) {
            return Status(Code::invalid_argument, path + " has no \"" + std::string(name) + "\"")
                .with_hint("restore the file, or remove it together with the meta store to start afresh");
        }
        *target = parsed[name].get<std::string>();
    }
    return out;
}

}  // namespace

Result<Credentials> load_credentials(const std::string &path) {
    ROOST_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMostBytes));
    return parse(path, text);
}

Result<Credentials> ensure_credentials(const std::string &path) {
    Result<Credentials> there = load_credentials(path);
    if (there.ok() || there.status().code() != Code::not_found) return there;
    Credentials fresh{"admin", random_hex(16), "roost_" + random_hex(24)};
    const nlohmann::ordered_json file{{"user", fresh.user}, {"password", fresh.password}, {"token", fresh.token}};
    ROOST_RETURN_IF_ERROR(write_file_atomically(path, file.dump(2) + "\n"));
    return fresh;
}

Result<std::string> load_join_token(const std::string &path) {
    ROOST_ASSIGN_OR_RETURN(std::string token, read_file(path, kMostBytes));
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) token.pop_back();
    if (token.empty()) return Status(Code::invalid_argument, path + " is empty");
    return token;
}

Result<std::string> ensure_join_token(const std::string &path) {
    Result<std::string> there = load_join_token(path);
    if (there.ok() || there.status().code() != Code::not_found) return there;
    std::string token = random_hex(32);
    ROOST_RETURN_IF_ERROR(write_file_atomically(path, token + "\n"));
    return token;
}

std::string passfile_line(const Credentials &credentials) {
    std::string escaped;
    for (const char c : credentials.password) {
        if (c == '\\' || c == ':') escaped += '\\';
        escaped += c;
    }
    return "*:*:*:" + credentials.user + ":" + escaped + "\n";
}

}  // namespace roost::app
