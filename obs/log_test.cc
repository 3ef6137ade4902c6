#include "obs/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "obs/log_file.h"

namespace roost::obs {
namespace {

using nlohmann::json;

class LogTest : public testing::Test {
protected:
    LogTest() {
        std::string pattern = testing::TempDir() + "roost_log_XXXXXX";
        dir_ = mkdtemp(pattern.data());
        path_ = dir_ + "/roost.log";
    }
    ~LogTest() override { std::filesystem::remove_all(dir_); }

    static std::vector<std::string> lines_of(const std::string &path) {
        std::ifstream in(path);
        std::vector<std::string> lines;
        for (std::string line; std::getline(in, line);) lines.push_back(line);
        return lines;
    }
    std::vector<json> logged() const {
        std::vector<json> out;
        for (const auto &line : lines_of(path_)) out.push_back(json::parse(line));
        return out;
    }

    std::string dir_, path_;
};

TEST_F(LogTest, a_line_is_one_json_object_with_the_fields_in_order) {
    const Uuid id = Uuid::make();
    {
        auto log = make_log("gateway", path_, Level::info);
        log->info("statement_done",
                  {{"statement", id}, {"rows", 5}, {"seconds", 0.25}, {"ok", true}, {"who", "a\"b\n\xff"}});
    }
    const auto lines = lines_of(path_);
    ASSERT_EQ(lines.size(), 1U);
    const auto line = nlohmann::ordered_json::parse(lines[0]);
    std::vector<std::string> keys;
    for (const auto &item : line.items()) keys.push_back(item.key());
    EXPECT_EQ(keys, (std::vector<std::string>{"ts", "level", "component", "event", "statement", "rows", "seconds", "ok",
                                              "who"}));
    EXPECT_EQ(line["level"], "info");
    EXPECT_EQ(line["component"], "gateway");
    EXPECT_EQ(line["statement"], id.to_string());
    EXPECT_EQ(line["rows"], 5);
    EXPECT_EQ(line["seconds"], 0.25);
    EXPECT_EQ(line["ok"], true);
    EXPECT_EQ(line["who"], "a\"b\n\uFFFD");
    const std::string ts = line["ts"];
    ASSERT_EQ(ts.size(), 27U) << ts;
    EXPECT_EQ(
        ts.substr(4, 1) + ts.substr(7, 1) + ts.substr(10, 1) + ts.substr(13, 1) + ts.substr(19, 1) + ts.substr(26),
        "--T:.Z");
}

TEST_F(LogTest, numbers_keep_their_value_and_what_is_no_number_stays_valid_json) {
    {
        auto log = make_log("x", path_, Level::info);
        log->info("e", {{"least", std::numeric_limits<int64_t>::min()},
                        {"tiny", 5e-324},
                        {"third", 1.0 / 3},
                        {"nan", std::nan("")},
                        {"inf", -std::numeric_limits<double>::infinity()}});
    }
    const json line = logged().at(0);
    EXPECT_EQ(line["least"].get<int64_t>(), std::numeric_limits<int64_t>::min());
    EXPECT_EQ(line["tiny"].get<double>(), 5e-324);
    EXPECT_EQ(line["third"].get<double>(), 1.0 / 3);
    EXPECT_EQ(line["nan"], "nan");
    EXPECT_EQ(line["inf"], "-inf");
}

TEST_F(LogTest, lines_below_the_level_are_left_out) {
    {
        auto log = make_log("x", path_, Level::warn);
        log->debug("debug");
        log->info("info");
        log->warn("warn");
        log->error("error");
        EXPECT_FALSE(log->enabled(Level::info));
    }
    const auto lines = logged();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0]["event"], "warn");
    EXPECT_EQ(lines[1]["event"], "error");
}

TEST_F(LogTest, threads_do_not_mix_their_lines_and_each_keeps_its_order) {
    constexpr int kThreads = 4;
    constexpr int kLines = 2'000;
    {
        auto log = make_log("x", path_, Level::info);
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&log, t] {
                for (int i = 0; i < kLines; ++i) log->info("e", {{"thread", t}, {"line", i}});
            });
        }
        for (auto &thread : threads) thread.join();
    }
    std::vector<int> next(kThreads, 0);
    for (const auto &line : logged()) EXPECT_EQ(line["line"].get<int>(), next[line["thread"].get<size_t>()]++);
    EXPECT_EQ(next, std::vector<int>(kThreads, kLines));
}

