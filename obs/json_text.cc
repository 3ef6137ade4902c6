#include "obs/json_text.h"

#include <cstdint>

namespace roost::obs {
namespace {

bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

void append_escaped(std::string &out, char c) {
    static constexpr char digits[] = "0123456789abcdef";
    switch (c) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            break;
    }
    out += "\\u00";
    out += digits[static_cast<uint8_t>(c) >> 4];
    out += digits[static_cast<uint8_t>(c) & 15];
}

bool is_plain(char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
}

}  // namespace

size_t utf8_char_bytes(std::string_view text) {
    const auto lead = static_cast<uint8_t>(text[0]);
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (text.size() < size) return 0;
    for (size_t i = 1; i < size; ++i) {
        if (!is_continuation(text[i])) return 0;
    }
    const auto second = static_cast<uint8_t>(text[1]);
    if (lead == 0xE0 && second < 0xA0) return 0;
    if (lead == 0xED && second > 0x9F) return 0;
    if (lead == 0xF0 && second < 0x90) return 0;
    if (lead == 0xF4 && second > 0x8F) return 0;
    return size;
}

void append_json_string(std::string &out, std::string_view text, size_t max_bytes) {
    out += '"';
    size_t at = 0;
    while (at < text.size()) {
        const size_t start = at;
        while (at < text.size() && at < max_bytes && is_plain(text[at])) ++at;
        out.append(text.substr(start, at - start));
        if (at == text.size()) break;
        const size_t size = utf8_char_bytes(text.substr(at));
        if (at + (size == 0 ? 1 : size) > max_bytes) {
            out += "\u2026";
            break;
        }
        if (size == 0) {
            out += "\uFFFD";
            ++at;
        } else if (size == 1) {
            append_escaped(out, text[at++]);
        } else {
            out.append(text.substr(at, size));
            at += size;
        }
    }
    out += '"';
}

}  // namespace roost::obs
