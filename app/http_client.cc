#include "app/http_client.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <regex>

namespace roost::app {
namespace {

constexpr int64_t kConnect_ms = 5000;
constexpr size_t kChunkBytes = 256 * 1024;

Status no_answer(const std::string &url, httplib::Error error, bool stopped) {
    if (stopped || error == httplib::Error::Canceled) return Status(Code::cancelled, "interrupted");
    switch (error) {
        case httplib::Error::Connection:
        case httplib::Error::ConnectionTimeout:
            return Status(Code::unavailable, "no answer from " + url)
                .with_hint("is the pool running? start one with `roost up`, or name another with --url");
        case httplib::Error::Read:
            return Status(Code::unavailable, "the connection to " + url + " broke, or the answer took too long");
        case httplib::Error::Write:
            return Status(Code::unavailable, url + " closed the connection while the request was being sent");
        case httplib::Error::SSLConnection:
        case httplib::Error::SSLLoadingCerts:
        case httplib::Error::SSLServerVerification:
            return Status(Code::unavailable, "no trusted TLS connection to " + url + ": " + httplib::to_string(error));
        default:
            return Status(Code::unavailable, "the exchange with " + url + " failed: " + httplib::to_string(error));
    }
}

std::chrono::milliseconds ms(int64_t value) { return std::chrono::milliseconds(value); }

}  // namespace

struct HttpClient::Impl {
    explicit Impl(const std::string &url) : client(url) {}
    httplib::Client client;
    std::atomic<bool> stopped{false};

    Result<HttpResponse> answer(const std::string &url, const httplib::Result &result) {
        const bool was_stopped = stopped.exchange(false);
        if (!result) return no_answer(url, result.error(), was_stopped);
        return HttpResponse{result->status, result->body};
    }
};

HttpClient::HttpClient(std::string url, std::unique_ptr<Impl> impl) : url_(std::move(url)), impl_(std::move(impl)) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::make(const std::string &url, const std::string &token) {
    std::string base = url;
    while (base.ends_with('/')) base.pop_back();
    static const std::regex kUrl(R"(https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?)");
    if (!std::regex_match(base, kUrl)) {
        return Status(Code::invalid_argument, "'" + url + "' is no address of a pool")
            .with_hint("use http://HOST:PORT");
    }
    auto impl = std::make_unique<Impl>(base);
    httplib::Client &client = impl->client;
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
    client.set_url_encode(false);
    client.set_connection_timeout(ms(kConnect_ms));
    if (!token.empty()) client.set_bearer_token_auth(token);
    return std::unique_ptr<HttpClient>(new HttpClient(std::move(base), std::move(impl)));
}

Result<HttpResponse> HttpClient::get(const std::string &path, int64_t timeout_ms) {
    impl_->client.set_read_timeout(ms(timeout_ms));
    return impl_->answer(url_, impl_->client.Get(path));
}

Result<HttpResponse> HttpClient::post(const std::string &path, const std::string &json, int64_t timeout_ms) {
    impl_->client.set_read_timeout(ms(timeout_ms));
    impl_->client.set_write_timeout(ms(timeout_ms));
    return impl_->answer(url_, impl_->client.Post(path, json, "application/json"));
}

Result<HttpResponse> HttpClient::del(const std::string &path, int64_t timeout_ms) {
    impl_->client.set_read_timeout(ms(timeout_ms));
    return impl_->answer(url_, impl_->client.Delete(path));
}

Result<HttpResponse> HttpClient::put_file(const std::string &path, const std::string &file_path, uint64_t size_bytes,
                                          const std::function<bool(uint64_t sent_bytes)> &sent, int64_t stall_ms) {
    std::ifstream file(file_path, std::ios::binary);
    if (!file) return Status(Code::invalid_argument, "could not read " + file_path);
    std::vector<char> chunk(kChunkBytes);
    bool shrank = false, given_up = false;
    const auto provide = [&](size_t offset, size_t left_bytes, httplib::DataSink &sink) {
        if (!sent(offset)) return !(given_up = true);
        file.read(chunk.data(), static_cast<std::streamsize>(std::min(chunk.size(), left_bytes)));
        if (file.gcount() <= 0) return !(shrank = true);
        return sink.write(chunk.data(), static_cast<size_t>(file.gcount()));
    };
    impl_->client.set_read_timeout(ms(stall_ms));
    impl_->client.set_write_timeout(ms(stall_ms));
    const httplib::Result result = size_bytes == 0
                                       ? impl_->client.Put(path, std::string(), "application/octet-stream")
                                       : impl_->client.Put(path, size_bytes, provide, "application/octet-stream");
    if (shrank) return Status(Code::invalid_argument, file_path + " became shorter while it was read");
    if (given_up) return Status(Code::cancelled, "interrupted");
    return impl_->answer(url_, result);
}

void HttpClient::stop() {
    impl_->stopped = true;
    impl_->client.stop();
}

std::string url_encode(std::string_view text) {
    static constexpr std::array<char, 16> kHex{'0', '1', '2', '3', '4', '5', '6', '7',
                                               '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'};
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '~';
        if (plain) {
            out += c;
        } else {
            out += '%';
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        }
    }
    return out;
}

}  // namespace roost::app
