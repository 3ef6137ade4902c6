#include "app/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/files.h"

namespace roost::app {
namespace {

// From the start of the gateway (of the nodes) to its report (to the first answer), filling the sample not counted.
constexpr int64_t kStartWithin_ms = 60'000;
constexpr int64_t kProbeEvery_ms = 50;
// A node that exits this often before the pool was ever ready will not make it.
constexpr unsigned kMostEarlyExits = 3;
// A terminal and tools like timeout(1) deliver one wish to stop as several signals.
constexpr int64_t kSameWish_ms = 500;
constexpr size_t kMostPipeBytes = 64 * 1024;

sigset_t handled_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    return set;
}

void close_fd(int &fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
}

// Adds what the pipe holds; false at its end.
bool read_pipe(int fd, std::string &into) {
    char buffer[4096];
    for (;;) {
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n > 0 && into.size() < kMostPipeBytes) into.append(buffer, static_cast<size_t>(n));
        if (n == 0) return false;
        if (n < 0) return errno == EINTR || errno == EAGAIN;
    }
}

}  // namespace

Supervisor::Supervisor(Options options, const Clock &clock, obs::Log &log)
    : options_(std::move(options)),
      clock_(clock),
      log_(log),
      schedule_(stop_schedule(options_.settings)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      gateway_("gateway", gateway_spec(options_.settings, options_.paths, options_.environment)),
      fill_("sample-fill", sample_fill_spec(options_.settings, options_.paths, options_.environment)) {
    ready_.credentials = options_.credentials;
}

Supervisor::~Supervisor() {
    for (int *fd : {&signal_fd_, &gateway_pipe_, &fill_pipe_}) close_fd(*fd);
}

std::vector<KeptProcess *> Supervisor::all() {
    std::vector<KeptProcess *> out{&gateway_, &fill_};
    for (const auto &node : nodes_) out.push_back(node.get());
    return out;
}

int Supervisor::run() {
    const sigset_t set = handled_signals();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    phase_began_ms_ = clock_.monotonic_ms();
    start(gateway_);
    if (!stop_has_begun()) start(fill_);
    while (!(stop_has_begun() && !anything_running())) {
        wait_for_something();
        on_signals();
        reap();
        if (gateway_pipe_ >= 0) on_gateway_report();
        if (fill_pipe_ >= 0) on_fill_progress();
        stop_has_begun() ? advance_stop() : advance();
        start_due();
    }
    remove_run_state();
    log_.info("stopped", {{"status", exit_status_}});
    return exit_status_;
}

void Supervisor::wait_for_something() {
    std::vector<pollfd> waits{{signal_fd_, POLLIN, 0}};
    for (const int fd : {gateway_pipe_, fill_pipe_}) {
        if (fd >= 0) waits.push_back({fd, POLLIN, 0});
    }
    const std::optional<int64_t> deadline_ms = next_deadline_ms();
    const int64_t left_ms = deadline_ms ? std::max<int64_t>(*deadline_ms - clock_.monotonic_ms(), 0) : -1;
    ::poll(waits.data(), waits.size(), static_cast<int>(left_ms));
}

std::optional<int64_t> Supervisor::next_deadline_ms() const {
    std::optional<int64_t> out;
    const auto at = [&](std::optional<int64_t> ms) {
        if (ms && (!out || *ms < *out)) out = ms;
    };
    if (stop_has_begun()) {
        if (phase_ == Phase::draining) at(stop_began_ms_ + schedule_.nodes_ms);
        if (phase_ != Phase::killing) at(stop_began_ms_ + schedule_.kill_ms);
        return out;
    }
    at(gateway_.due_ms());
    for (const auto &node : nodes_) at(node->due_ms());
    at(probe_due_ms_);
    if (phase_ == Phase::joining || !gateway_listens_) at(phase_began_ms_ + kStartWithin_ms);
    return out;
}

void Supervisor::on_signals() {
    signalfd_siginfo info;
    while (::read(signal_fd_, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD) continue;
        const int64_t now_ms = clock_.monotonic_ms();
        if (!stop_has_begun()) {
            log_.info("told to stop", {{"signal", static_cast<int64_t>(info.ssi_signo)}});
            begin_stop();
        } else if (info.ssi_signo == SIGINT && now_ms - stop_began_ms_ > kSameWish_ms) {
            kill_all();
        }
    }
}

void Supervisor::reap() {
    int wait_status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
        for (KeptProcess *process : all()) {
            if (process->pid() == pid) {
                on_exit(*process, wait_status);
                break;
            }
        }
    }
}

