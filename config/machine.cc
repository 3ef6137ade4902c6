#include "config/machine.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

namespace roost::config {
namespace {

constexpr size_t kFileMaxBytes = 1U << 20;
constexpr uint32_t kCpusMax = 4096;

std::optional<std::string> read_text(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::nullopt;
    std::string text(kFileMaxBytes, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

std::optional<int64_t> number(std::string_view text) {
    int64_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    // "no limit" of cgroup v1 is a number past what some kernels' counters hold.
    if (end.ec == std::errc::result_out_of_range) return std::numeric_limits<int64_t>::max();
    if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

std::vector<std::string> words(const std::string &line) {
    std::istringstream in(line);
    std::vector<std::string> out;
    for (std::string word; in >> word;) out.push_back(word);
    return out;
}

bool lists(std::string_view comma_list, std::string_view item) {
    while (!comma_list.empty()) {
        const size_t comma = comma_list.find(',');
        if (comma_list.substr(0, comma) == item) return true;
        comma_list = comma == std::string_view::npos ? std::string_view() : comma_list.substr(comma + 1);
    }
    return false;
}

// Where this process's group of one hierarchy is in the file system: the mount, and the path below it.
struct Group {
    std::string mount;  // with the test root in front
    std::string path;   // "" or "/a/b"
};

// The mount of cgroup2 (controller empty) or of a v1 controller: its point, and the group that it shows as its root.
std::optional<std::pair<std::string, std::string>> find_mount(const std::string &root, std::string_view controller) {
    std::istringstream in(read_text(root + "/proc/self/mountinfo").value_or(""));
    for (std::string line; std::getline(in, line);) {
        const size_t dash = line.find(" - ");
        if (dash == std::string::npos) continue;
        const auto before = words(line.substr(0, dash));
        const auto after = words(line.substr(dash + 3));
        if (before.size() < 5 || after.size() < 3) continue;
        const bool matches =
            controller.empty() ? after[0] == "cgroup2" : after[0] == "cgroup" && lists(after[2], controller);
        if (matches) return std::pair(before[4], before[3]);
    }
    return std::nullopt;
}

// The group that /proc/self/cgroup names: of the line "0::PATH", or of the line of a v1 controller.
std::optional<std::string> group_path(const std::string &root, std::string_view controller) {
    std::istringstream in(read_text(root + "/proc/self/cgroup").value_or(""));
    for (std::string line; std::getline(in, line);) {
        const size_t first = line.find(':');
        const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const bool matches =
            controller.empty() ? controllers.empty() && line.substr(0, first) == "0" : lists(controllers, controller);
        if (matches) return line.substr(second + 1);
    }
    return std::nullopt;
}

std::optional<Group> find_group(const std::string &root, std::string_view controller) {
    const auto mount = find_mount(root, controller);
    const auto path = group_path(root, controller);
    if (!mount || !path) return std::nullopt;
    Group group{root + mount->first, ""};
    const std::string shown = mount->second == "/" ? "" : mount->second;
    // A container may see its group from outside, under a mount that shows it as the root; or, with a namespace of its
    // own and a process moved in from elsewhere, a path with "..". Then the mount's root is the nearest that can be
    // read.
    const bool below = path->compare(0, shown.size(), shown) == 0 &&
                       (path->size() == shown.size() || (*path)[shown.size()] == '/') &&
                       path->find("..") == std::string::npos;
    if (below) group.path = path->substr(shown.size());
    while (!group.path.empty() && group.path.back() == '/') group.path.pop_back();
    return group;
}

// The group and those above it, innermost first: a limit of any of them holds.
std::vector<std::string> path_upwards(const Group &group) {
    std::vector<std::string> out;
    std::string path = group.path;
    for (;;) {
        out.push_back(path);
        const size_t slash = path.rfind('/');
        if (path.empty() || slash == std::string::npos) return out;
        path.resize(slash);
    }
}

std::string shown_path(const std::string &path) { return path.empty() ? "/" : path; }

void lower_memory(Machine &machine, int64_t limit_bytes, const std::string &source) {
    if (limit_bytes <= 0) return;
    const auto bytes = static_cast<uint64_t>(limit_bytes);
    if (machine.memory_bytes != 0 && bytes >= machine.memory_bytes) return;
    machine.memory_bytes = bytes;
    machine.memory_source = source;
}

// A quota of 1.5 CPUs gives 2: with one thread less a third of it would never be used.
void lower_cpus(Machine &machine, int64_t quota, int64_t period, const std::string &source) {
    if (quota <= 0 || period <= 0) return;
    const int64_t cpus = quota / period + (quota % period != 0 ? 1 : 0);
    if (cpus >= static_cast<int64_t>(machine.cpus)) return;
    machine.cpus = static_cast<uint32_t>(std::max<int64_t>(cpus, 1));
    machine.cpus_source = source;
}

void read_v2(const std::string &root, Machine &machine) {
    const auto group = find_group(root, "");
    if (!group) return;
    for (const std::string &path : path_upwards(*group)) {
        const std::string dir = group->mount + path;
        if (const auto text = read_text(dir + "/memory.max")) {
            // "max" is no number, and no limit.
            lower_memory(machine, number(*text).value_or(0), "cgroup v2 memory.max of " + shown_path(path));
        }
        const auto parts = words(read_text(dir + "/cpu.max").value_or(""));
        if (parts.size() == 2) {
            lower_cpus(machine, number(parts[0]).value_or(0), number(parts[1]).value_or(0),
                       "cgroup v2 cpu.max of " + shown_path(path));
        }
    }
}

void read_v1(const std::string &root, Machine &machine) {
    if (const auto group = find_group(root, "memory")) {
        for (const std::string &path : path_upwards(*group)) {
            const auto text = read_text(group->mount + path + "/memory.limit_in_bytes");
            lower_memory(machine, number(text.value_or("")).value_or(0),
                         "cgroup v1 memory.limit_in_bytes of " + shown_path(path));
        }
    }
    if (const auto group = find_group(root, "cpu")) {
        for (const std::string &path : path_upwards(*group)) {
            const std::string dir = group->mount + path;
            const auto quota = number(read_text(dir + "/cpu.cfs_quota_us").value_or(""));
            const auto period = number(read_text(dir + "/cpu.cfs_period_us").value_or(""));
            lower_cpus(machine, quota.value_or(0), period.value_or(0),
                       "cgroup v1 cpu.cfs_quota_us of " + shown_path(path));
        }
    }
}

// The value behind "NAME:" in a file of such lines.
std::string labelled(const std::string &path, const std::string &label) {
    std::istringstream in(read_text(path).value_or(""));
    for (std::string line; std::getline(in, line);) {
        if (line.compare(0, label.size(), label) != 0) continue;
        const size_t start = line.find_first_not_of(" \t", label.size());
        return start == std::string::npos ? "" : line.substr(start);
    }
    return {};
}

// "0-3,8,10-11" is 7 CPUs.
uint32_t count_cpus(const std::string &list) {
    uint32_t count = 0;
    std::istringstream in(list);
    for (std::string range; std::getline(in, range, ',');) {
        const size_t dash = range.find('-');
        const auto first = number(std::string_view(range).substr(0, dash));
        const auto last = dash == std::string::npos ? first : number(std::string_view(range).substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first || *last >= kCpusMax) return 0;
        count += static_cast<uint32_t>(*last - *first + 1);
    }
    return std::min(count, kCpusMax);
}

}  // namespace

Machine read_machine(const std::string &root) {
    Machine machine;
    machine.cpus = count_cpus(labelled(root + "/proc/self/status", "Cpus_allowed_list:"));
    machine.cpus_source = "affinity";
    if (machine.cpus == 0) {
        machine.cpus = std::max(1U, std::thread::hardware_concurrency());
        machine.cpus_source = "hardware";
    }
    const auto total = words(labelled(root + "/proc/meminfo", "MemTotal:"));
    if (!total.empty()) {
        const int64_t kib =
            std::clamp<int64_t>(number(total[0]).value_or(0), 0, std::numeric_limits<int64_t>::max() / 1024);
        lower_memory(machine, kib * 1024, "MemTotal");
    }
    read_v2(root, machine);
    read_v1(root, machine);
    return machine;
}

}  // namespace roost::config
