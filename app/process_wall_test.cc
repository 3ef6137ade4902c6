#include "app/process_wall.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace roost::app {
namespace {

namespace fs = std::filesystem;

// A listening socket on loopback, and its port.
class Listener {
public:
    Listener() {
        fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr *>(&at), sizeof at), 0);
        EXPECT_EQ(::listen(fd_, 8), 0);
        socklen_t size = sizeof at;
        ::getsockname(fd_, reinterpret_cast<sockaddr *>(&at), &size);
        port_ = ntohs(at.sin_port);
    }
    ~Listener() { ::close(fd_); }
    uint16_t port() const { return port_; }

private:
    int fd_;
    uint16_t port_ = 0;
};

bool dials(uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    const bool connected = ::connect(fd, reinterpret_cast<sockaddr *>(&at), sizeof at) == 0;
    ::close(fd);
    return connected;
}

bool reads(const fs::path &path) { return std::ifstream(path).good(); }
bool writes(const fs::path &path) { return std::ofstream(path, std::ios::app).good(); }

class ProcessWallTest : public ::testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/roost-wall-XXXXXX";
        dir_ = mkdtemp(name);
        for (const char *sub : {"own", "shared", "secret"}) {
            fs::create_directories(dir_ / sub);
            std::ofstream(dir_ / sub / "file") << "text";
        }
        std::ofstream(dir_ / "token") << "text";
        fs::create_symlink(dir_ / "secret/file", dir_ / "own/link");
    }
    void TearDown() override { fs::remove_all(dir_); }

    // What a child process behind the wall says of each question, as a string of y and n; "-" when this kernel has no
    // wall to offer.
    std::string behind(const ProcessWallOptions &options, const std::vector<std::function<bool()>> &questions) {
        int pipe_fds[2];
        EXPECT_EQ(::pipe(pipe_fds), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            const auto wall = raise_process_wall(options);
            std::string said = !wall.ok() ? wall.status().message() : wall->files ? "" : "-";
            if (said.empty()) {
                for (const auto &question : questions) said += question() ? 'y' : 'n';
            }
            (void)!::write(pipe_fds[1], said.data(), said.size());
            ::_exit(0);
        }
        ::close(pipe_fds[1]);
        std::string said;
        char part[256];
        for (ssize_t n = 0; (n = ::read(pipe_fds[0], part, sizeof part)) > 0;)
            said.append(part, static_cast<size_t>(n));
        ::close(pipe_fds[0]);
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status));
        return said;
    }

    fs::path dir_;
};

TEST_F(ProcessWallTest, OnlyTheNamedFilesCanBeOpened) {
    ProcessWallOptions options;
    options.read_write = {(dir_ / "own").string(), (dir_ / "not there").string()};
    options.read_only = {(dir_ / "shared").string(), (dir_ / "token").string()};
    const std::string said = behind(
        options, {
                     [&] { return reads(dir_ / "own/file"); },
                     [&] { return writes(dir_ / "own/file") && writes(dir_ / "own/new"); },
                     [&] {
                         std::error_code ec;
                         return fs::create_directory(dir_ / "own/folder", ec) && fs::remove(dir_ / "own/file", ec);
                     },
                     [&] { return reads(dir_ / "shared/file"); },
                     [&] { return writes(dir_ / "shared/file") || writes(dir_ / "shared/new"); },
                     [&] { return reads(dir_ / "token"); },
                     [&] { return reads(dir_ / "secret/file"); },
                     [&] { return reads(dir_ / "own/../secret/file"); },
                     [&] { return reads(dir_ / "own/link"); },
                     [&] { return reads("/etc/passwd"); },
                     [&] { return ::access("/bin/true", X_OK) == 0 && ::system("/bin/true") == 0; },
                 });
    if (said == "-") GTEST_SKIP() << "this kernel has no Landlock";
    EXPECT_EQ(said, "yyyynynnnnn");
}

TEST_F(ProcessWallTest, OnlyTheNamedPortsCanBeDialledAndNobodySignalled) {
    const Listener open;
    const Listener closed;
    ProcessWallOptions options;
    options.connect_ports = {open.port()};
    ASSERT_TRUE(dials(open.port()) && dials(closed.port()));
    const pid_t parent = ::getpid();
    const std::string said = behind(options, {
                                                 [&] { return dials(open.port()); },
                                                 [&] { return dials(closed.port()); },
                                                 [&] { return ::kill(parent, 0) == 0; },
                                             });
    if (said == "-") GTEST_SKIP() << "this kernel has no Landlock";
    EXPECT_EQ(said.substr(0, 1), "y");
    const long abi = ::syscall(444, nullptr, 0, 1);
    if (abi >= 4) EXPECT_EQ(said.substr(1, 1), "n");
    if (abi >= 6) EXPECT_EQ(said.substr(2, 1), "n");
}

}  // namespace
}  // namespace roost::app
