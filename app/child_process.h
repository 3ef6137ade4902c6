// Starts a process that cannot outlive its parent and does not hear the terminal: the kernel kills it when the parent
// dies (PR_SET_PDEATHSIG), it has a process group of its own, reads /dev/null and writes its output to a log file. For
// a single-threaded parent: the death signal is tied to the thread that forks. Called by Supervisor.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace roost::app {

struct ChildSpec {
    std::string executable;
    std::vector<std::string> arguments;              // without argv[0]
    std::map<std::string, std::string> environment;  // all of it
    std::string log_path;                            // stdout and stderr are appended here (mode 0600)
    int pipe_fd = -1;                                // handed over as descriptor kChildPipe; -1: none
    bool keep_stderr = false;                        // stderr stays the parent's: the child talks to the person
};

// Where a child finds the pipe of ChildSpec::pipe_fd.
inline constexpr int kChildPipe = 3;
// Set for a child that is to write lines for people to its pipe.
inline constexpr const char *kProgressVariable = "ROOST_PROGRESS";

// The process id. An executable that cannot be run is an error here, not an exit of the child.
Result<pid_t> spawn(const ChildSpec &spec);

// "exited with status 1", "was killed by signal 9 (Killed)": for messages, from waitpid's status.
std::string describe_exit(int wait_status);

// The environment of this process.
std::map<std::string, std::string> current_environment();

}  // namespace roost::app
