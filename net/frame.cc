#include "net/frame.h"

#define XXH_INLINE_ALL  // header only: no library to ship
#include <xxhash.h>

#include "base/codec.h"

namespace roost::net {
namespace {

bool known_type(uint8_t type) {
    return (type >= static_cast<uint8_t>(FrameType::hello) && type <= static_cast<uint8_t>(FrameType::refused)) ||
           (type >= static_cast<uint8_t>(FrameType::welcome) && type <= static_cast<uint8_t>(FrameType::drop_result)) ||
           (type >= static_cast<uint8_t>(FrameType::result_begin) && type <= static_cast<uint8_t>(FrameType::end));
}

}  // namespace

uint32_t frame_checksum(std::string_view payload) {
    return static_cast<uint32_t>(XXH3_64bits(payload.data(), payload.size()));
}

void append_frame(std::string &out, FrameType type, uint64_t stream, std::string_view payload, uint32_t rows) {
    Writer header;
    header.put<uint32_t>(static_cast<uint32_t>(payload.size()));
    header.put<uint8_t>(static_cast<uint8_t>(type));
    header.put<uint8_t>(0);
    header.put<uint16_t>(kFrameVersion);
    header.put<uint32_t>(rows);
    header.put<uint32_t>(frame_checksum(payload));
    header.put<uint64_t>(stream);
    out.append(header.bytes());
    out.append(payload);
}

Result<FrameHeader> parse_frame_header(std::string_view bytes) {
    Reader in(bytes.substr(0, kFrameHeaderBytes));
    FrameHeader header;
    header.payload_bytes = in.get<uint32_t>();
    const auto type = in.get<uint8_t>();
    const auto flags = in.get<uint8_t>();
    const auto version = in.get<uint16_t>();
    header.rows = in.get<uint32_t>();
    header.checksum = in.get<uint32_t>();
    header.stream = in.get<uint64_t>();
    if (!in.ok()) return Status(Code::data_loss, "a frame header is cut short");
    if (version != kFrameVersion || flags != 0) {
        return Status(Code::data_loss, "the peer speaks link version " + std::to_string(version) + ", this side " +
                                           std::to_string(kFrameVersion));
    }
    if (!known_type(type)) return Status(Code::data_loss, "unknown frame type " + std::to_string(type));
    if (header.payload_bytes > kFramePayloadMaxBytes) {
        return Status(Code::data_loss,
                      "a frame of " + std::to_string(header.payload_bytes) + " bytes is over the limit");
    }
    header.type = static_cast<FrameType>(type);
    return header;
}

void FrameDecoder::feed(std::string_view bytes) {
    if (at_ > 0) {
        buffer_.erase(0, at_);
        at_ = 0;
    }
    buffer_.append(bytes);
}

Result<std::optional<Frame>> FrameDecoder::next() {
    const std::string_view rest = std::string_view(buffer_).substr(at_);
    if (rest.size() < kFrameHeaderBytes) return std::optional<Frame>();
    ROOST_ASSIGN_OR_RETURN(const FrameHeader header, parse_frame_header(rest));
    if (rest.size() - kFrameHeaderBytes < header.payload_bytes) return std::optional<Frame>();
    const std::string_view payload = rest.substr(kFrameHeaderBytes, header.payload_bytes);
    if (frame_checksum(payload) != header.checksum) return Status(Code::data_loss, "a frame's checksum is wrong");
    at_ += kFrameHeaderBytes + header.payload_bytes;
    return std::optional<Frame>(Frame{header.type, header.rows, header.stream, std::string(payload)});
}

}  // namespace roost::net
