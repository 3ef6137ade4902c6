// roost's own framing on the links between gateway and node: a fixed header of 24 bytes and a payload. Pure: bytes in,
// frames out.
//
//   u32 payload_bytes | u8 type | u8 flags (0) | u16 version | u32 rows | u32 checksum | u64 stream        little
//   endian
//
// `stream` is the number the gateway gave to a statement on its node's control link; 0 where a frame belongs to none.
// `checksum` is the low half of XXH3-64 of the payload: sockets do not corrupt, but a bug that mixes up buffers must
// not become a wrong row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace roost::net {

constexpr size_t kFrameHeaderBytes = 24;
constexpr uint32_t kFramePayloadMaxBytes = 64 * 1024 * 1024;
constexpr uint16_t kFrameVersion = 1;

enum class FrameType : uint8_t {
    // node → gateway on the control link
    hello = 1,
    heartbeat,
    progress,
    refused,  // no_wait: it would wait for memory
    // gateway → node on the control link
    welcome = 16,
    dispatch,
    cancel,
    end_session,
    read_page,   // a page of a stored result, answered on its stream by rows and end
    open_arrow,  // a stored result as Arrow IPC, answered on its stream by rows… and end
    drop_result,
    cache_work,   // on the node's segment cache, answered on its stream by end
    set_profile,  // of its admission, answered on its stream by end
    // node → gateway, on the control link while small, else on a result link
    result_begin = 32,  // a result link now carries this stream
    header,
    rows,
    end,  // always the last frame of a stream: a stream without it is a lost node, never a short result
};

struct Frame {
    FrameType type = FrameType::hello;
    uint32_t rows = 0;
    uint64_t stream = 0;
    std::string payload;
};

struct FrameHeader {
    uint32_t payload_bytes = 0;
    FrameType type = FrameType::hello;
    uint32_t rows = 0;
    uint32_t checksum = 0;
    uint64_t stream = 0;
};

uint32_t frame_checksum(std::string_view payload);
// The header alone, for a payload that is sent from where it is.
std::string frame_header(FrameType type, uint64_t stream, std::string_view payload, uint32_t rows = 0);
// Appends header and payload to `out`. REQUIRES: payload at most kFramePayloadMaxBytes.
void append_frame(std::string &out, FrameType type, uint64_t stream, std::string_view payload, uint32_t rows = 0);
// Reads a header. `bytes` has at least kFrameHeaderBytes. Errors: data_loss (unknown type or version, payload too
// large).
Result<FrameHeader> parse_frame_header(std::string_view bytes);

// Cuts a byte stream into frames. The bytes are read right to where they belong: a large payload is copied no more
// after the socket.
class FrameDecoder {
public:
    FrameDecoder();
    // The next whole frame of what has come; nullopt when more bytes are needed. After an error the link must be
    // closed.
    Result<std::optional<Frame>> next();
    // Where the next bytes are to be put, the second piece (maybe empty) after the first is full. REQUIRES: next() has
    // said that it needs more. Valid until filled().
    std::array<std::span<char>, 2> space();
    void filled(size_t size_bytes);
    // The same for bytes that are somewhere else.
    void feed(std::string_view bytes);
    // Bytes that came and were not given out.
    size_t buffered_bytes() const;

private:
    Result<std::optional<Frame>> take_large();
    void begin_large(const FrameHeader &header, std::string_view arrived);

    std::string buffer_;  // headers and small frames
    size_t begin_ = 0, end_ = 0;
    // A large frame under way: its payload grows with what arrives, not with what was announced.
    std::optional<FrameHeader> large_;
    std::string payload_;
    size_t payload_bytes_ = 0;
};

}  // namespace roost::net
