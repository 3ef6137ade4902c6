#include "app/pool_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/credentials.h"
#include "app/endpoints.h"
#include "app/files.h"

namespace roost::app {
namespace {

namespace fs = std::filesystem;

class PoolDirectoryTest : public testing::Test {
protected:
    PoolDirectoryTest() {
        std::string pattern = (fs::temp_directory_path() / "roost-dir-XXXXXX").string();
        root_ = ::mkdtemp(pattern.data());
    }
    ~PoolDirectoryTest() override { fs::remove_all(root_); }

    static mode_t mode(const std::string &path) {
        struct stat info {};
        return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
    }

    fs::path root_;
};

TEST_F(PoolDirectoryTest, IsMadePrivateWithItsFolders) {
    const auto made = PoolDirectory::open(root_ / "a/b/.roost/");
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    EXPECT_EQ(made->paths().dir, (root_ / "a/b/.roost").string());
    EXPECT_EQ(mode(made->paths().dir), 0700u);
    EXPECT_TRUE(fs::is_directory(root_ / "a/b/.roost/log"));
    EXPECT_EQ(read_file(made->paths().lock()).value(), std::to_string(::getpid()) + "\n");
}

TEST_F(PoolDirectoryTest, TakesOneOwnerAtATimeAndNamesIt) {
    {
        const auto first = PoolDirectory::open(root_);
        ASSERT_TRUE(first.ok());
        const Status second = PoolDirectory::open(root_).status();
        EXPECT_EQ(second.code(), Code::failed_precondition);
        EXPECT_NE(second.message().find("(pid " + std::to_string(::getpid()) + ")"), std::string::npos);
    }
    EXPECT_TRUE(PoolDirectory::open(root_).ok());
}

TEST_F(PoolDirectoryTest, LeavesDirectoriesOfOthersAlone) {
    std::ofstream(root_ / "letter.txt") << "dear";
    ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
    EXPECT_EQ(PoolDirectory::open(root_).status().code(), Code::already_exists);
    EXPECT_EQ(mode(root_), 0755u);
    EXPECT_EQ(PoolDirectory::open(root_ / "letter.txt").status().code(), Code::already_exists);
}

TEST_F(PoolDirectoryTest, RemovesWhatAKilledRunLeftAndKeepsTheRest) {
    PoolPaths paths;
    {
        const auto first = PoolDirectory::open(root_);
        ASSERT_TRUE(first.ok());
        paths = first->paths();
        std::ofstream(paths.ready()) << "{}";
        std::ofstream(paths.socket()) << "";
        std::ofstream(paths.credentials()) << "kept";
    }
    ASSERT_TRUE(PoolDirectory::open(root_).ok());
    EXPECT_FALSE(fs::exists(paths.ready()));
    EXPECT_FALSE(fs::exists(paths.socket()));
    EXPECT_TRUE(fs::exists(paths.credentials()));
}

TEST_F(PoolDirectoryTest, CredentialsAreMadeOnceAndPrivate) {
    const std::string path = root_ / "credentials";
    EXPECT_EQ(load_credentials(path).status().code(), Code::not_found);
    const auto made = ensure_credentials(path);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(mode(path), 0600u);
    EXPECT_EQ(made->user, "admin");
    EXPECT_GE(made->password.size(), 32u);
    const auto again = ensure_credentials(path);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->password, made->password);
    EXPECT_EQ(again->token, made->token);
    std::ofstream(path) << R"({"user":"admin","password":""})";
    EXPECT_EQ(ensure_credentials(path).status().code(), Code::invalid_argument);
}

TEST_F(PoolDirectoryTest, JoinTokenIsMadeOnceAndPrivate) {
    const std::string path = root_ / "join-token";
    const auto made = ensure_join_token(path);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(mode(path), 0600u);
    EXPECT_EQ(load_join_token(path).value(), *made);
    EXPECT_EQ(ensure_join_token(path).value(), *made);
}

TEST_F(PoolDirectoryTest, PassfileEscapesWhatLibpqSplitsAt) {
    EXPECT_EQ(passfile_line({"admin", R"(a:b\c)", ""}), "*:*:*:admin:a\\:b\\\\c\n");
}

TEST_F(PoolDirectoryTest, AtomicWritesReplaceWithTheModeAskedFor) {
    const std::string path = root_ / "f";
    ASSERT_TRUE(write_file_atomically(path, "one", 0600).ok());
    ASSERT_TRUE(write_file_atomically(path, "two", 0644).ok());
    EXPECT_EQ(read_file(path).value(), "two");
    EXPECT_EQ(mode(path), 0644u);
    EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1);
    EXPECT_EQ(write_file_atomically(root_ / "none/f", "x").code(), Code::not_found);
}

TEST_F(PoolDirectoryTest, LastLinesOfALog) {
    const std::string path = root_ / "log";
    EXPECT_EQ(last_lines(path, 3), "");
    std::ofstream(path) << "one\ntwo\nthree\n";
    EXPECT_EQ(last_lines(path, 2), "two\nthree");
    EXPECT_EQ(last_lines(path, 9), "one\ntwo\nthree");
    EXPECT_EQ(last_lines(path, 9, 4), "two\nthree");
    EXPECT_EQ(last_lines(path, 1, 4), "three");
    EXPECT_EQ(last_lines(path, 9, 14), "");
}

TEST(Endpoints, SurviveTheLineTheyTravelIn) {
    const Endpoints endpoints{"127.0.0.1:8080", "[::1]:5433", "unix:/tmp/a b/gateway.sock"};
    EXPECT_EQ(endpoints_from_json(endpoints_to_json(endpoints)).value(), endpoints);
    for (const char *wrong : {"", "{}", "[]", R"({"http":1,"pg":"a","internal":"b"})", R"({"http":"a","pg":"b")"}) {
        EXPECT_FALSE(endpoints_from_json(wrong).ok()) << wrong;
    }
}

}  // namespace
}  // namespace roost::app
