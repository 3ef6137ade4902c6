#include "config/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

namespace roost::config {
namespace {

// sockaddr_un holds this much with its closing zero byte left out.
constexpr size_t kUnixPathMaxBytes = 107;
// Texts in errors are cut: they may be anything.
constexpr size_t kQuotedMaxBytes = 80;

std::string quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text.substr(0, kQuotedMaxBytes)) out += static_cast<uint8_t>(c) < 0x20 || c == 0x7F ? '?' : c;
    out += text.size() > kQuotedMaxBytes ? "…'" : "'";
    return out;
}

Status bad(std::string message) { return Status(Code::invalid_argument, std::move(message)); }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::string lower(std::string_view text) {
    std::string out(text);
    for (char &c : out) c = lower(c);
    return out;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "12.5 units" as a whole part, a fraction in millionths and the unit in lower case.
struct Quantity {
    uint64_t whole = 0;
    uint32_t millionths = 0;
    std::string unit;
};

std::optional<Quantity> parse_quantity(std::string_view text) {
    text = trim(text);
    Quantity quantity;
    size_t at = 0;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == 0) return std::nullopt;
    if (std::from_chars(text.data(), text.data() + at, quantity.whole).ec != std::errc()) return std::nullopt;
    if (at < text.size() && text[at] == '.') {
        const size_t start = ++at;
        uint32_t place = 100'000;
        for (; at < text.size() && is_digit(text[at]); ++at, place /= 10) {
            quantity.millionths += static_cast<uint32_t>(text[at] - '0') * place;
        }
        if (at == start) return std::nullopt;
    }
    quantity.unit = lower(trim(text.substr(at)));
    return quantity;
}

// whole.millionths × size, or nothing when it is past `max`.
std::optional<uint64_t> scale(const Quantity &quantity, uint64_t size, uint64_t max) {
    using Wide = unsigned __int128;
    const Wide total = Wide(quantity.whole) * size + Wide(quantity.millionths) * size / 1'000'000;
    if (total > max) return std::nullopt;
    return static_cast<uint64_t>(total);
}

struct Unit {
    std::string_view name;
    uint64_t size;
};

