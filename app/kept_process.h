// One process that the supervisor keeps running: how it is started, since when it runs, when it is to be started again,
// and what it said last. Owned by Supervisor; not thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "app/backoff.h"
#include "app/child_process.h"
#include "base/status.h"

namespace roost::app {

class KeptProcess {
public:
    KeptProcess(std::string name, ChildSpec spec) : name_(std::move(name)), spec_(std::move(spec)) {}

    // REQUIRES: !running(). `pipe_fd` as in ChildSpec. A failed start counts as an exit: it is due again after a pause.
    Status start(int64_t now_ms, int pipe_fd = -1);
    // Its exit was seen; from then on it is due again after a pause, unless told to stay down.
    void exited(int64_t now_ms);
    void stay_down() { due_ms_.reset(); }

    bool running() const { return pid_ > 0; }
    pid_t pid() const { return pid_; }
    // When to call start(); empty: not at all.
    std::optional<int64_t> due_ms() const { return due_ms_; }
    unsigned exits() const { return exits_; }
    void signal(int number) const;
    ChildSpec &spec() { return spec_; }
    const std::string &name() const { return name_; }
    // The last lines that this run has written, made readable, indented.
    std::string last_words() const;

private:
    std::string name_;
    ChildSpec spec_;
    Backoff backoff_;
    pid_t pid_ = -1;
    int64_t started_ms_ = 0;
    std::optional<int64_t> due_ms_;
    unsigned exits_ = 0;
    off_t log_from_ = 0;
};

// A JSON log line as "event: message field=value"; any other line as it is.
std::string readable_log_line(std::string_view line);

}  // namespace roost::app
