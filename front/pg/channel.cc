#include "front/pg/channel.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <cstring>

namespace roost::pg {
namespace {

namespace asio = net::asio;
using boost::system::error_code;

constexpr size_t kReadBytes = 8 * 1024;        // what an idle connection holds
constexpr size_t kGrowMaxBytes = 1024 * 1024;  // one read of a large message
constexpr size_t kKeepMaxBytes = 256 * 1024;   // a larger buffer is given back when it is empty
constexpr size_t kAheadMaxBytes = 64 * 1024;

}  // namespace

Channel::Channel(asio::ip::tcp::socket socket) : socket_(std::move(socket)), watched_(socket_.get_executor()) {
    error_code ignored;  // a socket that already failed says so at the first read
    socket_.non_blocking(true, ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
}

void Channel::consume(size_t size_bytes) {
    begin_ += size_bytes;
    if (begin_ < end_) return;
    begin_ = end_ = 0;
    if (capacity_ <= kKeepMaxBytes) return;
    bytes_.reset();
    capacity_ = 0;
}

char *Channel::prepare(size_t size_bytes) {
    if (capacity_ - end_ >= size_bytes) return bytes_.get() + end_;
    const size_t held = end_ - begin_;
    if (capacity_ - held >= size_bytes && begin_ >= held) {
        if (held > 0) std::memmove(bytes_.get(), bytes_.get() + begin_, held);
    } else {
        const size_t capacity = std::max(held + size_bytes, kReadBytes);
        auto larger = std::make_unique_for_overwrite<char[]>(capacity);
        if (held > 0) std::memcpy(larger.get(), bytes_.get() + begin_, held);
        bytes_ = std::move(larger);
        capacity_ = capacity;
    }
    begin_ = 0;
    end_ = held;
    return bytes_.get() + end_;
}

void Channel::take_ahead() {
    std::memcpy(prepare(ahead_.size()), ahead_.data(), ahead_.size());
    end_ += ahead_.size();
    ahead_.clear();
}

net::Task<bool> Channel::fill(size_t whole_bytes) {
    while (true) {
        if (!ahead_.empty()) {
            take_ahead();
            co_return true;
        }
        if (gone_ || interrupted_) co_return false;
        if (!watching_) break;
        co_await watched_.wait();
    }
    const size_t held = end_ - begin_;
    size_t want = kReadBytes;
    // Doubles with what has come, so that a client that announces much and sends little costs little.
    if (whole_bytes > held + want) want = std::min({whole_bytes - held, std::max(held, want), kGrowMaxBytes});
    // Half of it is room enough: a few bytes left over from the last message are no reason to move the buffer.
    char *to = prepare(want / 2);
    error_code error;
    reading_ = true;
    const size_t size_bytes = co_await socket_.async_read_some(asio::buffer(to, capacity_ - end_),
                                                               asio::redirect_error(asio::use_awaitable, error));
    reading_ = false;
    progress_++;
    end_ += size_bytes;
    if (error && !interrupted_) gone_ = true;
    co_return !error && !interrupted_;
}

net::Task<bool> Channel::flush(std::string_view tail) {
    if (gone_) co_return false;
    std::array<asio::const_buffer, 2> parts{asio::buffer(out_), asio::buffer(tail.data(), tail.size())};
    size_t left = out_.size() + tail.size();
    error_code error;
    while (left > 0 && !error) {
        size_t sent = parts[1].size() == 0 ? socket_.write_some(parts[0], error) : socket_.write_some(parts, error);
        if (error == asio::error::would_block) {
            error.clear();
            writing_ = true;
            sent = co_await socket_.async_write_some(parts, asio::redirect_error(asio::use_awaitable, error));
            writing_ = false;
        }
        progress_++;
        left -= sent;
        const size_t of_first = std::min(sent, parts[0].size());
        parts[0] += of_first;
        parts[1] += sent - of_first;
    }
    out_.clear();
    if (out_.capacity() > kKeepMaxBytes) out_.shrink_to_fit();
    if (error) gone_ = true;
    co_return !error;
}

void Channel::flush_now() {
    if (gone_ || writing_) return;
    error_code ignored;  // the connection ends anyway
    socket_.write_some(asio::buffer(out_), ignored);
    out_.clear();
}

net::Task<bool> Channel::watch() {
    if (watching_ || reading_ || gone_ || interrupted_) co_return gone_;
    watching_ = keep_watching_ = true;
    while (keep_watching_ && !gone_ && !interrupted_ && ahead_.size() < kAheadMaxBytes) {
        std::array<char, 4096> piece;
        error_code error;
        const size_t size_bytes =
            co_await socket_.async_read_some(asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
        progress_++;
        ahead_.append(piece.data(), size_bytes);
        if (error && !interrupted_) gone_ = true;
        watched_.notify();
    }
    watching_ = false;
    watched_.notify();
    co_return gone_;
}

void Channel::interrupt() {
    interrupted_ = true;
    error_code ignored;  // an operation that has already ended needs no cancelling
    // Cancelling would also cut off a message that is being written: then the reader finds out after it.
    if (!writing_) socket_.cancel(ignored);
    watched_.notify();
}

void Channel::close() {
    gone_ = true;
    error_code ignored;  // closing: there is nobody left to tell
    if (socket_.is_open()) {
        // Unread input would turn the close into a reset, which can overtake our last words.
        std::array<char, 4096> waste;
        for (size_t i = 0; i < 256 && socket_.read_some(asio::buffer(waste), ignored) > 0 && !ignored; i++) {
        }
        socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
        socket_.close(ignored);
    }
    watched_.notify();
}

std::string Channel::peer() const {
    boost::system::error_code error;
    const auto endpoint = socket_.remote_endpoint(error);
    if (error) return {};
    const std::string address = endpoint.address().to_string();
    return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port());
}

}  // namespace roost::pg
