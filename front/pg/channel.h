// A client's socket with its buffers: reads messages whole, writes in batches, and can keep an eye on a client that
// waits. Owned by one connection, loop thread only; one coroutine reads and writes, a second one may watch.
//
// A statement costs one read and one write: nothing is sent before flush(), and a write that the socket takes at once
// needs no trip through the loop.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "net/async.h"

namespace roost::pg {

class Channel {
public:
    explicit Channel(net::asio::ip::tcp::socket socket);
    Channel(const Channel &) = delete;
    Channel &operator=(const Channel &) = delete;

    // --- input
    // Bytes received and not yet consumed. Valid until fill().
    std::string_view input() const { return {bytes_.get() + begin_, end_ - begin_}; }
    void consume(size_t size_bytes);
    // Waits for more input. False: the client is gone, or interrupt() was called. `whole_bytes` is what the message at
    // the front is known to need (0: unknown); the buffer grows with what arrives, not with what was announced.
    net::Task<bool> fill(size_t whole_bytes);

    // --- output
    std::string &out() { return out_; }
    // Sends out(), and `tail` behind it in the same call. False: the client is gone.
    net::Task<bool> flush(std::string_view tail = {});
    // Sends what the socket takes at once and drops the rest: for last words.
    void flush_now();

    // --- a client that waits for us
    // Reads ahead, into a bounded buffer, until stop_watching(); returns early when that is full. True: the client is
    // gone. fill() takes over what was read.
    net::Task<bool> watch();
    void stop_watching() { keep_watching_ = false; }
    bool watching() const { return watching_; }

    // Makes a fill() under way, and each later one, return false. What is being written is still written.
    void interrupt();
    void close();
    bool gone() const { return gone_; }
    // "address:port" of the client; empty when it is gone.
    std::string peer() const;
    bool reading() const { return reading_; }
    bool writing() const { return writing_; }
    // Goes up with every piece read or written; the sweep tells a stalled client by it.
    uint64_t progress() const { return progress_; }
    net::asio::ip::tcp::socket &socket() { return socket_; }

private:
    char *prepare(size_t size_bytes);
    void take_ahead();

    net::asio::ip::tcp::socket socket_;
    std::unique_ptr<char[]> bytes_;
    size_t capacity_ = 0, begin_ = 0, end_ = 0;
    std::string out_;
    std::string ahead_;   // read by the watcher
    net::Event watched_;  // the watcher has read something, or has stopped
    uint64_t progress_ = 0;
    bool reading_ = false, writing_ = false, watching_ = false, keep_watching_ = false;
    bool gone_ = false, interrupted_ = false;
};

}  // namespace roost::pg
