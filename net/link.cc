#include "net/link.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace roost::net {
namespace {

constexpr size_t kPiecesMax = 16;  // of a queue, in one system call

}  // namespace

std::string Endpoint::to_string() const {
    if (!unix_path.empty()) return "unix:" + unix_path;
    return host + ":" + std::to_string(port);
}

Result<Endpoint> Endpoint::parse(std::string_view text) {
    Endpoint endpoint;
    if (text.starts_with("unix:")) {
        endpoint.unix_path = text.substr(5);
        if (endpoint.unix_path.empty() || endpoint.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
            return Status(Code::invalid_argument,
                          "a Unix socket path has 1 to 107 bytes: '" + endpoint.unix_path + "'");
        }
        return endpoint;
    }
    if (text.starts_with("http://")) text.remove_prefix(7);
    while (text.ends_with('/')) text.remove_suffix(1);
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return Status(Code::invalid_argument,
                      "not an address: '" + std::string(text) + "'; expected host:port or unix:/path");
    }
    endpoint.host = text.substr(0, colon);
    if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']')) {
        endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
    }
    const std::string_view port = text.substr(colon + 1);
    const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (ec != std::errc() || end != port.data() + port.size() || endpoint.host.empty()) {
        return Status(Code::invalid_argument,
                      "not an address: '" + std::string(text) + "'; expected host:port or unix:/path");
    }
    return endpoint;
}

std::shared_ptr<FrameLink> FrameLink::make(StreamSocket socket, std::string already_read) {
    return std::shared_ptr<FrameLink>(new FrameLink(std::move(socket), std::move(already_read)));
}

FrameLink::FrameLink(StreamSocket socket, std::string already_read)
    : socket_(std::move(socket)), executor_(socket_.get_executor()) {
    boost::system::error_code ignored;  // a socket that can't be non-blocking fails at its first use
    socket_.native_non_blocking(true, ignored);
    const int on = 1;  // fails on Unix sockets, where it means nothing
    setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!already_read.empty()) decoder_.feed(already_read);
}

namespace {

// Sends what the socket takes of all pieces together. The bytes it took; -1: the socket is broken.
ssize_t send_pieces(int fd, iovec *pieces, size_t count) {
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    for (;;) {
        const ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) return n;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
        if (errno != EINTR) return -1;
    }
}

}  // namespace

void FrameLink::queue(std::string bytes, size_t sent_bytes) {
    if (sent_bytes >= bytes.size()) return;
    queued_bytes_ += bytes.size() - sent_bytes;
    if (queue_.empty()) queue_at_ = sent_bytes;
    queue_.push_back(std::move(bytes));
}

// False: the socket is broken.
bool FrameLink::write_queue() {
    while (queued_bytes_ > 0) {
        iovec pieces[kPiecesMax];
        size_t count = 0;
        size_t offered_bytes = 0;
        for (std::string &piece : queue_) {
            if (count == kPiecesMax) break;
            const size_t from = count == 0 ? queue_at_ : 0;
            pieces[count++] = {piece.data() + from, piece.size() - from};
            offered_bytes += piece.size() - from;
        }
        const ssize_t sent = send_pieces(socket_.native_handle(), pieces, count);
        if (sent < 0) return false;
        queued_bytes_ -= static_cast<size_t>(sent);
        queue_at_ += static_cast<size_t>(sent);
        while (!queue_.empty() && queue_at_ >= queue_.front().size()) {
            queue_at_ -= queue_.front().size();
            queue_.pop_front();
        }
        if (static_cast<size_t>(sent) < offered_bytes) return true;
    }
    return true;
}

bool FrameLink::send(std::string frames, std::string payload) {
    std::function<void()> resume;
    bool sent = true;
    {
        MutexLock lock(mutex_);
        if (closed_) return false;
        size_t at_once = 0;
        if (queued_bytes_ == 0) {
            iovec pieces[2] = {{frames.data(), frames.size()}, {payload.data(), payload.size()}};
            const ssize_t n = send_pieces(socket_.native_handle(), pieces, payload.empty() ? 1 : 2);
            sent = n >= 0;
            at_once = sent ? static_cast<size_t>(n) : 0;
        }
        if (!sent) {
            close_locked();
            resume = std::exchange(resume_, nullptr);
        } else if (at_once < frames.size() + payload.size()) {
            const size_t of_frames = std::min(at_once, frames.size());
            queue(std::move(frames), of_frames);
            queue(std::move(payload), at_once - of_frames);
            write_more();
        }
    }
    if (resume) resume();
    return sent;
}

