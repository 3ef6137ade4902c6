#include "lake/lake_changes.h"

#include <gtest/gtest.h>

namespace roost {
namespace {

using Ids = std::set<uint64_t>;

TEST(LakeChanges, KnowsEveryKindThatDuckLakeWrites) {
    LakeChanges changes;
    EXPECT_TRUE(changes.add("inserted_into_table:1,inserted_into_table:2,deleted_from_table:2"));
    EXPECT_EQ(changes.appended, (Ids{1, 2}));
    EXPECT_EQ(changes.changed, (Ids{2}));
    EXPECT_FALSE(changes.definitions);
    EXPECT_TRUE(changes.add("inlined_insert:3,inlined_delete:4,inline_flush:5"));
    EXPECT_TRUE(changes.add("merge_adjacent:6,rewrite_delete:7"));
    EXPECT_EQ(changes.changed, (Ids{2, 3, 4}));
    EXPECT_EQ(changes.rewritten, (Ids{5, 6, 7}));
    for (const char *ddl : {"created_schema:\"s\"", "dropped_schema:3", "created_table:\"main\".\"t\"",
                            "dropped_table:1", "altered_table:1", "created_view:\"main\".\"v\"", "dropped_view:2",
                            "altered_view:2", "created_scalar_macro:\"main\".\"m\"", "dropped_scalar_macro:1",
                            "created_table_macro:\"main\".\"m\"", "dropped_table_macro:1"}) {
        LakeChanges each;
        EXPECT_TRUE(each.add(ddl)) << ddl;
        EXPECT_TRUE(each.definitions) << ddl;
    }
}

TEST(LakeChanges, NamesMayHoldWhatTheGrammarUses) {
    LakeChanges changes;
    EXPECT_TRUE(changes.add("created_table:\"a,b\".\"it\"\"s:1,deleted_from_table:9\",inserted_into_table:3"));
    EXPECT_TRUE(changes.definitions);
    EXPECT_EQ(changes.appended, (Ids{3}));
    EXPECT_TRUE(changes.changed.empty());
}

TEST(LakeChanges, WhatItDoesNotKnowIsNeverPassedOver) {
    for (const char *text :
         {"", "reordered_table:1", "inserted_into_table", "inserted_into_table:", "inserted_into_table:x",
          "inserted_into_table:1x", "created_table:\"unclosed", "inserted_into_table:1,,", ":1"}) {
        LakeChanges changes;
        EXPECT_FALSE(changes.add(text)) << text;
    }
}

}  // namespace
}  // namespace roost