TEST_F(LogTest, appends_to_what_an_earlier_run_wrote) {
    make_log("x", path_, Level::info)->info("first");
    make_log("x", path_, Level::info)->info("second");
    ASSERT_EQ(logged().size(), 2U);
}

TEST_F(LogTest, a_value_of_any_length_is_cut_to_a_bound) {
    { make_log("x", path_, Level::info)->info("e", {{"text", std::string(10 << 20, 'x')}}); }
    EXPECT_LT(lines_of(path_).at(0).size(), 20'000U);
    EXPECT_EQ(logged().at(0)["event"], "e");
}

// A pipe that nobody reads is the slowest disk there is.
TEST_F(LogTest, a_stuck_disk_costs_lines_and_says_how_many_but_never_blocks_the_caller) {
    const std::string pipe = dir_ + "/pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    auto log = make_log("x", pipe, Level::info);
    constexpr int kLines = 60'000;
    const std::string text(200, 'x');
    for (int i = 0; i < kLines; ++i) log->info("e", {{"text", text}});  // 15 MB into a queue of 4

    ASSERT_EQ(fcntl(reader, F_SETFL, 0), 0);
    std::thread closer([&log] { log.reset(); });
    std::string all;
    char piece[65'536];
    for (ssize_t size = 0; (size = read(reader, piece, sizeof(piece))) > 0;)
        all.append(piece, static_cast<size_t>(size));
    closer.join();
    close(reader);
    int64_t written = 0;
    int64_t dropped = 0;
    std::istringstream in(all);
    for (std::string line; std::getline(in, line);) {
        const json parsed = json::parse(line);
        if (parsed["event"] == "log_lines_dropped") {
            dropped += parsed["lines"].get<int64_t>();
        } else {
            ++written;
        }
    }
    EXPECT_GT(dropped, 0);
    EXPECT_EQ(written + dropped, kLines);
}

TEST_F(LogTest, a_path_that_cannot_be_opened_leaves_a_log_that_works) {
    testing::internal::CaptureStderr();
    { make_log("x", dir_ + "/missing/roost.log", Level::info)->info("still_here"); }
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("log_file_unusable"), std::string::npos) << text;
    EXPECT_NE(text.find("still_here"), std::string::npos) << text;
}

TEST_F(LogTest, file_rotates_and_keeps_three) {
    std::string problem;
    auto file = LogFile::open(path_, LogRotation{.file_max_bytes = 100, .files = 3}, problem);
    ASSERT_NE(file, nullptr) << problem;
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(file->append(std::to_string(i) + std::string(58, '.') + "\n"));
    EXPECT_EQ(lines_of(path_).at(0)[0], '9');
    EXPECT_EQ(lines_of(path_ + ".1").at(0)[0], '8');
    EXPECT_EQ(lines_of(path_ + ".2").at(0)[0], '7');
    EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
}

TEST_F(LogTest, file_follows_its_path_when_it_is_moved_away) {
    std::string problem;
    auto file = LogFile::open(path_, LogRotation{}, problem);
    ASSERT_NE(file, nullptr);
    EXPECT_TRUE(file->append("one\n"));
    std::filesystem::rename(path_, path_ + ".moved");
    EXPECT_TRUE(file->append("two\n"));
    EXPECT_EQ(lines_of(path_), std::vector<std::string>{"two"});
    EXPECT_EQ(lines_of(path_ + ".moved"), std::vector<std::string>{"one"});
}

TEST_F(LogTest, a_full_disk_is_an_answer_and_not_a_crash) {
    std::string problem;
    auto file = LogFile::open("/dev/full", LogRotation{}, problem);
    ASSERT_NE(file, nullptr) << problem;
    EXPECT_FALSE(file->append("line\n"));
    EXPECT_FALSE(file->append("line\n"));
}

TEST(Level, names_are_parsed_and_anything_else_is_info) {
    EXPECT_EQ(parse_level("debug"), Level::debug);
    EXPECT_EQ(parse_level("warn"), Level::warn);
    EXPECT_EQ(parse_level("error"), Level::error);
    EXPECT_EQ(parse_level("loud"), Level::info);
}

TEST(NullLog, takes_anything) { make_null_log()->error("event", {{"a", 1}}); }

}  // namespace
}  // namespace roost::obs
