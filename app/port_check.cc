#include "app/port_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

namespace roost::app {
namespace {

// 0, or the errno of the call that failed.
int try_listen(const addrinfo &where) {
    const int fd = ::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC, where.ai_protocol);
    if (fd < 0) return errno;
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool listens = ::bind(fd, where.ai_addr, where.ai_addrlen) == 0 && ::listen(fd, 1) == 0;
    const int error = listens ? 0 : errno;
    ::close(fd);
    return error;
}

Status refused(const config::Address &address, const std::string &flag, int error) {
    const std::string what = flag + " " + address.to_string() + ": ";
    if (error == EADDRINUSE) {
        return Status(Code::already_exists, what + "port " + std::to_string(address.port) + " is already in use")
            .with_hint("choose another with " + flag + " HOST:PORT; port 0 takes any free one");
    }
    if (error == EACCES) {
        return Status(Code::permission_denied,
                      what + "this user may not listen on port " + std::to_string(address.port));
    }
    if (error == EADDRNOTAVAIL) {
        return Status(Code::invalid_argument, what + address.host + " is no address of this machine");
    }
    return Status(Code::io_error, what + std::generic_category().message(error));
}

}  // namespace

Status check_can_listen(const config::Address &address, const std::string &flag, int64_t patience_ms) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE;
    addrinfo *found = nullptr;
    const int failed = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
    if (failed != 0) {
        return Status(Code::invalid_argument, flag + " " + address.to_string() + ": could not resolve " + address.host +
                                                  ": " + ::gai_strerror(failed));
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    int error = try_listen(*found);
    while (error == EADDRINUSE && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        error = try_listen(*found);
    }
    ::freeaddrinfo(found);
    return error == 0 ? Status() : refused(address, flag, error);
}

}  // namespace roost::app
