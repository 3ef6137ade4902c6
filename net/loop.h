// The loop of a process, with an end that can be chosen. An io_context destroys what its coroutines hold only when it
// is destroyed itself, and that is after everything that was built on it; end() does it while that is still there.
#pragma once

#include <boost/asio/io_context.hpp>

namespace roost::net {

class Loop : public boost::asio::io_context {
public:
    Loop() : io_context(1) {}
    // Destroys every coroutine and handler that waits; nothing runs on the loop any more. What was built on it may be
    // destroyed afterwards, and may still post to it, in vain. Called by the thread that ran the loop, once it does not
    // run; idempotent.
    void end() {
        stop();
        shutdown();
    }
};

// Ends the loop when the scope is left. Declared after all that coroutines of the loop use.
class LoopEnd {
public:
    explicit LoopEnd(Loop &loop) : loop_(loop) {}
    ~LoopEnd() { loop_.end(); }
    LoopEnd(const LoopEnd &) = delete;
    LoopEnd &operator=(const LoopEnd &) = delete;

private:
    Loop &loop_;
};

}  // namespace roost::net
