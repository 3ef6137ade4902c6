// A statement that finds no memory says so, wherever on its way that happens: the node runs it again in a slot, as it
// does with no other error.
#include <gtest/gtest.h>

#include "cache/test_store.h"
#include "duckdb/storage/buffer_manager.hpp"
#include "engine/execution.h"
#include "engine/instance_pool.h"
#include "engine/object_cache.h"
#include "engine/running_query.h"
#include "engine/test_engine.h"

namespace roost {
namespace {

using testing::TestEngine;

class SmallMemory : public ::testing::Test {
protected:
    SmallMemory() {
        cache::SegmentCacheOptions options;
        options.blocks.block_bytes = 4096;
        options.blocks.max_bytes = 1 << 20;
        options.blocks.free_floor_bytes = 0;
        options.fetch_threads = 0;
        auto opened = cache::SegmentCache::open(std::make_unique<cache::testing::SimulatedDisk>(platter_), options,
                                                clock_, *log_);
        EXPECT_TRUE(opened.ok());
        segments_ = std::move(*opened);
    }

    // Runs it in an instance that has `spare_bytes` more than it holds by itself, from its planning or from its start
    // on.
    enum class From : uint8_t { planning, start, commit };
    Status run_with(Instance &instance, const StatementSpec &spec, From from, uint64_t spare_bytes) {
        auto &memory = instance.buffer_manager();
        const auto narrow = [&] { memory.SetMemoryLimit(memory.GetUsedMemory() + spare_bytes); };
        memory.SetMemoryLimit(kEnough);
        auto connection = instance.connect();
        EXPECT_TRUE(connection.ok());
        if (from == From::planning) narrow();
        Cancellation cancellation;
        cancellation.watch((*connection)->shared_context());
        const Status status = [&]() -> Status {
            try {
                (*connection)->apply(spec.settings);
                (*connection)->begin(!spec.writes);
            } catch (const std::exception &error) {
                return instance.error(duckdb::ErrorData(error), spec.sql);
            }
            RunningQuery query(instance, **connection, cancellation);
            ROOST_RETURN_IF_ERROR(query.prepare(spec));
            if (from == From::start) narrow();
            ROOST_RETURN_IF_ERROR(query.start(RunningQuery::Watch::not_at_all));
            for (;;) {
                ROOST_ASSIGN_OR_RETURN(const auto chunk, query.next());
                if (!chunk) break;
            }
            query.close();
            if (!spec.writes) return Status();
            if (from == From::commit) narrow();
            Completion completion;
            return commit_marked(instance, **connection, "lake", spec.id, completion);
        }();
        cancellation.watch(nullptr);
        memory.SetMemoryLimit(kEnough);
        instance.give_back(std::move(*connection));
        return status;
    }

    void expect_it_says_so(Instance &instance, StatementSpec spec, std::initializer_list<From> stages) {
        for (const From from : stages) {
            int done = 0, without = 0;
            for (const uint64_t kib : {0, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 12288}) {
                const uint64_t spare = kib << 10;
                spec.id = Uuid::make();
                const Status status = run_with(instance, spec, from, spare);
                ++(status.ok() ? done : without);
                EXPECT_TRUE(status.ok() || status.sqlstate() == "53200")
                    << spec.sql << ", " << spare << ": " << status.to_string();
            }
            EXPECT_GT(done, 0) << spec.sql;
            EXPECT_GT(without, 0) << spec.sql;
        }
    }

    static constexpr uint64_t kEnough = 64u << 20;
    TestEngine lake_;  // its own: what other tests left in a lake would have to be loaded, too
    cache::testing::Platter platter_;
    ManualClock clock_;
    std::unique_ptr<obs::Log> log_ = obs::make_null_log();
    std::unique_ptr<cache::SegmentCache> segments_;
};

TEST_F(SmallMemory, AStatementSaysThatItFoundNoneWhereverItLooked) {
    ASSERT_TRUE(lake_
                    .write("CREATE OR REPLACE TABLE narrow AS SELECT range AS i, md5(range::VARCHAR) AS s "
                           "FROM range(20000)")
                    .status.ok());
    ASSERT_TRUE(lake_.write("INSERT INTO narrow SELECT range, 'x' FROM range(3000)").status.ok());
    InstancePoolOptions options{.lake = lake_.lake(),
                                .extension_dir = TestEngine::extension_dir(),
                                .spill_root = lake_.dir() + "/narrow-spill",
                                .threads = 1,
                                .small_bytes = kEnough,
                                .pinned_bytes = kEnough,
                                .spill_max_bytes = 64u << 20,
                                .redactions = {}};
    options.cache = std::make_shared<ObjectCache>(*segments_, nullptr, clock_);  // with it a read's files are noted
    InstancePool pool(std::move(options), lake_.log());
    auto small = pool.small();
    ASSERT_TRUE(small.ok()) << small.status().to_string();
    expect_it_says_so(**small, TestEngine::spec("SELECT count(*), max(s), sum(i) FROM narrow WHERE i >= 0"),
                      {From::planning, From::start});
    expect_it_says_so(**small, TestEngine::write_spec("INSERT INTO narrow SELECT range, 'y' FROM range(5000)"),
                      {From::planning, From::start, From::commit});
    expect_it_says_so(**small, TestEngine::write_spec("CREATE OR REPLACE TABLE narrower AS FROM narrow"),
                      {From::planning, From::start, From::commit});
}

}  // namespace
}  // namespace roost
