#include "sql/lexer.h"

#include <cstring>

namespace roost::sql {
namespace {

bool is_space(unsigned char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool is_newline(unsigned char c) { return c == '\n' || c == '\r'; }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool is_letter(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_identifier_start(unsigned char c) { return is_letter(c) || c == '_' || c >= 0x80; }
bool is_tag_character(unsigned char c) { return is_identifier_start(c) || is_digit(c); }
bool is_identifier_character(unsigned char c) { return is_tag_character(c) || c == '$'; }
bool is_operator_character(unsigned char c) { return c != 0 && std::strchr("~!@^&|`+-*/%<>=", c) != nullptr; }
bool is_punct_character(unsigned char c) { return c != 0 && std::strchr("()[]{},;", c) != nullptr; }

int hex_digit(unsigned char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

void append_utf8(std::string &out, uint32_t code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0 | (code >> 6));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        out += static_cast<char>(0xE0 | (code >> 12));
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x110000) {
        out += static_cast<char>(0xF0 | (code >> 18));
        out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    }
}

// Reads up to `digits` hex digits at *position into a code point and moves past them; returns how many there were.
int read_hex(std::string_view text, size_t *position, int digits, uint32_t *code) {
    int count = 0;
    *code = 0;
    while (count < digits && *position < text.size()) {
        const int digit = hex_digit(static_cast<unsigned char>(text[*position]));
        if (digit < 0) break;
        *code = *code * 16 + static_cast<uint32_t>(digit);
        ++*position;
        ++count;
    }
    return count;
}

// One escape of an E'' string; *position is just after the backslash.
void append_backslash_escape(std::string &out, std::string_view body, size_t *position) {
    const char c = body[(*position)++];
    uint32_t code = 0;
    switch (c) {
        case 'b':
            out += '\b';
            return;
        case 'f':
            out += '\f';
            return;
        case 'n':
            out += '\n';
            return;
        case 'r':
            out += '\r';
            return;
        case 't':
            out += '\t';
            return;
        case 'v':
            out += '\v';
            return;
        case 'x':
            if (read_hex(body, position, 2, &code) == 0)
                out += 'x';
            else
                out += static_cast<char>(code);
            return;
        case 'u':
        case 'U':
            read_hex(body, position, c == 'u' ? 4 : 8, &code);
            append_utf8(out, code);
            return;
        default:
            break;
    }
    if (c >= '0' && c <= '7') {
        code = static_cast<uint32_t>(c - '0');
        for (int i = 0; i < 2 && *position < body.size() && body[*position] >= '0' && body[*position] <= '7'; ++i) {
            code = code * 8 + static_cast<uint32_t>(body[(*position)++] - '0');
        }
        out += static_cast<char>(code);
        return;
    }
    out += c;
}

// One escape of a U&'' string or identifier; *position is just after the backslash.
void append_unicode_escape(std::string &out, std::string_view body, size_t *position) {
    uint32_t code = 0;
    if (body[*position] == '\\') {
        out += '\\';
        ++*position;
        return;
    }
    const bool six = body[*position] == '+';
    if (six) ++*position;
    read_hex(body, position, six ? 6 : 4, &code);
    append_utf8(out, code);
}

enum class Escapes { none, backslash, unicode };

std::string unescape(std::string_view body, char quote, Escapes escapes) {
    std::string out;
    out.reserve(body.size());
    for (size_t i = 0; i < body.size();) {
        const char c = body[i++];
        if (c == quote && i < body.size() && body[i] == quote) {
            out += quote;
            ++i;
        } else if (c == '\\' && escapes != Escapes::none && i < body.size()) {
            if (escapes == Escapes::backslash)
                append_backslash_escape(out, body, &i);
            else
                append_unicode_escape(out, body, &i);
        } else {
            out += c;
        }
    }
    return out;
}

}  // namespace

uint32_t unicode_blank_bytes(std::string_view text, size_t position) {
    const auto at = [&](size_t offset) -> unsigned char {
        return position + offset < text.size() ? static_cast<unsigned char>(text[position + offset]) : 0;
    };
    if (at(0) == 0xC2) return at(1) == 0xA0 ? 2 : 0;
    if (at(0) == 0xE2 && at(1) == 0x80) return (at(2) >= 0x80 && at(2) <= 0x8B) || at(2) == 0xAF ? 3 : 0;
    if (at(0) == 0xE2 && at(1) == 0x81) return at(2) == 0x9F || at(2) == 0xA0 ? 3 : 0;
    if (at(0) == 0xE3) return at(1) == 0x80 && at(2) == 0x80 ? 3 : 0;
    if (at(0) == 0xEF) return at(1) == 0xBB && at(2) == 0xBF ? 3 : 0;
    return 0;
}

// Blanks, line comments and nested block comments.
void Lexer::skip_blanks(bool *broken) {
    while (position_ < text_.size()) {
        const unsigned char c = at(position_);
        if (is_space(c)) {
            ++position_;
        } else if (c == '-' && at(position_ + 1) == '-') {
            while (position_ < text_.size() && !is_newline(at(position_))) ++position_;
        } else if (c == '/' && at(position_ + 1) == '*') {
            uint32_t depth = 0;
            uint32_t p = position_;
            do {
                if (at(p) == '/' && at(p + 1) == '*') {
                    ++depth;
                    p += 2;
                } else if (at(p) == '*' && at(p + 1) == '/') {
                    --depth;
                    p += 2;
                } else {
                    ++p;
                }
            } while (depth > 0 && p < text_.size());
            if (depth > 0) {
                *broken = true;
                return;
            }
            position_ = p;
        } else if (c >= 0x80) {
            const uint32_t bytes = unicode_blank_bytes(text_, position_);
            if (bytes == 0) return;
            position_ += bytes;
        } else {
            return;
        }
    }
}

Token Lexer::finish(Token::Kind kind, uint32_t begin, uint32_t end) {
    position_ = end;
    return Token{kind, begin, end};
}

// PostgreSQL joins constants that only blanks with a line break in them separate.
bool Lexer::string_continues(uint32_t after_quote, uint32_t *next_quote) const {
    bool newline = false;
    uint32_t p = after_quote;
    while (p < text_.size()) {
        const unsigned char c = at(p);
        if (is_newline(c)) newline = true;
        if (is_space(c)) {
            ++p;
        } else if (c == '-' && at(p + 1) == '-') {
            while (p < text_.size() && !is_newline(at(p))) ++p;
            if (p >= text_.size()) return false;
        } else {
            break;
        }
    }
    *next_quote = p;
    return newline && at(p) == '\'';
}

Token Lexer::quoted_string(uint32_t begin, uint32_t quote, bool escapes) {
    uint32_t p = quote + 1;
    while (p < text_.size()) {
        const unsigned char c = at(p);
        if (c == '\\' && escapes) {
            p += 2;
        } else if (c == '\'' && at(p + 1) == '\'') {
            p += 2;
        } else if (c == '\'') {
            uint32_t next = 0;
            if (!string_continues(p + 1, &next)) return finish(Token::Kind::string, begin, p + 1);
            p = next + 1;
        } else {
            ++p;
        }
    }
    return finish(Token::Kind::broken, begin, static_cast<uint32_t>(text_.size()));
}

Token Lexer::quoted_identifier(uint32_t begin, uint32_t quote) {
    uint32_t p = quote + 1;
    while (p < text_.size()) {
        if (at(p) == '"' && at(p + 1) == '"') {
            p += 2;
        } else if (at(p) == '"') {
            return finish(Token::Kind::quoted, begin, p + 1);
        } else {
            ++p;
        }
    }
    return finish(Token::Kind::broken, begin, static_cast<uint32_t>(text_.size()));
}

// $1, $tag$…$tag$ or $name.
Token Lexer::dollar(uint32_t begin) {
    uint32_t p = begin + 1;
    if (is_digit(at(p))) {
        while (is_digit(at(p)) || (at(p) == '_' && is_digit(at(p + 1)))) ++p;
        return finish(Token::Kind::parameter, begin, p);
    }
    if (is_identifier_start(at(p))) {
        while (is_tag_character(at(p))) ++p;
    }
    if (at(p) == '$') {
        const std::string_view tag = text_.substr(begin, p + 1 - begin);
        const size_t close = text_.find(tag, p + 1);
        if (close == std::string_view::npos) {
            return finish(Token::Kind::broken, begin, static_cast<uint32_t>(text_.size()));
        }
        return finish(Token::Kind::string, begin, static_cast<uint32_t>(close + tag.size()));
    }
    if (p == begin + 1) return finish(Token::Kind::other, begin, p);
    return finish(Token::Kind::parameter, begin, p);
}

Token Lexer::number(uint32_t begin) {
    uint32_t p = begin;
    const auto digits = [&] {
        while (is_digit(at(p)) || (at(p) == '_' && p > begin && is_digit(at(p - 1)) && is_digit(at(p + 1)))) ++p;
    };
    digits();
    // 1..10 is 1, then the range operator.
    if (at(p) == '.' && at(p + 1) != '.') {
        ++p;
        digits();
    }
    if (at(p) == 'e' || at(p) == 'E') {
        const uint32_t sign = at(p + 1) == '+' || at(p + 1) == '-' ? 1 : 0;
        if (is_digit(at(p + 1 + sign))) {
            p += 1 + sign;
            digits();
        }
    }
    return finish(Token::Kind::number, begin, p);
}

// The longest run of operator characters, cut before a comment and, as SQL wants `=-1` to be two operators, before a
// trailing + or - unless a character that SQL's own operators lack is in it.
Token Lexer::op(uint32_t begin) {
    uint32_t p = begin;
    while (is_operator_character(at(p))) {
        if (p > begin && ((at(p) == '-' && at(p + 1) == '-') || (at(p) == '/' && at(p + 1) == '*'))) break;
        ++p;
    }
    while (p - begin > 1 && (at(p - 1) == '+' || at(p - 1) == '-')) {
        if (text_.substr(begin, p - 1 - begin).find_first_of("~!@^&|`?%") != std::string_view::npos) break;
        --p;
    }
    return finish(Token::Kind::op, begin, p);
}

Token Lexer::next() {
    bool broken = false;
    skip_blanks(&broken);
    const uint32_t begin = position_;
    const auto size = static_cast<uint32_t>(text_.size());
    if (broken) return finish(Token::Kind::broken, begin, size);
    if (begin >= size) return Token{Token::Kind::end, size, size};
    const unsigned char c = at(begin);
    const unsigned char d = at(begin + 1);
    if (is_identifier_start(c)) {
        if (d == '\'' && (c == 'e' || c == 'E')) return quoted_string(begin, begin + 1, true);
        if (d == '\'' && std::strchr("bBxX", c) != nullptr) return quoted_string(begin, begin + 1, false);
        if (d == '&' && (c == 'u' || c == 'U')) {
            if (at(begin + 2) == '\'') return quoted_string(begin, begin + 2, false);
            if (at(begin + 2) == '"') return quoted_identifier(begin, begin + 2);
        }
        uint32_t p = begin + 1;
        while (p < size && is_identifier_character(at(p))) {
            if (at(p) >= 0x80 && unicode_blank_bytes(text_, p) != 0) break;
            ++p;
        }
        return finish(Token::Kind::word, begin, p);
    }
    if (c == '\'') return quoted_string(begin, begin, false);
    if (c == '"') return quoted_identifier(begin, begin);
    if (c == '$') return dollar(begin);
    if (is_digit(c) || (c == '.' && is_digit(d))) return number(begin);
    if (is_punct_character(c)) return finish(Token::Kind::punct, begin, begin + 1);
    if (c == '?') {
        uint32_t p = begin + 1;
        while (is_digit(at(p))) ++p;
        return finish(Token::Kind::parameter, begin, p);
    }
    if (c == ':') return finish(Token::Kind::op, begin, begin + (d == ':' || d == '=' ? 2 : 1));
    if (c == '.') return finish(Token::Kind::op, begin, begin + (d == '.' ? 2 : 1));
    if (is_operator_character(c)) return op(begin);
    return finish(Token::Kind::other, begin, begin + 1);
}

std::string fold(std::string_view text) {
    std::string out(text);
    for (char &c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

bool equals_folded(std::string_view text, std::string_view lower) {
    if (text.size() != lower.size()) return false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != lower[i]) return false;
    }
    return true;
}

std::string identifier_value(std::string_view text, const Token &token) {
    const std::string_view raw = token.in(text);
    if (token.kind != Token::Kind::quoted) return fold(raw);
    const bool unicode = raw[0] != '"';
    const size_t prefix = unicode ? 3 : 1;
    return unescape(raw.substr(prefix, raw.size() - prefix - 1), '"', unicode ? Escapes::unicode : Escapes::none);
}

std::string string_value(std::string_view text, const Token &token) {
    std::string_view raw = token.in(text);
    if (raw.empty()) return {};
    if (raw[0] == '$') {
        const size_t tag = raw.find('$', 1) + 1;
        return std::string(raw.substr(tag, raw.size() - 2 * tag));
    }
    std::string out;
    Escapes escapes = Escapes::none;
    if (raw[0] == 'e' || raw[0] == 'E') escapes = Escapes::backslash;
    if (raw[0] == 'u' || raw[0] == 'U') escapes = Escapes::unicode;
    if (raw[0] == 'b' || raw[0] == 'B') out = "b";
    if (raw[0] == 'x' || raw[0] == 'X') out = "x";
    // Constants joined across lines: each quoted part on its own.
    size_t i = raw.find('\'');
    while (i != std::string_view::npos && i < raw.size()) {
        size_t close = i + 1;
        while (close < raw.size()) {
            if (raw[close] == '\\' && escapes == Escapes::backslash) {
                close += 2;
            } else if (raw[close] == '\'' && close + 1 < raw.size() && raw[close + 1] == '\'') {
                close += 2;
            } else if (raw[close] == '\'') {
                break;
            } else {
                ++close;
            }
        }
        close = std::min(close, raw.size());
        out += unescape(raw.substr(i + 1, close - i - 1), '\'', escapes);
        // The next part starts after blanks and comments; a quote inside a comment starts nothing.
        i = close + 1;
        while (i < raw.size() && raw[i] != '\'') {
            if (raw[i] == '-') {
                while (i < raw.size() && !is_newline(static_cast<unsigned char>(raw[i]))) ++i;
            } else {
                ++i;
            }
        }
    }
    return out;
}

size_t count_characters(std::string_view text) {
    size_t count = 0;
    for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return count;
}

size_t valid_utf8_prefix_bytes(std::string_view text) {
    size_t i = 0;
    const auto at = [&](size_t p) { return p < text.size() ? static_cast<unsigned char>(text[p]) : 0; };
    const auto tail = [&](size_t p) { return (at(p) & 0xC0) == 0x80; };
    while (i < text.size()) {
        // Eight ASCII bytes at a time: no high bit, and no zero byte.
        while (i + 8 <= text.size()) {
            uint64_t word;
            std::memcpy(&word, text.data() + i, 8);
            const uint64_t zero = (word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL;
            if ((word & 0x8080808080808080ULL) != 0 || zero != 0) break;
            i += 8;
        }
        if (i >= text.size()) break;
        const unsigned char c = at(i);
        if (c == 0) return i;
        if (c < 0x80) {
            ++i;
        } else if (c >= 0xC2 && c <= 0xDF && tail(i + 1)) {
            i += 2;
        } else if ((c & 0xF0) == 0xE0 && tail(i + 1) && tail(i + 2) && !(c == 0xE0 && at(i + 1) < 0xA0) &&
                   !(c == 0xED && at(i + 1) > 0x9F)) {
            i += 3;
        } else if (c >= 0xF0 && c <= 0xF4 && tail(i + 1) && tail(i + 2) && tail(i + 3) &&
                   !(c == 0xF0 && at(i + 1) < 0x90) && !(c == 0xF4 && at(i + 1) > 0x8F)) {
            i += 4;
        } else {
            return i;
        }
    }
    return i;
}

}  // namespace roost::sql
