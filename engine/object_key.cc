#include "engine/object_key.h"

#include <algorithm>
#include <string>

namespace roost {

namespace {

constexpr size_t kKeyMaxBytes = 1024;  // of S3

bool is_plain(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-_.~=+@,").find(c) != std::string_view::npos;
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_plain_part(std::string_view part) {
    std::string decoded;
    for (size_t i = 0; i < part.size(); i++) {
        if (part[i] != '%') {
            if (!is_plain(part[i])) return false;
            decoded.push_back(part[i]);
            continue;
        }
        if (i + 2 >= part.size()) return false;
        const int high = hex_value(part[i + 1]), low = hex_value(part[i + 2]);
        if (high < 0 || low < 0) return false;
        decoded.push_back(static_cast<char>(high * 16 + low));
        i += 2;
    }
    return !decoded.empty() && decoded != "." && decoded != "..";
}

}  // namespace

bool is_plain_key(std::string_view key) {
    if (key.empty() || key.size() > kKeyMaxBytes) return false;
    for (size_t from = 0; from <= key.size();) {
        const size_t to = std::min(key.find('/', from), key.size());
        if (!is_plain_part(key.substr(from, to - from))) return false;
        from = to + 1;
    }
    return true;
}

}  // namespace roost
