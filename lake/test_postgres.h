// For tests: a Postgres server of the test's own in a temporary directory, reached through a Unix socket, fsync off. It
// runs as the user `postgres` or `nobody` when the test is root, for the server refuses to be root's.
#pragma once

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lake/postgres_connection.h"

namespace roost::testing {

class TestPostgres {
public:
    // Null where this machine has no Postgres, or it does not start.
    static std::unique_ptr<TestPostgres> start() {
        std::string bin;
        for (const char *candidate : {"/usr/lib/postgresql/15/bin", "/usr/local/bin"}) {
            if (bin.empty() && access((std::string(candidate) + "/initdb").c_str(), X_OK) == 0) bin = candidate;
        }
        if (bin.empty()) return nullptr;
        auto server = std::unique_ptr<TestPostgres>(new TestPostgres(bin));
        return server->run() ? std::move(server) : nullptr;
    }
    ~TestPostgres() {
        stop();
        std::error_code ignored;
        std::filesystem::remove_all(dir_, ignored);
    }
    TestPostgres(const TestPostgres &) = delete;
    TestPostgres &operator=(const TestPostgres &) = delete;

    // A connection string to `database`.
    std::string address(const std::string &database = "postgres") const {
        return "host=" + dir_ + " user=roost password=not-a-real-secret dbname=" + database;
    }
    Status create_database(const std::string &name) {
        PostgresConnection connection(address());
        return connection.execute("CREATE DATABASE " + name, CallLimits::in(std::chrono::seconds(30)));
    }
    // As a crash would: sessions are cut off.
    void stop() {
        if (server_ <= 0) return;
        kill(server_, SIGQUIT);
        waitpid(server_, nullptr, 0);
        server_ = -1;
    }
    bool start_again() { return server_ > 0 || run_server(); }

private:
    explicit TestPostgres(std::string bin) : bin_(std::move(bin)) {
        std::string name = (std::filesystem::temp_directory_path() / "roost-pg-XXXXXX").string();
        dir_ = mkdtemp(name.data());
        if (geteuid() == 0) {
            const passwd *user = getpwnam("postgres");
            if (user == nullptr) user = getpwnam("nobody");
            if (user != nullptr) user_ = user->pw_uid;
            if (chown(dir_.c_str(), user_, static_cast<gid_t>(-1)) != 0) dir_.clear();
        }
    }
    pid_t spawn(const std::vector<std::string> &command) {
        std::vector<char *> words;
        for (const std::string &word : command) words.push_back(const_cast<char *>(word.c_str()));
        words.push_back(nullptr);
        const std::string log = dir_ + "/log";
        const pid_t child = fork();
        if (child != 0) return child;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (user_ != 0 && setuid(user_) != 0) _exit(126);
        const int out = open(log.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
        dup2(out, 1);
        dup2(out, 2);
        if (chdir("/") != 0) _exit(126);
        execv(words[0], words.data());
        _exit(127);
    }
    bool run() {
        if (dir_.empty()) return false;
        const pid_t init = spawn({bin_ + "/initdb", "-D", dir_ + "/data", "-U", "roost", "-A", "trust", "-N", "-E",
                                  "UTF8", "--locale=C.UTF-8"});
        int status = 0;
        if (init <= 0 || waitpid(init, &status, 0) != init || status != 0) return false;
        return run_server();
    }
    bool run_server() {
        server_ = spawn({bin_ + "/postgres", "-D", dir_ + "/data", "-k", dir_, "-c", "listen_addresses=", "-c",
                         "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c",
                         "shared_buffers=32MB", "-c", "max_connections=40"});
        // The server says that it is ready by answering.
        const CallLimits limits = CallLimits::in(std::chrono::seconds(60));
        PostgresConnection connection(address());
        while (!limits.over() && waitpid(server_, nullptr, WNOHANG) == 0) {
            if (connection.execute("SELECT 1", limits).ok()) return true;
            usleep(20'000);
        }
        return false;
    }

    std::string bin_;
    std::string dir_;
    uid_t user_ = 0;
    pid_t server_ = -1;
};

}  // namespace roost::testing
