#include "app/sql_splitter.h"

#include <algorithm>

namespace roost::app {
namespace {

constexpr std::string_view kSpace = " \t\n\r\f\v";

bool is_space(char c) { return kSpace.find(c) != std::string_view::npos; }

size_t newlines(std::string_view text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (static_cast<unsigned char>(c) & 0x80) != 0;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

}  // namespace

void SqlSplitter::append(std::string_view text) { text_.append(text); }

void SqlSplitter::clear() { *this = SqlSplitter(); }

std::optional<std::string> SqlSplitter::next() {
    for (;;) {
        while (!ended_ && position_ < text_.size()) {
            if (!step()) return std::nullopt;
        }
        if (!ended_) return std::nullopt;
        const bool had_content = has_content_;
        std::string statement = take(position_ - 1);
        if (had_content) return statement;
    }
}

std::optional<std::string> SqlSplitter::finish() {
    const bool had_content = has_content_;
    std::string statement = take(text_.size());
    const size_t line = statement_line_;
    clear();
    if (!had_content) return std::nullopt;
    statement_line_ = line;
    return statement;
}

std::string SqlSplitter::take(size_t end) {
    const std::string_view whole = std::string_view(text_).substr(0, end);
    std::string statement(trimmed(whole));
    statement_line_ = text_line_ + newlines(whole.substr(0, std::min(whole.find_first_not_of(kSpace), whole.size())));
    text_line_ += newlines(whole);
    text_.erase(0, std::max(position_, end));
    position_ = 0;
    has_content_ = false;
    ended_ = false;
    return statement;
}

bool SqlSplitter::step() {
    const std::string_view rest = std::string_view(text_).substr(position_);
    switch (state_) {
        case State::plain:
            return step_plain();
        case State::dollar:
            return step_dollar();
        case State::string:
        case State::name:
            // A doubled quote ends and begins at once, which comes to the same.
            if (rest[0] == (state_ == State::string ? '\'' : '"')) state_ = State::plain;
            ++position_;
            return true;
        case State::escape_string:
            if (rest[0] == '\\') {
                if (rest.size() < 2) return false;
                position_ += 2;
                return true;
            }
            if (rest[0] == '\'') state_ = State::plain;
            ++position_;
            return true;
        case State::line_comment:
            if (rest[0] == '\n') state_ = State::plain;
            ++position_;
            return true;
        case State::block_comment: {
            if (rest[0] != '*' && rest[0] != '/') {
                ++position_;
                return true;
            }
            if (rest.size() < 2) return false;
            const bool opens = rest.starts_with("/*"), closes = rest.starts_with("*/");
            position_ += opens || closes ? 2 : 1;
            comment_depth_ += opens ? 1 : closes ? -1 : 0;
            if (comment_depth_ == 0) state_ = State::plain;
            return true;
        }
    }
    return true;
}

bool SqlSplitter::step_plain() {
    const std::string_view rest = std::string_view(text_).substr(position_);
    const char c = rest[0];
    const char before = position_ > 0 ? text_[position_ - 1] : ' ';
    if (c == ';') {
        ended_ = true;
        ++position_;
        return true;
    }
    if ((c == '-' || c == '/') && rest.size() < 2) return false;
    if (rest.starts_with("--")) {
        state_ = State::line_comment;
        position_ += 2;
        return true;
    }
    if (rest.starts_with("/*")) {
        state_ = State::block_comment;
        comment_depth_ = 1;
        position_ += 2;
        return true;
    }
    if (c == '$' && !is_name_char(before)) {
        // $tag$ opens a dollar quote; $1 is a parameter, and so is whatever does not close the tag.
        size_t end = 1;
        while (end < rest.size() && is_name_char(rest[end])) ++end;
        if (end == rest.size()) return false;
        const bool is_parameter = end > 1 && rest[1] >= '0' && rest[1] <= '9';
        if (rest[end] == '$' && !is_parameter) {
            state_ = State::dollar;
            dollar_tag_ = rest.substr(0, end + 1);
        }
        has_content_ = true;
        position_ += state_ == State::dollar ? end + 1 : end;
        return true;
    }
    if (c == '\'') {
        const bool escapes = (before == 'e' || before == 'E') && (position_ < 2 || !is_name_char(text_[position_ - 2]));
        state_ = escapes ? State::escape_string : State::string;
    } else if (c == '"') {
        state_ = State::name;
    }
    if (!is_space(c)) has_content_ = true;
    ++position_;
    return true;
}

bool SqlSplitter::step_dollar() {
    const size_t found = text_.find(dollar_tag_, position_);
    if (found == std::string::npos) {
        // The tag may be cut in two by the end of what has arrived.
        const size_t keep = dollar_tag_.size() - 1;
        if (text_.size() > position_ + keep) position_ = text_.size() - keep;
        return false;
    }
    position_ = found + dollar_tag_.size();
    state_ = State::plain;
    return true;
}

}  // namespace roost::app