constexpr uint64_t kKiB = 1024;
constexpr std::array<Unit, 14> kByteUnits = {{
    {"", 1},
    {"b", 1},
    {"kib", kKiB},
    {"mib", kKiB *kKiB},
    {"gib", kKiB *kKiB *kKiB},
    {"tib", kKiB *kKiB *kKiB *kKiB},
    {"k", kKiB},
    {"m", kKiB *kKiB},
    {"g", kKiB *kKiB *kKiB},
    {"t", kKiB *kKiB *kKiB *kKiB},
    {"kb", 1'000},
    {"mb", 1'000'000},
    {"gb", 1'000'000'000},
    {"tb", 1'000'000'000'000},
}};
constexpr std::array<Unit, 6> kTimeUnits = {{
    {"", 1},
    {"ms", 1},
    {"s", 1'000},
    {"m", 60'000},
    {"h", 3'600'000},
    {"d", 86'400'000},
}};

template <size_t N>
std::optional<uint64_t> unit_size(const std::array<Unit, N> &units, std::string_view name) {
    for (const Unit &unit : units) {
        if (unit.name == name) return unit.size;
    }
    return std::nullopt;
}

bool has_prefix(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// Paths and connection strings go to C interfaces and to logs of one line.
bool has_control(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; });
}

bool is_host_char(char c) {
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '.' || c == '_';
}
bool is_ipv6_char(char c) {
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f') || c == ':' || c == '.' || c == '%';
}

Result<Address> parse_unix(std::string_view path) {
    if (path.empty()) return bad("a Unix socket needs a path, as in unix:/run/roost.sock");
    if (has_control(path)) return bad("a socket path can't hold control characters");
    if (path.size() > kUnixPathMaxBytes) {
        return bad("the socket path is " + std::to_string(path.size()) + " bytes long; the system takes at most " +
                   std::to_string(kUnixPathMaxBytes) + " (use a shorter or a relative path)");
    }
    Address address;
    address.unix_path = std::string(path);
    return address;
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
    const auto quantity = parse_quantity(text);
    const auto size = quantity ? unit_size(kByteUnits, quantity->unit) : std::nullopt;
    if (!size) return bad(quoted(text) + " is not a size; write 2GiB, 512MB or a number of bytes");
    if (*size == 1 && quantity->millionths != 0) return bad(quoted(text) + " is not a whole number of bytes");
    const auto bytes = scale(*quantity, *size, std::numeric_limits<int64_t>::max());
    if (!bytes) return bad(quoted(text) + " is more bytes than a machine can have");
    return *bytes;
}

std::string format_bytes(uint64_t bytes) {
    static constexpr std::array<std::string_view, 5> names = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    while (i + 1 < names.size() && bytes != 0 && bytes % kKiB == 0) {
        bytes /= kKiB;
        ++i;
    }
    return std::to_string(bytes) + std::string(names[i]);
}

Result<int64_t> parse_duration_ms(std::string_view text) {
    const auto quantity = parse_quantity(text);
    const auto size = quantity ? unit_size(kTimeUnits, quantity->unit) : std::nullopt;
    if (!size)
        return bad(quoted(text) + " is not a duration; write 500ms, 30s, 5m, 24h, 7d or a number of milliseconds");
    const auto duration_ms = scale(*quantity, *size, std::numeric_limits<int64_t>::max() / 1'000'000);
    if (!duration_ms) return bad(quoted(text) + " is too long");
    if (*size == 1 && quantity->millionths != 0) return bad(quoted(text) + " is not a whole number of milliseconds");
    return static_cast<int64_t>(*duration_ms);
}

std::string format_duration(int64_t duration_ms) {
    for (auto unit = kTimeUnits.rbegin(); unit != kTimeUnits.rend(); ++unit) {
        const auto size = static_cast<int64_t>(unit->size);
        if (size > 1 && duration_ms != 0 && duration_ms % size == 0) {
            return std::to_string(duration_ms / size) + std::string(unit->name);
        }
    }
    return std::to_string(duration_ms) + "ms";
}

Result<double> parse_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return value;
    return Status(Code::invalid_argument, "'" + std::string(text.substr(0, 40)) + "' is not a number");
}

std::string format_number(double value) {
    char buffer[32];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
    return error == std::errc() ? std::string(buffer, end) : std::string("0");
}

Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max) {
    const std::string_view digits = trim(text);
    int64_t value = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = end.ptr == digits.data() + digits.size() && !digits.empty();
    if (!whole || end.ec == std::errc::invalid_argument) return bad(quoted(text) + " is not a whole number");
    if (end.ec != std::errc() || value < min || value > max) {
        return bad(quoted(text) + " is out of range; it goes from " + std::to_string(min) + " to " +
                   std::to_string(max));
    }
    return value;
}

std::string Address::to_string() const {
    if (is_unix()) return "unix:" + unix_path;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view text, UnixSocket unix_socket) {
    if (has_prefix(text, "unix:")) {
        if (unix_socket == UnixSocket::refused) return bad(quoted(text) + ": this port can't be a Unix socket");
        return parse_unix(text.substr(5));
    }
    const Status wanted = bad(quoted(text) + " is not an address; write HOST:PORT, as in 127.0.0.1:8080 or [::1]:8080");
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return wanted;
    std::string_view host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    const bool valid_host =
        bracketed ? std::all_of(host.begin(), host.end(), is_ipv6_char) && host.find(':') != std::string_view::npos
                  : !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), is_host_char);
    if (!valid_host || digits.empty() || digits.size() > 5 || !std::all_of(digits.begin(), digits.end(), is_digit)) {
        return wanted;
    }
    const auto port = parse_integer(digits, 0, 65535);
    if (!port.ok()) return bad(quoted(text) + ": a port is at most 65535");
    Address address;
    address.host = std::string(host);
    address.port = static_cast<uint16_t>(*port);
    return address;
}

Result<Address> parse_join_url(std::string_view text) {
    if (has_prefix(text, "unix:")) return parse_unix(text.substr(5));
    if (has_prefix(text, "https://")) {
        return Status(Code::unimplemented, "nodes can't join over https yet")
            .with_hint("use http:// on a network that you trust");
    }
    if (!has_prefix(text, "http://"))
        return bad(quoted(text) + " is not a gateway's address; write http://HOST:PORT or unix:PATH");
    std::string_view rest = text.substr(7);
    if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
    ROOST_ASSIGN_OR_RETURN(const Address address, parse_address(rest, UnixSocket::refused));
    if (address.port == 0) return bad(quoted(text) + " names no port to join at");
    return address;
}

