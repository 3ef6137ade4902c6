#include "app/sql_splitter.h"

#include <gtest/gtest.h>

#include <vector>

namespace roost::app {
namespace {

using Statements = std::vector<std::string>;

// All statements of a text, fed in pieces of `piece` bytes.
Statements split(std::string_view text, size_t piece = 1 << 20) {
    SqlSplitter splitter;
    Statements out;
    while (!text.empty()) {
        splitter.append(text.substr(0, piece));
        text.remove_prefix(std::min(piece, text.size()));
        while (auto statement = splitter.next()) out.push_back(*statement);
    }
    if (auto rest = splitter.finish()) out.push_back(*rest);
    return out;
}

TEST(SqlSplitter, CutsAtSemicolonsAndKeepsTheUnfinishedRest) {
    EXPECT_EQ(split("select 1; select 2 ;\n select 3"), (Statements{"select 1", "select 2", "select 3"}));
}

TEST(SqlSplitter, SkipsEmptyStatementsAndLoneComments) {
    EXPECT_EQ(split(";; -- nothing; here\n ; /* nor; here */ ; select 1;;"), (Statements{"select 1"}));
    EXPECT_TRUE(split("-- only a comment").empty());
}

TEST(SqlSplitter, SemicolonsInsideQuotesAndCommentsEndNothing) {
    for (const std::string text : {
             "select ';', 'it''s;'",
             "select \"a;b\"\"c;\" from t",
             "select 1 -- no; end\n + 1",
             "select /* a; /* nested; */ b; */ 1",
             "select $$a;b$$",
             "select $tag$a;$$;$tag$",
             R"(select E'a\';b')",
             "select $1, $name",
             "select a$b$c from t",
             "select 4 - 1 / 2",
         }) {
        EXPECT_EQ(split(text + "; select 2"), (Statements{text, "select 2"})) << text;
    }
}

TEST(SqlSplitter, BackslashIsPlainInOrdinaryStrings) {
    EXPECT_EQ(split(R"(select 'a\'; select 2)"), (Statements{R"(select 'a\')", "select 2"}));
    EXPECT_EQ(split(R"(select name'a\'; select 2)"), (Statements{R"(select name'a\')", "select 2"}));
}

TEST(SqlSplitter, PiecesOfAnySizeGiveTheSameStatements) {
    const std::string text =
        "select ';' -- c;\n; /* x; /* y */ */ select $q$ ; $q $q$, E'\\';' ; select \"a;\" - 1 / 2; select $1; select "
        "'open";
    const Statements whole = split(text);
    EXPECT_EQ(whole.size(), 5u);
    for (size_t piece = 1; piece < text.size(); ++piece) EXPECT_EQ(split(text, piece), whole) << piece;
}

TEST(SqlSplitter, TellsTheLineOfEachStatement) {
    SqlSplitter splitter;
    splitter.append("\n\nselect 1;\nselect\n2; select 3;\n\n  select 4");
    std::vector<size_t> lines;
    while (splitter.next()) lines.push_back(splitter.line());
    EXPECT_TRUE(splitter.finish());
    lines.push_back(splitter.line());
    EXPECT_EQ(lines, (std::vector<size_t>{3, 4, 5, 7}));
}

TEST(SqlSplitter, KnowsWhetherAStatementHasBegun) {
    SqlSplitter splitter;
    splitter.append("  -- comment\n");
    EXPECT_FALSE(splitter.next());
    EXPECT_FALSE(splitter.inside_statement());
    splitter.append("select");
    EXPECT_FALSE(splitter.next());
    EXPECT_TRUE(splitter.inside_statement());
    splitter.append(" 1;");
    EXPECT_EQ(splitter.next(), "-- comment\nselect 1");
    EXPECT_FALSE(splitter.inside_statement());
}

}  // namespace
}  // namespace roost::app
