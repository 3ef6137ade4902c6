#include "app/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "app/child_settings.h"
#include "app/files.h"
#include "app/kept_process.h"
#include "app/port_check.h"

namespace roost::app {
namespace {

namespace fs = std::filesystem;

class ChildProcess : public testing::Test {
protected:
    ChildProcess() {
        std::string pattern = (fs::temp_directory_path() / "roost-child-XXXXXX").string();
        dir_ = ::mkdtemp(pattern.data());
    }
    ~ChildProcess() override { fs::remove_all(dir_); }

    ChildSpec shell(const std::string &script) {
        ChildSpec spec;
        spec.executable = "/bin/sh";
        spec.arguments = {"-c", script};
        spec.environment = {{"NAME", "value"}};
        spec.log_path = dir_ + "/log";
        return spec;
    }

    // The wait status; the test fails when it did not start.
    int run(const ChildSpec &spec) {
        const auto pid = spawn(spec);
        EXPECT_TRUE(pid.ok()) << pid.status().to_string();
        int status = -1;
        if (pid.ok()) ::waitpid(*pid, &status, 0);
        return status;
    }

    std::string dir_;
};

TEST_F(ChildProcess, WritesToItsLogAndReadsNothing) {
    EXPECT_EQ(run(shell("cat; echo out; echo err >&2; echo $NAME")), 0);
    EXPECT_EQ(read_file(dir_ + "/log").value(), "out\nerr\nvalue\n");
    EXPECT_EQ(run(shell("echo more")), 0);
    EXPECT_EQ(last_lines(dir_ + "/log", 1), "more");
}

TEST_F(ChildProcess, HasItsOwnGroupAndNoDescriptorsOfItsParent) {
    const int secret = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(run(shell("ls /proc/self/fd | wc -l; cut -d' ' -f5 /proc/$$/stat; echo $$")), 0);
    ::close(secret);
    const std::string said = read_file(dir_ + "/log").value();
    // 0, 1, 2 and the one that ls reads the directory with.
    EXPECT_EQ(said.substr(0, said.find('\n')), "4");
    const std::string ids = said.substr(said.find('\n') + 1);
    EXPECT_EQ(ids.substr(0, ids.find('\n')) + "\n", ids.substr(ids.find('\n') + 1));
}

TEST_F(ChildProcess, HearsSignalsThatItsParentBlocks) {
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    const int status = run(shell("kill -TERM $$; echo survived"));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(describe_exit(status), "was killed by signal 15 (Terminated)");
}

TEST_F(ChildProcess, GetsThePipeAsDescriptorThree) {
    std::array<int, 2> ends;
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ChildSpec spec = shell("echo hello >&3");
    spec.pipe_fd = ends[1];
    EXPECT_EQ(run(spec), 0);
    ::close(ends[1]);
    char buffer[16] = {};
    EXPECT_EQ(::read(ends[0], buffer, sizeof buffer), 6);
    EXPECT_STREQ(buffer, "hello\n");
    ::close(ends[0]);
}

TEST_F(ChildProcess, AProgramThatIsNotThereIsAnErrorOfTheStart) {
    ChildSpec spec = shell("");
    spec.executable = dir_ + "/nothing";
    EXPECT_EQ(spawn(spec).status().code(), Code::not_found);
    spec.log_path = dir_ + "/no/log";
    EXPECT_NE(spawn(spec).status().message().find("no/log"), std::string::npos);
}

TEST_F(ChildProcess, ExitsAreDescribed) {
    EXPECT_EQ(describe_exit(run(shell("exit 3"))), "exited with status 3");
    EXPECT_EQ(describe_exit(run(shell("kill -9 $$"))), "was killed by signal 9 (Killed)");
}

TEST_F(ChildProcess, KeptProcessShowsTheLinesOfItsLastRunOnly) {
    KeptProcess process("p", shell("echo first"));
    ASSERT_TRUE(process.start(1000).ok());
    ::waitpid(process.pid(), nullptr, 0);
    process.exited(1000);
    EXPECT_EQ(process.due_ms(), 1100);
    EXPECT_EQ(process.last_words(), "    first\n");
    process.spec().arguments = {
        "-c", R"(echo '{"ts":"t","level":"error","component":"c","event":"broke","why":"disk","n":3}')"};
    ASSERT_TRUE(process.start(1100).ok());
    ::waitpid(process.pid(), nullptr, 0);
    process.exited(1100);
    EXPECT_EQ(process.due_ms(), 1300);
    EXPECT_EQ(process.exits(), 2u);
    EXPECT_EQ(process.last_words(), "    error broke why=disk n=3\n");
    process.stay_down();
    EXPECT_FALSE(process.due_ms());
}

TEST_F(ChildProcess, AFailedStartIsDueAgain) {
    ChildSpec spec = shell("");
    spec.executable = dir_ + "/nothing";
    KeptProcess process("p", spec);
    EXPECT_FALSE(process.start(50).ok());
    EXPECT_FALSE(process.running());
    EXPECT_EQ(process.due_ms(), 150);
}

config::Settings settings_of(const std::vector<std::string> &flags, const config::Environment &environment) {
    const auto settings = config::load(config::Command::up, flags, environment, "");
    EXPECT_TRUE(settings.ok()) << settings.status().to_string();
    return with_absolute_paths(*settings);
}

TEST(ChildSettings, OthersFoldersLieApartFromEachLakesStore) {
    const auto checked = [](const std::string &external) {
        config::Settings settings = settings_of({"--dir", "/p", "--external", external},
                                                [](const std::string &) { return std::optional<std::string>(); });
        for (const char *store : {"/elsewhere/sales", "s3://bucket/lab"}) {
            settings.more_catalogs.push_back({.name = "other"});
            settings.more_catalogs.back().store = *config::parse_store(store);
        }
        return check_supported(settings);
    };
    for (const char *external : {"/elsewhere", "/elsewhere/sales", "/elsewhere/sales/data", "/elsewhere/x/../sales",
                                 "s3://bucket", "s3://bucket/lab/data", "/fine,s3://bucket/lab", "/p/lake", "/p"}) {
        const Status status = checked(external);
        EXPECT_EQ(status.code(), Code::invalid_argument) << external;
        EXPECT_NE(status.message().find("lie one in the other"), std::string::npos) << status.message();
    }
    for (const char *external : {"/elsewhere/sales2", "/elsewhere/lab", "s3://bucket/laboratory", "s3://bucket2", ""}) {
        EXPECT_TRUE(checked(external).ok()) << external;
    }
}

TEST(ChildSettings, ReachTheProcessesAndNothingElseDoes) {
    const auto environment = [](const std::string &name) -> std::optional<std::string> {
        if (name == "ROOST_NODE_CPUS") return "3";
        return std::nullopt;
    };
    const config::Settings settings =
        settings_of({"--dir", "/p", "--node-memory", "1GiB", "--routing", "round_robin"}, environment);
    const PoolPaths paths = pool_paths("/p");
    const std::map<std::string, std::string> base{
        {"PATH", "/bin"}, {"ROOST_HTTP", "1.2.3.4:5"}, {"ROOST_NODE_CPUS", "3"}};

    const ChildSpec gateway = gateway_spec(settings, paths, base);
    EXPECT_EQ(gateway.environment.at("PATH"), "/bin");
    EXPECT_EQ(gateway.environment.at("ROOST_HTTP"), "127.0.0.1:8080");
    EXPECT_EQ(gateway.environment.at("ROOST_ROUTING"), "round_robin");
    EXPECT_EQ(gateway.environment.at("ROOST_LISTEN"), "unix:/p/gateway.sock");
    EXPECT_EQ(gateway.environment.at("ROOST_STOP_TIMEOUT_MS"), "7s");
    EXPECT_EQ(gateway.environment.at("ROOST_LOG_FILE"), "/p/log/gateway.log");

    const ChildSpec node = node_spec(settings, paths, base, 2, {"h:1", "p:1", "unix:/p/gateway.sock"});
    EXPECT_EQ(node.arguments, (std::vector<std::string>{"node", "--join", "unix:/p/gateway.sock", "--token-file",
                                                        "/p/join-token", "--dir", "/p/nodes/2"}));
    EXPECT_EQ(node.environment.at("ROOST_MEMORY"), "1GiB");
    EXPECT_EQ(node.environment.at("ROOST_CPUS"), "3");
    EXPECT_EQ(node.environment.at("ROOST_STORE"), "/p/lake");
    EXPECT_FALSE(node.environment.contains("ROOST_HTTP"));
    EXPECT_FALSE(node.environment.contains("ROOST_NODE_CPUS"));
    EXPECT_EQ(node_spec(settings, paths, base, 1, {"h:1", "p:1", "127.0.0.1:7"}).arguments.at(2), "http://127.0.0.1:7");
}

TEST_F(ChildProcess, SocketsWithLongPathsBecomeLoopbackPorts) {
    const auto none = [](const std::string &) -> std::optional<std::string> { return std::nullopt; };
    const fs::path before = fs::current_path();
    const fs::path deep = fs::path(dir_) / std::string(100, 'd');
    fs::create_directory(deep);
    fs::current_path(deep);
    const config::Settings far = settings_of({"--dir", "p"}, none);
    fs::current_path("/");
    const config::Settings near = settings_of({"--dir", "p"}, none);
    fs::current_path(before);
    EXPECT_EQ(far.listen.to_string(), "127.0.0.1:0");
    EXPECT_EQ(near.listen.unix_path, "/p/gateway.sock");
}

TEST(ChildSettings, TenSecondsAreShared) {
    config::Settings settings;
    settings.stop_timeout_ms = 10'000;
    EXPECT_EQ(stop_schedule(settings).nodes_ms, 7'000);
    EXPECT_EQ(stop_schedule(settings).kill_ms, 9'000);
}

TEST(PortCheck, NamesTheFlagAndThePort) {
    EXPECT_TRUE(check_can_listen({"127.0.0.1", 0, ""}, "--http", 0).ok());
    const Status elsewhere = check_can_listen({"192.0.2.1", 0, ""}, "--pg", 0);
    EXPECT_NE(elsewhere.message().find("--pg 192.0.2.1:0: 192.0.2.1 is no address of this machine"), std::string::npos);
}

}  // namespace
}  // namespace roost::app
