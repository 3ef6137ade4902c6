#include "app/json_slices.h"

#include <gtest/gtest.h>

namespace roost::app {
namespace {

TEST(JsonSlices, MembersKeepTheirRawText) {
    const auto members = json_members(
        R"( {"a": 1.10, "b\"c" :"x\\\"y}", "d":{"e":[1,{"f":"]"}]}, "n": null,"nan":NaN , "inf":-Infinity} )");
    ASSERT_TRUE(members.ok());
    using Member = std::pair<std::string, std::string_view>;
    EXPECT_EQ(*members, (std::vector<Member>{{"a", "1.10"},
                                             {"b\"c", R"("x\\\"y}")"},
                                             {"d", R"({"e":[1,{"f":"]"}]})"},
                                             {"n", "null"},
                                             {"nan", "NaN"},
                                             {"inf", "-Infinity"}}));
}

TEST(JsonSlices, ElementsOfArrays) {
    const auto elements = json_elements(R"([{"a":1}, [2,3],"x",  170141183460469231731687303715884105727])");
    ASSERT_TRUE(elements.ok());
    EXPECT_EQ(*elements, (std::vector<std::string_view>{R"({"a":1})", "[2,3]", R"("x")",
                                                        "170141183460469231731687303715884105727"}));
    EXPECT_TRUE(json_elements("[]").value().empty());
    EXPECT_TRUE(json_members("{ }").value().empty());
}

TEST(JsonSlices, EveryPrefixOfAnObjectIsAnError) {
    const std::string text = R"({"a":[1,"x\"]"],"b":{"c":null}})";
    ASSERT_TRUE(json_members(text).ok());
    for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(json_members(text.substr(0, size)).ok()) << size;
}

TEST(JsonSlices, TextOfAValue) {
    EXPECT_EQ(json_as_text(R"("plain")"), "plain");
    EXPECT_EQ(json_as_text(R"("a\nbé")"), "a\nb\u00e9");
    EXPECT_EQ(json_as_text("12"), "12");
}

}  // namespace
}  // namespace roost::app
