// `roost up`: one gateway and its nodes as child processes, started in order, restarted when they crash, stopped
// together. A single-threaded loop over signals, pipes and deadlines. What happens:
//   starting   the gateway binds its ports; beside it, the sample fills an empty lake
//   joining    the nodes start and link; then a statement must run through
//   serving    the ready file is there; a process that dies is started again, on the same ports, after a pause
//   draining   told to stop: the gateway takes nothing new and lets statements end
//   stopping   then the nodes go
//   killing    whatever is left after that is killed
// Not thread-safe; run() once.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/child_settings.h"
#include "app/credentials.h"
#include "app/endpoints.h"
#include "app/kept_process.h"
#include "app/pool_directory.h"
#include "app/pool_probe.h"
#include "app/ready_file.h"
#include "base/clock.h"
#include "config/settings.h"
#include "obs/log.h"

namespace roost::app {

class Supervisor {
public:
    struct Options {
        PoolPaths paths;
        config::Settings settings;  // absolute paths
        Credentials credentials;
        std::map<std::string, std::string> environment;
    };
    Supervisor(Options options, const Clock &clock, obs::Log &log);
    Supervisor(const Supervisor &) = delete;
    Supervisor &operator=(const Supervisor &) = delete;
    ~Supervisor();

    // Until the pool was told to stop or could not start; the exit status. No process of the pool is left when it
    // returns.
    int run();

private:
    enum class Phase { starting, joining, serving, draining, stopping, killing };

    // The loop.
    void wait_for_something();
    std::optional<int64_t> next_deadline_ms() const;
    void on_signals();
    void reap();
    void start_due();
    bool anything_running() const;

    // Starting.
    void start(KeptProcess &process);
    int open_pipe(int &read_end);
    void on_gateway_report();
    void on_fill_progress();
    void make_nodes();
    void advance();
    void probe();
    void became_ready();
    Status write_ready_files();
    void write_run_file();
    void announce();

    // Ending.
    void on_exit(KeptProcess &process, int wait_status);
    void give_up(const std::string &why, const KeptProcess *culprit);
    void begin_stop();
    void advance_stop();
    void kill_all();
    void remove_run_state();

    std::vector<KeptProcess *> all();
    bool stop_has_begun() const { return phase_ >= Phase::draining; }

    Options options_;
    const Clock &clock_;
    obs::Log &log_;
    const StopSchedule schedule_;
    const bool terminal_;  // a person watches stderr

    Phase phase_ = Phase::starting;
    int exit_status_ = 0;
    int signal_fd_ = -1;
    int gateway_pipe_ = -1, fill_pipe_ = -1;
    std::string gateway_report_, fill_progress_;  // read so far
    KeptProcess gateway_, fill_;
    std::vector<std::unique_ptr<KeptProcess>> nodes_;
    std::optional<Endpoints> endpoints_;  // set by the gateway's first report, the same for the whole run
    bool gateway_listens_ = false;        // this run of it has reported
    bool filled_ = false;
    std::unique_ptr<PoolProbe> probe_;
    std::optional<int64_t> probe_due_ms_;  // ask again then; empty: nothing to find out
    std::string probe_error_;
    int64_t phase_began_ms_ = 0, stop_began_ms_ = 0;
    ReadyInfo ready_;
};

}  // namespace roost::app
