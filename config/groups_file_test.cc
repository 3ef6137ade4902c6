#include "config/groups_file.h"

#include <gtest/gtest.h>

namespace roost::config {
namespace {

TEST(GroupsFile, SaysWhoTakesTurnsWithWhom) {
    const auto groups = parse_groups(
        "[etl]\nusers = \"loader, dbt\"\nweight = 0.5\nrunning_max = 2\nmemory_max = \"1GiB\"\n"
        "[bi]\nusers = \"ann\"\npriority = 1\n[default]\nweight = 3\n",
        "f");
    ASSERT_TRUE(groups.ok()) << groups.status().to_string();
    ASSERT_EQ(groups->size(), 3u);
    const WorkloadGroup &etl = groups->front();
    EXPECT_EQ(etl.name, "etl");
    EXPECT_EQ(etl.users, (std::vector<std::string>{"loader", "dbt"}));
    EXPECT_EQ(etl.weight, 0.5);
    EXPECT_EQ(etl.running_max, 2u);
    EXPECT_EQ(etl.memory_max_bytes, uint64_t{1} << 30);
    EXPECT_EQ((*groups)[1].priority, 1);
    EXPECT_EQ((*groups)[2].name, "");
    EXPECT_EQ((*groups)[2].weight, 3);
}

TEST(GroupsFile, MistakesAreNamedWithTheirLine) {
    for (const auto &[text, line, word] : std::vector<std::tuple<std::string, std::string, std::string>>{
             {"[a]\nweight = 0\n", "f:2", "above 0"},
             {"[a]\nweight = \"much\"\n", "f:2", "number"},
             {"[a]\nrunning_max = 0\n", "f:2", "running_max"},
             {"[a]\nmemory_max = \"lots\"\n", "f:2", "memory_max"},
             {"[a]\nsize = 1\n", "f:2", "may have"},
             {"[default]\nusers = \"x\"\n", "f:1", "no users"},
             {"[a]\nusers = \"x\"\n[b]\nusers = \"x\"\n", "f:3", "two groups"}}) {
        const auto groups = parse_groups(text, "f");
        ASSERT_FALSE(groups.ok()) << text;
        EXPECT_NE(groups.status().message().find(line), std::string::npos) << groups.status().message();
        EXPECT_NE(groups.status().message().find(word), std::string::npos) << groups.status().message();
    }
}

}  // namespace
}  // namespace roost::config
