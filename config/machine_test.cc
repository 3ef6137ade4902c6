#include "config/machine.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace roost::config {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A made-up machine: 8 CPUs, 16 GiB, no limits until some are written.
class MachineTest : public testing::Test {
protected:
    MachineTest() {
        std::string pattern = testing::TempDir() + "roost_machine_XXXXXX";
        root_ = mkdtemp(pattern.data());
        write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1000 kB\n");
        write("/proc/self/status", "Name:\troost\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
    }
    ~MachineTest() override { std::filesystem::remove_all(root_); }

    void write(const std::string &path, const std::string &text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    void mount_v2(const std::string &group, const std::string &shown_root = "/",
                  const std::string &point = "/sys/fs/cgroup") {
        write("/proc/self/cgroup", "0::" + group + "\n");
        write("/proc/self/mountinfo", "24 1 0:22 / /proc rw,nosuid - proc proc rw\n30 23 0:26 " + shown_root + " " +
                                          point + " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    }
    void mount_v1(const std::string &group, const std::string &shown_root) {
        write("/proc/self/cgroup",
              "5:memory:" + group + "\n4:cpu,cpuacct:" + group + "\n1:name=systemd:" + group + "\n");
        write("/proc/self/mountinfo",
              "31 30 0:27 " + shown_root + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n32 30 0:28 " +
                  shown_root + " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    }

    std::string root_;
};

TEST_F(MachineTest, without_cgroups_the_machine_is_the_limit) {
    const Machine machine = read_machine(root_);
    EXPECT_EQ(machine.cpus, 8U);
    EXPECT_EQ(machine.memory_bytes, 16 * kGiB);
    EXPECT_EQ(machine.cpus_source, "affinity");
    EXPECT_EQ(machine.memory_source, "MemTotal");
}

TEST_F(MachineTest, affinity_counts_ranges_and_single_cpus) {
    write("/proc/self/status", "Cpus_allowed_list:\t0-2,5,8-9\n");
    EXPECT_EQ(read_machine(root_).cpus, 6U);
}

TEST_F(MachineTest, v2_limits_of_the_whole_path_hold) {
    mount_v2("/pods/a/leaf");
    write("/sys/fs/cgroup/pods/memory.max", "4294967296\n");
    write("/sys/fs/cgroup/pods/a/memory.max", "8589934592\n");
    write("/sys/fs/cgroup/pods/a/leaf/memory.max", "max\n");
    write("/sys/fs/cgroup/pods/a/cpu.max", "300000 100000\n");
    write("/sys/fs/cgroup/pods/a/leaf/cpu.max", "max 100000\n");
    const Machine machine = read_machine(root_);
    EXPECT_EQ(machine.memory_bytes, 4 * kGiB);
    EXPECT_EQ(machine.memory_source, "cgroup v2 memory.max of /pods");
    EXPECT_EQ(machine.cpus, 3U);
    EXPECT_EQ(machine.cpus_source, "cgroup v2 cpu.max of /pods/a");
}

TEST_F(MachineTest, v2_in_a_container_with_a_namespace_of_its_own) {
    mount_v2("/");
    write("/sys/fs/cgroup/memory.max", "2147483648\n");
    write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    const Machine machine = read_machine(root_);
    EXPECT_EQ(machine.memory_bytes, 2 * kGiB);
    EXPECT_EQ(machine.cpus, 2U) << "one and a half, rounded up";
}

TEST_F(MachineTest, v2_path_from_outside_the_namespace_falls_back_to_the_mount) {
    mount_v2("/../../other");
    write("/sys/fs/cgroup/memory.max", "2147483648\n");
    EXPECT_EQ(read_machine(root_).memory_bytes, 2 * kGiB);
}

TEST_F(MachineTest, a_quota_below_one_cpu_is_one) {
    mount_v2("/");
    write("/sys/fs/cgroup/cpu.max", "20000 100000\n");
    EXPECT_EQ(read_machine(root_).cpus, 1U);
}

TEST_F(MachineTest, a_quota_above_the_affinity_changes_nothing) {
    mount_v2("/");
    write("/sys/fs/cgroup/cpu.max", "6400000 100000\n");
    write("/proc/self/status", "Cpus_allowed_list:\t3\n");
    EXPECT_EQ(read_machine(root_).cpus, 1U);
}

TEST_F(MachineTest, v1_in_a_container_that_sees_its_path_from_outside) {
    mount_v1("/docker/abc", "/docker/abc");
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3221225472\n");
    write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
    write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    const Machine machine = read_machine(root_);
    EXPECT_EQ(machine.memory_bytes, 3 * kGiB);
    EXPECT_EQ(machine.memory_source, "cgroup v1 memory.limit_in_bytes of /");
    EXPECT_EQ(machine.cpus, 2U);
}

TEST_F(MachineTest, v1_on_the_host_takes_the_smallest_on_the_way_up) {
    mount_v1("/a/b", "/");
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n");
    write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "18446744073709551615\n");
    write("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
    write("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    const Machine machine = read_machine(root_);
    EXPECT_EQ(machine.memory_bytes, kGiB);
    EXPECT_EQ(machine.cpus, 8U);
}

TEST_F(MachineTest, hybrid_takes_limits_of_both) {
    write("/proc/self/cgroup", "5:memory:/x\n0::/y\n");
    write("/proc/self/mountinfo",
          "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n33 30 0:29 / /sys/fs/cgroup/unified rw - "
          "cgroup2 cgroup2 rw\n");
    write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "5368709120\n");
    write("/sys/fs/cgroup/unified/y/cpu.max", "100000 100000\n");
    const Machine machine = read_machine(root_);
    EXPECT_EQ(machine.memory_bytes, 5 * kGiB);
    EXPECT_EQ(machine.cpus, 1U);
}

TEST_F(MachineTest, a_group_beside_one_with_the_same_beginning_is_not_taken_for_it) {
    // The mount shows /docker/ab; this process is in /docker/abc.
    mount_v2("/docker/abc", "/docker/ab");
    write("/sys/fs/cgroup/memory.max", "1073741824\n");
    write("/sys/fs/cgroup/c/memory.max", "4096\n");
    EXPECT_EQ(read_machine(root_).memory_bytes, kGiB);
}

TEST_F(MachineTest, a_limit_of_zero_or_nonsense_is_no_limit) {
    mount_v2("/");
    write("/sys/fs/cgroup/memory.max", "0\n");
    write("/sys/fs/cgroup/cpu.max", "nonsense 100000\n");
    EXPECT_EQ(read_machine(root_).memory_bytes, 16 * kGiB);
    write("/sys/fs/cgroup/memory.max", "-5\n");
    write("/sys/fs/cgroup/cpu.max", "100000 0\n");
    EXPECT_EQ(read_machine(root_).cpus, 8U);
}

TEST_F(MachineTest, any_text_in_the_files_gives_at_least_one_cpu) {
    const uint64_t seed = std::random_device()();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto noise = [&random](const std::string &base) {
        std::string text = base;
        for (int i = 0; i < 5; ++i) text[random() % text.size()] = "0:/-, max9\n"[random() % 11];
        return text;
    };
    for (int i = 0; i < 300; ++i) {
        write("/proc/self/cgroup", noise("0::/pods/a\n5:memory:/x\n"));
        write("/proc/self/mountinfo", noise("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"));
        write("/proc/self/status", noise("Cpus_allowed_list:\t0-2,5,8-9\n"));
        write("/sys/fs/cgroup/cpu.max", noise("150000 100000\n"));
        write("/sys/fs/cgroup/memory.max", noise("2147483648\n"));
        const Machine machine = read_machine(root_);
        ASSERT_GE(machine.cpus, 1U);
        ASSERT_GT(machine.memory_bytes, 0U);
    }
}

TEST(Machine, the_real_one_has_memory_and_cpus) {
    const Machine machine = read_machine();
    EXPECT_GE(machine.cpus, 1U);
    EXPECT_GT(machine.memory_bytes, 16U << 20);
    EXPECT_FALSE(machine.memory_source.empty());
}

}  // namespace
}  // namespace roost::config
