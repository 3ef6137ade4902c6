#include "lake/postgres_dsn.h"

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

namespace roost {

namespace {

// Timeouts of the client in seconds, tcp_user_timeout in milliseconds.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kBounds = {{
    {"connect_timeout", "5"},
    {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},
    {"keepalives_count", "2"},
    {"tcp_user_timeout", "20000"},
    {"fallback_application_name", "roost"},
}};

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

Result<Options> parse(const std::string &dsn) {
    char *why = nullptr;
    Options options(PQconninfoParse(dsn.c_str(), &why), &PQconninfoFree);
    const std::unique_ptr<char, decltype(&PQfreemem)> owned(why, &PQfreemem);
    if (options) return options;
    // libpq's words repeat the text, and with it the password.
    return Status(Code::invalid_argument, "the connection string of the Postgres catalog can't be understood")
        .with_hint("postgres:host=HOST dbname=NAME user=NAME, or postgresql://USER@HOST/NAME");
}

std::string value_of(const PQconninfoOption *options, std::string_view keyword) {
    for (const auto *option = options; option->keyword; option++) {
        if (keyword == option->keyword) return option->val ? option->val : "";
    }
    return {};
}

std::string quoted_value(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') out.push_back('\\');
        out.push_back(c);
    }
    return out + "'";
}

std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> parts;
    for (size_t from = 0; from <= text.size();) {
        const size_t to = std::min(text.find(',', from), text.size());
        parts.push_back(text.substr(from, to - from));
        from = to + 1;
    }
    return parts;
}

}  // namespace

Result<std::string> complete_dsn(const std::string &dsn, int64_t statement_ms) {
    ROOST_ASSIGN_OR_RETURN(const Options options, parse(dsn));
    std::string out;
    const auto add = [&out](std::string_view keyword, std::string_view value) {
        if (!out.empty()) out.push_back(' ');
        out += std::string(keyword) + "=" + quoted_value(value);
    };
    std::vector<std::string_view> given;
    for (const auto *option = options.get(); option->keyword; option++) {
        if (!option->val) continue;
        add(option->keyword, option->val);
        given.emplace_back(option->keyword);
    }
    const auto is_given = [&given](std::string_view keyword) {
        return std::find(given.begin(), given.end(), keyword) != given.end();
    };
    for (const auto &[keyword, value] : kBounds) {
        if (!is_given(keyword)) add(keyword, value);
    }
    if (!is_given("options")) {
        add("options", "-c statement_timeout=" + std::to_string(statement_ms) + " -c lock_timeout=10s");
    }
    return out;
}

Result<DsnPlaces> places_of(const std::string &dsn) {
    ROOST_ASSIGN_OR_RETURN(const Options options, parse(dsn));
    DsnPlaces places;
    for (const std::string &text : split(value_of(options.get(), "port"))) {
        uint16_t port = 5432;  // libpq's own, for an empty part
        std::from_chars(text.data(), text.data() + text.size(), port);
        places.ports.push_back(port);
    }
    for (const std::string &host : split(value_of(options.get(), "host"))) {
        if (host.starts_with('/')) places.paths.push_back(host);
    }
    for (const char *keyword : {"sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile"}) {
        if (std::string path = value_of(options.get(), keyword); path.starts_with('/')) places.paths.push_back(path);
    }
    for (const char *keyword : {"password", "sslpassword"}) {
        places.secrets.push_back(value_of(options.get(), keyword));
    }
    std::erase_if(places.secrets, [](const std::string &secret) { return secret.empty(); });
    return places;
}

}  // namespace roost
