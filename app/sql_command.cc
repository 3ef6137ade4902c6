// `roost sql`: statements from -c, a file or standard input, run one after the other.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>

#include "app/client_arguments.h"
#include "app/commands.h"
#include "app/files.h"
#include "app/interrupt.h"
#include "app/pool_address.h"
#include "app/pool_client.h"
#include "app/sql_splitter.h"
#include "app/statement_runner.h"

namespace roost::app {
namespace {

// Where a statement came from, for its error: "file.sql:12", or nothing for -c and the terminal.
void print_failure(const Status &error, const std::string &sql, const std::string &place) {
    std::cout << std::flush;
    std::cerr << (place.empty() ? "" : place + ": ") << (error.code() == Code::cancelled ? "" : "error: ")
              << error.message() << "\n";
    // The engine's own texts mark the place themselves.
    if (error.message().find("\nLINE ") == std::string::npos) std::cerr << position_marker(sql, error.error().position);
    if (!error.error().detail.empty()) std::cerr << error.error().detail << "\n";
    if (!error.error().hint.empty()) std::cerr << "hint: " << error.error().hint << "\n";
    std::cerr << std::flush;
}

class SqlSession {
public:
    SqlSession(StatementRunner &runner, Interrupt &interrupt) : runner_(runner), interrupt_(interrupt) {}

    int run_commands(const std::vector<std::string> &commands) {
        for (const std::string &command : commands) {
            splitter_.append(command);
            if (!run_ready("") || !run_rest("")) return status_;
        }
        return status_;
    }

    // Until the end of the input, or the first failure; a terminal goes on after one.
    int run_stream(int fd, const std::string &name) {
        interactive_ = ::isatty(fd) == 1 && ::isatty(STDOUT_FILENO) == 1;
        std::array<char, 64 * 1024> buffer;
        for (;;) {
            prompt();
            if (!wait_for_input(fd)) {
                if (!interactive_) return kExitInterrupted;
                continue;
            }
            const ssize_t n = ::read(fd, buffer.data(), buffer.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return print_error("sql", errno_status("read", name, errno));
            if (n == 0) break;
            splitter_.append({buffer.data(), static_cast<size_t>(n)});
            if (!run_ready(name)) return status_;
        }
        if (interactive_) std::cout << "\n";
        run_rest(name);
        return interactive_ ? kExitDone : status_;
    }

private:
    void prompt() {
        if (interactive_) std::cout << (splitter_.inside_statement() ? "   -> " : "lake=> ") << std::flush;
    }

    // False when Ctrl-C came instead: what was typed so far is dropped.
    bool wait_for_input(int fd) {
        std::array<pollfd, 2> waits{pollfd{fd, POLLIN, 0}, pollfd{interrupt_.fd(), POLLIN, 0}};
        while (::poll(waits.data(), waits.size(), -1) < 0 && errno == EINTR) {
        }
        if (waits[1].revents == 0) return true;
        interrupt_.take();
        splitter_.clear();
        std::cout << "\n";
        return false;
    }

    bool run_ready(const std::string &name) {
        while (const auto statement = splitter_.next()) {
            if (!run_one(*statement, name)) return false;
        }
        return true;
    }

    bool run_rest(const std::string &name) {
        const auto statement = splitter_.finish();
        return !statement || run_one(*statement, name);
    }

    bool run_one(const std::string &statement, const std::string &name) {
        const Status result = runner_.run(statement);
        if (result.ok()) return true;
        const bool has_place = !interactive_ && !name.empty();
        print_failure(result, statement, has_place ? name + ":" + std::to_string(splitter_.line()) : "");
        status_ = result.code() == Code::cancelled ? kExitInterrupted : kExitFailed;
        return interactive_;
    }

    StatementRunner &runner_;
    Interrupt &interrupt_;
    SqlSplitter splitter_;
    bool interactive_ = false;
    int status_ = kExitDone;
};

int run_file(SqlSession &session, const std::string &file) {
    if (file.empty() || file == "-") return session.run_stream(STDIN_FILENO, "stdin");
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return print_error("sql", errno_status("open", file, errno));
    const int status = session.run_stream(fd, file);
    ::close(fd);
    return status;
}

}  // namespace

int sql_main(const std::vector<std::string> &words) {
    const auto parsed = parse_sql_arguments(words);
    if (!parsed.ok()) return print_error("sql", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    const auto &arguments = std::get<SqlArguments>(*parsed);
    const auto address = find_pool(arguments.pool, config::process_environment());
    if (!address.ok()) return print_error("sql", address.status());
    Interrupt interrupt;
    const auto client = PoolClient::connect(*address);
    if (!client.ok()) return print_error("sql", client.status());

    StatementRunner::Options options;
    options.submit.workspace = arguments.workspace;
    options.submit.catalog = arguments.catalog;
    options.submit.timeout_s = arguments.timeout_s;
    options.format = arguments.format;
    options.show_progress = ::isatty(STDERR_FILENO) == 1;
    std::ios::sync_with_stdio(false);
    StatementRunner runner(**client, interrupt, options, std::cout);
    SqlSession session(runner, interrupt);
    if (!arguments.commands.empty()) return session.run_commands(arguments.commands);
    return run_file(session, arguments.file);
}

}  // namespace roost::app
