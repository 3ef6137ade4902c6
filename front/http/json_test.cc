#include "front/http/json.h"

#include <gtest/gtest.h>

namespace roost::http {
namespace {

JsonFields fields(std::string_view text) {
    auto parsed = parse_fields(text, {"a", "b"});
    EXPECT_TRUE(parsed.ok()) << parsed.status().to_string() << " for " << text;
    return parsed.ok() ? *parsed : JsonFields();
}

TEST(Json, ObjectIsWrittenInOrderAndEscaped) {
    JsonObject object;
    object.text("a", "x\"\n\xC5\xBE")
        .number("b", int64_t{-5})
        .flag("c", true)
        .null("d")
        .real("e", 0.25)
        .raw("f", "[1]");
    object.text_or_null("g", "");
    EXPECT_EQ(object.take(),
              "{\"a\":\"x\\\"\\n\xC5\xBE\",\"b\":-5,\"c\":true,\"d\":null,\"e\":0.25,\"f\":[1],\"g\":null}");
}

TEST(Json, InvalidUtf8AndInfinityStayValidJson) {
    EXPECT_EQ(json_string("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
    EXPECT_EQ(JsonObject().real("x", HUGE_VAL).take(), "{\"x\":null}");
}

TEST(Json, KnownFieldsAreKeptOthersDropped) {
    const auto got = fields(R"({"x":{"a":1},"a":"é","y":[[[1]]],"b":[1,"two",{"c":[1,{"d":null}],"e":"\""},[],{}]})");
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got.at("a").text, "é");
    const auto &items = got.at("b").items;
    ASSERT_EQ(items.size(), 5u);
    EXPECT_EQ(to_json(items[1]), R"("two")");
    EXPECT_EQ(to_json(items[2]), R"({"c":[1,{"d":null}],"e":"\""})");
    EXPECT_EQ(to_json(items[3]), "[]");
    EXPECT_EQ(to_json(items[4]), "{}");
    EXPECT_EQ(to_json(got.at("b")), R"([1,"two",{"c":[1,{"d":null}],"e":"\""},[],{}])");
}

TEST(Json, NumbersKeepTheirDigits) {
    const auto got = fields(R"({"b":[170141183460469231731687303715884105727,-9223372036854775808,1.50,1e3,-0.0]})");
    const auto &items = got.at("b").items;
    EXPECT_EQ(items[0].text, "170141183460469231731687303715884105727");
    EXPECT_EQ(items[0].kind, JsonValue::Kind::integer);
    EXPECT_EQ(items[1].text, "-9223372036854775808");
    EXPECT_EQ(items[2].text, "1.50");
    EXPECT_EQ(items[2].kind, JsonValue::Kind::real);
    EXPECT_EQ(items[3].text, "1e3");
}

TEST(Json, LastOfANameCounts) {
    const auto got = fields(R"({"a":[1,2],"a":"last"})");
    EXPECT_EQ(got.at("a").kind, JsonValue::Kind::string);
    EXPECT_TRUE(got.at("a").items.empty());
}

TEST(Json, WhatIsNoObjectIsRefused) {
    for (const std::string_view text :
         {"", "{", "null", "[]", "\"x\"", "1", "{\"a\":}", "{} x", "{'a':1}", "{\"a\":1,}", "\xFF", "{\"a\":\"\xFF\"}",
          "{\"a\":1e999}", "{\"a\":\"\x01\"}"}) {
        const auto parsed = parse_fields(text, {"a"});
        ASSERT_FALSE(parsed.ok()) << text;
        EXPECT_EQ(parsed.status().name(), "bad_request") << text;
    }
}

TEST(Json, DepthAndElementsAreLimited) {
    const std::string deep = std::string(R"({"a":)") + std::string(100'000, '[');
    EXPECT_FALSE(parse_fields(deep, {"a"}).ok());
    EXPECT_FALSE(parse_fields(R"({"other":)" + std::string(100'000, '['), {"a"}).ok());
    EXPECT_FALSE(parse_fields(R"({"a":[1,2,3]})", {"a"}, {.items_max = 2}).ok());
    EXPECT_TRUE(parse_fields(R"({"a":[1,2]})", {"a"}, {.items_max = 2}).ok());
    EXPECT_TRUE(parse_fields(R"({"a":[[[1]]]})", {"a"}, {.depth_max = 4}).ok());
    EXPECT_FALSE(parse_fields(R"({"a":[[[1]]]})", {"a"}, {.depth_max = 3}).ok());
}

}  // namespace
}  // namespace roost::http
