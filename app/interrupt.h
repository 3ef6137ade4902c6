// Ctrl-C and SIGTERM as something a blocking command can ask about and wait for. While the object lives the signals end
// nothing by themselves: the command cancels what it started on the server and then leaves. A second signal before the
// first was taken ends the process at once with status 130. Make one in main() before any other thread. Thread-safe.
// Used by `roost sql` and `roost import`.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace roost::app {

class Interrupt {
public:
    Interrupt();
    Interrupt(const Interrupt &) = delete;
    Interrupt &operator=(const Interrupt &) = delete;
    ~Interrupt();

    bool requested() const { return requested_.load(); }
    // True when there was one; it is dealt with then.
    bool take();
    // Readable while requested(): for poll().
    int fd() const { return event_fd_; }
    // Called on another thread when a signal arrives; at once when one has arrived already. Empty: nothing. For
    // breaking off an exchange that would otherwise wait. When set_hook returns the earlier hook is not running any
    // more.
    void set_hook(std::function<void()> hook);

private:
    void run();
    std::atomic<bool> requested_{false};
    int event_fd_, signal_fd_, stop_fd_;
    Mutex mutex_;
    std::function<void()> hook_ ROOST_GUARDED_BY(mutex_);
    std::thread thread_;
};

}  // namespace roost::app
