#include "app/statement_runner.h"

#include <gtest/gtest.h>

namespace roost::app {
namespace {

TEST(PositionMarker, PointsAtTheCharacter) {
    EXPECT_EQ(position_marker("select foo", 8), "LINE 1: select foo\n               ^\n");
    EXPECT_EQ(position_marker("select\n  x,\n  y\nfrom t", 15), "LINE 3:   y\n          ^\n");
    EXPECT_EQ(position_marker("select 'é', x", 13), "LINE 1: select 'é', x\n                    ^\n");
    EXPECT_EQ(position_marker("x", 1), "LINE 1: x\n        ^\n");
}

TEST(PositionMarker, UnknownPlacesGetNone) {
    EXPECT_EQ(position_marker("select", 0), "");
    EXPECT_EQ(position_marker("select", 7), "");
    EXPECT_EQ(position_marker("", 1), "");
}

TEST(PositionMarker, LongLinesAreShownAroundThePlace) {
    const std::string sql = std::string(1000, 'a') + "X" + std::string(1000, 'b');
    const std::string marker = position_marker(sql, 1001);
    const size_t line_end = marker.find('\n');
    EXPECT_LT(line_end, 200u);
    // The ellipsis takes three bytes and one column.
    const size_t caret = marker.size() - line_end - 3;
    EXPECT_EQ(marker[caret + 2], 'X');
}

TEST(Answers, StatementObject) {
    const auto state = statement_from_json(
        R"({"id":"i","status":"done","error":null,"has_result":true,"row_count":2,"statement_type":"select","progress":50.5,
          "first_page":{"columns":["x"],"rows":[{"x":NaN},{"x":1.0}],"column_schema":[{"name":"x","type":"DOUBLE"}],
          "total":2,"cursor":"c1"},"wait":"waiting for memory"})");
    ASSERT_TRUE(state.ok()) << state.status().to_string();
    EXPECT_TRUE(state->is_over());
    EXPECT_EQ(state->row_count, 2u);
    EXPECT_EQ(state->progress, 50.5);
    EXPECT_EQ(state->wait, "waiting for memory");
    ASSERT_TRUE(state->first_page);
    EXPECT_EQ(state->first_page->rows, R"([{"x":NaN},{"x":1.0}])");
    EXPECT_EQ(state->first_page->cursor, "c1");
    EXPECT_EQ(state->first_page->columns.at(0).type, "DOUBLE");
    EXPECT_TRUE(outcome(*state).ok());
}

TEST(Answers, WhatIsNotAStatementIsAnError) {
    for (const char *wrong :
         {"", "[]", "{}", R"({"id":"i"})", R"({"id":"i","status":"done","first_page":{"rows":[})"}) {
        EXPECT_FALSE(statement_from_json(wrong).ok()) << wrong;
    }
    EXPECT_FALSE(rows_page_from_json(R"({"columns":[]})").ok());
}

TEST(Answers, OutcomeOfAFailureIsTheEnginesText) {
    const auto failed = statement_from_json(R"({"id":"i","status":"failed","error":"Catalog Error: no such table"})");
    ASSERT_TRUE(failed.ok());
    EXPECT_EQ(outcome(*failed).message(), "Catalog Error: no such table");
    const auto cancelled = statement_from_json(R"({"id":"i","status":"cancelled"})");
    ASSERT_TRUE(cancelled.ok());
    EXPECT_EQ(outcome(*cancelled).code(), Code::cancelled);
}

TEST(Answers, ErrorEnvelopeIsReadWhole) {
    const Status error = error_from_response(
        {422,
         R"({"error":"syntax_error","message":"near FROM","details":{"position":8,"hint":"look","more":"details"}})"});
    EXPECT_EQ(error.name(), "syntax_error");
    EXPECT_EQ(error.message(), "near FROM");
    EXPECT_EQ(error.error().position, 8u);
    EXPECT_EQ(error.error().hint, "look");
    EXPECT_EQ(error_from_response({401, R"({"error":"unauthorized","message":"no"})"}).code(), Code::unauthenticated);
    EXPECT_EQ(error_from_response({502, "<html>"}).code(), Code::unavailable);
}

}  // namespace
}  // namespace roost::app
