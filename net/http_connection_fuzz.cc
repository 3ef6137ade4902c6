// A whole HTTP connection with a hostile client: requests cut anywhere, with time that passes and ends in between.
// Steps, each a letter and, where there is one, its bytes behind their length (u8, or 255 and u16):
//   !   bytes as they are                              .   what was sent so far arrives
//   g   a request (u8: its method and target)          t   2^n ms pass (u8 n) and the deadlines are looked at
//   q   the server drains   u   it cuts the connection off   w   the client writes no more   z   the client is gone
// Whatever the client does: one answer a request, each of a form that a client can read, nothing behind the last one,
// and when the client has gone nothing of it is left.

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <charconv>
#include <cstdint>
#include <stdexcept>

#include "net/fuzz_client.h"
#include "net/http_connection.h"

namespace roost::net {
namespace {

using test::require;

class Pieces final : public HttpBodySource {
public:
    Pieces(size_t pieces, bool fails) : pieces_(pieces), fails_(fails) {}
    Task<Result<std::optional<std::string>>> next() override {
        if (pieces_-- > 0) co_return std::optional(std::string(pieces_ * 7, 'p'));
        if (fails_) co_return Status(Code::internal, "as asked");
        co_return std::optional<std::string>();
    }
    void cancel() override {}

private:
    size_t pieces_;
    const bool fails_;
};

class Handler final : public HttpHandler {
public:
    explicit Handler(asio::any_io_executor executor) : never_(std::move(executor)) {}

    Task<HttpResponse> handle(HttpRequest request, HttpBody &body) override {
        methods.push_back(request.method);
        HttpResponse response;
        if (request.target == "/echo") {
            auto all = co_await body.read_all(4096);
            if (all.ok()) {
                response.body = std::move(*all);
            } else {
                response.status = 400;
            }
        } else if (request.target == "/count") {
            size_t size_bytes = 0;
            while (true) {
                const auto piece = co_await body.next();
                if (!piece.ok() || piece->empty()) break;
                require(piece->size() <= 64 * 1024, "a piece of a body is too large");
                size_bytes += piece->size();
            }
            const auto length_bytes = body.length_bytes();
            require(!length_bytes || size_bytes <= *length_bytes, "a body is longer than it said");
            response.body = std::to_string(size_bytes);
        } else if (request.target == "/stream" || request.target == "/cut") {
            response.source = std::make_unique<Pieces>(5, request.target == "/cut");
            streamed_cut = streamed_cut || request.target == "/cut";
        } else if (request.target == "/throw") {
            throw std::runtime_error("as asked");
        } else if (request.target == "/wait") {
            waits = true;
            co_await never_.wait();
        } else if (request.target == "/none") {
            response.status = 204;
        } else {
            response.close = request.target == "/close";
            response.body = request.method;
        }
        co_return response;
    }
    HttpResponse refuse(const HttpRefusal &refusal) override {
        HttpResponse response;
        response.status = refusal.status;
        response.body = refusal.message;
        return response;
    }

    std::vector<std::string> methods;  // of the requests handled
    bool waits = false, streamed_cut = false;

private:
    Event never_;
};

// Reads answers as a client would.
class Answers {
public:
    // Takes whole answers off `in`. REQUIRES: it begins with one, as far as it has come.
    void take(std::string &in, const std::vector<std::string> &methods) {
        while (const size_t size_bytes = whole_bytes(in, methods)) {
            require(!last_, "an answer behind the last one");
            if (status(in) != 100) count_++;
            if (head(in).find("\r\nConnection: close\r\n") != std::string_view::npos) last_ = true;
            in.erase(0, size_bytes);
        }
    }
    size_t count() const { return count_; }
    bool last() const { return last_; }

private:
    static std::string_view head(std::string_view in) { return in.substr(0, in.find("\r\n\r\n") + 2); }
    static int status(std::string_view in) {
        require(in.starts_with("HTTP/1.1 ") && in.size() > 12, "not the first line of an answer");
        int status = 0;
        std::from_chars(in.data() + 9, in.data() + 12, status);
        require(status >= 100 && status < 600, "not a status");
        return status;
    }
    size_t whole_bytes(std::string_view in, const std::vector<std::string> &methods) const {
        const size_t head_end = in.find("\r\n\r\n");
        if (head_end == std::string_view::npos) return 0;
        const size_t head_bytes = head_end + 4;
        const int code = status(in);
        const bool head_only = count_ < methods.size() && methods[count_] == "HEAD";
        if (code == 100 || code == 204 || head_only) return head_bytes;
        if (head(in).find("\r\nTransfer-Encoding: chunked\r\n") != std::string_view::npos) {
            const size_t end = in.find("0\r\n\r\n", head_bytes);  // no piece holds this
            return end == std::string_view::npos ? 0 : end + 5;
        }
        const size_t at = head(in).find("\r\nContent-Length: ");
        require(at != std::string_view::npos, "an answer of unknown length");
        size_t body_bytes = 0;
        std::from_chars(in.data() + at + 18, in.data() + head_end, body_bytes);
        return in.size() < head_bytes + body_bytes ? 0 : head_bytes + body_bytes;
    }