std::string StoreLocation::to_string() const {
    if (!is_s3) return path;
    return "s3://" + bucket + (prefix.empty() ? "" : "/" + prefix);
}

StoreLocation store_below(StoreLocation store, const std::string &name) {
    if (store.is_s3) {
        store.prefix += (store.prefix.empty() ? "" : "/") + name;
    } else {
        store.path += "/" + name;
    }
    return store;
}

bool overlap(const StoreLocation &one, const StoreLocation &other) {
    const auto folder_of = [](const StoreLocation &location) {
        std::error_code ignored;  // without a working directory the path stays as it was written
        const std::filesystem::path absolute = std::filesystem::absolute(location.path, ignored);
        std::string folder =
            location.is_s3 ? location.to_string() : (ignored ? location.path : absolute.lexically_normal().string());
        while (folder.ends_with('/')) folder.pop_back();
        return folder + '/';
    };
    const std::string folder = folder_of(one), other_folder = folder_of(other);
    return folder.starts_with(other_folder) || other_folder.starts_with(folder);
}

Result<StoreLocation> parse_store(std::string_view text) {
    StoreLocation location;
    if (has_control(text)) return bad("a store location can't hold control characters");
    if (!has_prefix(text, "s3://")) {
        if (text.empty()) return bad("a store is a directory or s3://bucket/prefix");
        if (text.find("://") != std::string_view::npos)
            return bad(quoted(text) + ": only s3:// and directories are supported");
        location.path = std::string(text);
        return location;
    }
    std::string_view rest = text.substr(5);
    const size_t slash = rest.find('/');
    const std::string_view bucket = rest.substr(0, slash);
    std::string_view prefix = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    while (!prefix.empty() && prefix.back() == '/') prefix.remove_suffix(1);
    const auto is_bucket_char = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '.'; };
    if (bucket.size() < 3 || bucket.size() > 63 || !std::all_of(bucket.begin(), bucket.end(), is_bucket_char)) {
        return bad(quoted(bucket) + " is not a bucket name; it has 3 to 63 of a-z, 0-9, '-' and '.'");
    }
    // "s3://b//x" and "s3://b/a/../x" name other objects than they seem to.
    const std::string framed = "/" + std::string(prefix) + "/";
    if (prefix.find_first_of("?#*") != std::string_view::npos ||
        (!prefix.empty() && framed.find("//") != std::string::npos) || framed.find("/../") != std::string::npos ||
        framed.find("/./") != std::string::npos) {
        return bad(quoted(prefix) + " is not a plain prefix: no '?', '#', '*', '..', '.' or empty parts");
    }
    location.is_s3 = true;
    location.bucket = std::string(bucket);
    location.prefix = std::string(prefix);
    return location;
}

