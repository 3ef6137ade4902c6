#include "net/http_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <utility>

namespace roost::net {
namespace {

constexpr size_t kHeadReadBytes = 16 * 1024;
constexpr size_t kBodyReadBytes = 64 * 1024;
constexpr size_t kLingerReadBytes = 1024 * 1024;
constexpr size_t kUnparsedMaxBytes = 2 * kBodyReadBytes;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

std::string http_date(int64_t wall_us) {
    const std::time_t seconds = wall_us / 1'000'000;
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[40];
    return {text, std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

std::string hex_size(size_t size_bytes) {
    char text[20];
    const auto end = std::to_chars(text, text + sizeof(text), size_bytes, 16);
    return {text, end.ptr};
}

Status client_left() { return Status(Code::unavailable, "The client closed the connection."); }

}  // namespace

void ReadBuffer::consume(size_t size_bytes) {
    begin_ += size_bytes;
    if (begin_ == bytes_.size()) {
        bytes_.clear();
        begin_ = 0;
    }
}

char *ReadBuffer::prepare(size_t size_bytes) {
    if (begin_ > 0) {
        bytes_.erase(0, begin_);
        begin_ = 0;
    }
    end_ = bytes_.size();
    bytes_.resize(end_ + size_bytes);
    return bytes_.data() + end_;
}

// The body of the request at work. Sends "100 Continue" when somebody first wants to read.
class HttpConnection::Body final : public HttpBody {
public:
    Body(HttpConnection &connection, HttpParser &parser)
        : connection_(connection),
          parser_(parser),
          length_bytes_(parser.content_length()),
          continue_due_(parser.state() == HttpParser::State::body && parser.expects_continue() &&
                        !parser.request().http_1_0) {}

    std::optional<uint64_t> length_bytes() const override { return length_bytes_; }

    Task<Result<std::string_view>> next() override {
        if (continue_due_) {
            continue_due_ = false;
            if (!co_await connection_.write(kContinue, {})) co_return client_left();
        }
        while (true) {
            piece_.clear();
            piece_.swap(parser_.body());
            if (!piece_.empty() || parser_.state() == HttpParser::State::done) co_return std::string_view(piece_);
            if (parser_.state() == HttpParser::State::failed) {
                co_return Status(Code::invalid_argument, parser_.refusal().message).with_name("bad_request");
            }
            if (feed()) continue;
            if (connection_.in_.view().size() > kUnparsedMaxBytes) {
                co_return Status(Code::invalid_argument, "A chunk of the body has no end to its header.")
                    .with_name("bad_request");
            }
            switch (co_await connection_.read_more(kBodyReadBytes, connection_.limits_.body_idle_max_ms)) {
                case Read::ok:
                    break;
                case Read::closed:
                    co_return client_left();
                case Read::timeout:
                    co_return Status(Code::timeout, "The request's body stalled.").with_name("request_timeout");
            }
        }
    }

    Task<Result<std::string>> read_all(size_t max_bytes) override {
        const auto too_large = [max_bytes] {
            return Status(Code::resource_exhausted,
                          "The request's body is larger than " + std::to_string(max_bytes) + " bytes.")
                .with_name("body_too_large");
        };
        if (length_bytes_ && *length_bytes_ > max_bytes) co_return too_large();
        std::string all;
        while (true) {
            auto piece = co_await next();
            if (!piece.ok()) co_return piece.status();
            if (piece->empty()) co_return all;
            if (piece->size() > max_bytes - all.size()) co_return too_large();
            all.append(*piece);
        }
    }

    // Throws away what has been read already; true when that was the rest of the body.
    bool discard_buffered() {
        if (continue_due_) return false;
        do {
            parser_.body().clear();
        } while (feed());
        return parser_.state() == HttpParser::State::done;
    }

private:
    // Lets the parser go on with what is in the buffer; false when it needs more.
    bool feed() {
        if (parser_.state() != HttpParser::State::body || connection_.in_.empty()) return false;
        const size_t used_bytes = parser_.feed(connection_.in_.view());
        connection_.in_.consume(used_bytes);
        return used_bytes > 0 || parser_.state() != HttpParser::State::body;
    }

    HttpConnection &connection_;
    HttpParser &parser_;
    const std::optional<uint64_t> length_bytes_;
    bool continue_due_;
    std::string piece_;
};

HttpConnection::HttpConnection(asio::ip::tcp::socket socket, HttpHandler &handler, const Clock &clock, obs::Log &log,
                               const HttpLimits &limits)
    : socket_(std::move(socket)), handler_(handler), clock_(clock), log_(log), limits_(limits) {
    boost::system::error_code ec;
    const auto remote = socket_.remote_endpoint(ec);
    if (!ec) peer_ = remote.address().to_string() + ":" + std::to_string(remote.port());
    socket_.set_option(asio::ip::tcp::no_delay(true), ec);
    socket_.set_option(asio::socket_base::keep_alive(true), ec);
    socket_.non_blocking(true, ec);
}

Task<void> HttpConnection::run() {
    while (!draining_ && !cut_) {
        idle_ = in_.empty();
        if (idle_ && co_await read_more(kHeadReadBytes, limits_.keep_alive_max_ms) != Read::ok) break;
        idle_ = false;
        HttpParser parser(limits_.head_max_bytes, limits_.target_max_bytes);
        if (!co_await read_head(parser)) break;
        if (!co_await serve(parser)) break;
    }
    boost::system::error_code ec;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ec);
    socket_.close(ec);
}

Task<HttpConnection::Read> HttpConnection::read_more(size_t most_bytes, int64_t idle_max_ms, bool absolute) {
    if (cut_) co_return Read::closed;
    if (!absolute) set_deadline(idle_max_ms);
    char *room = in_.prepare(most_bytes);
    const auto [ec, read_bytes] = co_await socket_.async_read_some(asio::buffer(room, most_bytes), kAwait);
    in_.commit(read_bytes);
    if (!absolute || ec) set_deadline(0);
    // The sweep may come when the read has just ended by itself; the time is up all the same.
    if (std::exchange(expired_, false) && (ec || absolute)) co_return Read::timeout;
    co_return ec ? Read::closed : Read::ok;
}

// Reads up to the end of the head. False: the connection is over.
Task<bool> HttpConnection::read_head(HttpParser &parser) {
    set_deadline(limits_.head_max_ms);
    while (true) {
        // Old clients send an empty line after a body.
        while (in_.view().starts_with("\r\n")) in_.consume(2);
        in_.consume(parser.feed(in_.view()));
        if (parser.state() != HttpParser::State::head) break;
        const Read read = co_await read_more(kHeadReadBytes, 0, true);
        if (read == Read::closed) co_return false;
        if (read == Read::timeout) {
            co_await refuse({408, "request_timeout", "The request's header did not arrive in time."});
            co_return false;
        }
    }
    set_deadline(0);
    if (parser.state() == HttpParser::State::failed) {
        co_await refuse(parser.refusal());
        co_return false;
    }
    co_return true;
}

// Answers one request. False: the connection is over.
Task<bool> HttpConnection::serve(HttpParser &parser) {
    Body body(*this, parser);
    HttpRequest request = parser.take_request();
    request.peer = peer_;
    const bool head_only = request.method == "HEAD";
    const bool http_1_0 = request.http_1_0;
    HttpResponse response = co_await call_handler(std::move(request), body);
    const bool body_read = body.discard_buffered();
    const bool keep_alive = parser.keep_alive() && body_read && !response.close && !draining_;
    if (!co_await send(response, head_only, http_1_0, keep_alive)) co_return false;
    if (!keep_alive && (!body_read || !in_.empty())) co_await linger();
    co_return keep_alive;
}

Task<HttpResponse> HttpConnection::call_handler(HttpRequest request, HttpBody &body) {
    std::string what;
    try {
        co_return co_await handler_.handle(std::move(request), body);
    } catch (const std::exception &error) {
        what = error.what();
    }
    log_.error("http_handler_threw", {{"peer", peer_}, {"what", what}});
    co_return handler_.refuse({500, "internal_error", "The server failed to handle the request."});
}

// Answers a request that can't be handled and ends the connection.
Task<bool> HttpConnection::refuse(const HttpRefusal &refusal) {
    HttpResponse response = handler_.refuse(refusal);
    const bool sent = co_await send(response, false, false, false);
    if (sent) co_await linger();
    co_return sent;
}

std::string HttpConnection::format_head(const HttpResponse &response, std::string_view length_field, bool http_1_0,
                                        bool keep_alive) {
    std::string head;
    head.reserve(384);
    head.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ").append(http_reason(response.status));
    head.append("\r\nDate: ").append(http_date(clock_.wall_us())).append("\r\n").append(length_field);
    for (const auto &[name, value] : response.headers) head.append(name).append(": ").append(value).append("\r\n");
    if (!keep_alive) {
        head.append("Connection: close\r\n");
    } else if (http_1_0) {
        head.append("Connection: keep-alive\r\n");
    }
    head.append("\r\n");
    return head;
}

Task<bool> HttpConnection::send(HttpResponse &response, bool head_only, bool http_1_0, bool keep_alive) {
    if (response.source && http_1_0) {
        // Without chunks the end of a body is the end of the connection: a cut-off result would look like a whole one.
        response = handler_.refuse({505, "http_version_not_supported", "A streamed response needs HTTP/1.1."});
    }
    if (response.source) {
        std::string head = format_head(response, "Transfer-Encoding: chunked\r\n", http_1_0, keep_alive);
        if (head_only) co_return co_await write(head, {});
        co_return co_await send_stream(response, std::move(head));
    }
    std::string length_field;
    if (response.status != 204) length_field = "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
    const std::string head = format_head(response, length_field, http_1_0, keep_alive);
    const bool has_body = !head_only && response.status != 204;
    co_return co_await write(head, has_body ? std::string_view(response.body) : std::string_view());
}

Task<bool> HttpConnection::send_stream(HttpResponse &response, std::string head) {
    const std::shared_ptr<HttpBodySource> source = std::move(response.source);
    watch_for_leaving(source);
    std::string prefix = std::move(head);
    bool whole = false;
    while (true) {
        auto piece = co_await source->next();
        if (!piece.ok()) {
            log_.warn("http_stream_cut", {{"peer", peer_}, {"error", piece.status().to_string()}});
            break;
        }
        if (!piece->has_value()) {
            whole = co_await write(prefix, "0\r\n\r\n");
            break;
        }
        std::string &bytes = **piece;
        if (bytes.empty()) continue;
        prefix.append(hex_size(bytes.size())).append("\r\n");
        if (!co_await write(prefix, bytes)) break;
        prefix = "\r\n";
    }
    boost::system::error_code ec;
    socket_.cancel(ec);  // the watch
    co_return whole;
}

// A client that leaves while the source is busy would be noticed only at the next write.
void HttpConnection::watch_for_leaving(const std::shared_ptr<HttpBodySource> &source) {
    auto on_readable = [self = shared_from_this(),
                        watched = std::weak_ptr<HttpBodySource>(source)](const boost::system::error_code &ec) {
        if (ec) return;
        char byte;
        const auto got = ::recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        const bool left = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
        if (const auto live = watched.lock(); live && left) live->cancel();
    };
    socket_.async_wait(asio::socket_base::wait_read, std::move(on_readable));
}

// Writes both. The socket is tried first: most responses fit its buffer and cost no turn of the loop.
Task<bool> HttpConnection::write(std::string_view head, std::string_view body) {
    while (!head.empty() || !body.empty()) {
        if (cut_) co_return false;
        const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head.data(), head.size()),
                                                           asio::buffer(body.data(), body.size())};
        boost::system::error_code ec;
        const size_t written_bytes = socket_.write_some(buffers, ec);
        const size_t of_head = std::min(written_bytes, head.size());
        head.remove_prefix(of_head);
        body.remove_prefix(written_bytes - of_head);
        if (!ec) continue;
        if (ec != asio::error::would_block && ec != asio::error::try_again) co_return false;
        set_deadline(limits_.write_idle_max_ms);
        const auto [wait_ec] = co_await socket_.async_wait(asio::socket_base::wait_write, kAwait);
        set_deadline(0);
        if (wait_ec) co_return false;
        expired_ = false;
    }
    co_return true;
}

