#include "sql/tree.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "duckdb/common/error_data.hpp"
#include "duckdb/parser/parser.hpp"
#include "duckdb/parser/sql_statement.hpp"
#include "sql/lexer.h"

namespace roost::sql {
namespace {

// DuckDB's own bound on how deep its transformer recurses; ours is never above it.
constexpr uint32_t engine_depth_max = 1000;

std::string first_line(const std::string &message) { return message.substr(0, message.find('\n')); }

Status too_deep(uint32_t depth_max, uint32_t position) {
    return Status(Code::invalid_argument, "the statement is nested too deeply: more than " + std::to_string(depth_max) + " levels")
        .with_name("statement_too_complex")
        .with_sqlstate("54001")
        .with_hint("split the expression, or put parts of it into a table or a view")
        .with_position(position);
}

// What DuckDB threw while parsing, as a status. `parsed_text` is the text it saw (blanks replaced one for one).
Status to_status(const std::exception &thrown, const std::string &parsed_text) {
    const duckdb::ErrorData error(thrown);
    uint32_t position = 0;
    const auto &extra = error.ExtraInfo();
    if (const auto found = extra.find("position"); found != extra.end()) {
        const uint64_t byte = std::min<uint64_t>(std::strtoull(found->second.c_str(), nullptr, 10), parsed_text.size());
        position = static_cast<uint32_t>(count_characters(std::string_view(parsed_text).substr(0, byte))) + 1;
    }
    std::string message = first_line(error.RawMessage());
    if (message.empty()) message = "the statement cannot be parsed";
    if (message.rfind("Max expression depth limit", 0) == 0) return too_deep(engine_depth_max, position);
    const bool known_but_missing = error.Type() == duckdb::ExceptionType::NOT_IMPLEMENTED;
    return Status(known_but_missing ? Code::unimplemented : Code::syntax_error, std::move(message)).with_position(position);
}

}  // namespace

struct Tree::Parsed {
    std::string text;  // what DuckDB's offsets count in
    duckdb::unique_ptr<duckdb::SQLStatement> statement;
};

Tree::Tree(std::string text, std::unique_ptr<Parsed> parsed) : text_(std::move(text)), parsed_(std::move(parsed)) {}
Tree::~Tree() = default;

const duckdb::SQLStatement &Tree::root() const { return *parsed_->statement; }

uint32_t Tree::position(uint64_t byte) const {
    const std::string_view text = parsed_->text.empty() ? std::string_view(text_) : std::string_view(parsed_->text);
    return static_cast<uint32_t>(count_characters(text.substr(0, std::min<uint64_t>(byte, text.size())))) + 1;
}

Result<std::shared_ptr<const Tree>> Tree::parse(std::string_view text, uint32_t depth_max) {
    ROOST_RETURN_IF_ERROR(check_depth(text, depth_max));
    auto parsed = std::make_unique<Parsed>();
    std::string owned(text);
    try {
        duckdb::Parser::StripUnicodeSpaces(owned, parsed->text);
    } catch (const std::exception &thrown) {
        return to_status(thrown, owned);
    }
    const std::string &seen = parsed->text.empty() ? owned : parsed->text;
    try {
        duckdb::ParserOptions options;
        options.max_expression_depth = std::min(depth_max, engine_depth_max);
        duckdb::Parser parser(options);
        parser.ParseQuery(seen);
        if (parser.statements.size() != 1) {
            return Status(Code::syntax_error, parser.statements.empty() ? "there is no statement in the text"
                                                                        : "there is more than one statement in the text");
        }
        parsed->statement = std::move(parser.statements[0]);
    } catch (const std::exception &thrown) {
        return to_status(thrown, seen);
    }
    return std::shared_ptr<const Tree>(new Tree(std::move(owned), std::move(parsed)));
}

Status check_depth(std::string_view text, uint32_t depth_max) {
    Lexer lexer(text);
    uint32_t depth = 0;
    for (Token token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next()) {
        if (token.kind != Token::Kind::punct) continue;
        const char c = text[token.begin];
        if (c == '(' || c == '[' || c == '{') {
            if (++depth > depth_max) {
                return too_deep(depth_max, static_cast<uint32_t>(count_characters(text.substr(0, token.begin))) + 1);
            }
        } else if ((c == ')' || c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return Status();
}

}  // namespace roost::sql
