#include "base/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace roost {
namespace {

using namespace std::string_literals;

TEST(Codec, what_is_written_is_read_back) {
    Writer out;
    out.put<uint8_t>(0xAB);
    out.put<int16_t>(-2);
    out.put<uint32_t>(0xDEADBEEF);
    out.put<int64_t>(std::numeric_limits<int64_t>::min());
    out.put_f64(-0.0);
    out.put_bool(true);
    out.put_string("text\0with zero"s);
    out.put_string("");
    out.put_raw("raw");
    Reader in(out.bytes());
    EXPECT_EQ(in.get<uint8_t>(), 0xAB);
    EXPECT_EQ(in.get<int16_t>(), -2);
    EXPECT_EQ(in.get<uint32_t>(), 0xDEADBEEF);
    EXPECT_EQ(in.get<int64_t>(), std::numeric_limits<int64_t>::min());
    EXPECT_TRUE(std::signbit(in.get_f64()));
    EXPECT_TRUE(in.get_bool());
    EXPECT_EQ(in.get_string(), "text\0with zero"s);
    EXPECT_EQ(in.get_view(), "");
    EXPECT_EQ(in.get_raw(3), "raw");
    EXPECT_TRUE(in.done());
}

TEST(Codec, numbers_are_little_endian) {
    Writer out;
    out.put<uint32_t>(0x01020304);
    EXPECT_EQ(out.take(), "\x04\x03\x02\x01");
}

TEST(Reader, a_short_read_sticks_and_gives_zero_values_from_there) {
    Reader in("\x01\x02\x03");
    EXPECT_EQ(in.get<uint16_t>(), 0x0201);
    EXPECT_EQ(in.get<uint32_t>(), 0U);
    EXPECT_FALSE(in.ok());
    // The byte that is left is not given out after the failure.
    EXPECT_EQ(in.get<uint8_t>(), 0);
    EXPECT_EQ(in.get_view(), "");
    EXPECT_EQ(in.remaining(), 0U);
    EXPECT_FALSE(in.done());
}

TEST(Reader, a_length_past_the_end_is_refused_also_where_sums_would_wrap) {
    for (const uint32_t length : {1U, 0x7FFFFFFFU, 0xFFFFFFFCU, 0xFFFFFFFFU}) {
        Writer out;
        out.put<uint32_t>(length);
        Reader in(out.bytes());
        EXPECT_EQ(in.get_view(), "") << length;
        EXPECT_FALSE(in.ok()) << length;
    }
    Reader in("abc");
    EXPECT_EQ(in.get_raw(std::numeric_limits<size_t>::max()), "");
    EXPECT_FALSE(in.ok());
}

TEST(Reader, a_count_of_more_items_than_can_follow_is_refused_before_anybody_allocates) {
    Writer out;
    out.put<uint32_t>(1'000'000'000);
    out.put_raw("12345678");
    Reader in(out.bytes());
    EXPECT_EQ(in.get_count(4), 0U);
    EXPECT_FALSE(in.ok());

    Writer fits;
    fits.put<uint32_t>(2);
    fits.put_raw("12345678");
    Reader exact(fits.bytes());
    EXPECT_EQ(exact.get_count(4), 2U);
    EXPECT_TRUE(exact.ok());
}

TEST(Reader, nothing_is_done_and_ok) {
    Reader in("");
    EXPECT_TRUE(in.ok());
    EXPECT_TRUE(in.done());
}

// Whatever the bytes: no read outside them (the sanitizers see it), no view longer than what was left, and sticky
// failure.
TEST(Reader, random_reads_of_random_bytes_stay_inside) {
    const uint64_t seed = std::random_device()();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes(random() % 40, '\0');
        for (char &c : bytes) c = static_cast<char>(random() % 4 == 0 ? random() : 0);
        Reader in(bytes);
        bool was_ok = true;
        for (int i = 0; i < 20; ++i) {
            const size_t before = in.remaining();
            size_t got = 0;
            switch (random() % 6) {
                case 0:
                    in.get<uint8_t>();
                    break;
                case 1:
                    in.get<uint64_t>();
                    break;
                case 2:
                    got = in.get_view().size();
                    break;
                case 3:
                    got = in.get_raw(random() % 50).size();
                    break;
                case 4:
                    in.get_count(random() % 3);
                    break;
                default:
                    in.get_f64();
                    break;
            }
            ASSERT_LE(got, before);
            ASSERT_LE(in.remaining(), before);
            ASSERT_TRUE(was_ok || !in.ok());
            was_ok = in.ok();
        }
    }
}

}  // namespace
}  // namespace roost
