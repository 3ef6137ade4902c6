// Instances: limits, replacement of broken ones, spill directories, extension sums.
#include "engine/instance_pool.h"

#include <filesystem>
#include <fstream>

#include "duckdb/common/error_data.hpp"
#include "duckdb/storage/buffer_manager.hpp"
#include "engine/test_engine.h"

namespace roost {
namespace {

namespace fs = std::filesystem;
using testing::TestEngine;

class InstancePoolTest : public ::testing::Test {
protected:
    InstancePoolTest()
        : pool_(
              InstancePoolOptions{
                  .lake = lake_.lake(),
                  .extension_dir = TestEngine::extension_dir(),
                  .spill_root = lake_.dir() + "/pool-spill",
                  .threads = 2,
                  .small_bytes = 32u << 20,
                  .pinned_bytes = 48u << 20,
                  .spill_max_bytes = 64u << 20,
                  .redactions = {},
              },
              lake_.log()) {}
    static uint64_t limit(Instance &instance) { return instance.buffer_manager().GetMaxMemory(); }

    TestEngine &lake_ = TestEngine::get();
    InstancePool pool_;
};

TEST_F(InstancePoolTest, ABrokenInstanceIsReplaced) {
    auto first = pool_.small();
    ASSERT_TRUE(first.ok()) << first.status().to_string();
    EXPECT_EQ(pool_.small()->get(), first->get());
    const Status told =
        (*first)->error(duckdb::ErrorData(duckdb::ExceptionType::INTERNAL, "Assertion at /build/secret.cpp"), "");
    EXPECT_EQ(told.code(), Code::internal);
    EXPECT_EQ((told.message() + told.error().detail + told.error().hint).find("secret.cpp"), std::string::npos);
    auto second = pool_.small();
    ASSERT_TRUE(second.ok());
    EXPECT_NE(second->get(), first->get());
    EXPECT_FALSE((*second)->broken());
}

TEST_F(InstancePoolTest, ASlotIsTakenAloneAndKeptWithinItsIdleLimit) {
    auto taken = pool_.take_slot(3, 100u << 20);
    ASSERT_TRUE(taken.ok());
    Instance *instance = taken->get();
    EXPECT_EQ(limit(*instance), 100u << 20);
    auto other = pool_.take_slot(3, 100u << 20);
    ASSERT_TRUE(other.ok());
    EXPECT_NE(other->get(), instance);
    pool_.give_back_slot(3, std::move(taken).value());
    EXPECT_LE(limit(*instance), 16u << 20);
    auto again = pool_.take_slot(3, 50u << 20);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->get(), instance);
    EXPECT_EQ(limit(*instance), 50u << 20);
}

TEST_F(InstancePoolTest, LentMemoryAddsUpAndComesBack) {
    auto pinned = pool_.pinned();
    ASSERT_TRUE(pinned.ok());
    Instance &instance = **pinned;
    ASSERT_TRUE(instance.lend(10u << 20).ok());
    ASSERT_TRUE(instance.lend(20u << 20).ok());
    EXPECT_EQ(limit(instance), 78u << 20);
    ASSERT_TRUE(instance.take_back(10u << 20).ok());
    EXPECT_EQ(limit(instance), 68u << 20);
    {
        auto block = instance.buffer_manager().Allocate(duckdb::MemoryTag::EXTENSION, 60u << 20, false);
        EXPECT_EQ(instance.take_back(20u << 20).sqlstate(), "53200");
    }
    ASSERT_TRUE(instance.take_back(20u << 20).ok());
    EXPECT_EQ(limit(instance), 48u << 20);
}

TEST_F(InstancePoolTest, SpillDirectoriesGoWithTheirInstance) {
    {
        auto instance = pool_.make_internal(64u << 20);
        ASSERT_TRUE(instance.ok());
        EXPECT_FALSE(fs::is_empty(lake_.dir() + "/pool-spill"));
    }
    EXPECT_TRUE(fs::is_empty(lake_.dir() + "/pool-spill"));
}

TEST_F(InstancePoolTest, ALakeThatIsNotThereIsAnErrorAndIsNotMade) {
    InstancePoolOptions options = pool_.options();
    options.lake.metadata_path = lake_.dir() + "/absent.sqlite";
    InstancePool other(options, lake_.log());
    EXPECT_EQ(other.small().status().code(), Code::unavailable);
}

TEST(VerifyExtensions, AnotherFileIsRefused) {
    EXPECT_TRUE(verify_extensions(TestEngine::extension_dir()).ok());
    const std::string dir = TestEngine::get().dir() + "/extensions";
    fs::create_directories(dir);
    EXPECT_EQ(verify_extensions(dir).code(), Code::io_error);
    for (const char *name : {"/ducklake.duckdb_extension", "/sqlite_scanner.duckdb_extension"}) {
        std::ofstream(dir + name) << "not an extension";
    }
    EXPECT_EQ(verify_extensions(dir).code(), Code::data_loss);
}

}  // namespace
}  // namespace roost
