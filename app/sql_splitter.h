// Cuts a text that arrives in pieces into statements at the semicolons that end one: not those in strings, quoted
// names, dollar quotes and comments. It knows just enough of the dialect's lexer for that; whether a statement is valid
// is the gateway's to say. Pure, linear in the text. Not thread-safe. Used by `roost sql`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace roost::app {

class SqlSplitter {
public:
    void append(std::string_view text);
    // The next whole statement, without its semicolon and the space around it; empty ones are skipped.
    std::optional<std::string> next();
    // What is left when the text is over: a statement without a semicolon, or nothing. Empties the splitter.
    std::optional<std::string> finish();
    // The line, from 1, on which the statement last returned begins.
    size_t line() const { return statement_line_; }
    // A statement has begun: something that is neither space nor comment has been seen since the last one ended.
    bool inside_statement() const { return has_content_; }
    void clear();

private:
    enum class State { plain, string, escape_string, name, line_comment, block_comment, dollar };
    // Moves over one lexical step at position_; false: more text is needed to tell.
    bool step();
    bool step_plain();
    bool step_dollar();
    std::string take(size_t end);

    std::string text_;     // of the statement being read, from its start
    size_t position_ = 0;  // scanned so far
    State state_ = State::plain;
    int comment_depth_ = 0;
    std::string dollar_tag_;                     // with both dollar signs
    size_t text_line_ = 1, statement_line_ = 1;  // of the first character of text_, and see line()
    bool has_content_ = false;
    bool ended_ = false;  // text_[position_ - 1] is the semicolon that ends it
};

}  // namespace roost::app
