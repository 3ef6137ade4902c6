#include "engine/catalog_watch.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace roost {

namespace {

// The port at the other end of a TCP connection.
std::optional<uint16_t> peer_port(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (::getpeername(fd, reinterpret_cast<sockaddr *>(&address), &size) != 0) return std::nullopt;
    if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in &>(address).sin_port);
    if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6 &>(address).sin6_port);
    return std::nullopt;
}

std::optional<uint64_t> bytes_received(int fd) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
    return info.tcpi_bytes_received;
}

// The descriptor that this thread waits for, alone and without an end, as libpq does: the kernel tells the thread's
// system call and its arguments, a copy of the memory that they point to (it may be another's by now) the rest.
std::optional<int> waits_for(const std::string &thread) {
    const std::string path = "/proc/self/task/" + thread + "/syscall";
    const std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "re"), &std::fclose);
    long number = -1;
    unsigned long place = 0, count = 0, timeout_ms = 0;
    if (!file || std::fscanf(file.get(), "%ld %lx %lx %lx", &number, &place, &count, &timeout_ms) != 4) return {};
    if (number != SYS_poll || count != 1 || static_cast<int>(timeout_ms) >= 0) return {};
    pollfd polled{};
    const iovec to{&polled, sizeof(polled)};
    const iovec from{reinterpret_cast<void *>(place), sizeof(polled)};  // NOLINT: an address, from the kernel
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != sizeof(polled)) return {};
    return polled.fd;
}

std::vector<int> waited_for() {
    std::vector<int> found;
    const std::unique_ptr<DIR, int (*)(DIR *)> threads(::opendir("/proc/self/task"), &::closedir);
    if (!threads) return found;
    while (const dirent *entry = ::readdir(threads.get())) {
        if (entry->d_name[0] == '.') continue;
        if (const auto fd = waits_for(entry->d_name)) found.push_back(*fd);
    }
    return found;
}

}  // namespace

CatalogWatch::CatalogWatch(std::vector<uint16_t> ports, std::chrono::milliseconds silence_max,
                           std::chrono::milliseconds look_every, obs::Log &log)
    : ports_(std::move(ports)), silence_max_(silence_max), log_(log) {
    thread_ = std::jthread([this, look_every](const std::stop_token &stop) {
        std::mutex mutex;
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        while (!wake.wait_for(lock, stop, look_every, [&stop] { return stop.stop_requested(); })) look();
    });
}

void CatalogWatch::look() {
    std::map<int, Wait> now;
    for (const int fd : waited_for()) {
        // A descriptor of our own: the number may meanwhile be another's, the connection it stands for may not.
        const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (own < 0) continue;
        const auto port = peer_port(own);
        const auto received = bytes_received(own);
        if (port && received && std::find(ports_.begin(), ports_.end(), *port) != ports_.end()) {
            const auto before = waits_.find(fd);
            const bool same = before != waits_.end() && before->second.bytes_received == *received;
            const Wait wait = same ? before->second : Wait{*received, Clock::now()};
            if (Clock::now() - wait.since > silence_max_) {
                ::shutdown(own, SHUT_RDWR);
                log_.warn("catalog_silent", {{"port", *port}, {"silence_max_ms", silence_max_.count()}});
            } else {
                now.emplace(fd, wait);
            }
        }
        ::close(own);
    }
    waits_ = std::move(now);
}

}  // namespace roost
