#include "service/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace roost::service {
namespace {

sql::Statement of(sql::Kind kind, std::string object = "") {
    sql::Statement statement;
    statement.kind = kind;
    statement.tag_object = std::move(object);
    return statement;
}

TEST(CommandTag, IsPostgreSqls) {
    Completion completion;
    completion.affected = 7;
    EXPECT_EQ(command_tag(of(sql::Kind::select), completion, 3), "SELECT 3");
    EXPECT_EQ(command_tag(of(sql::Kind::insert), completion, 0), "INSERT 0 7");
    EXPECT_EQ(command_tag(of(sql::Kind::create_table_as), completion, 0), "SELECT 7");
    EXPECT_EQ(command_tag(of(sql::Kind::drop, "VIEW"), completion, 0), "DROP VIEW");
    EXPECT_EQ(command_tag(of(sql::Kind::truncate), completion, 0), "TRUNCATE TABLE");
}

TEST(Profile, IsJsonWithTheNodeTheReasonAndTheStages) {
    routing::Decision decision{{Uuid::from_name("a"), Uuid::from_name("b")}, "least_loaded"};
    Completion completion;
    completion.timings.admission_us = 12'000;
    completion.profile_json = R"({"name":"ROOT"})";
    ProfileFacts facts;
    facts.kind = "select";
    facts.node = "n1";
    facts.decision = &decision;
    facts.completion = &completion;
    const auto json = nlohmann::json::parse(profile_json(facts));
    EXPECT_EQ(json["reason"], "least_loaded");
    EXPECT_EQ(json["candidates"].size(), 2u);
    EXPECT_EQ(json["admission_wait_ms"], 12);
    EXPECT_EQ(json["stages"]["admission_us"], 12'000);
    EXPECT_EQ(json["operators"]["name"], "ROOT");
}

TEST(ColumnSchema, ComesBackAsItWas) {
    std::vector<Column> columns(2);
    columns[0].name = "a \"quoted\" \n name";
    columns[0].type = "STRUCT(a INTEGER, \"b c\" VARCHAR)";
    columns[1].name = "ü";
    columns[1].type = "ENUM('x', 'y')";
    EXPECT_EQ(parse_column_schema(column_schema_json(columns)), columns);
    EXPECT_TRUE(parse_column_schema("not json").empty());
}

}  // namespace
}  // namespace roost::service