bool Supervisor::anything_running() const {
    return gateway_.running() || fill_.running() ||
           std::any_of(nodes_.begin(), nodes_.end(), [](const auto &node) { return node->running(); });
}

void Supervisor::start_due() {
    if (stop_has_begun()) return;
    const int64_t now_ms = clock_.monotonic_ms();
    for (KeptProcess *process : all()) {
        if (process->due_ms() && *process->due_ms() <= now_ms) start(*process);
    }
}

int Supervisor::open_pipe(int &read_end) {
    close_fd(read_end);
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return -1;
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    read_end = ends[0];
    return ends[1];
}

void Supervisor::start(KeptProcess &process) {
    int pipe_fd = -1;
    if (&process == &gateway_) {
        gateway_report_.clear();
        gateway_listens_ = false;
        pipe_fd = open_pipe(gateway_pipe_);
    } else if (&process == &fill_) {
        pipe_fd = open_pipe(fill_pipe_);
    }
    const Status started = process.start(clock_.monotonic_ms(), pipe_fd);
    if (pipe_fd >= 0) ::close(pipe_fd);
    if (!started.ok()) {
        log_.error("start failed", {{"process", process.name()}, {"error", started.message()}});
        if (phase_ < Phase::serving) give_up(started.message(), nullptr);
        return;
    }
    log_.info("started", {{"process", process.name()}, {"pid", process.pid()}});
    write_run_file();
}

void Supervisor::on_gateway_report() {
    const bool open = read_pipe(gateway_pipe_, gateway_report_);
    const size_t end = gateway_report_.find('\n');
    if (end == std::string::npos) {
        // Its exit, if that is what closed the pipe, is told by reap().
        if (!open) close_fd(gateway_pipe_);
        return;
    }
    close_fd(gateway_pipe_);
    const Result<Endpoints> reported = endpoints_from_json(std::string_view(gateway_report_).substr(0, end));
    if (!reported.ok()) return give_up(reported.status().message(), &gateway_);
    gateway_listens_ = true;
    if (endpoints_) return;
    endpoints_ = *reported;
    // From now on the ports are fixed: a gateway that is started again must be found where it was.
    for (const auto &[text, address] :
         {std::pair{&endpoints_->http, &options_.settings.http}, {&endpoints_->pg, &options_.settings.pg}}) {
        const auto parsed = config::parse_address(*text, config::UnixSocket::refused);
        if (!parsed.ok()) return give_up("the gateway reported " + *text + ": " + parsed.status().message(), &gateway_);
        *address = *parsed;
    }
    if (const auto listen = config::parse_address(endpoints_->internal, config::UnixSocket::allowed); listen.ok()) {
        options_.settings.listen = *listen;
    }
    gateway_.spec() = gateway_spec(options_.settings, options_.paths, options_.environment);
    ready_.http = "http://" + dialable(endpoints_->http);
    ready_.pg = dialable(endpoints_->pg);
    probe_ = std::make_unique<PoolProbe>(ready_.http, options_.credentials.token);
    write_run_file();
}

void Supervisor::on_fill_progress() {
    const bool open = read_pipe(fill_pipe_, fill_progress_);
    for (size_t end; (end = fill_progress_.find('\n')) != std::string::npos; fill_progress_.erase(0, end + 1)) {
        if (terminal_) std::cerr << "\r\033[K" << fill_progress_.substr(0, end) << std::flush;
    }
    if (open) return;
    close_fd(fill_pipe_);
    if (terminal_) std::cerr << "\r\033[K" << std::flush;
}

