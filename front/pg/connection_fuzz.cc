// A whole connection of the Postgres front with a hostile client: messages in any order, cut anywhere, with time that
// passes, cancels and ends in between, against fake_service.h. The first byte is 'L' (logged in already) or 'R' (from
// the first byte on). Then steps, each a letter and, where there is one, its bytes behind their length (u8, or 255 and
// u16):
//   Q P B D E C S H F X p d c f   that message         !   bytes as they are
//   .   what was sent so far arrives                   t   2^n ms pass (u8 n) and the deadlines are looked at
//   k   the running statement is cancelled             q   the gateway drains       u   it cuts the connection off
//   w   the client writes no more                      z   the client is gone
// Whatever the client does: each Sync is answered once, every byte sent is of a whole message, no error is an internal
// one, and when the client has gone nothing of it is left.

#include <boost/asio/co_spawn.hpp>
#include <cstdint>

#include "front/pg/connection.h"
#include "front/pg/fake_service.h"
#include "net/fuzz_client.h"

namespace roost::pg {
namespace {

namespace asio = net::asio;
using net::test::require;
using test::be32;
using test::cstr;

// What the server sent, taken apart as it comes.
class Answers {
public:
    void add(std::string_view bytes) { unread_ += bytes; }
    // The next whole message; nullopt: not all of it is here.
    std::optional<test::Message> next() {
        if (unread_.size() < 5) return std::nullopt;
        const size_t size_bytes = test::from_be32(std::string_view(unread_).substr(1));
        require(size_bytes >= 4 && size_bytes < 16 * 1024 * 1024, "a message with an impossible length");
        if (unread_.size() < size_bytes + 1) return std::nullopt;
        test::Message message{unread_[0], unread_.substr(5, size_bytes - 4)};
        unread_.erase(0, size_bytes + 1);
        return message;
    }
    // What is not framed: the bytes that answer requests for encryption, and the answer to a client of protocol 2.0.
    void skip_refusals() {
        if (unread_.starts_with("Eunsupported frontend protocol 2.0")) unread_.erase(0, unread_.find('\0') + 1);
        while (unread_.starts_with('N') && (unread_.size() < 2 || unread_[1] != '\0')) unread_.erase(0, 1);
    }
    bool empty() const { return unread_.empty(); }

private:
    std::string unread_;
};

void check_error(const std::string &body) {
    std::map<char, std::string> fields;
    size_t at = 0;
    while (at < body.size() && body[at] != '\0') {
        const size_t end = body.find('\0', at);
        require(end != std::string::npos, "an error's field has no end");
        fields[body[at]] = body.substr(at + 1, end - at - 1);
        at = end + 1;
    }
    require(at + 1 == body.size(), "an error does not end where its message ends");
    require(fields['C'].size() == 5 && !fields['M'].empty() && !fields['S'].empty(), "an error lacks a field");
    require(fields['C'] != "XX000", "an error is internal");
    for (const auto &[letter, text] : fields) require(is_utf8(text), "an error is not UTF-8");
}

void check_row(const std::string &body) {
    Reader in(body);
    const auto be16 = [&] { return in.get<uint8_t>() << 8 | in.get<uint8_t>(); };
    for (int left = be16(); left > 0; left--) {
        uint32_t size_bytes = static_cast<uint32_t>(be16()) << 16;
        size_bytes |= static_cast<uint32_t>(be16());
        if (size_bytes != 0xffffffff) in.get_raw(size_bytes);
    }
    require(in.done(), "a row is not as long as its values");
}

class Play final : public net::test::FuzzClient {
public:
    Play() : FuzzClient(loop_) {
        shared_->options.mock_secret = "mock";
        service_.log.clear();
        service_.params.clear();
        service_.rows_max = 3000;
        auto connection = std::make_shared<Connection>(server_socket(), shared_);
        asio::co_spawn(loop_, Connection::run(std::move(connection)), [this](const std::exception_ptr &thrown) {
            require(thrown == nullptr, "a connection ends with an exception");
            ended_ = true;
        });
    }
    ~Play() override {
        const bool whole = !has_left() && !cut_off_;
        for (Connection *connection : all()) connection->cut();
        run();
        require(answers_.empty() || !whole, "the last message is not whole");
        leave();
        run();
        require(ended_ && shared_->connections.empty(), "a connection outlives its client");
        require(service_.connections == 0 && service_.sessions_open == 0, "a session outlives its client");
    }

