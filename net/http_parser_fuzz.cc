// Bytes of a connection to the HTTP server's parser: requests one after the other, cut into pieces as a socket might.
// The first byte is the size of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http_parser.h"

namespace {

using roost::net::HttpParser;
using State = HttpParser::State;

// What a request came to, for comparing two ways of cutting the same bytes.
std::string read_all(std::string_view bytes, size_t piece_bytes) {
    std::string seen, pending;
    for (int requests = 0; requests < 64; ++requests) {
        HttpParser parser(16 * 1024, 8 * 1024);
        std::string body;
        while (parser.state() == State::head || parser.state() == State::body) {
            const size_t used_bytes = parser.feed(pending);
            if (used_bytes > pending.size()) std::abort();
            pending.erase(0, used_bytes);
            body += parser.body();
            parser.body().clear();
            if (used_bytes > 0) continue;
            if (bytes.empty() || pending.size() > 64 * 1024) break;
            const size_t take_bytes = std::min(piece_bytes, bytes.size());
            pending += bytes.substr(0, take_bytes);
            bytes.remove_prefix(take_bytes);
        }
        if (parser.state() != State::done) {
            if (parser.state() == State::failed && parser.refusal().status < 400) std::abort();
            return seen + (parser.state() == State::failed ? "failed" : "unfinished");
        }
        const auto &request = parser.request();
        seen +=
            request.method + " " + request.target + " " + std::to_string(request.headers.size()) + "\n" + body + "\n";
        if (!parser.keep_alive()) return seen;
    }
    return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size_bytes) {
    if (size_bytes == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char *>(data) + 1, size_bytes - 1);
    const std::string whole = read_all(bytes, bytes.size() + 1);
    // However the bytes arrive, the same requests come out; only how far a broken one got may differ.
    if (!whole.ends_with("failed") && whole != read_all(bytes, data[0] + size_t{1})) std::abort();
    return 0;
}