void Supervisor::make_nodes() {
    for (unsigned index = 1; index <= options_.settings.nodes; ++index) {
        nodes_.push_back(std::make_unique<KeptProcess>(
            "node-" + std::to_string(index),
            node_spec(options_.settings, options_.paths, options_.environment, index, *endpoints_)));
        if (!stop_has_begun()) start(*nodes_.back());
    }
}

void Supervisor::advance() {
    const int64_t now_ms = clock_.monotonic_ms();
    const bool late = now_ms - phase_began_ms_ >= kStartWithin_ms;
    if (phase_ == Phase::starting) {
        if (!gateway_listens_ && late) return give_up("the gateway did not say where it listens", &gateway_);
        if (!gateway_listens_ || !filled_) return;
        phase_ = Phase::joining;
        phase_began_ms_ = probe_due_ms_.emplace(now_ms);
        return make_nodes();
    }
    if (probe_due_ms_ && *probe_due_ms_ <= now_ms) probe();
    if (phase_ == Phase::joining && late) {
        give_up("the pool does not answer queries" + (probe_error_.empty() ? "" : ": " + probe_error_), &gateway_);
    }
}

void Supervisor::probe() {
    probe_due_ms_ = clock_.monotonic_ms() + kProbeEvery_ms;
    const auto linked = probe_->linked_nodes();
    if (!linked.ok()) {
        probe_error_ = linked.status().message();
        return;
    }
    std::vector<ReadyNode> nodes;
    for (size_t i = 0; i < nodes_.size(); ++i) {
        const auto found = std::find_if(linked->begin(), linked->end(),
                                        [&](const auto &candidate) { return candidate.pid == nodes_[i]->pid(); });
        if (found == linked->end()) {
            probe_error_ = nodes_[i]->name() + " has not joined";
            return;
        }
        nodes.push_back({found->id, options_.paths.node(static_cast<unsigned>(i + 1)), found->pid});
    }
    const Result<bool> answered = probe_->answers_a_query();
    if (!answered.ok()) probe_error_ = answered.status().message();
    if (!answered.ok() || !*answered) return;
    ready_.nodes = std::move(nodes);
    became_ready();
}

void Supervisor::became_ready() {
    probe_due_ms_.reset();
    probe_error_.clear();
    const Status written = write_ready_files();
    if (phase_ == Phase::joining) {
        if (!written.ok()) return give_up(written.message(), nullptr);
        phase_ = Phase::serving;
        announce();
    } else if (!written.ok()) {
        log_.error("ready file not written", {{"error", written.message()}});
    }
    log_.info("ready", {{"nodes", nodes_.size()}});
}

Status Supervisor::write_ready_files() {
    const std::string content = ready_to_json(ready_);
    ROOST_RETURN_IF_ERROR(write_file_atomically(options_.paths.ready(), content));
    if (options_.settings.ready_file.empty()) return {};
    return write_file_atomically(options_.settings.ready_file, content);
}

void Supervisor::write_run_file() {
    nlohmann::ordered_json file{{"pid", ::getpid()}, {"gateway", {{"pid", gateway_.pid()}}}};
    if (endpoints_) {
        file["gateway"]["http"] = endpoints_->http;
        file["gateway"]["pg"] = endpoints_->pg;
        file["gateway"]["internal"] = endpoints_->internal;
    }
    file["nodes"] = nlohmann::ordered_json::array();
    for (const auto &node : nodes_) file["nodes"].push_back({{"name", node->name()}, {"pid", node->pid()}});
    // For people and tests; nothing in roost depends on it.
    const Status written = write_file_atomically(options_.paths.run(), file.dump(2) + "\n");
    if (!written.ok()) log_.warn("run file not written", {{"error", written.message()}});
}

