#include "net/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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

// As a link does: reads to where the decoder says, at most `piece` bytes at a time.
std::vector<Frame> read_into_place(std::string_view bytes, size_t piece) {
    FrameDecoder decoder;
    std::vector<Frame> seen;
    for (;;) {
        auto frame = decoder.next();
        EXPECT_TRUE(frame.ok());
        if (!frame.ok()) return seen;
        if (frame->has_value()) {
            seen.push_back(std::move(**frame));
            continue;
        }
        if (bytes.empty()) return seen;
        size_t left = piece;
        size_t filled = 0;
        for (const std::span<char> to : decoder.space()) {
            const size_t n = std::min({to.size(), left, bytes.size()});
            std::copy_n(bytes.begin(), n, to.begin());
            bytes.remove_prefix(n);
            left -= n;
            filled += n;
        }
        EXPECT_GT(filled, 0U) << "no room to read to";
        if (filled == 0) return seen;
        decoder.filled(filled);
    }
}

TEST(Frame, LargePayloadsAreReadInPlaceHoweverTheyArrive) {
    std::string bytes;
    std::vector<std::string> payloads;
    uint64_t stream = 1;
    for (const size_t size :
         {0, 10, 16'383, 16'384, 65'512, 65'536, 300'000, 524'288, 524'289, 3'000'000, 1, 100'000}) {
        std::string payload(static_cast<size_t>(size), '\0');
        for (size_t i = 0; i < payload.size(); i++) payload[i] = static_cast<char>(i * 31 + stream);
        append_frame(bytes, FrameType::rows, stream++, payload, 1);
        payloads.push_back(std::move(payload));
    }
    for (const size_t piece : {size_t{1000}, size_t{4096}, size_t{65'536}, size_t{262'144}, bytes.size()}) {
        const auto seen = read_into_place(bytes, piece);
        ASSERT_EQ(seen.size(), payloads.size()) << piece;
        for (size_t i = 0; i < seen.size(); i++) {
            EXPECT_EQ(seen[i].stream, i + 1);
            EXPECT_TRUE(seen[i].payload == payloads[i]) << "frame " << i << " in pieces of " << piece;
        }
    }
}

TEST(Frame, WhatIsAnnouncedIsNotAllocatedBeforeItArrives) {
    std::string header = frame_header(FrameType::rows, 1, "");
    header[3] = 3;  // 48 MiB
    FrameDecoder decoder;
    decoder.feed(header);
    ASSERT_TRUE(decoder.next().ok());
    EXPECT_LE(decoder.space()[0].size(), 1U << 20);
}

TEST(Frame, ADamagedLargePayloadIsNoticed) {
    std::string bytes;
    append_frame(bytes, FrameType::rows, 1, std::string(200'000, 'x'));
    bytes[150'000] = 'y';
    FrameDecoder decoder;
    for (size_t at = 0; at < bytes.size(); at += 50'000) {
        decoder.feed(std::string_view(bytes).substr(at, 50'000));
        const auto frame = decoder.next();
        if (at + 50'000 < bytes.size()) {
            ASSERT_TRUE(frame.ok());
        } else {
            EXPECT_EQ(frame.status().code(), Code::data_loss);
        }
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
