// Cuts SQL text into tokens by the lexical rules that PostgreSQL and DuckDB share: quoted strings ('', E'', U&'', b'',
// x'', $tag$), quoted identifiers, nested comments, operators, parameters ($1, $name, ?, ?1). What DuckDB takes for
// blank is blank here (U+00A0 and its like). Used to split a text at its semicolons, to read session commands and to
// hash a statement's shape; DuckDB's own parser has the last word on everything else. It never fails: an unterminated
// string or comment is a token of kind `broken`. A Lexer belongs to one thread and is cheap to copy (that is how one
// looks ahead).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace roost::sql {

struct Token {
    enum class Kind : uint8_t {
        end,
        word,    // unquoted identifier or keyword
        quoted,  // "identifier", U&"identifier"
        string,  // every kind of string constant; constants joined across a line break are one token
        number,
        parameter,
        op,      // one or more operator characters; also :: := => -> : and .
        punct,   // one of ( ) [ ] { } , ;
        other,   // a character that starts nothing
        broken,  // unterminated string, identifier or comment; the rest of the text
    };
    Kind kind = Kind::end;
    uint32_t begin = 0;  // bytes into the text
    uint32_t end = 0;

    bool is_punct(std::string_view text, char character) const {
        return kind == Kind::punct && text[begin] == character;
    }
    std::string_view in(std::string_view text) const { return text.substr(begin, end - begin); }
};

class Lexer {
public:
    // The text must outlive the lexer and be shorter than 4 GiB.
    explicit Lexer(std::string_view text) : text_(text) {}

    // The next token; Kind::end for ever at the end of the text.
    Token next();
    std::string_view text() const { return text_; }

private:
    void skip_blanks(bool *broken);
    Token number(uint32_t begin);
    Token op(uint32_t begin);
    Token dollar(uint32_t begin);
    Token quoted_string(uint32_t begin, uint32_t quote, bool escapes);
    Token quoted_identifier(uint32_t begin, uint32_t quote);
    Token finish(Token::Kind kind, uint32_t begin, uint32_t end);
    bool string_continues(uint32_t after_quote, uint32_t *next_quote) const;
    unsigned char at(size_t position) const {
        return position < text_.size() ? static_cast<unsigned char>(text_[position]) : 0;
    }

    std::string_view text_;
    uint32_t position_ = 0;
};

// Bytes of the blank character at `position` that DuckDB replaces by a space before it parses (U+00A0, U+2000–U+200B,
// U+202F, U+205F, U+2060, U+3000, U+FEFF); 0 when there is none.
uint32_t unicode_blank_bytes(std::string_view text, size_t position);

// ASCII lower case, as DuckDB folds names.
std::string fold(std::string_view text);
bool equals_folded(std::string_view text, std::string_view lower);

// The name that a word or quoted token stands for: words folded to lower case, quotes and escapes resolved.
std::string identifier_value(std::string_view text, const Token &token);
// The characters that a string token stands for; b'' and x'' keep their letter, as DuckDB does.
std::string string_value(std::string_view text, const Token &token);

// Characters (not bytes) in UTF-8 text.
size_t count_characters(std::string_view text);
// Bytes of the well-formed UTF-8 without NUL that the text starts with; text.size() when all of it is.
size_t valid_utf8_prefix_bytes(std::string_view text);

}  // namespace roost::sql