    size_t count_ = 0;
    bool last_ = false;
};

class Play final : public test::FuzzClient {
public:
    Play() : FuzzClient(loop_) {
        connection_ = std::make_shared<HttpConnection>(server_socket(), handler_, clock_, *log_, limits_);
        asio::co_spawn(loop_, connection_->run(),
                       asio::bind_cancellation_slot(connection_->cancellation().slot(),
                                                    [this](const std::exception_ptr &) { ended_ = true; }));
    }
    ~Play() override {
        if (!handler_.streamed_cut && !has_left() && !cut_) check_answers();
        connection_->cut();
        leave();
        run();
        require(ended_ && connection_.use_count() == 1, "a connection outlives its client");
    }

    void pass(uint8_t exponent) {
        clock_.advance_us(int64_t{1000} << exponent % 24);
        connection_->sweep(clock_.monotonic_ms());
        run();
    }
    void drain() {
        connection_->drain();
        run();
    }
    void cut() {
        cut_ = true;
        connection_->cut();
        run();
    }

private:
    void on_bytes(std::string_view bytes) override {
        unread_ += bytes;
        if (!handler_.streamed_cut) answers_.take(unread_, handler_.methods);
    }
    void check_answers() const {
        require(handler_.waits || unread_.empty(), "half an answer");
        require(answers_.count() <= handler_.methods.size() + 1, "an answer too many");
        // The last one may still wait for its body, or for ever.
        require(ended_ || answers_.count() + 1 >= handler_.methods.size(), "a request without an answer");
    }

    static asio::io_context loop_;
    ManualClock clock_;
    std::unique_ptr<obs::Log> log_ = obs::make_null_log();
    const HttpLimits limits_{.linger_max_bytes = 256 * 1024};
    Handler handler_{loop_.get_executor()};
    std::shared_ptr<HttpConnection> connection_;
    std::string unread_;
    Answers answers_;
    bool ended_ = false, cut_ = false;
};

asio::io_context Play::loop_{1};

std::string request(uint8_t which) {
    constexpr const char *kMethods[] = {"GET", "POST", "HEAD", "PUT"};
    constexpr const char *kTargets[] = {"/echo", "/count", "/stream", "/cut",  "/throw",
                                        "/wait", "/none",  "/close",  "/other"};
    constexpr const char *kBodies[] = {"\r\n", "Content-Length: 5\r\n\r\nhello",
                                       "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                                       "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"};
    return std::string(kMethods[which % 4]) + " " + kTargets[which / 4 % 9] + " HTTP/1.1\r\nHost: a\r\n" +
           kBodies[which / 36 % 4];
}

void run(std::string_view input) {
    Play play;
    Reader in(input);
    while (in.remaining() > 0) {
        const char step = static_cast<char>(in.get<uint8_t>());
        if (test::play_common_step(play, step, in)) continue;
        switch (step) {
            case '!':
                play.send(test::take_bytes(in));
                break;
            case 'g':
                play.send(request(in.get<uint8_t>()));
                break;
            default:
                break;
        }
    }
    play.deliver();
}

}  // namespace
}  // namespace roost::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    roost::net::run({reinterpret_cast<const char *>(data), size});
    return 0;
}
