// A small blocking Postgres client over a loopback socket, for this folder's tests: it shows each backend message as it
// came.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "front/pg/scram.h"

namespace roost::pg::test {

inline std::string hmac(std::string_view key, std::string_view data) {
    unsigned char out[32];
    unsigned int size = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char *>(data.data()),
         data.size(), out, &size);
    return {reinterpret_cast<const char *>(out), 32};
}

inline std::string sha256(std::string_view data) {
    unsigned char out[32];
    EVP_Digest(data.data(), data.size(), out, nullptr, EVP_sha256(), nullptr);
    return {reinterpret_cast<const char *>(out), 32};
}

inline std::string salted(std::string_view password, std::string_view salt, int iterations) {
    unsigned char out[32];
    PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                      reinterpret_cast<const unsigned char *>(salt.data()), static_cast<int>(salt.size()), iterations,
                      EVP_sha256(), 32, out);
    return {reinterpret_cast<const char *>(out), 32};
}

inline std::string scram_verifier(std::string_view password, std::string_view salt, int iterations) {
    const std::string key = salted(password, salt, iterations);
    return "SCRAM-SHA-256$" + std::to_string(iterations) + ":" + base64_encode(salt) + "$" +
           base64_encode(sha256(hmac(key, "Client Key"))) + ":" + base64_encode(hmac(key, "Server Key"));
}

inline std::string be16(int value) { return {static_cast<char>(value >> 8), static_cast<char>(value)}; }
inline std::string be32(uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
            static_cast<char>(value)};
}
inline uint32_t from_be32(std::string_view bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) value = value << 8 | static_cast<uint8_t>(bytes.at(i));
    return value;
}
inline std::string cstr(std::string_view text) { return std::string(text) + '\0'; }

struct Message {
    char type = 0;
    std::string body;
};

// Everything up to some message, digested.
struct Reply {
    std::string shape;                 // the letters, runs of DataRow folded, ParameterStatus and notices left out
    std::vector<std::string> columns;  // of the last RowDescription
    std::vector<int> formats;
    std::vector<std::vector<std::optional<std::string>>> rows;
    std::vector<std::string> tags;
    std::vector<uint32_t> param_oids;
    std::map<std::string, std::string> parameter_status;
    std::map<char, std::string> error, notice;  // fields of the first error, the last notice
    char status = 0;
    std::string code() const { return error.contains('C') ? error.at('C') : ""; }
    std::string value() const { return rows.empty() || rows[0].empty() ? "(none)" : rows[0][0].value_or("(null)"); }
};

