#include <cstring>

#include "sql/lexer.h"
#include "sql/statement.h"

namespace roost::sql {
namespace {

// FNV-1a with a final mix: short inputs, no tables, the same on every machine.
class ShapeHash {
public:
    void add(char c) { hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL; }
    void separator() { add('\x1f'); }
    void folded(std::string_view text) {
        for (const char c : text) add(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
    }
    uint64_t finish() const {
        uint64_t h = hash_;
        h ^= h >> 33;
        h *= 0xFF51AFD7ED558CCDULL;
        h ^= h >> 33;
        h *= 0xC4CEB9FE1A85EC53ULL;
        return h ^ (h >> 33);
    }

private:
    uint64_t hash_ = 0xCBF29CE484222325ULL;
};

bool is_literal(const Token &token) {
    return token.kind == Token::Kind::string || token.kind == Token::Kind::number ||
           token.kind == Token::Kind::parameter;
}

// From just after `(`: whether nothing but literals, signs and commas (and NULL, TRUE, FALSE, DEFAULT) stand before the
// matching `)`. Moves `lexer` past it when so.
bool skip_literal_list(Lexer &lexer) {
    Lexer ahead = lexer;
    const std::string_view text = lexer.text();
    while (true) {
        const Token token = ahead.next();
        if (token.is_punct(text, ')')) {
            lexer = ahead;
            return true;
        }
        if (is_literal(token) || token.is_punct(text, ',')) continue;
        const std::string_view raw = token.in(text);
        if (token.kind == Token::Kind::op && (raw == "-" || raw == "+")) continue;
        if (token.kind == Token::Kind::word && (equals_folded(raw, "null") || equals_folded(raw, "true") ||
                                                equals_folded(raw, "false") || equals_folded(raw, "default"))) {
            continue;
        }
        return false;
    }
}

// After a row of VALUES: skips the `, (…)` rows that hold only literals, so that batches of any size have one shape.
void skip_literal_rows(Lexer &lexer) {
    const std::string_view text = lexer.text();
    while (true) {
        Lexer ahead = lexer;
        if (!ahead.next().is_punct(text, ',') || !ahead.next().is_punct(text, '(')) return;
        if (!skip_literal_list(ahead)) return;
        lexer = ahead;
    }
}

}  // namespace

uint64_t fingerprint(std::string_view statement_text) {
    Lexer lexer(statement_text);
    ShapeHash hash;
    uint32_t depth = 0;
    uint32_t values_depth = 0;  // depth + 1 of the VALUES whose rows are being read; 0: none
    bool after_in = false;
    while (true) {
        const Token token = lexer.next();
        const std::string_view raw = token.in(statement_text);
        if (token.kind == Token::Kind::end) return hash.finish();
        const bool was_in = after_in;
        after_in = false;
        if (is_literal(token)) {
            hash.add('?');
        } else if (token.kind == Token::Kind::word) {
            hash.folded(raw);
            after_in = equals_folded(raw, "in");
            if (equals_folded(raw, "values")) values_depth = depth + 1;
        } else if (token.kind == Token::Kind::quoted) {
            hash.folded(raw);  // with its quotes: "select" is a name, select is none
        } else if (token.kind == Token::Kind::punct) {
            // The semicolon that ends a statement is no part of its shape.
            if (raw[0] == ';') continue;
            hash.add(raw[0]);
            if (raw[0] == '(' && was_in && skip_literal_list(lexer)) {
                hash.folded("?)");
            } else if (raw[0] == '(') {
                ++depth;
            } else if (raw[0] == ')' && depth > 0) {
                --depth;
                if (values_depth == depth + 1) skip_literal_rows(lexer);
                if (values_depth > depth + 1) values_depth = 0;
            }
        } else {
            hash.folded(raw);
        }
        hash.separator();
    }
}

}  // namespace roost::sql
