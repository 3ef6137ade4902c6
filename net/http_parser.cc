#include "net/http_parser.h"

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>

namespace roost::net {
namespace {

namespace http = boost::beast::http;

// Appends to a string and never reserves what a Content-Length merely claims.
struct AppendBody {
    using value_type = std::string;

    class reader {
    public:
        template <bool is_request, class Fields>
        reader(http::header<is_request, Fields> &, value_type &body) : body_(body) {}
        void init(const boost::optional<std::uint64_t> &, boost::beast::error_code &ec) { ec = {}; }
        template <class Buffers>
        std::size_t put(const Buffers &buffers, boost::beast::error_code &ec) {
            ec = {};
            std::size_t taken_bytes = 0;
            for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
                body_.append(static_cast<const char *>(buffer.data()), buffer.size());
                taken_bytes += buffer.size();
            }
            return taken_bytes;
        }
        void finish(boost::beast::error_code &ec) { ec = {}; }

    private:
        value_type &body_;
    };
};

HttpRefusal describe(const boost::beast::error_code &ec) {
    if (ec == http::error::header_limit || ec == http::error::buffer_overflow) {
        return {431, "header_too_large", "The request's header is larger than the server takes."};
    }
    if (ec == http::error::bad_version) return {505, "http_version_not_supported", "The server speaks HTTP/1.1."};
    return {400, "bad_request", "Not an HTTP request: " + ec.message() + "."};
}

}  // namespace

struct HttpParser::Impl {
    http::request_parser<AppendBody> parser;
    size_t target_max_bytes = 0;
    State state = State::head;
    HttpRequest request;
    HttpRefusal refusal;

    void fail(HttpRefusal why) {
        refusal = std::move(why);
        state = State::failed;
    }

    void head_done() {
        const auto &message = parser.get();
        if (message.target().size() > target_max_bytes) {
            return fail({414, "target_too_long", "The request's target is longer than the server takes."});
        }
        request.method = message.method_string();
        request.target = message.target();
        request.http_1_0 = message.version() < 11;
        for (const auto &field : message) request.headers.emplace_back(field.name_string(), field.value());
        // A request that says its length in two ways may be read as two different ones by a proxy in front of us.
        if (parser.chunked() && message.count(http::field::content_length) > 0) {
            return fail({400, "bad_request", "Not an HTTP request: both Content-Length and Transfer-Encoding."});
        }
        state = parser.is_done() ? State::done : State::body;
        parser.eager(true);
    }
};

HttpParser::HttpParser(size_t head_max_bytes, size_t target_max_bytes) : impl_(std::make_unique<Impl>()) {
    impl_->parser.header_limit(static_cast<std::uint32_t>(head_max_bytes));
    impl_->parser.body_limit(boost::none);
    impl_->target_max_bytes = target_max_bytes;
}

HttpParser::~HttpParser() = default;

size_t HttpParser::feed(std::string_view data) {
    size_t used_bytes = 0;
    while (used_bytes < data.size() && (state() == State::head || state() == State::body)) {
        boost::beast::error_code ec;
        const size_t put_bytes =
            impl_->parser.put(boost::asio::buffer(data.data() + used_bytes, data.size() - used_bytes), ec);
        used_bytes += put_bytes;
        if (ec == http::error::need_more) break;
        if (ec) {
            impl_->fail(describe(ec));
            break;
        }
        if (state() == State::head && impl_->parser.is_header_done()) {
            impl_->head_done();
            break;
        }
        if (impl_->parser.is_done()) {
            impl_->state = State::done;
        } else if (put_bytes == 0) {
            break;
        }
    }
    return used_bytes;
}

HttpParser::State HttpParser::state() const { return impl_->state; }
const HttpRequest &HttpParser::request() const { return impl_->request; }
HttpRequest HttpParser::take_request() { return std::move(impl_->request); }
bool HttpParser::keep_alive() const { return impl_->parser.keep_alive(); }

bool HttpParser::expects_continue() const {
    return boost::beast::iequals(impl_->parser.get()[http::field::expect], "100-continue");
}

std::optional<uint64_t> HttpParser::content_length() const {
    const auto length = impl_->parser.content_length();
    if (!length) return std::nullopt;
    return *length;
}

std::string &HttpParser::body() { return impl_->parser.get().body(); }
const HttpRefusal &HttpParser::refusal() const { return impl_->refusal; }

}  // namespace roost::net
