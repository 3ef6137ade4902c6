#include "config/values.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <random>

namespace roost::config {
namespace {

constexpr uint64_t kMiB = 1U << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

template <class T>
std::string error_of(const Result<T> &result) {
    return result.ok() ? "" : result.status().message();
}

TEST(Bytes, are_read_in_powers_of_1024_and_of_1000) {
    EXPECT_EQ(*parse_bytes("2GiB"), 2 * kGiB);
    EXPECT_EQ(*parse_bytes("512MB"), 512'000'000U);
    EXPECT_EQ(*parse_bytes("65536"), 65'536U);
    EXPECT_EQ(*parse_bytes("0"), 0U);
    EXPECT_EQ(*parse_bytes(" 1.5 gib "), 3 * kGiB / 2);
    EXPECT_EQ(*parse_bytes("64k"), 65'536U);
    EXPECT_EQ(*parse_bytes("3TB"), 3'000'000'000'000U);
    EXPECT_EQ(*parse_bytes("10b"), 10U);
}

TEST(Bytes, what_is_no_size_is_refused_with_what_would_be) {
    for (const char *text :
         {"", " ", "GiB", "-1", "+1", "2 GiBs", "2PiB", "1.", ".5GiB", "1,5GiB", "0x10", "1e9", "2GiB2", "\xff"}) {
        EXPECT_NE(error_of(parse_bytes(text)).find("write 2GiB"), std::string::npos) << text;
    }
    EXPECT_FALSE(parse_bytes("1.5").ok());
    EXPECT_FALSE(parse_bytes("99999999999999999999").ok());
    EXPECT_FALSE(parse_bytes("9999999TiB").ok());
    EXPECT_EQ(parse_bytes("x").status().code(), Code::invalid_argument);
}

TEST(Bytes, format_is_exact_and_reads_back) {
    EXPECT_EQ(format_bytes(2 * kGiB), "2GiB");
    EXPECT_EQ(format_bytes(1536 * kMiB), "1536MiB");
    EXPECT_EQ(format_bytes(1000), "1000");
    EXPECT_EQ(format_bytes(0), "0");
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; ++i) {
        const uint64_t bytes = (random() >> (random() % 63 + 1)) << (random() % 2 * 10) & INT64_MAX;
        const auto again = parse_bytes(format_bytes(bytes));
        ASSERT_TRUE(again.ok()) << bytes;
        ASSERT_EQ(*again, bytes);
    }
}

TEST(Duration, units_and_plain_milliseconds) {
    EXPECT_EQ(*parse_duration_ms("500ms"), 500);
    EXPECT_EQ(*parse_duration_ms("30s"), 30'000);
    EXPECT_EQ(*parse_duration_ms("1.5m"), 90'000);
    EXPECT_EQ(*parse_duration_ms("24h"), 86'400'000);
    EXPECT_EQ(*parse_duration_ms("7 D"), 604'800'000);
    EXPECT_EQ(*parse_duration_ms("1500"), 1'500);
    EXPECT_EQ(*parse_duration_ms("0"), 0);
}

TEST(Duration, what_is_none_is_refused) {
    for (const char *text : {"", "s", "-5s", "5 sec", "1h30m", "1.s", "5us", "1.5ms", "999999999999999999h"}) {
        EXPECT_FALSE(parse_duration_ms(text).ok()) << text;
    }
}

TEST(Duration, format_reads_back) {
    EXPECT_EQ(format_duration(90'000), "90s");
    EXPECT_EQ(format_duration(120'000), "2m");
    EXPECT_EQ(format_duration(86'400'000), "1d");
    EXPECT_EQ(format_duration(0), "0ms");
    std::mt19937_64 random(2);
    for (int i = 0; i < 10'000; ++i) {
        const auto duration_ms = static_cast<int64_t>(random() >> (random() % 40 + 22));
        ASSERT_EQ(*parse_duration_ms(format_duration(duration_ms)), duration_ms);
    }
}

TEST(Integer, is_whole_and_in_range) {
    EXPECT_EQ(*parse_integer("3", 1, 64), 3);
    EXPECT_EQ(*parse_integer("-5", -10, 10), -5);
    EXPECT_NE(error_of(parse_integer("65", 1, 64)).find("from 1 to 64"), std::string::npos);
    EXPECT_NE(error_of(parse_integer("99999999999999999999", 1, 64)).find("from 1 to 64"), std::string::npos);
    for (const char *text : {"", "3.0", "3x", "x3", "0x3", "three"}) {
        EXPECT_NE(error_of(parse_integer(text, 1, 64)).find("whole number"), std::string::npos) << text;
    }
}

TEST(AddressText, host_and_port_in_their_forms) {
    EXPECT_EQ(*parse_address("127.0.0.1:8080", UnixSocket::refused), (Address{"127.0.0.1", 8080, ""}));
    EXPECT_EQ(*parse_address("localhost:0", UnixSocket::refused), (Address{"localhost", 0, ""}));
    EXPECT_EQ(*parse_address("[::1]:5433", UnixSocket::refused), (Address{"::1", 5433, ""}));
    EXPECT_EQ(parse_address("[::1]:5433", UnixSocket::refused)->to_string(), "[::1]:5433");
    EXPECT_EQ(*parse_address("unix:/run/roost.sock", UnixSocket::allowed), (Address{"", 0, "/run/roost.sock"}));
}

TEST(AddressText, what_is_none_is_refused) {
    for (const char *text :
         {"", ":", ":80", "8080", "host", "host:", "host:x", "host:-1", "host:123456", "::1:80", "[::1]80", "[]:80",
          "[host]:80", "ho st:80", "host:80 ", "user@host:80", "http://host:80", "host:8 0", "\xff:80"}) {
        EXPECT_FALSE(parse_address(text, UnixSocket::allowed).ok()) << text;
    }
    EXPECT_NE(error_of(parse_address("host:65536", UnixSocket::refused)).find("65535"), std::string::npos);
    EXPECT_FALSE(parse_address("unix:/a", UnixSocket::refused).ok());
    EXPECT_FALSE(parse_address("unix:", UnixSocket::allowed).ok());
    EXPECT_NE(error_of(parse_address("unix:/" + std::string(107, 'x'), UnixSocket::allowed)).find("at most 107"),
              std::string::npos);
    EXPECT_TRUE(parse_address("unix:/" + std::string(106, 'x'), UnixSocket::allowed).ok());
}

TEST(JoinUrl, http_or_a_socket) {
    EXPECT_EQ(*parse_join_url("http://gateway:7000"), (Address{"gateway", 7000, ""}));
    EXPECT_EQ(*parse_join_url("http://gateway:7000/"), (Address{"gateway", 7000, ""}));
    EXPECT_EQ(*parse_join_url("unix:.roost/gateway.sock"), (Address{"", 0, ".roost/gateway.sock"}));
    EXPECT_EQ(parse_join_url("https://gateway:7000").status().code(), Code::unimplemented);
    for (const char *text :
         {"", "gateway:7000", "http://", "http://gateway", "http://gateway:0", "http://gateway:1/path", "unix:"}) {
        EXPECT_FALSE(parse_join_url(text).ok()) << text;
    }
}

TEST(Store, directories_and_buckets) {
    EXPECT_EQ(*parse_store("/data/lake"), (StoreLocation{false, "/data/lake", "", ""}));
    EXPECT_EQ(*parse_store("s3://bucket"), (StoreLocation{true, "", "bucket", ""}));
    EXPECT_EQ(*parse_store("s3://my-bucket/a/b/"), (StoreLocation{true, "", "my-bucket", "a/b"}));
    EXPECT_EQ(parse_store("s3://my-bucket/a/b/")->to_string(), "s3://my-bucket/a/b");
    EXPECT_EQ(parse_store("relative dir")->to_string(), "relative dir");
}

TEST(Store, one_lies_in_the_other_or_not) {
    const auto overlap_of = [](const std::string &one, const std::string &other) {
        const bool answer = overlap(*parse_store(one), *parse_store(other));
        EXPECT_EQ(answer, overlap(*parse_store(other), *parse_store(one))) << one << " " << other;
        return answer;
    };
    const std::string here = std::filesystem::current_path().string();
    for (const auto &[one, other] :
         std::vector<std::pair<std::string, std::string>>{{"/a/b", "/a/b"},
                                                          {"/a/b", "/a/b/"},
                                                          {"/a/b", "/a/b/c"},
                                                          {"/", "/a"},
                                                          {"/a/b", "/a/x/../b/c"},
                                                          {"/a//b", "/a/./b"},
                                                          {"lake", here + "/lake/x"},
                                                          {"./lake", "lake"},
                                                          {"s3://bucket", "s3://bucket/a"},
                                                          {"s3://bucket/a/", "s3://bucket/a"}}) {
        EXPECT_TRUE(overlap_of(one, other)) << one << " " << other;
    }
    for (const auto &[one, other] :
         std::vector<std::pair<std::string, std::string>>{{"/a/b", "/a/bc"},
                                                          {"/a/b", "/a/c"},
                                                          {"/a/b/../c", "/a/b"},
                                                          {"s3://bucket/a", "s3://bucket/ab"},
                                                          {"s3://bucket", "s3://bucket2"},
                                                          {"s3://bucket/a", "/bucket/a"}}) {
        EXPECT_FALSE(overlap_of(one, other)) << one << " " << other;
    }
    EXPECT_EQ(store_below(*parse_store("s3://bucket"), "x").to_string(), "s3://bucket/x");
    EXPECT_EQ(store_below(*parse_store("s3://bucket/a"), "x").to_string(), "s3://bucket/a/x");
    EXPECT_EQ(store_below(*parse_store("/a"), "x").to_string(), "/a/x");
}

TEST(Store, places_that_would_name_other_objects_than_they_seem_to_are_refused) {
    for (const char *text :
         {"", "s3://", "s3://ab", "s3://Bucket", "s3:///prefix", "s3://bucket//x", "s3://bucket/a//b",
          "s3://bucket/../x", "s3://bucket/a/..", "s3://bucket/./x", "s3://bucket/a?x=1", "s3://bucket/a#b",
          "s3://bucket/*", "gs://bucket/x", "https://host/x", "a\nb"}) {
        EXPECT_FALSE(parse_store(text).ok()) << text;
    }
    EXPECT_FALSE(parse_store(std::string_view("a\0b", 3)).ok());
}

TEST(Database, sqlite_and_postgres) {
    using Kind = DatabaseLocation::Kind;
    EXPECT_EQ(*parse_database("sqlite:.roost/meta.sqlite"), (DatabaseLocation{Kind::sqlite, ".roost/meta.sqlite"}));
    EXPECT_EQ(*parse_database("postgres:host=db dbname=x"), (DatabaseLocation{Kind::postgres, "host=db dbname=x"}));
    EXPECT_EQ(*parse_database("postgresql://u@h/db"), (DatabaseLocation{Kind::postgres, "postgresql://u@h/db"}));
    EXPECT_EQ(*parse_database("postgres:postgresql://u@h/db"),
              (DatabaseLocation{Kind::postgres, "postgresql://u@h/db"}));
    for (const char *text :
         {"", "sqlite:", "sqlite::memory:", "sqlite:file:x?mode=memory", "postgres:", "mysql:x", "meta.sqlite"}) {
        EXPECT_FALSE(parse_database(text).ok()) << text;
    }
}

TEST(Database, errors_and_shown_values_hold_no_password) {
    EXPECT_EQ(error_of(parse_database("mysql://u:secret@h")).find("secret"), std::string::npos);
    EXPECT_EQ(mask_password("postgres:host=db password=secret dbname=x"), "postgres:host=db password=*** dbname=x");
    EXPECT_EQ(mask_password("host=db password = 'two \\'words' user=x"), "host=db password = *** user=x");
    EXPECT_EQ(mask_password("postgresql://user:se:cr@et@h:5432/db"), "postgresql://user:***@h:5432/db");
    EXPECT_EQ(mask_password("postgresql://h/db?sslmode=require&password=secret&x=1"),
              "postgresql://h/db?sslmode=require&password=***&x=1");
    EXPECT_EQ(mask_password("host=h PASSWORD=secret sslpassword=other"), "host=h PASSWORD=*** sslpassword=***");
    EXPECT_EQ(mask_password("postgresql://user@h:5432/db"), "postgresql://user@h:5432/db");
    EXPECT_EQ(mask_password("password"), "password");
    EXPECT_EQ(mask_password("password="), "password=***");
    EXPECT_EQ(mask_password("password='open"), "password=***");
    EXPECT_EQ(mask_password("sqlite:/data/meta.sqlite"), "sqlite:/data/meta.sqlite");
}

TEST(SampleText, tpch_or_none) {
    EXPECT_EQ(parse_sample("tpch:0.1")->tpch_scale_factor, 0.1);
    EXPECT_EQ(parse_sample("tpch:0.1")->to_string(), "tpch:0.1");
    EXPECT_TRUE(parse_sample("none")->none());
    EXPECT_EQ(parse_sample("none")->to_string(), "none");
    for (const char *text :
         {"", "tpch", "tpch:", "tpch:0", "tpch:-1", "tpch:nan", "tpch:inf", "tpch:1x", "tpch:1e9", "tpcds:1", "None"}) {
        EXPECT_FALSE(parse_sample(text).ok()) << text;
    }
}

TEST(Choice, errors_name_the_choices_and_the_near_one) {
    const std::vector<std::string_view> choices = {"auto", "affinity", "least_loaded"};
    EXPECT_EQ(*parse_choice("auto", choices), "auto");
    const auto bad = parse_choice("least-loaded", choices);
    EXPECT_EQ(error_of(bad), "'least-loaded' is not one of auto, affinity and least_loaded");
    EXPECT_EQ(bad.status().error().hint, "did you mean least_loaded?");
    EXPECT_EQ(parse_choice("zzzzzz", choices).status().error().hint, "");
}

TEST(Nearest, finds_slips_and_leaves_the_rest) {
    const std::vector<std::string_view> names = {"node_memory", "nodes", "http", "pg"};
    EXPECT_EQ(nearest("node_memroy", names), "node_memory");
    EXPECT_EQ(nearest("node-memory", names), "node_memory");
    EXPECT_EQ(nearest("htp", names), "http");
    EXPECT_EQ(nearest("HTTP", names), "http");
    EXPECT_EQ(nearest("zebra", names), "");
    EXPECT_EQ(nearest("", names), "");
    EXPECT_EQ(nearest(std::string(100'000, 'x'), names), "");
}

TEST(Errors, quote_no_control_characters_and_no_endless_text) {
    const std::string message = error_of(parse_bytes("\x1b[31m" + std::string(10'000, 'x')));
    EXPECT_EQ(message.find('\x1b'), std::string::npos);
    EXPECT_LT(message.size(), 300U);
}

}  // namespace
}  // namespace roost::config