class Client {
public:
    explicit Client(uint16_t port) {
        fd_ = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
        const timeval patience{20, 0};  // a test that hangs fails
        setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
    }
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;
    ~Client() { close(); }

    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    void send_raw(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return;
            bytes.remove_prefix(static_cast<size_t>(sent));
        }
    }
    static std::string packed(char type, std::string_view body) {
        return std::string(1, type) + be32(static_cast<uint32_t>(body.size()) + 4) + std::string(body);
    }
    void send(char type, std::string_view body = {}) { send_raw(packed(type, body)); }

    // nullopt: closed by the server.
    std::optional<Message> recv() {
        if (!need(5)) return std::nullopt;
        const size_t size = from_be32(buffer_.substr(1, 4));
        if (!need(1 + size)) return std::nullopt;
        Message message{buffer_[0], buffer_.substr(5, size - 4)};
        buffer_.erase(0, 1 + size);
        return message;
    }
    std::string recv_raw(size_t size) {
        if (!need(size)) return std::exchange(buffer_, "");
        std::string out = buffer_.substr(0, size);
        buffer_.erase(0, size);
        return out;
    }
    // Waits for the server to close; what it says before does not matter.
    bool is_closed() {
        while (recv()) {
        }
        return closed_;
    }

    static std::string startup(const std::vector<std::pair<std::string, std::string>> &parameters,
                               uint32_t version = 196608) {
        std::string body = be32(version);
        for (const auto &[name, value] : parameters) body += cstr(name) + cstr(value);
        body.push_back('\0');
        return be32(static_cast<uint32_t>(body.size()) + 4) + body;
    }
    // Logs in; the SQLSTATE of the refusal, or "" when ReadyForQuery came.
    std::string login(const std::string &user = "ann", const std::string &password = "secret",
                      std::vector<std::pair<std::string, std::string>> more = {}, uint32_t version = 196608) {
        if (!user.empty()) more.insert(more.begin(), {"user", user});
        send_raw(startup(more, version));
        std::string nonce = "clientnonce", bare = "n=,r=" + nonce;
        while (auto message = recv()) {
            if (message->type == 'R') {
                answer_auth(message->body, password, bare);
            } else if (message->type == 'S') {
                const size_t end = message->body.find('\0');
                parameter_status[message->body.substr(0, end)] =
                    message->body.substr(end + 1, message->body.size() - end - 2);
            } else if (message->type == 'K') {
                key = message->body;
            } else if (message->type == 'v') {
                negotiated = message->body;
            } else if (message->type == 'E') {
                error = fields(message->body);
                return error['C'];
            } else if (message->type == 'Z') {
                return "";
            }
        }
        return "closed";
    }

    Reply until(std::string_view stop = "Z") {
        Reply reply;
        while (auto message = recv()) {
            digest(reply, *message);
            if (stop.find(message->type) != std::string_view::npos) return reply;
        }
        reply.shape += "(closed)";
        return reply;
    }
    Reply query(std::string_view sql) {
        send('Q', cstr(sql));
        return until();
    }

    // The extended protocol: each appends to what flush_out() sends in one piece.
    Client &parse(std::string_view sql, std::string_view name = "", const std::vector<uint32_t> &oids = {}) {
        std::string body = cstr(name) + cstr(sql) + be16(static_cast<int>(oids.size()));
        for (const uint32_t oid : oids) body += be32(oid);
        return add('P', body);
    }
    Client &bind(std::string_view portal = "", std::string_view name = "",
                 const std::vector<std::optional<std::string>> &values = {},
                 const std::vector<int> &result_formats = {}) {
        std::string body = cstr(portal) + cstr(name) + be16(0) + be16(static_cast<int>(values.size()));
        for (const auto &value : values) {
            body += value ? be32(static_cast<uint32_t>(value->size())) + *value : be32(0xffffffff);
        }
        body += be16(static_cast<int>(result_formats.size()));
        for (const int format : result_formats) body += be16(format);
        return add('B', body);
    }
    Client &describe(char kind, std::string_view name = "") { return add('D', std::string(1, kind) + cstr(name)); }
    Client &execute(std::string_view portal = "", uint32_t rows_max = 0) {
        return add('E', cstr(portal) + be32(rows_max));
    }
    Client &close_object(char kind, std::string_view name) { return add('C', std::string(1, kind) + cstr(name)); }
    Client &add(char type, std::string_view body = {}) {
        pending_ += packed(type, body);
        return *this;
    }
    void flush_out() { send_raw(std::exchange(pending_, "")); }
    Reply sync() {
        add('S');
        flush_out();
        return until();
    }
    Reply flush(std::string_view stop) {
        add('H');
        flush_out();
        return until(stop);
    }

    std::map<std::string, std::string> parameter_status;
    std::map<char, std::string> error;
    std::string key, negotiated;

