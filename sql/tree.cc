#include "sql/tree.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "duckdb/common/error_data.hpp"
#include "duckdb/parser/parser.hpp"
#include "duckdb/parser/sql_statement.hpp"
#include "sql/complexity.h"
#include "sql/lexer.h"

namespace roost::sql {
namespace {

// DuckDB's own bound on how deep its transformer recurses; ours is never above it.
constexpr uint32_t engine_depth_max = 1000;

std::string first_line(const std::string &message) { return message.substr(0, message.find('\n')); }

// What DuckDB threw while parsing, as a status. `parsed_text` is the text it saw (blanks replaced one for one).
Status to_status(const std::exception &thrown, const std::string &parsed_text) {
    const duckdb::ErrorData error(thrown);
    uint32_t position = 0;
    const auto &extra = error.ExtraInfo();
    if (const auto found = extra.find("position"); found != extra.end()) {
        uint64_t offset = std::strtoull(found->second.c_str(), nullptr, 10);
        // The grammar's errors count characters, those of DuckDB's transformer bytes.
        const auto subtype = extra.find("error_subtype");
        if (subtype == extra.end() || subtype->second != "SYNTAX_ERROR") {
            offset = count_characters(std::string_view(parsed_text).substr(0, std::min(offset, parsed_text.size())));
        }
        position = static_cast<uint32_t>(std::min<uint64_t>(offset, parsed_text.size())) + 1;
    }
    std::string message = first_line(error.RawMessage());
    if (message.empty()) message = "the statement cannot be parsed";
    if (message.rfind("Max expression depth limit", 0) == 0)
        return too_complex("it is nested deeper than " + std::to_string(engine_depth_max) + " levels", position);
    const bool known_but_missing = error.Type() == duckdb::ExceptionType::NOT_IMPLEMENTED;
    return Status(known_but_missing ? Code::unimplemented : Code::syntax_error, std::move(message))
        .with_position(position);
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
    ROOST_RETURN_IF_ERROR(check_complexity(text, depth_max));
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
            return Status(Code::syntax_error, parser.statements.empty()
                                                  ? "there is no statement in the text"
                                                  : "there is more than one statement in the text");
        }
        parsed->statement = std::move(parser.statements[0]);
    } catch (const std::exception &thrown) {
        return to_status(thrown, seen);
    }
    return std::shared_ptr<const Tree>(new Tree(std::move(owned), std::move(parsed)));
}

}  // namespace roost::sql
