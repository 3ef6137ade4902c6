// One accepted connection of HttpServer; inside of net/ only.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <functional>

#include "net/http_server.h"

namespace roost::net {

// Bytes read from the socket and not yet used.
class ReadBuffer {
public:
    std::string_view view() const { return std::string_view(bytes_).substr(begin_); }
    bool empty() const { return begin_ == bytes_.size(); }
    void consume(size_t size_bytes);
    // Room for `size_bytes` more behind the present content.
    char *prepare(size_t size_bytes);
    void commit(size_t size_bytes) { bytes_.resize(end_ + size_bytes); }

private:
    std::string bytes_;
    size_t begin_ = 0;
    size_t end_ = 0;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
public:
    HttpConnection(asio::ip::tcp::socket socket, HttpHandler &handler, const Clock &clock, obs::Log &log,
                   const HttpLimits &limits);

    // Serves requests until the connection ends.
    Task<void> run();
    // Cuts off what has passed its deadline; called by the sweep.
    void sweep(int64_t now_ms);
    // No request after the running one; an idle connection ends now.
    void drain();
    // Ends now: the handler is cancelled, the socket closed.
    void cut();
    asio::cancellation_signal &cancellation() { return cancellation_; }

private:
    class Body;
    enum class Read : uint8_t { ok, closed, timeout };

    Task<Read> read_more(size_t most_bytes, int64_t idle_max_ms, bool absolute = false);
    Task<bool> read_head(HttpParser &parser);
    Task<bool> serve(HttpParser &parser);
    Task<HttpResponse> call_handler(HttpRequest request, HttpBody &body);
    Task<bool> refuse(const HttpRefusal &refusal);
    Task<bool> write(std::string_view head, std::string_view body);
    Task<bool> send(HttpResponse &response, bool head_only, bool http_1_0, bool keep_alive);
    Task<bool> send_stream(HttpResponse &response, std::string head);
    std::string format_head(const HttpResponse &response, std::string_view length_field, bool http_1_0,
                            bool keep_alive);
    Task<void> linger();
    void watch_for_leaving(const std::shared_ptr<HttpBodySource> &source);
    void set_deadline(int64_t in_ms) { deadline_ms_ = in_ms == 0 ? 0 : clock_.monotonic_ms() + in_ms; }

    asio::ip::tcp::socket socket_;
    HttpHandler &handler_;
    const Clock &clock_;
    obs::Log &log_;
    const HttpLimits &limits_;
    std::string peer_;
    ReadBuffer in_;
    asio::cancellation_signal cancellation_;
    int64_t deadline_ms_ = 0;  // of the socket operation under way; 0: none
    bool expired_ = false;     // the sweep has cancelled it
    bool draining_ = false;
    bool idle_ = true;  // between two requests
    bool cut_ = false;
};

}  // namespace roost::net
