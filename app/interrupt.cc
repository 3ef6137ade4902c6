#include "app/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace roost::app {
namespace {

constexpr int kExitInterrupted = 130;

sigset_t watched() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

void raise_event(int fd) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof one);
}

}  // namespace

Interrupt::Interrupt() : event_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
    const sigset_t set = watched();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    thread_ = std::thread([this] { run(); });
}

Interrupt::~Interrupt() {
    raise_event(stop_fd_);
    thread_.join();
    for (const int fd : {event_fd_, signal_fd_, stop_fd_}) ::close(fd);
    const sigset_t set = watched();
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool Interrupt::take() {
    uint64_t count;
    [[maybe_unused]] const ssize_t n = ::read(event_fd_, &count, sizeof count);
    return requested_.exchange(false);
}

void Interrupt::set_hook(std::function<void()> hook) {
    MutexLock lock(mutex_);
    hook_ = std::move(hook);
    if (hook_ && requested_.load()) hook_();
}

void Interrupt::run() {
    for (;;) {
        std::array<pollfd, 2> waits{pollfd{signal_fd_, POLLIN, 0}, pollfd{stop_fd_, POLLIN, 0}};
        if (::poll(waits.data(), waits.size(), -1) < 0) continue;
        if (waits[1].revents != 0) return;
        signalfd_siginfo info;
        if (::read(signal_fd_, &info, sizeof info) != sizeof info) continue;
        if (requested_.exchange(true)) ::_exit(kExitInterrupted);
        raise_event(event_fd_);
        MutexLock lock(mutex_);
        if (hook_) hook_();
    }
}

}  // namespace roost::app
