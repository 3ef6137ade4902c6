#include "obs/process_stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

namespace roost::obs {
namespace {

// The n-th number (from 0) of /proc/self/statm-like text.
uint64_t nth_number(std::string_view text, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        const size_t blank = text.find(' ');
        if (blank == std::string_view::npos) return 0;
        text.remove_prefix(blank + 1);
    }
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

double seconds(const timeval &time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

uint64_t count_entries(const char *directory) {
    DIR *dir = opendir(directory);
    if (dir == nullptr) return 0;
    uint64_t count = 0;
    while (const dirent *entry = readdir(dir)) {
        if (entry->d_name[0] != '.') ++count;
    }
    closedir(dir);
    return count;
}

}  // namespace

uint64_t resident_bytes() {
    const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    char text[128];
    const ssize_t size = read(fd, text, sizeof(text));
    close(fd);
    if (size <= 0) return 0;
    return nth_number({text, static_cast<size_t>(size)}, 1) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

ProcessStats read_process_stats() {
    ProcessStats stats;
    rusage usage{};
    if (getrusage(RUSAGE_SELF, &usage) == 0) stats.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    stats.resident_bytes = resident_bytes();
    const uint64_t files = count_entries("/proc/self/fd");
    stats.open_files = files > 0 ? files - 1 : 0;  // less the one that listed them
    stats.threads = count_entries("/proc/self/task");
    return stats;
}

}  // namespace roost::obs