// Reads on for a while, so that a client that is still sending gets to see the response instead of a reset.
Task<void> HttpConnection::linger() {
    boost::system::error_code ec;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ec);
    const int64_t end_ms = clock_.monotonic_ms() + limits_.linger_max_ms;
    for (uint64_t read_bytes = 0; read_bytes < limits_.linger_max_bytes && !cut_;) {
        const int64_t left_ms = end_ms - clock_.monotonic_ms();
        if (left_ms <= 0) break;
        set_deadline(std::min(left_ms, limits_.linger_idle_max_ms));
        const auto [wait_ec] = co_await socket_.async_wait(asio::socket_base::wait_read, kAwait);
        if (wait_ec || std::exchange(expired_, false)) break;
        // Thrown away by the kernel, without a copy.
        const ssize_t got = ::recv(socket_.native_handle(), nullptr, kLingerReadBytes, MSG_TRUNC | MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) break;
        if (got > 0) read_bytes += static_cast<uint64_t>(got);
    }
    set_deadline(0);
}

void HttpConnection::sweep(int64_t now_ms) {
    if (deadline_ms_ == 0 || now_ms < deadline_ms_) return;
    deadline_ms_ = 0;
    expired_ = true;
    boost::system::error_code ec;
    socket_.cancel(ec);
}

void HttpConnection::drain() {
    draining_ = true;
    if (!idle_) return;
    boost::system::error_code ec;
    socket_.cancel(ec);
}

void HttpConnection::cut() {
    if (cut_) return;
    cut_ = true;
    boost::system::error_code ec;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ec);
    socket_.cancel(ec);
    cancellation_.emit(asio::cancellation_type::terminal);
}

}  // namespace roost::net