private:
    bool need(size_t size) {
        char piece[65536];
        while (buffer_.size() < size) {
            const ssize_t got = ::recv(fd_, piece, sizeof(piece), 0);
            if (got <= 0) {
                closed_ = got == 0 || errno == ECONNRESET;
                EXPECT_TRUE(closed_) << "no answer in time";
                return false;
            }
            buffer_.append(piece, static_cast<size_t>(got));
        }
        return true;
    }

    void answer_auth(const std::string &body, const std::string &password, const std::string &bare) {
        const uint32_t kind = from_be32(body);
        if (kind == 10) {
            const std::string first = "n,," + bare;
            send('p', cstr("SCRAM-SHA-256") + be32(static_cast<uint32_t>(first.size())) + first);
        } else if (kind == 11) {
            const std::string server_first = body.substr(4);
            const size_t salt_at = server_first.find(",s="), count_at = server_first.find(",i=");
            const std::string nonce = server_first.substr(2, salt_at - 2);
            const std::string salt = *base64_decode(server_first.substr(salt_at + 3, count_at - salt_at - 3));
            server_salt = salt;
            const std::string key = salted(password, salt, std::stoi(server_first.substr(count_at + 3)));
            const std::string without_proof = "c=biws,r=" + nonce;
            const std::string auth_message = bare + "," + server_first + "," + without_proof;
            const std::string client_key = hmac(key, "Client Key");
            std::string proof = hmac(sha256(client_key), auth_message);
            for (size_t i = 0; i < proof.size(); i++) proof[i] = static_cast<char>(proof[i] ^ client_key[i]);
            signature_ = "v=" + base64_encode(hmac(hmac(key, "Server Key"), auth_message));
            send('p', without_proof + ",p=" + base64_encode(proof));
        } else if (kind == 12) {
            EXPECT_EQ(body.substr(4), signature_) << "the server's signature is wrong";
        }
    }

    static std::map<char, std::string> fields(const std::string &body) {
        std::map<char, std::string> out;
        for (size_t at = 0; at < body.size() && body[at] != '\0';) {
            const size_t end = body.find('\0', at);
            out[body[at]] = body.substr(at + 1, end - at - 1);
            at = end + 1;
        }
        return out;
    }

    static void digest(Reply &reply, const Message &message) {
        const std::string &body = message.body;
        const auto int16_at = [&](size_t at) {
            return static_cast<uint8_t>(body.at(at)) << 8 | static_cast<uint8_t>(body.at(at + 1));
        };
        switch (message.type) {
            case 'T': {
                reply.columns.clear();
                reply.formats.clear();
                size_t at = 2;
                for (int i = 0; i < int16_at(0); i++) {
                    const size_t end = body.find('\0', at);
                    reply.columns.push_back(body.substr(at, end - at));
                    reply.formats.push_back(int16_at(end + 17));
                    at = end + 19;
                }
                break;
            }
            case 'D': {
                auto &row = reply.rows.emplace_back();
                size_t at = 2;
                for (int i = 0; i < int16_at(0); i++) {
                    const uint32_t size = from_be32(std::string_view(body).substr(at));
                    at += 4;
                    if (size == 0xffffffff) {
                        row.emplace_back();
                    } else {
                        row.emplace_back(body.substr(at, size));
                        at += size;
                    }
                }
                EXPECT_EQ(at, body.size());
                break;
            }
            case 'C':
                reply.tags.push_back(body.substr(0, body.size() - 1));
                break;
            case 'E':
                if (reply.error.empty()) reply.error = fields(body);
                break;
            case 'N':
                reply.notice = fields(body);
                return;
            case 'S': {
                const size_t end = body.find('\0');
                reply.parameter_status[body.substr(0, end)] = body.substr(end + 1, body.size() - end - 2);
                return;
            }
            case 't':
                for (int i = 0; i < int16_at(0); i++) {
                    reply.param_oids.push_back(
                        from_be32(std::string_view(body).substr(2 + 4 * static_cast<size_t>(i))));
                }
                break;
            case 'Z':
                reply.status = body[0];
                break;
            default:
                break;
        }
        if (message.type != 'D' || !reply.shape.ends_with('D')) reply.shape.push_back(message.type);
    }

public:
    std::string server_salt;

private:
    int fd_ = -1;
    bool closed_ = false;
    std::string buffer_, pending_, signature_;
};

}  // namespace roost::pg::test
