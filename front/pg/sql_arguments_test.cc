#include "front/pg/sql_arguments.h"

#include <gtest/gtest.h>

namespace roost::pg {
namespace {

std::string values(std::string_view text) {
    const auto params = parse_arguments(text);
    if (!params.ok()) return std::string(params.status().sqlstate());
    std::string out;
    for (const Param &param : *params) {
        out += "[" + param.value.value_or("null") + (param.pg_oid == 0 ? "" : ":" + std::to_string(param.pg_oid)) + "]";
    }
    return out;
}

TEST(PgSqlArguments, Constants) {
    EXPECT_EQ(values(""), "");
    EXPECT_EQ(values("()"), "");
    EXPECT_EQ(values("(1, -2.5, + 3)"), "[1][-2.5][3]");
    EXPECT_EQ(values("('it''s', E'a\\nb', $$x;y$$)"), "[it's][a\nb][x;y]");
    EXPECT_EQ(values("(NULL, true, FALSE)"), "[null][t][f]");
    EXPECT_EQ(values("('2020-01-01'::date, 1::bigint)"), "[2020-01-01:1082][1:20]");
    EXPECT_EQ(values("( /* a comment */ 1 -- and another\n )"), "[1]");
}

TEST(PgSqlArguments, ExpressionsAreRefusedAndBrokenListsAreErrors) {
    for (const char *text : {"(1 + 1)", "(now())", "(x)", "(-'a')", "(- - 4)", "('a'::nonsense)", "('a' || 'b')"}) {
        EXPECT_EQ(values(text), "0A000") << text;
    }
    for (const char *text : {"(", "(1", "(1,", "(1,)", "1", ")", "(1) 2", "('a"})
        EXPECT_EQ(values(text).size(), 5U) << text;
    EXPECT_EQ(values("(1"), "42601");
    EXPECT_EQ(values("1"), "42601");
    EXPECT_EQ(values("(1) 2"), "42601");
}

TEST(PgSqlArguments, TypeNames) {
    EXPECT_EQ(type_oid("INTEGER"), 23U);
    EXPECT_EQ(type_oid("varchar(10)"), 25U);
    EXPECT_EQ(type_oid("numeric(12, 2)"), 1700U);
    EXPECT_EQ(type_oid("text[]"), 1009U);
    EXPECT_EQ(type_oid("double precision"), 701U);
    EXPECT_EQ(type_oid("timestamp with time zone"), 1184U);
    for (const char *unknown : {"", "no_such_type", "int(", "[]"}) EXPECT_EQ(type_oid(unknown), 0U) << unknown;
}

}  // namespace
}  // namespace roost::pg
