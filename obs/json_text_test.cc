#include "obs/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace roost::obs {
namespace {

using namespace std::string_literals;

std::string json(std::string_view text, size_t max_bytes = std::string_view::npos) {
    std::string out;
    append_json_string(out, text, max_bytes);
    return out;
}

TEST(JsonText, escapes_what_json_wants_escaped) {
    EXPECT_EQ(json("plain"), "\"plain\"");
    EXPECT_EQ(json(""), "\"\"");
    EXPECT_EQ(json("a\"b\\c\n\r\t"), "\"a\\\"b\\\\c\\n\\r\\t\"");
    EXPECT_EQ(json("\0\x1f\x7f"s), "\"\\u0000\\u001f\\u007f\"");
    EXPECT_EQ(json("äß€😀"), "\"äß€😀\"");
}

TEST(JsonText, replaces_each_byte_that_is_not_utf8) {
    EXPECT_EQ(json("a\xff"
                   "b"),
              "\"a\uFFFDb\"");
    EXPECT_EQ(json("\xe2\x82"), "\"\uFFFD\uFFFD\"");                      // cut off
    EXPECT_EQ(json("\xc0\xaf"), "\"\uFFFD\uFFFD\"");                      // overlong /
    EXPECT_EQ(json("\xed\xa0\x80"), "\"\uFFFD\uFFFD\uFFFD\"");            // a surrogate
    EXPECT_EQ(json("\xf4\x90\x80\x80"), "\"\uFFFD\uFFFD\uFFFD\uFFFD\"");  // past U+10FFFF
    EXPECT_EQ(json("\xe0\x80\x80x"), "\"\uFFFD\uFFFD\uFFFDx\"");
    EXPECT_EQ(json("\xf0\x80\x80\x80"), "\"\uFFFD\uFFFD\uFFFD\uFFFD\"");
}

TEST(JsonText, cuts_long_text_at_a_character_and_says_so) {
    EXPECT_EQ(json("abcdef", 6), "\"abcdef\"");
    EXPECT_EQ(json("abcdefg", 6), "\"abcdef\u2026\"");
    EXPECT_EQ(json("abcd€", 6), "\"abcd\u2026\"");
    EXPECT_EQ(json("abcd€", 7), "\"abcd€\"");
    EXPECT_EQ(json("x", 0), "\"\u2026\"");
}

// A JSON library of others is the judge.
TEST(JsonText, random_bytes_always_give_valid_json_and_valid_text_comes_back) {
    const uint64_t seed = std::random_device()();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 50'000; ++round) {
        std::string text(random() % 20, '\0');
        for (char &c : text) c = static_cast<char>(random());
        const std::string out = json(text, random() % 3 == 0 ? random() % 20 : std::string_view::npos);
        const auto parsed = nlohmann::json::parse(out, nullptr, false);
        ASSERT_TRUE(parsed.is_string()) << to_string(nlohmann::json(round));
        std::string ascii = text;
        for (char &c : ascii) c = static_cast<char>(c & 0x7F);
        ASSERT_EQ(nlohmann::json::parse(json(ascii)).get<std::string>(), ascii);
    }
}

}  // namespace
}  // namespace roost::obs
