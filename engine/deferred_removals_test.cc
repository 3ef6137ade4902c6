#include "engine/deferred_removals.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/ids.h"

namespace roost {
namespace {

namespace fs = std::filesystem;
using Entry = DeferredRemovals::Entry;

class DeferredRemovalsTest : public ::testing::Test {
protected:
    DeferredRemovalsTest() { fs::create_directories(dir_); }
    ~DeferredRemovalsTest() override { fs::remove_all(dir_); }
    std::vector<std::string> settle_all(DeferredRemovals &removals, int64_t before_us, const std::string &keep = "") {
        std::vector<std::string> asked;
        removals.settle(before_us, [&](const Entry &entry) -> Result<bool> {
            asked.push_back(entry.path);
            if (entry.path == keep) return Status(Code::io_error, "not now");
            return true;
        });
        return asked;
    }

    const fs::path dir_ = fs::temp_directory_path() / ("roost-removals-" + Uuid::make().to_string());
    const std::string journal_ = (dir_ / "journal").string();
    std::unique_ptr<obs::Log> log_ = obs::make_null_log();
};

TEST_F(DeferredRemovalsTest, AreSettledWhenTheyAreOldEnough) {
    DeferredRemovals removals(journal_, *log_);
    removals.put_off({"lake", "/data/a.parquet", 100});
    removals.put_off({"lake", "/data/b.parquet", 200});
    EXPECT_EQ(settle_all(removals, 150), std::vector<std::string>{"/data/a.parquet"});
    EXPECT_EQ(settle_all(removals, 150), std::vector<std::string>{});
    EXPECT_EQ(settle_all(removals, 250, "/data/b.parquet"), std::vector<std::string>{"/data/b.parquet"});
    EXPECT_EQ(removals.size(), 1u) << "what failed is tried again";
    EXPECT_EQ(settle_all(removals, 250), std::vector<std::string>{"/data/b.parquet"});
    EXPECT_EQ(removals.size(), 0u);
}

TEST_F(DeferredRemovalsTest, SurviveARestart) {
    {
        DeferredRemovals removals(journal_, *log_);
        removals.put_off({"lake", "/data/with space/a.parquet", 100});
        removals.put_off({"other", "s3://b/p/b.parquet", 100});
        removals.put_off({"lake", "/data/c\n.parquet", 100});
        EXPECT_EQ(settle_all(removals, 150, "s3://b/p/b.parquet").size(), 3u);
        removals.put_off({"lake", "/data/d.parquet", 300});
    }
    DeferredRemovals again(journal_, *log_);
    EXPECT_EQ(settle_all(again, 400), (std::vector<std::string>{"s3://b/p/b.parquet", "/data/d.parquet"}));
}

TEST_F(DeferredRemovalsTest, ADamagedJournalCostsItsDamagedLines) {
    std::ofstream(journal_) << "12\tlake\t/data/a\nnonsense\n\t\t\n99\tlake\n7\tlake\t/data/b";
    DeferredRemovals removals(journal_, *log_);
    EXPECT_EQ(settle_all(removals, 400), (std::vector<std::string>{"/data/a", "/data/b"}));
}

TEST_F(DeferredRemovalsTest, ADiskThatTakesNothingCostsNothingElse) {
    DeferredRemovals removals((dir_ / "not" / "there").string(), *log_);
    removals.put_off({"lake", "/data/a.parquet", 100});
    EXPECT_EQ(settle_all(removals, 150), std::vector<std::string>{"/data/a.parquet"});
    EXPECT_EQ(removals.size(), 0u);
}

}  // namespace
}  // namespace roost
