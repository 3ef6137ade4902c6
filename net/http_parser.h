// One HTTP/1 request, read from bytes as they come: the adapter of Boost.Beast's parser, the only file with its
// headers. Knows no sockets, so that it is tested and fuzzed on byte strings alone. Not thread-safe; one object a
// request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_message.h"

namespace roost::net {

// Why a request was refused before anybody looked at it.
struct HttpRefusal {
    int status = 400;
    std::string code = "bad_request";
    std::string message;
};

class HttpParser {
public:
    enum class State : uint8_t { head, body, done, failed };

    HttpParser(size_t head_max_bytes, size_t target_max_bytes);
    ~HttpParser();
    HttpParser(const HttpParser &) = delete;
    HttpParser &operator=(const HttpParser &) = delete;

    // Takes what it can of `data` and says how many bytes that were. What is left must be at the start of the next
    // call's data (with more behind it, or nothing will come of it). Stops at the end of the head and at the end of the
    // request.
    size_t feed(std::string_view data);
    State state() const;
    // REQUIRES: state() is body or done.
    const HttpRequest &request() const;
    HttpRequest take_request();
    bool keep_alive() const;
    bool expects_continue() const;
    std::optional<uint64_t> content_length() const;
    // What feed() has decoded of the body so far; take it away between calls to keep it small.
    std::string &body();
    // REQUIRES: state() is failed.
    const HttpRefusal &refusal() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace roost::net