Result<std::vector<StoreLocation>> parse_stores(std::string_view text) {
    std::vector<StoreLocation> stores;
    while (!text.empty()) {
        const size_t comma = std::min(text.find(','), text.size());
        ROOST_ASSIGN_OR_RETURN(StoreLocation store, parse_store(text.substr(0, comma)));
        stores.push_back(std::move(store));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return stores;
}

std::string format_stores(const std::vector<StoreLocation> &stores) {
    std::string text;
    for (const StoreLocation &store : stores) text += (text.empty() ? "" : ",") + store.to_string();
    return text;
}

std::string DatabaseLocation::to_string() const { return (kind == Kind::sqlite ? "sqlite:" : "postgres:") + place; }

Result<DatabaseLocation> parse_database(std::string_view text) {
    // The text may hold a password, so it is not repeated.
    if (has_control(text)) return bad("a database location can't hold control characters");
    DatabaseLocation location;
    if (has_prefix(text, "sqlite:")) {
        location.place = std::string(text.substr(7));
        // SQLite itself would take these for an in-memory database or its own URI.
        if (location.place.empty() || location.place.front() == ':' || has_prefix(location.place, "file:")) {
            return bad("sqlite: needs the path of a file, as in sqlite:data/meta.sqlite");
        }
        return location;
    }
    if (has_prefix(text, "postgresql://") || has_prefix(text, "postgres://")) {
        location.place = std::string(text);
    } else if (has_prefix(text, "postgres:")) {
        location.place = std::string(text.substr(9));
    } else {
        return bad("the location of a database starts with sqlite: or postgres:");
    }
    if (location.place.empty()) return bad("postgres: needs a connection string, as in postgres:host=db dbname=roost");
    location.kind = DatabaseLocation::Kind::postgres;
    return location;
}

std::string mask_password(std::string_view text) {
    std::string out(text);
    // postgresql://user:password@host/db; the last @ before the path ends the password.
    const size_t scheme = out.find("://");
    if (scheme != std::string::npos) {
        const size_t start = scheme + 3;
        const size_t at = out.rfind('@');
        const size_t colon = out.find(':', start);
        if (at != std::string::npos && colon != std::string::npos && colon < at)
            out.replace(colon + 1, at - colon - 1, "***");
    }
    // host=db password=secret password='two words'; and ?password=secret in a URL
    for (size_t found = 0; (found = lower(out).find("password", found)) != std::string::npos;) {
        found += 8;
        size_t start = found;
        while (start < out.size() && out[start] == ' ') ++start;
        if (start >= out.size() || out[start] != '=') continue;
        do ++start;
        while (start < out.size() && out[start] == ' ');
        const bool in_quotes = start < out.size() && out[start] == '\'';
        size_t end = start + (in_quotes ? 1 : 0);
        while (end < out.size() && (in_quotes ? out[end] != '\'' : out[end] != ' ' && out[end] != '&')) {
            end += out[end] == '\\' && end + 1 < out.size() ? 2 : 1;
        }
        if (in_quotes && end < out.size()) ++end;
        out.replace(start, end - start, "***");
        found = start;
    }
    return out;
}

std::string Sample::to_string() const {
    if (none()) return "none";
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof(digits), tpch_scale_factor);
    return "tpch:" + std::string(digits, end.ptr);
}

Result<Sample> parse_sample(std::string_view text) {
    Sample sample;
    if (text == "none") return sample;
    const std::string_view digits = has_prefix(text, "tpch:") ? text.substr(5) : std::string_view();
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), sample.tpch_scale_factor);
    // Written so that a NaN fails too.
    const bool in_range = sample.tpch_scale_factor >= 0.001 && sample.tpch_scale_factor <= 1000;
    if (digits.empty() || end.ec != std::errc() || end.ptr != digits.data() + digits.size() || !in_range) {
        return bad(quoted(text) + " is not a sample; write none, or tpch:SF with a scale factor from 0.001 to 1000");
    }
    return sample;
}

Result<std::string> parse_choice(std::string_view text, const std::vector<std::string_view> &choices) {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string(text);
    std::string message = quoted(text) + " is not one of ";
    for (size_t i = 0; i < choices.size(); ++i) {
        message += std::string(i == 0 ? "" : i + 1 == choices.size() ? " and " : ", ") + std::string(choices[i]);
    }
    Status status = bad(std::move(message));
    const auto near = nearest(text, choices);
    return near.empty() ? status : std::move(status).with_hint("did you mean " + std::string(near) + "?");
}

std::string_view nearest(std::string_view text, const std::vector<std::string_view> &candidates) {
    if (text.size() > 64) return {};
    std::string_view best;
    size_t best_distance = std::max<size_t>(1, text.size() / 3) + 1;
    for (const std::string_view candidate : candidates) {
        std::vector<size_t> row(candidate.size() + 1);
        for (size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
        for (size_t i = 1; i <= text.size(); ++i) {
            size_t corner = row[0];
            row[0] = i;
            for (size_t j = 1; j <= candidate.size(); ++j) {
                const size_t above = row[j];
                const size_t change = lower(text[i - 1]) == lower(candidate[j - 1]) ? 0 : 1;
                row[j] = std::min({above + 1, row[j - 1] + 1, corner + change});
                corner = above;
            }
        }
        if (row.back() < best_distance) {
            best_distance = row.back();
            best = candidate;
        }
    }
    return best;
}

}  // namespace roost::config
