#include "routing/trace_recorder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace roost::routing {
namespace {

using Part = placement::Claim::Part;

Part part(uint64_t table, uint64_t bytes, bool written = false) {
    return {.unit = {1, table, 0}, .epoch = 0, .bytes = bytes, .written = written};
}

class TraceRecorderTest : public testing::Test {
protected:
    void TearDown() override { std::filesystem::remove(options.path); }
    std::string text() const {
        std::ostringstream out;
        out << std::ifstream(options.path).rdbuf();
        return out.str();
    }
    TraceOptions options{.path = testing::TempDir() + "roost-trace-" +
                                 testing::UnitTest::GetInstance()->current_test_info()->name()};
    std::unique_ptr<obs::Log> log = obs::make_null_log();
};

TEST_F(TraceRecorderTest, UnitsAreNamedOnceAndStatementsCountFromTheFirst) {
    {
        auto recorder = TraceRecorder::open(options, *log);
        ASSERT_TRUE(recorder.ok()) << recorder.status().to_string();
        (*recorder)->record(5'000, 70, std::vector{part(7, 100)});
        (*recorder)->record(6'000, 80, std::vector{part(7, 100), part(9, 300, true)});
        (*recorder)->record(6'000, 80, {});
        (*recorder)->record(4'000, 0, std::vector{part(9, 0)});
        EXPECT_EQ((*recorder)->recorded(), 3U);
    }
    EXPECT_EQ(text(), "roost-trace 1\nunit 0 100\nrun 0 r 70 0\nunit 1 300\nrun 1000 w 80 1,0\nrun 0 r 1 1\n");
}

TEST_F(TraceRecorderTest, TheFileIsBoundedAndWholeLines) {
    options.max_bytes = 1'000;
    options.chunk_bytes = 100;
    uint64_t recorded = 0;
    {
        auto recorder = TraceRecorder::open(options, *log);
        ASSERT_TRUE(recorder.ok());
        for (int i = 0; i < 1'000; ++i) (*recorder)->record(i, 1, std::vector{part(i % 5, 10)});
        recorded = (*recorder)->recorded();
        EXPECT_EQ(recorded + (*recorder)->left_out(), 1'000U);
    }
    const std::string written = text();
    EXPECT_LT(written.size(), 1'100U);
    EXPECT_GT(recorded, 10U);
    EXPECT_EQ(written.back(), '\n');
    size_t runs = 0;
    for (size_t at = written.find("run "); at != std::string::npos; at = written.find("run ", at + 1)) ++runs;
    EXPECT_EQ(runs, recorded);
}

TEST_F(TraceRecorderTest, AFileThatCantBeMadeIsAnError) {
    EXPECT_EQ(TraceRecorder::open({.path = "/nowhere/at/all"}, *log).status().code(), Code::io_error);
}

}  // namespace
}  // namespace roost::routing
