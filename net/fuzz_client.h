// For fuzz targets of whole connections: the hostile client at the other end of a pair of sockets. The loop runs only
// when the client is told to do something, so an input always plays the same way. One thread.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/codec.h"

namespace roost::net::test {

inline void require(bool condition, const char *what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

class FuzzClient {
public:
    explicit FuzzClient(boost::asio::io_context &loop) : loop_(loop) {
        int ends[2];
        require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "socketpair");
        fd_ = ends[0];
        server_fd_ = ends[1];
    }
    FuzzClient(const FuzzClient &) = delete;
    FuzzClient &operator=(const FuzzClient &) = delete;
    virtual ~FuzzClient() {
        if (fd_ >= 0) ::close(fd_);
    }

    // The server's end; once.
    boost::asio::ip::tcp::socket server_socket() {
        boost::asio::ip::tcp::socket socket(loop_);
        socket.assign(boost::asio::ip::tcp::v4(), server_fd_);
        return socket;
    }
    // Keeps bytes back until deliver().
    void send(std::string_view bytes) { pending_ += bytes; }
    // What was sent arrives, and everything that can happen by itself happens.
    void deliver() {
        std::string_view rest = pending_;
        while (!rest.empty() && fd_ >= 0) {
            const ssize_t sent = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
            if (sent > 0) rest.remove_prefix(static_cast<size_t>(sent));
            if (!run() && sent <= 0) break;
        }
        pending_.clear();
        run();
    }
    void write_no_more() {
        if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
        run();
    }
    void leave() {
        if (fd_ < 0) return;
        read();
        ::close(fd_);
        fd_ = -1;
        run();
    }
    // Lets happen what can happen by itself. False: nothing did.
    bool run() {
        bool moved = false;
        while (true) {
            loop_.restart();
            const bool worked = loop_.poll() > 0;
            const bool got = read();
            if (!worked && !got) return moved;
            moved = true;
        }
    }
    bool has_left() const { return fd_ < 0; }

private:
    virtual void on_bytes(std::string_view bytes) = 0;

    bool read() {
        char piece[65536];
        bool any = false;
        for (ssize_t got; fd_ >= 0 && (got = ::recv(fd_, piece, sizeof piece, 0)) > 0; any = true) {
            on_bytes({piece, static_cast<size_t>(got)});
        }
        return any;
    }

    boost::asio::io_context &loop_;
    int fd_ = -1, server_fd_ = -1;
    std::string pending_;
};

// The bytes of a step of an input: behind their length (u8, or 255 and u16).
inline std::string_view take_bytes(Reader &in) {
    size_t size_bytes = in.get<uint8_t>();
    if (size_bytes == 255) size_bytes = in.get<uint16_t>();
    return in.get_raw(std::min(size_bytes, in.remaining()));
}

// One of the steps that inputs of whole connections have in common. False: it is another, and nothing was read.
template <class Play>
bool play_common_step(Play &play, char step, Reader &in) {
    switch (step) {
        case '.':
            play.deliver();
            return true;
        case 't':
            play.pass(in.get<uint8_t>());
            return true;
        case 'q':
            play.drain();
            return true;
        case 'u':
            play.cut();
            return true;
        case 'w':
            play.write_no_more();
            return true;
        case 'z':
            play.leave();
            return true;
        default:
            return false;
    }
}

}  // namespace roost::net::test