// The psql line stands last and alone, to be copied whole.
void Supervisor::announce() {
    const std::string &dir = options_.paths.dir;
    std::cout << "roost is ready: " << nodes_.size() << (nodes_.size() == 1 ? " node" : " nodes") << ", catalog "
              << ready_.catalog << ", logs in " << options_.paths.dir << "/log\n\n"
              << "  HTTP   " << ready_.http << "   (user, password and token: " << options_.paths.credentials() << ")\n"
              << "  SQL    roost sql --dir " << shell_quoted(dir) << " -c 'select 1'\n"
              << "  stop   Ctrl-C here, or: kill " << ::getpid() << "\n\n"
              << psql_line(ready_, options_.paths.passfile()) << "\n"
              << std::endl;
}

void Supervisor::on_exit(KeptProcess &process, int wait_status) {
    const std::string how = describe_exit(wait_status);
    const bool succeeded = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    const bool expected = stop_has_begun() || (succeeded && &process == &fill_);
    log_.write(expected ? obs::Level::info : obs::Level::warn, "exited",
               {{"process", process.name()}, {"pid", process.pid()}, {"how", how}});
    process.exited(clock_.monotonic_ms());
    if (stop_has_begun()) return process.stay_down();
    if (&process == &fill_) {
        process.stay_down();
        if (!succeeded) return give_up("filling the lake failed: the process " + how, &process);
        filled_ = true;
        phase_began_ms_ = clock_.monotonic_ms();
        return;
    }
    const bool hopeless = phase_ < Phase::serving && (&process == &gateway_ || process.exits() >= kMostEarlyExits);
    if (hopeless) return give_up("the " + process.name() + " " + how, &process);
    const int64_t pause_ms = process.due_ms().value_or(0) - clock_.monotonic_ms();
    std::cerr << "roost up: the " << process.name() << " " << how << "; starting it again in " << pause_ms << " ms\n"
              << process.last_words() << std::flush;
    // Its new process id goes into the ready file once it has joined again.
    if (phase_ == Phase::serving) probe_due_ms_ = clock_.monotonic_ms() + kProbeEvery_ms;
}

void Supervisor::give_up(const std::string &why, const KeptProcess *culprit) {
    std::cerr << "roost up: " << why << "\n";
    if (culprit != nullptr) {
        std::cerr << culprit->last_words() << "  its log is " << options_.paths.log(culprit->name()) << "\n";
    }
    std::cerr << std::flush;
    log_.error("gave up", {{"error", why}});
    exit_status_ = kExitFailed;
    if (!stop_has_begun()) begin_stop();
}

void Supervisor::begin_stop() {
    if (terminal_ && phase_ == Phase::serving)
        std::cerr << "\nroost up: stopping (Ctrl-C again: at once)\n" << std::flush;
    phase_ = Phase::draining;
    stop_began_ms_ = clock_.monotonic_ms();
    for (KeptProcess *process : all()) process->stay_down();
    ::unlink(options_.paths.ready().c_str());
    if (!options_.settings.ready_file.empty()) ::unlink(options_.settings.ready_file.c_str());
    gateway_.signal(SIGTERM);
    fill_.signal(SIGKILL);
}

void Supervisor::advance_stop() {
    const int64_t stopping_for_ms = clock_.monotonic_ms() - stop_began_ms_;
    if (phase_ == Phase::draining && (!gateway_.running() || stopping_for_ms >= schedule_.nodes_ms)) {
        phase_ = Phase::stopping;
        for (const auto &node : nodes_) node->signal(SIGTERM);
    }
    if (phase_ != Phase::killing && stopping_for_ms >= schedule_.kill_ms) kill_all();
}

void Supervisor::kill_all() {
    phase_ = Phase::killing;
    for (KeptProcess *process : all()) {
        if (process->running()) log_.warn("killed", {{"process", process->name()}, {"pid", process->pid()}});
        process->signal(SIGKILL);
    }
}

void Supervisor::remove_run_state() {
    ::unlink(options_.paths.run().c_str());
    if (options_.settings.listen.is_unix()) ::unlink(options_.settings.listen.unix_path.c_str());
}

}  // namespace roost::app
