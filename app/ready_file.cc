#include "app/ready_file.h"

#include <nlohmann/json.hpp>

namespace roost::app {

std::string ready_to_json(const ReadyInfo &info) {
    nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
    for (const ReadyNode &node : info.nodes) nodes.push_back({{"id", node.id}, {"pid", node.pid}, {"dir", node.dir}});
    const nlohmann::ordered_json file{{"http", info.http},
                                      {"pg", info.pg},
                                      {"user", info.credentials.user},
                                      {"password", info.credentials.password},
                                      {"token", info.credentials.token},
                                      {"workspace", info.workspace},
                                      {"catalog", info.catalog},
                                      {"nodes", std::move(nodes)}};
    return file.dump(2) + "\n";
}

Result<ReadyInfo> ready_from_json(const std::string &path, const std::string &text) {
    const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
    ReadyInfo out;
    for (auto [name, target] : {std::pair{"http", &out.http},
                                {"pg", &out.pg},
                                {"user", &out.credentials.user},
                                {"password", &out.credentials.password},
                                {"token", &out.credentials.token},
                                {"workspace", &out.workspace},
                                {"catalog", &out.catalog}}) {
        if (!parsed.is_object() || !parsed.contains(name) || !parsed[name].is_string()) {
            return Status(Code::invalid_argument, path + " is not a ready file: it has no \"" + name + "\"");
        }
        *target = parsed[name].get<std::string>();
    }
    return out;
}

std::string dialable(const std::string &address) {
    const size_t colon = address.rfind(':');
    const std::string host = address.substr(0, colon);
    const std::string port = colon == std::string::npos ? "" : address.substr(colon);
    if (host == "0.0.0.0" || host == "*") return "127.0.0.1" + port;
    if (host == "[::]") return "[::1]" + port;
    return address;
}

std::string shell_quoted(const std::string &text) {
    constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+=,";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string psql_line(const ReadyInfo &info, const std::string &passfile) {
    const size_t colon = info.pg.rfind(':');
    std::string host = info.pg.substr(0, colon);
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    return "PGPASSFILE=" + shell_quoted(passfile) + " psql -h " + shell_quoted(host) + " -p " +
           info.pg.substr(colon + 1) + " -U " + shell_quoted(info.credentials.user) + " -d " +
           shell_quoted(info.catalog);
}

}  // namespace roost::app
