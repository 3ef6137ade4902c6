#include "cluster/gateway_hub.h"

#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

namespace roost::cluster {

namespace asio = net::asio;
using net::FrameLink;
using net::FrameType;

struct RemoteStream::State {
    State(asio::any_io_executor executor, uint64_t number, Uuid id) : stream(number), node(id), changed(executor) {}
    const uint64_t stream;
    const Uuid node;
    std::deque<net::Frame> inline_frames;  // came over the control link
    std::shared_ptr<FrameLink> link;       // or are to be read here
    bool ended = false;                    // the last frame has been seen
    bool dropped = false;                  // nobody owns it any more
    Status lost;
    Progress progress;
    std::function<void()> on_progress;
    net::Event changed;
};

struct GatewayHub::Node {
    Uuid id;
    uint64_t incarnation = 0;
    std::shared_ptr<FrameLink> control;
    std::unordered_map<uint64_t, StatePtr> streams;
};

RemoteStream::RemoteStream(std::shared_ptr<State> state, GatewayHub &hub) : state_(std::move(state)), hub_(hub) {}

RemoteStream::~RemoteStream() {
    state_->on_progress = nullptr;
    if (state_->ended || !state_->lost.ok()) return;
    state_->dropped = true;
    cancel(Status(Code::cancelled, "the client has gone"));
    if (state_->link) asio::co_spawn(hub_.loop_, hub_.drain_stream(state_), asio::detached);
}

void RemoteStream::fail(Status why) {
    if (state_->ended || !state_->lost.ok()) return;
    state_->lost = std::move(why);
    if (state_->link) state_->link->close();
    hub_.forget(state_);
}

const Progress &RemoteStream::progress() const { return state_->progress; }
void RemoteStream::on_progress(std::function<void()> callback) { state_->on_progress = std::move(callback); }
const Uuid &RemoteStream::node() const { return state_->node; }

net::Task<Result<net::Frame>> RemoteStream::next() {
    const auto state = state_;
    for (;;) {
        if (!state->inline_frames.empty()) {
            net::Frame frame = std::move(state->inline_frames.front());
            state->inline_frames.pop_front();
            co_return frame;
        }
        if (!state->lost.ok()) co_return state->lost;
        if (state->ended) co_return Status(Code::internal, "read past the end of a result");
        if (!state->link) {
            co_await state->changed.wait();
            continue;
        }
        auto frame = co_await state->link->read();
        if (!frame.ok()) {
            state->lost =
                Status(frame.status().code(), "the node was lost while it sent the result").with_retryable(true);
            hub_.forget(state);
            co_return state->lost;
        }
        if (frame->stream != state->stream) {
            state->link->close();
            state->lost = Status(Code::data_loss, "a result link mixed up two statements");
            hub_.forget(state);
            co_return state->lost;
        }
        if (frame->type == FrameType::end) {
            state->ended = true;
            hub_.forget(state);
        }
        co_return std::move(*frame);
    }
}

void RemoteStream::cancel(const Status &reason) {
    if (state_->ended || !state_->lost.ok()) return;
    const auto found = hub_.nodes_.find(state_->node);
    if (found == hub_.nodes_.end() || !found->second->control) return;
    std::string frame;
    net::append_frame(frame, FrameType::cancel, state_->stream, encode(Cancel{reason}));
    found->second->control->send(std::move(frame));
}

GatewayHub::GatewayHub(HubOptions options, const Clock &clock, obs::Log &log, asio::io_context &loop)
    : options_(std::move(options)), clock_(clock), log_(log), loop_(loop) {}

GatewayHub::~GatewayHub() = default;

Status GatewayHub::listen() {
    for (net::Endpoint endpoint : options_.listen) {
        boost::system::error_code ec;
        if (!endpoint.unix_path.empty()) {
            ::unlink(endpoint.unix_path.c_str());  // left by a gateway that was killed
            auto acceptor = std::make_shared<asio::local::stream_protocol::acceptor>(loop_);
            acceptor->open(asio::local::stream_protocol(), ec);
            const mode_t old = ::umask(0177);
            if (!ec) acceptor->bind(asio::local::stream_protocol::endpoint(endpoint.unix_path), ec);
            ::umask(old);
            if (!ec) acceptor->listen(128, ec);
            if (ec) return Status(Code::io_error, "can't listen on " + endpoint.to_string() + ": " + ec.message());
            close_acceptors_.push_back([acceptor] { acceptor->close(); });
            asio::co_spawn(loop_, accept_loop<asio::local::stream_protocol>(acceptor), asio::detached);
        } else {
            const auto address = asio::ip::make_address(endpoint.host == "localhost" ? "127.0.0.1" : endpoint.host, ec);
            if (ec) return Status(Code::invalid_argument, "not an IP address to listen on: " + endpoint.host);
            const asio::ip::tcp::endpoint at(address, endpoint.port);
            auto acceptor = std::make_shared<asio::ip::tcp::acceptor>(loop_);
            acceptor->open(at.protocol(), ec);
            if (!ec) acceptor->set_option(asio::socket_base::reuse_address(true), ec);
            if (!ec) acceptor->bind(at, ec);
            if (!ec) acceptor->listen(128, ec);
            if (ec) return Status(Code::io_error, "can't listen on " + endpoint.to_string() + ": " + ec.message());
            endpoint.port = acceptor->local_endpoint(ec).port();
            close_acceptors_.push_back([acceptor] { acceptor->close(); });
            asio::co_spawn(loop_, accept_loop<asio::ip::tcp>(acceptor), asio::detached);
        }
        bound_.push_back(endpoint);
    }
    asio::co_spawn(loop_, watch_heartbeats(), asio::detached);
    return Status();
}

void GatewayHub::stop() {
    stopping_ = true;
    for (const auto &close : close_acceptors_) close();
    close_acceptors_.clear();
    for (const auto &[id, node] : nodes_) {
        if (node->control) node->control->close();
    }
    for (const net::Endpoint &endpoint : bound_) {
        if (!endpoint.unix_path.empty()) ::unlink(endpoint.unix_path.c_str());
    }
}

template <class Protocol>
net::Task<void> GatewayHub::accept_loop(std::shared_ptr<asio::basic_socket_acceptor<Protocol>> acceptor) {
    for (;;) {
        boost::system::error_code ec;
        typename Protocol::socket socket(loop_);
        co_await acceptor->async_accept(socket, asio::redirect_error(asio::use_awaitable, ec));
        if (!acceptor->is_open()) co_return;
        if (ec) {
            // Out of descriptors, most likely: leave room to breathe instead of spinning.
            log_.warn("accept_failed", {{"error", ec.message()}});
            asio::steady_timer timer(loop_, std::chrono::milliseconds(100));
            co_await timer.async_wait(asio::use_awaitable);
            continue;
        }
        asio::co_spawn(loop_, handshake(net::StreamSocket(std::move(socket))), asio::detached);
    }
}

namespace {

bool same_secret(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// Reads a request's head into `head`; what came behind it is left in `rest`.
net::Task<bool> read_head(net::StreamSocket &socket, std::string &head, std::string &rest) {
    std::string buffer;
    char part[1024];
    while (buffer.size() < 4096) {
        boost::system::error_code ec;
        const size_t n =
            co_await socket.async_read_some(asio::buffer(part), asio::redirect_error(asio::use_awaitable, ec));
        if (ec) co_return false;
        buffer.append(part, n);
        if (const size_t end = buffer.find("\r\n\r\n"); end != std::string::npos) {
            head = buffer.substr(0, end + 4);
            rest = buffer.substr(end + 4);
            co_return true;
        }
    }
    co_return false;
}

}  // namespace

net::Task<void> GatewayHub::handshake(net::StreamSocket accepted) {
    const auto shared = std::make_shared<net::StreamSocket>(std::move(accepted));
    net::StreamSocket &socket = *shared;
    // A peer that says nothing is cut off by closing its socket, which ends the read.
    asio::steady_timer limit(loop_, std::chrono::milliseconds(options_.handshake_max_ms));
    limit.async_wait([shared](const boost::system::error_code &ec) {
        boost::system::error_code ignored;  // closing: nothing to do about a failure
        if (!ec) shared->close(ignored);
    });
    std::string head;
    std::string rest;
    const bool complete = co_await read_head(socket, head, rest);
    if (limit.cancel() == 0 || !complete) co_return;
    const auto request = net::parse_link_request(head);
    boost::system::error_code ec;
    if (!request.ok() || !same_secret(request->token, options_.join_token)) {
        const std::string answer = request.ok()
                                       ? "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                                       : "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        log_.warn("link_refused",
                  {{"error", request.ok() ? std::string("wrong join token") : request.status().message()}});
        co_await asio::async_write(socket, asio::buffer(answer), asio::redirect_error(asio::use_awaitable, ec));
        co_return;
    }
    co_await asio::async_write(socket, asio::buffer(net::kLinkAccepted), asio::redirect_error(asio::use_awaitable, ec));
    if (ec || stopping_) co_return;
    auto link = FrameLink::make(std::move(socket), std::move(rest));
    if (request->result_link) {
        co_await serve_results(std::move(link), request->node);
    } else {
        co_await serve_control(std::move(link), request->node);
    }
}

namespace {

net::Task<Result<Hello>> read_hello(std::shared_ptr<FrameLink> link, Uuid node_id, uint32_t max_ms) {
    asio::steady_timer limit(link->executor(), std::chrono::milliseconds(max_ms));
    limit.async_wait([link](const boost::system::error_code &ec) {
        if (!ec) link->close();
    });
    auto first = co_await link->read();
    limit.cancel();
    if (!first.ok()) co_return first.status();
    if (first->type != FrameType::hello) co_return Status(Code::data_loss, "the link does not begin with a hello");
    auto hello = decode_hello(first->payload);
    if (hello.ok() && hello->node != node_id) {
        co_return Status(Code::data_loss, "the hello is that of node " + hello->node.to_string());
    }
    co_return hello;
}

}  // namespace

// The same identity again. Mostly its earlier link is dead and just has not noticed; but a copy of a node's directory
// that runs elsewhere, or an earlier run of the node, must not take the place of the one that answers.
Status GatewayHub::replaces(const Member &old, const Hello &hello) const {
    if (hello.incarnation > old.hello.incarnation) return Status();
    const bool same_run = hello.incarnation == old.hello.incarnation && hello.pid == old.hello.pid;
    const int64_t silent_us = clock_.monotonic_us() - old.last_seen_us;
    if (same_run || silent_us > 2 * int64_t{options_.heartbeat_ms} * 1000) return Status();
    return Status(Code::already_exists, "a node of this identity is connected: pid " + std::to_string(old.hello.pid) +
                                            ", directory " + old.hello.dir);
}

net::Task<void> GatewayHub::serve_control(std::shared_ptr<FrameLink> link, Uuid node_id) {
    auto hello = co_await read_hello(link, node_id, options_.handshake_max_ms);
    Status refused = hello.status();
    const auto old = nodes_.find(node_id);
    if (refused.ok() && old != nodes_.end()) refused = replaces(members_[node_id], *hello);
    if (!refused.ok() || stopping_) {
        log_.warn("hello_refused", {{"node_id", node_id}, {"error", refused.message()}});
        if (!refused.ok() && on_refused) on_refused(node_id, refused);
        link->close();
        co_return;
    }
    if (old != nodes_.end()) {
        lose(*old->second, Status(Code::unavailable, "the node connected anew").with_retryable(true));
    }
    auto node = std::make_shared<Node>();
    node->id = node_id;
    node->incarnation = hello->incarnation;
    node->control = link;
    nodes_[node_id] = node;
    std::string welcome;
    net::append_frame(welcome, FrameType::welcome, 0, encode(Welcome{options_.version, options_.heartbeat_ms}));
    link->send(std::move(welcome));
    Member &member = members_[node_id];
    member = Member{std::move(*hello), {}, 0, 0, clock_.monotonic_us()};
    log_.info("node_joined", {{"node_id", node_id},
                              {"name", member.hello.name},
                              {"pid", member.hello.pid},
                              {"incarnation", member.hello.incarnation}});
    if (on_join) on_join(member);
    Status why;
    while (why.ok()) {
        auto frame = co_await link->read();
        if (!frame.ok()) {
            why = frame.status();
        } else if (node->control == link) {
            on_control_frame(*node, std::move(*frame));
        }
    }
    if (node->control == link)
        lose(*node, Status(why.code(), "the node was lost: " + why.message()).with_retryable(true));
}

void GatewayHub::on_control_frame(Node &node, net::Frame frame) {
    const auto member = members_.find(node.id);
    if (member != members_.end()) member->second.last_seen_us = clock_.monotonic_us();
    if (frame.type == FrameType::heartbeat) {
        auto beat = decode_heartbeat(frame.payload);
        if (beat.ok() && member != members_.end()) {
            member->second.heartbeat = std::move(*beat);
            if (member->second.heartbeat.cpus > 0) member->second.hello.cpus = member->second.heartbeat.cpus;
            if (on_heartbeat) on_heartbeat(member->second);
            member->second.heartbeat.cache.folders.clear();
        }
        return;
    }
    const auto found = node.streams.find(frame.stream);
    if (found == node.streams.end()) return;  // ended while the frame was under way
    const StatePtr state = found->second;
    if (frame.type == FrameType::progress) {
        if (auto progress = decode_progress(frame.payload); progress.ok()) {
            state->progress = *progress;
            if (state->on_progress) state->on_progress();
        }
        return;
    }
    const bool last = frame.type == FrameType::end || frame.type == FrameType::refused;
    state->inline_frames.push_back(std::move(frame));
    if (last) {
        state->ended = true;
        forget(state);
    }
    state->changed.notify();
}

net::Task<void> GatewayHub::serve_results(std::shared_ptr<FrameLink> link, Uuid node_id) {
    for (;;) {
        auto begin = co_await link->read();
        if (!begin.ok()) co_return;
        const auto node = nodes_.find(node_id);
        if (begin->type != FrameType::result_begin || node == nodes_.end()) break;
        const auto found = node->second->streams.find(begin->stream);
        if (found == node->second->streams.end()) break;
        const StatePtr state = found->second;
        state->link = link;
        state->changed.notify();
        if (state->dropped) asio::co_spawn(loop_, drain_stream(state), asio::detached);
        while (state->link && !state->ended && state->lost.ok()) co_await state->changed.wait();
        state->link.reset();
        if (!state->lost.ok()) break;
    }
    link->close();
}

// Reads a result that nobody wants to its end, so that the link can carry the next one; a node that does not stop in
// time loses the link.
net::Task<void> GatewayHub::drain_stream(StatePtr state) {
    const auto link = state->link;
    if (!link) co_return;
    asio::steady_timer limit(loop_, std::chrono::milliseconds(options_.drain_max_ms));
    limit.async_wait([link](const boost::system::error_code &ec) {
        if (!ec) link->close();
    });
    while (!state->ended && state->lost.ok()) {
        auto frame = co_await link->read();
        if (!frame.ok()) {
            state->lost = frame.status();
        } else if (frame->type == FrameType::end && frame->stream == state->stream) {
            state->ended = true;
        }
    }
    limit.cancel();
    forget(state);
}

Result<std::unique_ptr<RemoteStream>> GatewayHub::open(const Uuid &node_id, FrameType type, std::string_view payload) {
    const auto found = nodes_.find(node_id);
    if (found == nodes_.end() || !found->second->control) {
        return Status(Code::unavailable, "the node " + node_id.to_string() + " is not connected").with_retryable(true);
    }
    Node &node = *found->second;
    auto state = std::make_shared<RemoteStream::State>(loop_.get_executor(), next_stream_++, node_id);
    std::string frame;
    frame.reserve(payload.size() + net::kFrameHeaderBytes);
    net::append_frame(frame, type, state->stream, payload);
    if (!node.control->send(std::move(frame))) {
        return Status(Code::unavailable, "the node " + node_id.to_string() + " is not connected").with_retryable(true);
    }
    node.streams.emplace(state->stream, state);
    Member &member = members_[node_id];
    member.in_flight++;
    member.last_used = ++use_counter_;
    return std::make_unique<RemoteStream>(std::move(state), *this);
}

void GatewayHub::forget(const StatePtr &state) {
    const auto node = nodes_.find(state->node);
    if (node != nodes_.end() && node->second->streams.erase(state->stream) > 0) {
        const auto member = members_.find(state->node);
        if (member != members_.end() && member->second.in_flight > 0) member->second.in_flight--;
    }
    state->changed.notify();
}

void GatewayHub::lose(Node &node, const Status &why) {
    const std::shared_ptr<Node> keep = nodes_[node.id];
    if (node.control) node.control->close();
    node.control.reset();
    auto streams = std::move(node.streams);
    node.streams.clear();
    for (const auto &[number, state] : streams) {
        // What came whole before the loss is still good.
        if (state->ended) continue;
        state->lost = why;
        if (state->link) state->link->close();
        state->changed.notify();
    }
    log_.warn("node_lost", {{"node_id", node.id}, {"error", why.message()}, {"statements", streams.size()}});
    members_.erase(node.id);
    const Uuid id = node.id;
    nodes_.erase(id);
    if (on_leave) on_leave(id);
}

net::Task<void> GatewayHub::watch_heartbeats() {
    asio::steady_timer timer(loop_);
    const std::chrono::milliseconds every(std::clamp<uint32_t>(options_.drop_after_ms / 10, 10, 1000));
    while (!stopping_) {
        timer.expires_after(every);
        co_await timer.async_wait(asio::use_awaitable);
        const int64_t limit_us = clock_.monotonic_us() - int64_t{options_.drop_after_ms} * 1000;
        std::vector<std::shared_ptr<Node>> silent;
        for (const auto &[id, member] : members_) {
            if (member.last_seen_us < limit_us) silent.push_back(nodes_[id]);
        }
        for (const auto &node : silent) {
            lose(*node, Status(Code::unavailable, "the node has sent no heartbeat for " +
                                                      std::to_string(options_.drop_after_ms / 1000) + " s")
                            .with_retryable(true));
        }
    }
}

void GatewayHub::end_session(const Uuid &node, const Uuid &session) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end() || !found->second->control) return;  // its state went with it
    std::string frame;
    net::append_frame(frame, FrameType::end_session, 0, encode_id(session));
    found->second->control->send(std::move(frame));
}

void GatewayHub::drop_result(const Uuid &node, const Uuid &statement) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end() || !found->second->control) return;  // it is swept by retention there
    std::string frame;
    net::append_frame(frame, FrameType::drop_result, 0, encode_id(statement));
    found->second->control->send(std::move(frame));
}

}  // namespace roost::cluster