    void log_in() {
        static const std::string salt_key = test::salted("secret", "0123456789abcdef", 64);
        const std::string bare = "n=,r=clientnonce", first = "n,," + bare;
        FuzzClient::send(test::Client::startup({{"user", "ann"}}));
        FuzzClient::send(
            test::Client::packed('p', cstr("SCRAM-SHA-256") + be32(static_cast<uint32_t>(first.size())) + first));
        deliver();
        const std::string server_first = server_first_;
        const std::string without_proof = "c=biws,r=" + server_first.substr(2, server_first.find(",s=") - 2);
        const std::string client_key = test::hmac(salt_key, "Client Key");
        std::string proof = test::hmac(test::sha256(client_key), bare + "," + server_first + "," + without_proof);
        for (size_t i = 0; i < proof.size(); i++) proof[i] = static_cast<char>(proof[i] ^ client_key[i]);
        FuzzClient::send(test::Client::packed('p', without_proof + ",p=" + base64_encode(proof)));
        deliver();
        require(readies_ == 1 && service_.sessions_open == 1, "the login fails");
        logged_in_ = true;
    }

    void send(char type, std::string_view body) {
        if (type == 'S') syncs_++;
        if (type == 'Q' || type == 'F') queries_++;
        if (type == 'X') leaves_ = true;
        may_hang_ = may_hang_ || body.find(" AS hang") != std::string_view::npos;
        FuzzClient::send(test::Client::packed(type, body));
    }
    void send_raw(std::string_view bytes) {
        raw_ = true;
        FuzzClient::send(bytes);
    }

    void deliver() {
        FuzzClient::deliver();
        check_readies();
    }
    void pass(uint8_t exponent) {
        for (Connection *connection : all()) connection->sweep(clock_.monotonic_ms());
        clock_.advance_us(int64_t{1000} << exponent % 32);
        for (Connection *connection : all()) connection->sweep(clock_.monotonic_ms());
        timed_ = true;
        run();
    }
    void cancel() {
        for (Connection *connection : all()) connection->cancel_running();
        run();
    }
    void drain() {
        shared_->draining = timed_ = true;
        for (Connection *connection : all()) connection->drain();
        run();
    }
    void cut() {
        cut_off_ = timed_ = true;
        for (Connection *connection : all()) connection->cut();
        run();
    }
    void write_no_more() {
        half_closed_ = true;
        FuzzClient::write_no_more();
    }

private:
    std::vector<Connection *> all() const { return {shared_->connections.begin(), shared_->connections.end()}; }

    void on_bytes(std::string_view bytes) override {
        answers_.add(bytes);
        if (!logged_in_) answers_.skip_refusals();
        while (const auto message = answers_.next()) look_at(*message);
    }

    void look_at(const test::Message &message) {
        require(std::string_view("RvSKZTtDCE123nIsN").find(message.type) != std::string_view::npos,
                "a message that no server sends");
        if (message.type == 'Z') readies_++;
        if (message.type == 'E') check_error(message.body);
        if (message.type == 'D') check_row(message.body);
        if (message.type == 'R' && test::from_be32(message.body) == 11) server_first_ = message.body.substr(4);
    }

    void check_readies() const {
        if (!logged_in_ || raw_) return;
        require(readies_ <= 1 + syncs_ + queries_, "an answer too many");
        // A query after an error in the extended protocol is skipped until the next Sync; nothing else goes unanswered.
        const bool serves = !shared_->connections.empty() && !may_hang_ && !leaves_ && !timed_ && !half_closed_;
        if (serves) require(readies_ >= 1 + syncs_, "a Sync without an answer");
    }

    static asio::io_context loop_;
    static test::FakeService service_;
    ManualClock clock_;
    std::unique_ptr<obs::Log> log_ = obs::make_null_log();
    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>(Shared{service_, clock_, *log_, {}, {}, {}, false});
    Answers answers_;
    std::string server_first_;
    size_t readies_ = 0, syncs_ = 0, queries_ = 0;
    bool ended_ = false, logged_in_ = false, raw_ = false, may_hang_ = false, leaves_ = false, timed_ = false,
         half_closed_ = false, cut_off_ = false;
};

asio::io_context Play::loop_{1};
test::FakeService Play::service_{Play::loop_};

void run(std::string_view input) {
    Play play;
    Reader in(input);
    if (in.get<uint8_t>() == 'L') play.log_in();
    while (in.remaining() > 0) {
        const char step = static_cast<char>(in.get<uint8_t>());
        if (net::test::play_common_step(play, step, in)) continue;
        switch (step) {
            case '!':
                play.send_raw(net::test::take_bytes(in));
                break;
            case 'k':
                play.cancel();
                break;
            default:
                if (std::string_view("QPBDECSHFXpdcf").find(step) != std::string_view::npos) {
                    play.send(step, net::test::take_bytes(in));
                }
        }
    }
    play.deliver();
}

}  // namespace
}  // namespace roost::pg

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0) roost::pg::run({reinterpret_cast<const char *>(data), size});
    return 0;
}
