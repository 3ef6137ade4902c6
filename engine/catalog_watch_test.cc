#include "engine/catalog_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace roost {
namespace {

// A connection to a listener on a free port.
struct Connection {
    Connection() {
        listener = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
        EXPECT_EQ(::listen(listener, 4), 0);
        socklen_t size = sizeof(address);
        EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size), 0);
        port = ntohs(address.sin_port);
        client = ::socket(AF_INET, SOCK_STREAM, 0);
        EXPECT_EQ(::connect(client, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
        server = ::accept(listener, nullptr, nullptr);
    }
    ~Connection() {
        for (const int fd : {listener, client, server}) ::close(fd);
    }
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;
    // As libpq waits. What the client reads: bytes, or 0 when its connection was cut.
    ssize_t read_client() {
        pollfd waiting{client, POLLIN, 0};
        EXPECT_EQ(::poll(&waiting, 1, -1), 1);
        char buffer[16];
        return ::recv(client, buffer, sizeof(buffer), 0);
    }

    int listener = -1, client = -1, server = -1;
    uint16_t port = 0;
};

constexpr std::chrono::milliseconds kSilence{50}, kEvery{5};

TEST(CatalogWatch, CutsTheConnectionOfAThreadThatGetsNoAnswer) {
    const auto log = obs::make_null_log();
    Connection silent;
    const CatalogWatch watch({silent.port}, kSilence, kEvery, *log);
    EXPECT_EQ(silent.read_client(), 0);
}

TEST(CatalogWatch, LeavesConnectionsAloneThatNobodyWaitsOn) {
    const auto log = obs::make_null_log();
    Connection idle, foreign, silent;
    {
        const CatalogWatch watch({idle.port, silent.port}, kSilence, kEvery, *log);
        std::thread other([&foreign] { EXPECT_EQ(foreign.read_client(), 3); });
        EXPECT_EQ(silent.read_client(), 0);  // by then all have been looked at, many times
        EXPECT_EQ(::send(foreign.server, "yes", 3, 0), 3);
        other.join();
    }
    EXPECT_EQ(::send(idle.server, "still", 5, 0), 5);
    EXPECT_EQ(idle.read_client(), 5);
}

}  // namespace
}  // namespace roost