void FrameLink::write_more() {
    if (waiting_writable_ || closed_) return;
    waiting_writable_ = true;
    // Registered from the loop's thread: Asio's sockets are not to be used from two threads at once.
    asio::post(executor_, [self = shared_from_this()] {
        MutexLock lock(self->mutex_);
        if (self->closed_) return;
        self->socket_.async_wait(StreamSocket::wait_write,
                                 [self](const boost::system::error_code &ec) { self->on_writable(ec); });
    });
}

void FrameLink::take_resume_if_low(std::function<void()> &resume) {
    if (resume_ && (closed_ || queued_bytes_ <= resume_low_bytes_)) resume = std::exchange(resume_, nullptr);
}

void FrameLink::on_writable(const boost::system::error_code &ec) {
    std::function<void()> resume;
    {
        MutexLock lock(mutex_);
        waiting_writable_ = false;
        if (!closed_ && (ec || !write_queue())) close_locked();
        if (!closed_ && queued_bytes_ > 0) {
            waiting_writable_ = true;
            socket_.async_wait(
                StreamSocket::wait_write,
                [self = shared_from_this()](const boost::system::error_code &e) { self->on_writable(e); });
        }
        take_resume_if_low(resume);
    }
    if (resume) resume();
}

size_t FrameLink::queued_bytes() {
    MutexLock lock(mutex_);
    return queued_bytes_;
}

bool FrameLink::park(size_t low_bytes, std::function<void()> resume) {
    MutexLock lock(mutex_);
    if (closed_ || queued_bytes_ <= low_bytes) return false;
    resume_low_bytes_ = low_bytes;
    resume_ = std::move(resume);
    return true;
}

void FrameLink::close_locked() {
    if (closed_) return;
    closed_ = true;
    queue_.clear();
    queue_at_ = queued_bytes_ = 0;
    // Ends a read that waits; the descriptor itself is closed on the loop, where nobody else uses it.
    ::shutdown(socket_.native_handle(), SHUT_RDWR);
    asio::post(executor_, [self = shared_from_this()] {
        boost::system::error_code ignored;  // nothing to be done about a failing close
        self->socket_.close(ignored);
    });
}

void FrameLink::close() {
    std::function<void()> resume;
    {
        MutexLock lock(mutex_);
        close_locked();
        resume = std::exchange(resume_, nullptr);
    }
    if (resume) resume();
}

bool FrameLink::closed() {
    MutexLock lock(mutex_);
    return closed_;
}

Task<Result<Frame>> FrameLink::read() {
    const auto self = shared_from_this();
    for (;;) {
        auto frame = decoder_.next();
        if (!frame.ok()) {
            close();
            co_return frame.status();
        }
        if (frame->has_value()) co_return std::move(**frame);
        if (closed()) co_return Status(Code::unavailable, "the link is closed");
        boost::system::error_code ec;
        const auto space = decoder_.space();
        const std::array<asio::mutable_buffer, 2> to{asio::buffer(space[0].data(), space[0].size()),
                                                     asio::buffer(space[1].data(), space[1].size())};
        const size_t n = co_await socket_.async_read_some(to, asio::redirect_error(asio::use_awaitable, ec));
        if (ec || n == 0) {
            close();
            co_return Status(Code::unavailable,
                             "the link was closed: " + (ec ? ec.message() : std::string("end of stream")));
        }
        decoder_.filled(n);
    }
}

std::string encode_link_request(const LinkRequest &request) {
    std::string out = "GET /roost/link HTTP/1.1\r\nHost: roost\r\nConnection: Upgrade\r\nUpgrade: roost/1\r\n";
    out += "Authorization: Bearer " + request.token + "\r\n";
    out += std::string("Roost-Link: ") + (request.result_link ? "result" : "control") + "\r\n";
    out += "Roost-Node: " + request.node.to_string() + "\r\n";
    out += "Roost-Incarnation: " + std::to_string(request.incarnation) + "\r\n\r\n";
    return out;
}

namespace {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

Status apply_link_header(std::string_view name, std::string_view value, LinkRequest &request, bool &upgrades) {
    if (equals_ignoring_case(name, "upgrade")) {
        upgrades = value == "roost/1";
    } else if (equals_ignoring_case(name, "authorization")) {
        if (value.starts_with("Bearer ")) request.token = value.substr(7);
    } else if (equals_ignoring_case(name, "roost-link")) {
        if (value != "result" && value != "control")
            return Status(Code::invalid_argument, "Roost-Link is control or result");
        request.result_link = value == "result";
    } else if (equals_ignoring_case(name, "roost-node")) {
        const auto id = Uuid::parse(value);
        if (!id) return Status(Code::invalid_argument, "Roost-Node is not a UUID");
        request.node = *id;
    } else if (equals_ignoring_case(name, "roost-incarnation")) {
        const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), request.incarnation);
        if (ec != std::errc() || end != value.data() + value.size()) {
            return Status(Code::invalid_argument, "Roost-Incarnation is not a number");
        }
    }
    return Status();
}

}  // namespace

