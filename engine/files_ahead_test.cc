#include "engine/files_ahead.h"

#include <gtest/gtest.h>

namespace roost {
namespace {

std::vector<FilesAhead::File> files(const std::string &prefix, size_t count) {
    std::vector<FilesAhead::File> out;
    for (size_t i = 0; i < count; ++i) out.push_back({prefix + std::to_string(i), 100 + i});
    return out;
}

std::string names(const std::vector<FilesAhead::File> &files) {
    std::string out;
    for (const auto &file : files) out += file.path + " ";
    return out;
}

TEST(FilesAhead, NamesMoreAndMoreEachOnce) {
    FilesAhead ahead;
    ahead.will_read(files("a", 100));
    EXPECT_EQ(names(ahead.after("a0")), "a1 ");
    EXPECT_EQ(names(ahead.after("a0")), "") << "another thread opens it, too";
    EXPECT_EQ(names(ahead.after("a1")), "a2 a3 ");
    EXPECT_EQ(names(ahead.after("a2")), "a4 a5 a6 ");
    EXPECT_EQ(names(ahead.after("a3")), "a7 a8 a9 a10 a11 ");
    EXPECT_EQ(ahead.after("a4").size(), 9u) << "up to a20";
    EXPECT_EQ(names(ahead.after("a5")), "a21 ");
    EXPECT_EQ(names(ahead.after("a99")), "") << "the last";
    EXPECT_EQ(names(ahead.after("elsewhere")), "");
}

TEST(FilesAhead, ScansDoNotDisturbEachOther) {
    FilesAhead ahead;
    ahead.will_read(files("a", 5));
    ahead.will_read(files("b", 5));
    EXPECT_EQ(names(ahead.after("b0")), "b1 ");
    EXPECT_EQ(names(ahead.after("a0")), "a1 ");
    EXPECT_EQ(names(ahead.after("b1")), "b2 b3 ");
    EXPECT_EQ(names(ahead.after("b3")), "b4 ") << "out of order";
}

TEST(FilesAhead, IsBounded) {
    FilesAhead ahead;
    ahead.will_read(files("a", 1));
    EXPECT_EQ(names(ahead.after("a0")), "") << "nothing comes after it";
    ahead.will_read(files("b", 5'000));
    EXPECT_EQ(names(ahead.after("b0")), "");
}

}  // namespace
}  // namespace roost
