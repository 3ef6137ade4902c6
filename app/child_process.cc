#include "app/child_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "app/files.h"

extern char **environ;

namespace roost::app {
namespace {

std::vector<char *> pointers(std::vector<std::string> &texts) {
    std::vector<char *> out;
    out.reserve(texts.size() + 1);
    for (std::string &text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
}

// Tells the parent why the program could not be run; the parent sees end of file when it could.
[[noreturn]] void give_up(int failure_fd, int error) {
    [[maybe_unused]] const ssize_t n = ::write(failure_fd, &error, sizeof error);
    ::_exit(127);
}

struct ChildSide {
    pid_t parent;
    int log_fd, null_fd, pipe_fd, failure_fd;
    bool keep_stderr;
};

// In the child between fork and exec.
[[noreturn]] void become(const ChildSide &side, const char *executable, char *const *argv, char *const *envp) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have died before the line above took effect.
    if (::getppid() != side.parent) ::_exit(127);

    sigset_t none;
    sigemptyset(&none);
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);

    // The pipe's end may itself be descriptor 3 already, then dup2 would leave close-on-exec set.
    if (side.pipe_fd == kChildPipe) {
        ::fcntl(kChildPipe, F_SETFD, 0);
    } else if (side.pipe_fd >= 0 && ::dup2(side.pipe_fd, kChildPipe) < 0) {
        give_up(side.failure_fd, errno);
    }
    if (::dup2(side.null_fd, 0) < 0 || ::dup2(side.log_fd, 1) < 0) give_up(side.failure_fd, errno);
    if (!side.keep_stderr && ::dup2(side.log_fd, 2) < 0) give_up(side.failure_fd, errno);
    // Whatever else is open here, or was when this process was started, is not for the child. A kernel that does not
    // know the call leaves what is not marked close-on-exec; nothing of ours is unmarked.
    const unsigned first = static_cast<unsigned>(side.pipe_fd >= 0 ? kChildPipe + 1 : kChildPipe);
    ::close_range(first, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execve(executable, argv, envp);
    give_up(side.failure_fd, errno);
}

// A descriptor above the standard ones and kChildPipe, so that the child's dup2 calls never overwrite one they still
// need.
int out_of_the_way(int fd) {
    if (fd < 0 || fd > kChildPipe) return fd;
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kChildPipe + 1);
    ::close(fd);
    return moved;
}

}  // namespace

Result<pid_t> spawn(const ChildSpec &spec) {
    std::vector<std::string> arguments{"roost"};
    arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
    std::vector<std::string> environment;
    for (const auto &[name, value] : spec.environment) environment.push_back(name + "=" + value);
    const std::vector<char *> argv = pointers(arguments);
    const std::vector<char *> envp = pointers(environment);

    const int log_fd = out_of_the_way(::open(spec.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (log_fd < 0) return errno_status("open", spec.log_path, errno);
    const int null_fd = out_of_the_way(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::array<int, 2> failure{-1, -1};
    if (null_fd < 0 || ::pipe2(failure.data(), O_CLOEXEC) != 0) {
        const int error = errno;
        ::close(log_fd);
        if (null_fd >= 0) ::close(null_fd);
        return errno_status("start", spec.executable, error);
    }
    failure[1] = out_of_the_way(failure[1]);

    const ChildSide side{::getpid(), log_fd, null_fd, spec.pipe_fd, failure[1], spec.keep_stderr};
    const pid_t pid = ::fork();
    if (pid == 0) become(side, spec.executable.c_str(), argv.data(), envp.data());
    const int fork_error = errno;
    ::close(log_fd);
    ::close(null_fd);
    ::close(failure[1]);

    int child_error = 0;
    ssize_t n = 0;
    if (pid > 0) {
        do n = ::read(failure[0], &child_error, sizeof child_error);
        while (n < 0 && errno == EINTR);
    }
    ::close(failure[0]);
    if (pid < 0) return errno_status("start", spec.executable, fork_error);
    if (n > 0) {
        ::waitpid(pid, nullptr, 0);
        return errno_status("start", spec.executable, child_error);
    }
    return pid;
}

std::string describe_exit(int wait_status) {
    if (WIFEXITED(wait_status)) return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
    const int signal = WTERMSIG(wait_status);
    const char *name = ::sigdescr_np(signal);
    return "was killed by signal " + std::to_string(signal) + (name != nullptr ? " (" + std::string(name) + ")" : "");
}

std::map<std::string, std::string> current_environment() {
    std::map<std::string, std::string> out;
    for (char **entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const size_t equals = text.find('=');
        if (equals != std::string_view::npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return out;
}

}  // namespace roost::app
