// A blocking HTTP client for tests that says exactly the bytes it is told, broken ones included. Not thread-safe.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_message.h"

namespace roost::net {

class HttpTestClient {
public:
    struct Response {
        int status = 0;
        HttpHeaders headers;
        std::string body;
        bool whole = false;  // the body ended as it should
    };

    explicit HttpTestClient(const std::string &endpoint) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<uint16_t>(std::atoi(endpoint.substr(endpoint.rfind(':') + 1).c_str())));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (::connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0) leave();
    }
    ~HttpTestClient() { leave(); }
    HttpTestClient(const HttpTestClient &) = delete;
    HttpTestClient &operator=(const HttpTestClient &) = delete;

    int fd() const { return fd_; }
    void leave() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    // False when the other end no longer listens.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<size_t>(sent));
        }
        return true;
    }

    // The next response, or none when the connection ends first. Interim (1xx) responses are given as they are.
    std::optional<Response> read(bool head_only = false) {
        size_t head_end;
        while ((head_end = in_.find("\r\n\r\n")) == std::string::npos) {
            if (!read_more()) return std::nullopt;
        }
        Response response = parse_head(in_.substr(0, head_end + 2));
        in_.erase(0, head_end + 4);
        const bool no_body = head_only || response.status < 200 || response.status == 204;
        const std::string *coding = find_header(response.headers, "Transfer-Encoding");
        if (no_body) {
            response.whole = true;
        } else if (coding && *coding == "chunked") {
            read_chunks(response);
        } else if (const std::string *length = find_header(response.headers, "Content-Length")) {
            response.whole = read_bytes(std::strtoull(length->c_str(), nullptr, 10), response.body);
        }
        return response;
    }

    // True when the other end has closed and nothing is left to read.
    bool at_end() { return in_.empty() && !read_more(); }
    // Something to read within `wait_ms`.
    bool readable(int wait_ms) {
        pollfd waiting{fd_, POLLIN, 0};
        return ::poll(&waiting, 1, wait_ms) > 0;
    }

private:
    static Response parse_head(std::string_view head) {
        Response response;
        const size_t first_end = head.find("\r\n");
        response.status = std::atoi(std::string(head.substr(9, 3)).c_str());
        head.remove_prefix(first_end + 2);
        while (!head.empty()) {
            const size_t end = head.find("\r\n");
            const size_t colon = head.find(": ");
            response.headers.emplace_back(head.substr(0, colon), head.substr(colon + 2, end - colon - 2));
            head.remove_prefix(end + 2);
        }
        return response;
    }

    bool read_more() {
        char buffer[64 * 1024];
        const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
        if (got <= 0) return false;
        in_.append(buffer, static_cast<size_t>(got));
        return true;
    }
    bool read_bytes(size_t size_bytes, std::string &out) {
        while (in_.size() < size_bytes) {
            if (!read_more()) return false;
        }
        out.append(in_, 0, size_bytes);
        in_.erase(0, size_bytes);
        return true;
    }
    void read_chunks(Response &response) {
        while (true) {
            size_t line_end;
            while ((line_end = in_.find("\r\n")) == std::string::npos) {
                if (!read_more()) return;
            }
            const size_t size_bytes = std::strtoull(in_.c_str(), nullptr, 16);
            in_.erase(0, line_end + 2);
            std::string crlf;
            if (!read_bytes(size_bytes, response.body) || !read_bytes(2, crlf)) return;
            if (size_bytes > 0) continue;
            response.whole = true;
            return;
        }
    }

    int fd_ = -1;
    std::string in_;
};

}  // namespace roost::net
