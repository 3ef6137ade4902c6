#include "engine/sample.h"

#include <stdlib.h>

#include <filesystem>

#include "engine/test_engine.h"

namespace roost {
namespace {

using testing::TestEngine;

TEST(Sample, FillsAnEmptyLakeOnceAndTellsItsSteps) {
    TestEngine lake;  // of its own: the shared one has no sample
    std::vector<std::string> steps;
    uint32_t last = 0;
    uint32_t of = 0;
    const auto note = [&](const std::string &step, uint32_t done, uint32_t all) {
        steps.push_back(step);
        EXPECT_GE(done, last);
        last = done;
        of = all;
    };
    const Status filled = fill_tpch(lake.lake(), 0.01, lake.sample(), note);
    ASSERT_TRUE(filled.ok()) << filled.to_string();
    EXPECT_EQ(last, of);
    EXPECT_GE(steps.size(), 9u);
    EXPECT_EQ(lake.read("SELECT count(*) FROM lineitem").value(), "60175");
    EXPECT_EQ(lake.read("SELECT count(*) FROM orders").value(), "15000");
    EXPECT_EQ(lake.read("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake'").value(), "8");
    steps.clear();
    EXPECT_TRUE(fill_tpch(lake.lake(), 0.01, lake.sample(), note).ok());
    EXPECT_TRUE(steps.empty());
    EXPECT_EQ(lake.read("SELECT count(*) FROM lineitem").value(), "60175");
    EXPECT_TRUE(std::filesystem::is_empty(lake.sample().spill_dir));
    EXPECT_EQ(fill_tpch(lake.lake(), -1, lake.sample(), note).code(), Code::invalid_argument);
    EXPECT_TRUE(create_lake(lake.lake(), lake.sample()).ok());
    EXPECT_EQ(lake.read("SELECT count(*) FROM nation").value(), "25");
}

}  // namespace
}  // namespace roost
