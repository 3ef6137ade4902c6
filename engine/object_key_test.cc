#include "engine/object_key.h"

#include <gtest/gtest.h>

#include <string>

namespace roost {
namespace {

TEST(ObjectKey, PlainKeysOfALake) {
    for (const char *key :
         {"main/t/ducklake-0193.parquet", "main/t/region=EU/day=2026-01-01/f.parquet", "main/t/p=a%20b%2Fc/f.parquet",
          "7f9c-1/x_y/~.parquet", "main/t/p=%C3%A9/f", "...", "a..b"}) {
        EXPECT_TRUE(is_plain_key(key)) << key;
    }
}

TEST(ObjectKey, WhatCouldMeanSomethingElse) {
    for (const char *key : {"",         "/",        "a/",      "/a",    "a//b",
                            ".",        "..",       "a/../b",  "a/./b", "a/..",
                            "%2E%2E/b", "a/%2e%2e", ".%2E",    "a?x=y", "a?s3_endpoint=evil",
                            "a#b",      "a\\b",     "a b",     "a%",    "a%2",
                            "a%zz",     "a*",       "a[b]",    "a{b",   "a<b",
                            "a&b",      "a\"b",     "a'b",     "a:b",   "a;b",
                            "a\nb",     "a\x01",    "\xC3\xA9"}) {
        EXPECT_FALSE(is_plain_key(key)) << key;
    }
    EXPECT_FALSE(is_plain_key(std::string_view("a\0b", 3)));
    EXPECT_FALSE(is_plain_key(std::string(1025, 'a')));
}

}  // namespace
}  // namespace roost
