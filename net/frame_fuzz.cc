// Bytes on a link, from its upgrade to its last frame. The first byte says what the rest is:
//   r  a stream as it came, in pieces of (second byte) bytes
//   f  frames to be made, each six bytes (type, rows, stream, size, size, damage) and its payload, one of them damaged
//   h  the head of the request that opens a link
//   e  an endpoint as a person writes it
// However the bytes are cut, through the decoder alone and through a socket, the same frames come out.
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdint>
#include <vector>

#include "net/frame.h"
#include "net/fuzz_client.h"
#include "net/link.h"

namespace roost::net {
namespace {

using test::require;

struct Seen {
    std::string bytes;  // the frames, encoded again
    bool broken = false;
};

void note(Seen &seen, const Frame &frame) {
    append_frame(seen.bytes, frame.type, frame.stream, frame.payload, frame.rows);
}

Seen decode(std::string_view stream, size_t piece_bytes) {
    Seen seen;
    FrameDecoder decoder;
    size_t fed = 0;
    for (; !stream.empty() && !seen.broken; stream.remove_prefix(std::min(piece_bytes, stream.size()))) {
        decoder.feed(stream.substr(0, piece_bytes));
        fed += std::min(piece_bytes, stream.size());
        while (true) {
            const auto frame = decoder.next();
            seen.broken = !frame.ok();
            if (seen.broken) require(frame.status().code() == Code::data_loss, "broken framing has another code");
            if (!frame.ok() || !frame->has_value()) break;
            note(seen, **frame);
        }
        require(seen.bytes.size() + decoder.buffered_bytes() == fed, "bytes are lost or made up");
    }
    return seen;
}

Task<void> read_link(std::shared_ptr<FrameLink> link, Seen &seen) {
    while (true) {
        const auto frame = co_await link->read();
        if (frame.ok()) {
            note(seen, *frame);
            continue;
        }
        seen.broken = frame.status().code() == Code::data_loss;
        require(link->closed(), "a link that ended is open");
        co_return;
    }
}

// The first half came with the upgrade, the rest over a socket.
Seen through_link(std::string_view stream) {
    static asio::io_context loop{1};
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    const std::string_view rest = stream.substr(stream.size() / 2);
    require(rest.empty() || ::send(ends[1], rest.data(), rest.size(), 0) == static_cast<ssize_t>(rest.size()), "send");
    ::shutdown(ends[1], SHUT_WR);
    auto socket = adopt_socket(loop.get_executor(), ends[0]);
    require(socket.ok(), "adopt_socket");
    Seen seen;
    asio::co_spawn(
        loop, read_link(FrameLink::make(std::move(*socket), std::string(stream.substr(0, stream.size() / 2))), seen),
        asio::detached);
    loop.restart();
    loop.run();
    ::close(ends[1]);
    return seen;
}

Seen check_stream(std::string_view stream, size_t piece_bytes) {
    Seen whole = decode(stream, stream.size() + 1);
    require(stream.starts_with(whole.bytes), "a frame is not what was sent");
    const Seen cut = decode(stream, piece_bytes);
    require(cut.bytes == whole.bytes && cut.broken == whole.broken, "the cuts change what is read");
    if (stream.size() > 64 * 1024) return whole;  // more than a socket surely takes at once
    const Seen linked = through_link(stream);
    require(linked.bytes == whole.bytes && linked.broken == whole.broken, "the link reads other frames");
    return whole;
}

void check_made_frames(std::string_view in) {
    constexpr FrameType kTypes[] = {FrameType::hello,   FrameType::heartbeat,    FrameType::progress,
                                    FrameType::refused, FrameType::welcome,      FrameType::dispatch,
                                    FrameType::cancel,  FrameType::read_page,    FrameType::open_arrow,
                                    FrameType::rows,    FrameType::end_session,  FrameType::drop_result,
                                    FrameType::header,  FrameType::result_begin, FrameType::end};
    Reader reader(in);
    std::string stream;
    size_t sound_bytes = 0;
    bool damaged = false;
    while (reader.remaining() >= 6) {
        const auto type = kTypes[reader.get<uint8_t>() % std::size(kTypes)];
        const auto rows = reader.get<uint8_t>();
        const auto number = reader.get<uint8_t>();
        const size_t size_bytes = std::min<size_t>(reader.get<uint16_t>(), reader.remaining() - 1);
        const auto damage = reader.get<uint8_t>();
        const size_t at = stream.size();
        append_frame(stream, type, number * uint64_t{0x0101010101010101}, reader.get_raw(size_bytes),
                     rows * uint32_t{0x01010101});
        // A flip in flags, version or checksum (bytes 5 to 7 and 12 to 15) or in the payload must be noticed.
        if (damage == 0 || damaged) continue;
        constexpr size_t kChecked[] = {5, 6, 7, 12, 13, 14, 15};
        const size_t byte = size_bytes > 0 && damage >= 128 ? kFrameHeaderBytes + damage % size_bytes
                                                            : kChecked[damage % std::size(kChecked)];
        stream[at + byte] = static_cast<char>(stream[at + byte] ^ damage);
        damaged = true;
        sound_bytes = at;
    }
    const Seen seen = check_stream(stream, stream.size() % 61 + 1);
    require(seen.broken == damaged, "damage is not noticed, or seen where there is none");
    require(seen.bytes.size() == (damaged ? sound_bytes : stream.size()), "a sound frame is missing");
}

void check_head(std::string_view head) {
    const auto request = parse_link_request(head);
    if (!request.ok()) return require(request.status().code() == Code::invalid_argument, "a bad head has another code");
    const auto again = parse_link_request(encode_link_request(*request));
    require(again.ok() && again->node == request->node && again->incarnation == request->incarnation &&
                again->result_link == request->result_link,
            "a request does not come back");
}

void check_endpoint(std::string_view text) {
    const auto endpoint = Endpoint::parse(text);
    if (!endpoint.ok()) return require(endpoint.status().code() == Code::invalid_argument, "another code");
    require(!endpoint->unix_path.empty() || !endpoint->host.empty(), "an endpoint of nothing");
}

}  // namespace
}  // namespace roost::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    using namespace roost::net;
    if (size < 2) return 0;
    const std::string_view in(reinterpret_cast<const char *>(data), size);
    switch (in[0]) {
        case 'r':
            check_stream(in.substr(2), data[1] + size_t{1});
            break;
        case 'f':
            check_made_frames(in.substr(1));
            break;
        case 'h':
            check_head(in.substr(1));
            break;
        case 'e':
            check_endpoint(in.substr(1));
            break;
        default:
            break;
    }
    return 0;
}
