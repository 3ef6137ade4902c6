// The gateway's side of the links: listens for nodes, knows the members, sends them work and hands each statement's
// frames to its owner. Loop thread only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cluster/messages.h"
#include "net/async.h"
#include "net/link.h"
#include "obs/log.h"

namespace roost::cluster {

struct HubOptions {
    std::vector<net::Endpoint> listen;  // Unix sockets and TCP addresses; TCP port 0: any free one
    std::string join_token;
    uint32_t heartbeat_ms = 5'000;
    uint32_t drop_after_ms = 30'000;
    uint32_t handshake_max_ms = 10'000;  // for a peer's request, and again for a node's first word
    uint32_t drain_max_ms = 5'000;       // for a node to stop sending what nobody wants
    std::string version;
};

struct Member {
    Hello hello;
    Heartbeat heartbeat;
    uint32_t in_flight = 0;  // streams open now
    uint64_t last_used = 0;
    int64_t last_seen_us = 0;  // monotonic
};

// A statement's frames as they come from its node: header, rows…, end. Single owner; dropping it before the end cancels
// the work on the node. `next` reads a result link only when asked: that is the backpressure. Not to be dropped while
// next() is awaited.
class RemoteStream {
public:
    struct State;
    RemoteStream(std::shared_ptr<State> state, class GatewayHub &hub);
    ~RemoteStream();
    RemoteStream(const RemoteStream &) = delete;
    RemoteStream &operator=(const RemoteStream &) = delete;

    // The next frame of type header, rows, end or refused. After end or refused there is none. Errors: unavailable (the
    // node or a link was lost), data_loss.
    net::Task<Result<net::Frame>> next();
    void cancel(const Status &reason);
    // Gives the stream up at once: next() ends with `why`, whatever the node does.
    void fail(Status why);
    const Progress &progress() const;
    // Called on each progress message, until the stream is dropped.
    void on_progress(std::function<void()> callback);
    const Uuid &node() const;

private:
    std::shared_ptr<State> state_;
    GatewayHub &hub_;
};

class GatewayHub {
public:
    GatewayHub(HubOptions options, const Clock &clock, obs::Log &log, net::asio::io_context &loop);
    ~GatewayHub();

    // Binds all endpoints. Errors name the address.
    Status listen();
    // Where it listens, ports filled in.
    const std::vector<net::Endpoint> &endpoints() const { return bound_; }
    void stop();

    std::function<void(const Member &)> on_join;
    std::function<void(const Uuid &)> on_leave;
    // It said hello and may not join, for instance because of its version (node_incompatible).
    std::function<void(const Uuid &, const Status &)> on_refused;
    std::function<void(const Member &)> on_heartbeat;

    const std::map<Uuid, Member> &members() const { return members_; }
    // Sends a frame that opens a stream (dispatch, read_page, open_arrow). unavailable when the node is not linked.
    Result<std::unique_ptr<RemoteStream>> open(const Uuid &node, net::FrameType type, std::string_view payload);
    void end_session(const Uuid &node, const Uuid &session);
    void drop_result(const Uuid &node, const Uuid &statement);

private:
    friend class RemoteStream;
    struct Node;
    using StatePtr = std::shared_ptr<RemoteStream::State>;

    template <class Protocol>
    net::Task<void> accept_loop(std::shared_ptr<net::asio::basic_socket_acceptor<Protocol>> acceptor);
    net::Task<void> handshake(net::StreamSocket accepted);
    Status replaces(const Member &old, const Hello &hello) const;
    net::Task<void> serve_control(std::shared_ptr<net::FrameLink> link, Uuid node_id);
    net::Task<void> serve_results(std::shared_ptr<net::FrameLink> link, Uuid node_id);
    net::Task<void> drain_stream(StatePtr state);
    net::Task<void> watch_heartbeats();
    void on_control_frame(Node &node, net::Frame frame);
    void lose(Node &node, const Status &why);
    void forget(const StatePtr &state);

    HubOptions options_;
    const Clock &clock_;
    obs::Log &log_;
    net::asio::io_context &loop_;
    std::vector<net::Endpoint> bound_;
    std::vector<std::function<void()>> close_acceptors_;
    std::map<Uuid, std::shared_ptr<Node>> nodes_;
    std::map<Uuid, Member> members_;
    uint64_t use_counter_ = 0;
    uint64_t next_stream_ = 1;
    bool stopping_ = false;
};

}  // namespace roost::cluster
