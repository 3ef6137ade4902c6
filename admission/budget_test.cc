#include "admission/budget.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "admission/profile.h"

namespace roost::admission {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A made-up machine of 64 GiB and 8 CPUs.
class BudgetTest : public testing::Test {
protected:
    BudgetTest() {
        std::string pattern = testing::TempDir() + "roost_budget_XXXXXX";
        root_ = mkdtemp(pattern.data());
        write("/proc/meminfo", "MemTotal:       67108864 kB\n");
        write("/proc/self/status", "Cpus_allowed_list:\t0-7\n");
    }
    ~BudgetTest() override { std::filesystem::remove_all(root_); }
    void write(const std::string &path, const std::string &text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    uint64_t budget(uint64_t configured_bytes = 0) {
        return *budget_of(effective_of(config::read_machine(root_), configured_bytes, 0).memory_bytes, 0);
    }
    std::string root_;
};

TEST_F(BudgetTest, in_a_container_with_v1_with_v2_and_with_none_it_stays_below_what_kills_it) {
    EXPECT_EQ(budget(), usable_bytes(64 * kGiB) - kProcessReserveBytes);

    write("/proc/self/cgroup", "0::/pods/a\n");
    write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    write("/sys/fs/cgroup/pods/memory.max", "3221225472\n");
    write("/sys/fs/cgroup/pods/a/memory.max", "8589934592\n");
    write("/sys/fs/cgroup/pods/a/cpu.max", "250000 100000\n");
    EXPECT_EQ(budget(), usable_bytes(3 * kGiB) - kProcessReserveBytes);
    EXPECT_EQ(effective_of(config::read_machine(root_), 0, 0).cpus, 3U);

    write("/proc/self/cgroup", "5:memory:/docker/abc\n");
    write("/proc/self/mountinfo", "31 30 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    EXPECT_EQ(budget(), usable_bytes(2 * kGiB) - kProcessReserveBytes);
    EXPECT_EQ(effective_of(config::read_machine(root_), 0, 0).memory_source, "cgroup v1 memory.limit_in_bytes of /");
}

TEST_F(BudgetTest, a_setting_lowers_and_never_raises) {
    EXPECT_EQ(budget(4 * kGiB), usable_bytes(4 * kGiB) - kProcessReserveBytes);
    EXPECT_EQ(budget(128 * kGiB), budget());
    EXPECT_EQ(effective_of(config::read_machine(root_), 4 * kGiB, 2).memory_source, "setting");
    EXPECT_EQ(effective_of(config::read_machine(root_), 0, 2).cpus, 2U);
}

TEST(Budget, the_cache_leaves_a_node_what_it_needs) {
    EXPECT_FALSE(budget_of(300 * kMiB, 0).ok());
    EXPECT_EQ(*budget_of(400 * kMiB, 100 * kGiB), kBudgetMinBytes);
    EXPECT_EQ(*budget_of(10 * kGiB, kGiB), usable_bytes(10 * kGiB) - kProcessReserveBytes - kGiB);
}

}  // namespace
}  // namespace roost::admission
