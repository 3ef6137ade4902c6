#include "sql/lexer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "duckdb/parser/parser.hpp"

namespace roost::sql {
namespace {

using Kind = Token::Kind;

std::vector<std::string> tokens(std::string_view text) {
    std::vector<std::string> out;
    Lexer lexer(text);
    for (Token token = lexer.next(); token.kind != Kind::end; token = lexer.next()) out.emplace_back(token.in(text));
    return out;
}

Token first(std::string_view text) { return Lexer(text).next(); }
std::string value(std::string_view text) { return string_value(text, first(text)); }

using Strings = std::vector<std::string>;

TEST(Lexer, strings_of_every_kind_are_one_token) {
    for (const char *text :
         {"'it''s'", R"('back\slash')", R"(E'it\'s; \\')", "e'a''b'", "$$a;'b$$", "$tag$ $$ ; $tagg$ $tag$", "b'01'",
          "X'1F'", "U&'d\\0061t'", "'a'\n  'b'", "'a' -- why\n 'b'", "'über ☃'"}) {
        EXPECT_EQ(tokens(text), Strings{text});
        EXPECT_EQ(first(text).kind, Kind::string) << text;
    }
}

TEST(Lexer, strings_on_one_line_are_two_tokens) { EXPECT_EQ(tokens("'a' 'b'"), (Strings{"'a'", "'b'"})); }

TEST(Lexer, string_values_are_unescaped) {
    EXPECT_EQ(value("'it''s'"), "it's");
    EXPECT_EQ(value(R"(E'\x41\102\n\'\u00e9')"), "AB\n'é");
    EXPECT_EQ(value(R"('\x41')"), R"(\x41)");
    EXPECT_EQ(value("$q$a'$$b$q$"), "a'$$b");
    EXPECT_EQ(value(R"(U&'d\0061t\+000061')"), "data");
    EXPECT_EQ(value("'a'\n'b'"), "ab");
    EXPECT_EQ(value("'a' -- it's\n'b'"), "ab");
}

TEST(Lexer, identifiers_fold_unless_quoted) {
    const auto name = [](std::string_view text) { return identifier_value(text, first(text)); };
    EXPECT_EQ(name("Orders"), "orders");
    EXPECT_EQ(name("\"Or\"\"ders\""), "Or\"ders");
    EXPECT_EQ(name(R"(U&"d\0061t")"), "dat");
    EXPECT_EQ(name("naïve$1"), "naïve$1");
    EXPECT_EQ(first("\"a;b\"").kind, Kind::quoted);
}

TEST(Lexer, comments_nest_and_vanish) {
    EXPECT_EQ(tokens("a/* x /* y */ ; */b -- ; c\n;d"), (Strings{"a", "b", ";", "d"}));
    EXPECT_EQ(tokens("FROM/**/read_text/**/(1)"), (Strings{"FROM", "read_text", "(", "1", ")"}));
}

TEST(Lexer, what_is_not_ended_is_broken_to_the_end) {
    for (const char *text : {"'abc", "\"abc", "/* a /* b */", "$q$ abc", "E'abc\\'", "'a'\n'b"}) {
        EXPECT_EQ(first(text).kind, Kind::broken) << text;
        EXPECT_EQ(first(text).end, std::string_view(text).size()) << text;
    }
}

TEST(Lexer, blanks_of_duckdb_separate) {
    for (const char *blank : {"\u00a0", "\u2003", "\u200b", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff"}) {
        EXPECT_EQ(tokens(std::string("SELECT") + blank + "1" + blank), (Strings{"SELECT", "1"}));
    }
    // A vertical tab is no blank to DuckDB.
    EXPECT_EQ(tokens("a\vb"), (Strings{"a", "\v", "b"}));
    // Inside quotes they are text.
    EXPECT_EQ(tokens("'\u00a0'"), Strings{"'\u00a0'"});
}

TEST(Lexer, numbers_and_ranges) {
    EXPECT_EQ(tokens("1 1.5 .5 1. 1e10 1.5E-3 1_000 1..10 1e 2x"),
              (Strings{"1", "1.5", ".5", "1.", "1e10", "1.5E-3", "1_000", "1", "..", "10", "1", "e", "2", "x"}));
}

TEST(Lexer, parameters) {
    for (const char *text : {"$1", "?", "?12", "$name"}) EXPECT_EQ(first(text).kind, Kind::parameter) << text;
    EXPECT_EQ(tokens("$1::int=?"), (Strings{"$1", "::", "int", "=", "?"}));
}

TEST(Lexer, operators_end_where_sql_says) {
    EXPECT_EQ(tokens("a=-1"), (Strings{"a", "=", "-", "1"}));
    EXPECT_EQ(tokens("a@-1"), (Strings{"a", "@-", "1"}));
    EXPECT_EQ(tokens("a->>'b'"), (Strings{"a", "->>", "'b'"}));
    EXPECT_EQ(tokens("a+--c\nb"), (Strings{"a", "+", "b"}));
    EXPECT_EQ(tokens("a*/*c*/b"), (Strings{"a", "*", "b"}));
    EXPECT_EQ(tokens("a:=b=>c::d:e.f"), (Strings{"a", ":=", "b", "=>", "c", "::", "d", ":", "e", ".", "f"}));
}

TEST(Lexer, utf8_is_checked_to_the_byte) {
    EXPECT_EQ(valid_utf8_prefix_bytes("abcdefghij"), 10u);
    EXPECT_EQ(valid_utf8_prefix_bytes("é☃😀"), 9u);
    EXPECT_EQ(valid_utf8_prefix_bytes("abcdefghijk\xff"), 11u);
    EXPECT_EQ(valid_utf8_prefix_bytes("a\xc0\x80"), 1u);     // overlong
    EXPECT_EQ(valid_utf8_prefix_bytes("\xed\xa0\x80"), 0u);  // surrogate
    EXPECT_EQ(valid_utf8_prefix_bytes("\xf5\x80\x80\x80"), 0u);
    EXPECT_EQ(valid_utf8_prefix_bytes("ab\xe2\x98"), 2u);  // cut off
    EXPECT_EQ(valid_utf8_prefix_bytes(std::string_view("abcdefgh\0ijklmnop", 17)), 8u);
    EXPECT_EQ(count_characters("aé☃😀"), 4u);
}

// DuckDB's scanner is the reference: tokens start at the same bytes. ($name is one token here and two there.)
TEST(Lexer, cuts_the_guard_corpus_as_duckdb_does) {
    std::ifstream file("sql/testdata/guard.tsv");
    std::string line;
    int compared = 0;
    while (std::getline(file, line)) {
        std::vector<std::string> fields(1);
        for (const char c : line) {
            if (c == '\t')
                fields.emplace_back();
            else
                fields.back() += c;
        }
        std::string sql = fields.at(4);
        std::string stripped;
        if (duckdb::Parser::StripUnicodeSpaces(sql, stripped)) sql = stripped;
        Lexer lexer(sql);
        std::vector<size_t> ours, theirs;
        bool broken = false;
        for (Token token = lexer.next(); token.kind != Kind::end; token = lexer.next()) {
            ours.push_back(token.begin);
            broken |= token.kind == Kind::broken;
        }
        if (broken) continue;
        for (const auto &token : duckdb::Parser::Tokenize(sql)) theirs.push_back(token.start);
        EXPECT_EQ(ours, theirs) << sql;
        ++compared;
    }
    EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace roost::sql
