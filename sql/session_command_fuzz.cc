// The session commands' own parser and the lexer on arbitrary bytes, without DuckDB behind them: fast, so it digs
// deeper.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sql/complexity.h"
#include "sql/lexer.h"
#include "sql/session_command.h"

namespace {

void require(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace roost;
    using namespace roost::sql;
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    Lexer lexer(text);
    uint32_t end = 0;
    for (Token token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next()) {
        require(token.begin >= end && token.end > token.begin && token.end <= text.size(),
                "tokens overlap or end late");
        end = token.end;
        if (token.kind == Token::Kind::string) (void)string_value(text, token);
        if (token.kind == Token::Kind::word || token.kind == Token::Kind::quoted) (void)identifier_value(text, token);
    }
    (void)check_complexity(text, 1'000).ok();
    Statement statement;
    statement.text = std::string(text);
    const Status status = parse_session_command(statement);
    if (status.ok()) {
        require(statement.kind == Kind::empty || is_session_command(statement.kind),
                "a kind that is no session command");
        require(statement.text.ends_with(statement.command.body), "a body that is not the end of the text");
    } else {
        require(status.error().position <= count_characters(text) + 1, "an error past the end of the text");
    }
    return 0;
}