Result<LinkRequest> parse_link_request(std::string_view head) {
    LinkRequest request;
    bool upgrades = false;
    bool first = true;
    while (!head.empty()) {
        const size_t end = head.find("\r\n");
        if (end == std::string_view::npos) return Status(Code::invalid_argument, "the request's head is cut short");
        const std::string_view line = head.substr(0, end);
        head.remove_prefix(end + 2);
        if (first) {
            if (line != "GET /roost/link HTTP/1.1") {
                return Status(Code::invalid_argument, "this port takes the links of roost nodes only");
            }
            first = false;
            continue;
        }
        if (line.empty()) break;
        const size_t colon = line.find(':');
        if (colon == std::string_view::npos) return Status(Code::invalid_argument, "a header line without a colon");
        std::string_view value = line.substr(colon + 1);
        while (value.starts_with(' ')) value.remove_prefix(1);
        ROOST_RETURN_IF_ERROR(apply_link_header(line.substr(0, colon), value, request, upgrades));
    }
    if (first || !upgrades) return Status(Code::invalid_argument, "expected an upgrade to roost/1");
    if (request.node.is_nil()) return Status(Code::invalid_argument, "Roost-Node is missing");
    return request;
}

namespace {

Result<int> connect_unix(const std::string &path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return Status(Code::io_error, std::string("socket: ") + std::strerror(errno));
    if (::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0) {
        const int error = errno;
        ::close(fd);
        return Status(Code::unavailable, "can't reach the gateway at unix:" + path + ": " + std::strerror(error));
    }
    return fd;
}

Result<int> connect_tcp(const Endpoint &endpoint, int64_t timeout_ms) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo *found = nullptr;
    const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
    if (error != 0) return Status(Code::unavailable, "can't resolve " + endpoint.host + ": " + gai_strerror(error));
    Status last(Code::unavailable, "no address for " + endpoint.host);
    int fd = -1;
    for (addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        const int s = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (s < 0) continue;
        timeval tv{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
        setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);  // bounds connect() on Linux
        if (::connect(s, a->ai_addr, a->ai_addrlen) == 0) {
            fd = s;
        } else {
            last = Status(Code::unavailable,
                          "can't reach the gateway at " + endpoint.to_string() + ": " + std::strerror(errno));
            ::close(s);
        }
    }
    ::freeaddrinfo(found);
    if (fd < 0) return last;
    return fd;
}

// Sends the request and reads the answer's head byte by byte, so that no frame behind it is swallowed.
Status upgrade(int fd, const LinkRequest &request, int64_t timeout_ms) {
    timeval tv{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    const std::string text = encode_link_request(request);
    if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
        return Status(Code::unavailable, std::string("the gateway closed the link: ") + std::strerror(errno));
    }
    std::string head;
    while (!head.ends_with("\r\n\r\n") && head.size() < 4096) {
        char c;
        const ssize_t n = ::recv(fd, &c, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return Status(Code::unavailable, "the gateway closed the link during the upgrade");
        head += c;
    }
    if (head.starts_with("HTTP/1.1 101")) return Status();
    const std::string line = head.substr(0, head.find("\r\n"));
    if (head.starts_with("HTTP/1.1 401"))
        return Status(Code::unauthenticated, "the gateway refused the join token: " + line);
    return Status(Code::unavailable, "the gateway refused the link: " + line);
}

}  // namespace

Result<int> dial_link(const Endpoint &endpoint, const LinkRequest &request, int64_t timeout_ms) {
    auto fd = endpoint.unix_path.empty() ? connect_tcp(endpoint, timeout_ms) : connect_unix(endpoint.unix_path);
    if (!fd.ok()) return fd;
    Status status = upgrade(*fd, request, timeout_ms);
    if (!status.ok()) {
        ::close(*fd);
        return status;
    }
    return fd;
}

Result<StreamSocket> adopt_socket(asio::any_io_executor executor, int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    StreamSocket socket(executor);
    boost::system::error_code ec;
    if (::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size) == 0) {
        const int family = address.ss_family;
        socket.assign(asio::generic::stream_protocol(family, family == AF_UNIX ? 0 : IPPROTO_TCP), fd, ec);
    } else {
        ec.assign(errno, boost::system::system_category());
    }
    if (ec) {
        ::close(fd);
        return Status(Code::io_error, "can't use the socket: " + ec.message());
    }
    return socket;
}

}  // namespace roost::net
