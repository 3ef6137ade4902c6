// One end of a link between gateway and node: a stream socket (Unix or TCP) that carries frames.
//
// Sending is thread-safe and never blocks: what the socket does not take at once is queued and written by the loop; the
// caller looks at queued_bytes() or park() for backpressure. A thread that has an answer writes the socket itself,
// which saves a wake-up of the loop (a cross-core wake-up costs more than the rest of a small statement). Reading is
// for one coroutine on the loop.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/ids.h"
#include "base/mutex.h"
#include "net/async.h"
#include "net/frame.h"

namespace roost::net {

using StreamSocket = asio::generic::stream_protocol::socket;

// "unix:/path" or "host:port".
struct Endpoint {
    std::string unix_path;  // non-empty: a Unix socket
    std::string host;
    uint16_t port = 0;
    std::string to_string() const;
    static Result<Endpoint> parse(std::string_view text);
};

class FrameLink : public std::enable_shared_from_this<FrameLink> {
public:
    static std::shared_ptr<FrameLink> make(StreamSocket socket, std::string already_read = {});

    // --- any thread
    // Sends whole encoded frames (append_frame), and `payload` behind them when their last is only a header
    // (frame_header). False when the link is closed: nothing was or will be sent.
    bool send(std::string frames, std::string payload = {});
    size_t queued_bytes();
    // When more than `low_bytes` are queued: calls `resume` once (on the loop) as soon as they are not, or the link
    // closes, and returns true. Otherwise returns false and forgets `resume`.
    bool park(size_t low_bytes, std::function<void()> resume);
    void close();
    bool closed();

    // --- the loop
    // The next frame. Errors: unavailable (closed by either side), data_loss (broken framing: the link is closed).
    Task<Result<Frame>> read();
    const asio::any_io_executor &executor() const { return executor_; }

private:
    FrameLink(StreamSocket socket, std::string already_read);
    void write_more() ROOST_REQUIRES(mutex_);
    void on_writable(const boost::system::error_code &ec);
    void close_locked() ROOST_REQUIRES(mutex_);
    bool write_queue() ROOST_REQUIRES(mutex_);
    void queue(std::string bytes, size_t sent_bytes) ROOST_REQUIRES(mutex_);
    void take_resume_if_low(std::function<void()> &resume) ROOST_REQUIRES(mutex_);

    Mutex mutex_;
    StreamSocket socket_;
    asio::any_io_executor executor_;
    std::deque<std::string> queue_ ROOST_GUARDED_BY(mutex_);
    size_t queue_at_ ROOST_GUARDED_BY(mutex_) = 0;      // of the first piece, what has been sent
    size_t queued_bytes_ ROOST_GUARDED_BY(mutex_) = 0;  // not yet sent, all pieces
    bool waiting_writable_ ROOST_GUARDED_BY(mutex_) = false;
    bool closed_ ROOST_GUARDED_BY(mutex_) = false;
    size_t resume_low_bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    std::function<void()> resume_ ROOST_GUARDED_BY(mutex_);
    FrameDecoder decoder_;  // the reading coroutine's
};

// What the first lines of a link say: an HTTP/1.1 request that upgrades to the framing.
struct LinkRequest {
    std::string token;
    bool result_link = false;  // else a control link
    Uuid node;
    uint64_t incarnation = 0;
};
std::string encode_link_request(const LinkRequest &request);
constexpr std::string_view kLinkAccepted =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: roost/1\r\n\r\n";
// Parses the head (up to and including the empty line).
Result<LinkRequest> parse_link_request(std::string_view head);

// Dials and upgrades, blocking at most `timeout_ms`; for node threads. Returns the connected descriptor.
Result<int> dial_link(const Endpoint &endpoint, const LinkRequest &request, int64_t timeout_ms);
// Wraps a connected descriptor for a loop; takes ownership.
Result<StreamSocket> adopt_socket(asio::any_io_executor executor, int fd);

}  // namespace roost::net
