#include "net/frame.h"

#include <gtest/gtest.h>

namespace roost::net {
namespace {

std::string frames(std::initializer_list<std::string_view> payloads) {
    std::string out;
    uint64_t stream = 7;
    for (const std::string_view payload : payloads) append_frame(out, FrameType::rows, stream++, payload, 3);
    return out;
}

TEST(Frame, ComesOutAsItWentInHoweverTheBytesAreCut) {
    const std::string bytes = frames({"", "a", std::string(100'000, 'x')});
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{24}, size_t{4096}, bytes.size()}) {
        FrameDecoder decoder;
        std::vector<Frame> seen;
        for (size_t at = 0; at < bytes.size(); at += piece) {
            decoder.feed(std::string_view(bytes).substr(at, piece));
            for (;;) {
                auto frame = decoder.next();
                ASSERT_TRUE(frame.ok());
                if (!frame->has_value()) break;
                seen.push_back(std::move(**frame));
            }
        }
        ASSERT_EQ(seen.size(), 3u);
        EXPECT_EQ(seen[2].payload, std::string(100'000, 'x'));
        EXPECT_EQ(seen[2].stream, 9u);
        EXPECT_EQ(seen[1].rows, 3u);
        EXPECT_EQ(decoder.buffered_bytes(), 0u);
    }
}

TEST(Frame, AnyFlippedByteIsNoticed) {
    const std::string bytes = frames({"some payload that matters"});
    for (size_t i = 0; i < bytes.size(); ++i) {
        // The row count and the stream number are not covered by the checksum; the receiver checks both against what it
        // expects.
        if (i >= 8 && i < 12) continue;
        if (i >= 16 && i < 24) continue;
        std::string broken = bytes;
        broken[i] = static_cast<char>(broken[i] ^ 0x40);
        FrameDecoder decoder;
        decoder.feed(broken);
        const auto frame = decoder.next();
        const bool whole = frame.ok() && frame->has_value() && (*frame)->type == FrameType::rows;
        EXPECT_FALSE(whole) << "byte " << i;
    }
}

TEST(Frame, LengthOverTheLimitIsRefusedBeforeAnythingIsAllocated) {
    std::string header;
    append_frame(header, FrameType::rows, 1, "");
    header[3] = '\x7f';
    EXPECT_EQ(parse_frame_header(header).status().code(), Code::data_loss);
}

TEST(Frame, AnotherVersionIsNamed) {
    std::string header;
    append_frame(header, FrameType::hello, 1, "");
    header[6] = 9;
    const Status status = parse_frame_header(header).status();
    EXPECT_EQ(status.code(), Code::data_loss);
    EXPECT_NE(status.message().find("link version 9"), std::string::npos);
}

}  // namespace
}  // namespace roost::net
