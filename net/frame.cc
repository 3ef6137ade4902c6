#include "net/frame.h"

#define XXH_INLINE_ALL  // header only: no library to ship
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/codec.h"

namespace roost::net {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr size_t kLargeBytes = 16 * 1024;       // payloads from here on are read to their own place
constexpr size_t kFirstStepBytes = 512 * 1024;  // most results' frames are smaller: allocated once
constexpr size_t kBehindLargeBytes = 4 * 1024;

bool known_type(uint8_t type) {
    return (type >= static_cast<uint8_t>(FrameType::hello) && type <= static_cast<uint8_t>(FrameType::refused)) ||
           (type >= static_cast<uint8_t>(FrameType::welcome) && type <= static_cast<uint8_t>(FrameType::set_profile)) ||
           (type >= static_cast<uint8_t>(FrameType::result_begin) && type <= static_cast<uint8_t>(FrameType::end));
}

}  // namespace

uint32_t frame_checksum(std::string_view payload) {
    return static_cast<uint32_t>(XXH3_64bits(payload.data(), payload.size()));
}

std::string frame_header(FrameType type, uint64_t stream, std::string_view payload, uint32_t rows) {
    Writer header;
    header.put<uint32_t>(static_cast<uint32_t>(payload.size()));
    header.put<uint8_t>(static_cast<uint8_t>(type));
    header.put<uint8_t>(0);
    header.put<uint16_t>(kFrameVersion);
    header.put<uint32_t>(rows);
    header.put<uint32_t>(frame_checksum(payload));
    header.put<uint64_t>(stream);
    return std::move(header).take();
}

void append_frame(std::string &out, FrameType type, uint64_t stream, std::string_view payload, uint32_t rows) {
    out.append(frame_header(type, stream, payload, rows));
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

FrameDecoder::FrameDecoder() : buffer_(kBufferBytes, '\0') {}

std::array<std::span<char>, 2> FrameDecoder::space() {
    if (large_) {
        if (payload_bytes_ == payload_.size()) {
            payload_.resize(std::min<size_t>(large_->payload_bytes, payload_.size() * 2));
        }
        const std::span<char> rest(payload_.data() + payload_bytes_, payload_.size() - payload_bytes_);
        const bool to_its_end = payload_.size() == large_->payload_bytes;
        // What follows is most often the next large frame: room for its header, and for little that would be copied.
        return {rest, std::span<char>(buffer_.data() + end_,
                                      to_its_end ? std::min(kBehindLargeBytes, buffer_.size() - end_) : 0)};
    }
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    return {std::span<char>(buffer_.data() + end_, buffer_.size() - end_), std::span<char>()};
}

void FrameDecoder::filled(size_t size_bytes) {
    if (large_) {
        const size_t of_payload = std::min(size_bytes, payload_.size() - payload_bytes_);
        payload_bytes_ += of_payload;
        size_bytes -= of_payload;
    }
    end_ += size_bytes;
}

void FrameDecoder::feed(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto pieces = space();
        size_t fed = 0;
        for (const std::span<char> piece : pieces) {
            const size_t size_bytes = std::min(piece.size(), bytes.size());
            if (size_bytes > 0) std::memcpy(piece.data(), bytes.data(), size_bytes);
            bytes.remove_prefix(size_bytes);
            fed += size_bytes;
        }
        filled(fed);
        if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());  // several frames at once
    }
}

size_t FrameDecoder::buffered_bytes() const {
    return end_ - begin_ + (large_ ? kFrameHeaderBytes + payload_bytes_ : 0);
}

Result<std::optional<Frame>> FrameDecoder::next() {
    if (large_) return take_large();
    const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
    if (rest.size() < kFrameHeaderBytes) return std::optional<Frame>();
    ROOST_ASSIGN_OR_RETURN(const FrameHeader header, parse_frame_header(rest));
    const std::string_view payload = rest.substr(kFrameHeaderBytes, header.payload_bytes);
    if (payload.size() < header.payload_bytes) {
        if (header.payload_bytes >= kLargeBytes) begin_large(header, payload);
        return std::optional<Frame>();
    }
    if (frame_checksum(payload) != header.checksum) return Status(Code::data_loss, "a frame's checksum is wrong");
    begin_ += kFrameHeaderBytes + header.payload_bytes;
    return std::optional<Frame>(Frame{header.type, header.rows, header.stream, std::string(payload)});
}

void FrameDecoder::begin_large(const FrameHeader &header, std::string_view arrived) {
    large_ = header;
    payload_.clear();
    payload_.reserve(std::min<size_t>(header.payload_bytes, kFirstStepBytes));
    payload_.append(arrived);
    payload_bytes_ = arrived.size();
    payload_.resize(std::min<size_t>(header.payload_bytes, std::max(kFirstStepBytes, arrived.size())));
    begin_ = end_ = 0;
}

Result<std::optional<Frame>> FrameDecoder::take_large() {
    if (payload_bytes_ < large_->payload_bytes) return std::optional<Frame>();
    const FrameHeader header = *large_;
    large_.reset();
    if (frame_checksum(payload_) != header.checksum) return Status(Code::data_loss, "a frame's checksum is wrong");
    return std::optional<Frame>(Frame{header.type, header.rows, header.stream, std::move(payload_)});
}

}  // namespace roost::net
