// No wrong byte, wherever the process or the power goes. Two forms: simulated, with a kill at a random write and a
// random part of what was not synced lost (thousands a second); and real, a child process under kill -9.
// CACHE_CRASHES and CACHE_KILLS set how many; ./dev cache-kills runs the long form.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "cache/segment_cache.h"
#include "cache/test_store.h"

namespace roost::cache {
namespace {

using testing::bytes_of;
using testing::FakeStore;
using testing::Platter;
using testing::SimulatedDisk;

constexpr uint32_t kBlock = 4096;
constexpr uint64_t kMaxBytes = 24 * kBlock;

uint64_t times(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text == nullptr ? otherwise : strtoull(text, nullptr, 10);
}

FileKey some_file(Random &random) {
    const std::string path = "f" + std::to_string(random.below(5));
    return {path, std::to_string(random.below(3)), 1 + std::hash<std::string>()(path) % (7 * kBlock)};
}

std::string block_of(const FileKey &key, uint32_t block) {
    const uint64_t at = uint64_t{block} * kBlock;
    return bytes_of(key.path, key.version, at, std::min<uint64_t>(kBlock, key.size_bytes - at));
}

// One random thing done to a store. False when a byte was wrong.
bool step(BlockStore &store, Random &random) {
    const FileKey key = some_file(random);
    const auto file = store.file(key, key.path);
    const auto block = static_cast<uint32_t>(random.below((key.size_bytes + kBlock - 1) / kBlock));
    const uint64_t what = random.below(100);
    if (what < 55) {
        (void)store.put(file, block, block_of(key, block), random.chance(0.2) ? BlockKind::index : BlockKind::data);
    } else if (what < 85) {
        auto lease = store.lease(file, block, random.next(), BlockKind::data);
        if (!lease) return true;
        const auto offset = static_cast<uint32_t>(random.below(lease.length_bytes()));
        std::string bytes(1 + random.below(lease.length_bytes() - offset), '?');
        std::shared_ptr<const BlockStore::Grain> grain;
        if (store.read(lease, offset, bytes.size(), bytes.data(), grain).ok()) {
            return bytes == block_of(key, block).substr(offset, bytes.size());
        }
    } else if (what < 90) {
        if (auto staged = store.stage(block_of(key, block))) {
            if (random.chance(0.5)) return store.commit(file, block, *staged, BlockKind::data), true;
            store.discard({*staged});
        }
    } else if (what < 92) {
        (void)store.evict_file(key.path);
    } else if (what < 97) {
        (void)store.pin(key.path, random.chance(0.5));
    } else {
        store.tick();
    }
    return true;
}

// Everything that the store says it has. The number of blocks, or none when a byte was wrong.
std::optional<uint64_t> look_at_all(BlockStore &store) {
    uint64_t blocks = 0;
    for (const FileWarmth &warm : store.files(1000)) {
        const auto file = store.file(warm.key, "");
        for (uint32_t block = 0; uint64_t{block} * kBlock < warm.key.size_bytes; ++block) {
            auto lease = store.lease(file, block, 0, BlockKind::data);
            if (!lease) continue;
            std::string bytes(lease.length_bytes(), '?');
            std::shared_ptr<const BlockStore::Grain> grain;
            if (!store.read(lease, 0, bytes.size(), bytes.data(), grain).ok()) continue;
            if (bytes != block_of(warm.key, block)) return std::nullopt;
            ++blocks;
        }
    }
    return blocks;
}

TEST(CrashTest, a_kill_or_a_power_cut_at_any_write_leaves_no_wrong_byte) {
    const uint64_t crashes = times("CACHE_CRASHES", 2000);
    ManualClock clock;
    auto log = obs::make_null_log();
    BlockStoreOptions options;
    options.block_bytes = kBlock;
    options.max_bytes = kMaxBytes;
    options.free_floor_bytes = 0;
    auto platter = std::make_unique<Platter>();
    uint64_t survived_blocks = 0, kills = 0, power_cuts = 0;
    for (uint64_t seed = 1; seed <= crashes; ++seed) {
        SeededRandom random(seed);
        if (seed % 50 == 0) platter = std::make_unique<Platter>();  // begins empty: the first opening is killed too
        platter->kill_after(random.below(40), seed);
        auto store = *BlockStore::open(std::make_unique<SimulatedDisk>(*platter), options, clock, *log);
        const auto here = look_at_all(*store);
        ASSERT_TRUE(here) << "a wrong byte after a crash, seed " << seed;
        survived_blocks += *here;
        for (int i = 0; i < 200 && !platter->killed(); ++i) {
            ASSERT_TRUE(step(*store, random)) << "a wrong byte, seed " << seed;
        }
        store.reset();
        const bool power_lost = random.chance(0.5);
        ++(power_lost ? power_cuts : kills);
        platter->crash(power_lost, seed);
    }
    // Else the test would only show that an empty cache is right.
    EXPECT_GT(survived_blocks, crashes);
    EXPECT_GT(kills, crashes / 4);
    EXPECT_GT(power_cuts, crashes / 4);
}

TEST(CrashTest, the_simulation_does_find_wrong_bytes_where_checks_are_missing) {
    // The same power cut under a file without checksums: shows that the crashes above are hard enough to matter.
    Platter platter;
    uint64_t wrong = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        SimulatedDisk disk(platter);
        ASSERT_TRUE(disk.mount().ok());
        auto file = *disk.open("x");
        const std::string bytes(kBlock, static_cast<char>('a' + seed % 26));
        ASSERT_TRUE(file->write_at(0, bytes).ok());
        platter.crash(true, seed);
        std::string back(kBlock, '?');
        wrong += !file->read_at(0, back.data(), back.size()).ok() || back != bytes;
    }
    EXPECT_GT(wrong, 100U);
}

// ---- kill -9

// What the child does: fills and reads a cache until it is killed. Run by the test below, in this program.
TEST(CrashChild, DISABLED_writes_until_it_is_killed) {
    const char *directory = getenv("CACHE_CRASH_DIRECTORY");
    if (directory == nullptr) GTEST_SKIP() << "for the test that kills it";
    SystemClock clock;
    auto log = obs::make_null_log();
    SegmentCacheOptions options;
    options.blocks.block_bytes = kBlock;
    options.blocks.max_bytes = kMaxBytes;
    options.blocks.free_floor_bytes = 0;
    options.fetch_threads = 1;
    auto cache = SegmentCache::open(make_posix_disk(directory), options, clock, *log);
    ASSERT_TRUE(cache.ok()) << cache.status().to_string();
    auto store = std::make_shared<FakeStore>();
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&, thread] {
            SeededRandom random(times("CACHE_CRASH_SEED", 1) * 2 + thread);
            while (true) {
                const FileKey key = some_file(random);
                if (random.chance(0.1)) (void)(*cache)->blocks().evict_file(key.path);
                std::string bytes(key.size_bytes, '?');
                auto reader = (*cache)->reader(key, "t", store, nullptr);
                const Status status = reader->read(0, bytes.size(), bytes.data(), {});
                if (!status.ok() || bytes != bytes_of(key.path, key.version, 0, bytes.size())) _exit(9);
                if (write(1, ".", 1) != 1) _exit(8);  // alive, and this many reads in
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
}

pid_t start_child(const std::string &directory, uint64_t seed, int output) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const std::string environment[] = {"CACHE_CRASH_DIRECTORY=" + directory,
                                       "CACHE_CRASH_SEED=" + std::to_string(seed)};
    const char *arguments[] = {self.c_str(), "--gtest_filter=CrashChild.*", "--gtest_also_run_disabled_tests",
                               "--gtest_brief=1", nullptr};
    const char *variables[] = {environment[0].c_str(), environment[1].c_str(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, self.c_str(), &actions, nullptr, const_cast<char **>(arguments),
                                  const_cast<char **>(variables));
    posix_spawn_file_actions_destroy(&actions);
    return error == 0 ? pid : -1;
}

TEST(CrashTest, kill_9_of_a_process_that_writes_its_cache_leaves_no_wrong_byte) {
    const uint64_t kills = times("CACHE_KILLS", 10);
    const std::string directory = ::testing::TempDir() + "cache_crash." + std::to_string(getpid());
    SystemClock clock;
    auto log = obs::make_null_log();
    BlockStoreOptions options;
    options.block_bytes = kBlock;
    options.max_bytes = kMaxBytes;
    options.free_floor_bytes = 0;
    uint64_t survived_blocks = 0;
    Uuid identity;
    for (uint64_t seed = 1; seed <= kills; ++seed) {
        SeededRandom random(seed);
        int pipe_ends[2];
        ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
        const pid_t child = start_child(directory, seed, pipe_ends[1]);
        ASSERT_GT(child, 0);
        close(pipe_ends[1]);
        // Somewhere in its work: after so many reads, and a little further.
        char byte = 0;
        for (uint64_t reads = random.below(400); reads > 0 && read(pipe_ends[0], &byte, 1) == 1; --reads) {
        }
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        close(pipe_ends[0]);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            << "the child ended by itself: 9 is a wrong byte; " << WEXITSTATUS(status) << ", seed " << seed;
        auto store = BlockStore::open(make_posix_disk(directory), options, clock, *log);
        ASSERT_TRUE(store.ok()) << store.status().to_string();
        if ((*store)->state().identity.is_nil()) continue;  // killed before it had a directory
        if (!identity.is_nil()) EXPECT_EQ((*store)->state().identity, identity);
        identity = (*store)->state().identity;
        const auto here = look_at_all(**store);
        ASSERT_TRUE(here) << "a wrong byte after kill -9, seed " << seed;
        survived_blocks += *here;
    }
    EXPECT_GT(survived_blocks, kills);
    std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace roost::cache
