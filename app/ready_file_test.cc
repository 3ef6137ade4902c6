#include "app/ready_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "app/files.h"
#include "app/pool_address.h"
#include "app/pool_directory.h"

namespace roost::app {
namespace {

namespace fs = std::filesystem;

ReadyInfo example() {
    ReadyInfo info;
    info.http = "http://127.0.0.1:8080";
    info.pg = "127.0.0.1:5433";
    info.credentials = {"admin", "secret", "roost_token"};
    info.nodes = {{"id-1", "/p/nodes/1", 11}};
    return info;
}

TEST(ReadyFile, HasTheKeysThatScriptsRead) {
    EXPECT_EQ(ready_to_json(example()),
              R"({
  "http": "http://127.0.0.1:8080",
  "pg": "127.0.0.1:5433",
  "user": "admin",
  "password": "secret",
  "token": "roost_token",
  "workspace": "main",
  "catalog": "lake",
  "nodes": [
    {
      "id": "id-1",
      "pid": 11,
      "dir": "/p/nodes/1"
    }
  ]
}
)");
    EXPECT_EQ(ready_from_json("f", ready_to_json(example()))->credentials.token, "roost_token");
    EXPECT_NE(ready_from_json("the-file", "{}").status().message().find("the-file"), std::string::npos);
}

TEST(ReadyFile, PsqlLineIsForTheShell) {
    EXPECT_EQ(psql_line(example(), "/p/pgpass"), "PGPASSFILE=/p/pgpass psql -h 127.0.0.1 -p 5433 -U admin -d lake");
    ReadyInfo info = example();
    info.pg = "[::1]:1";
    EXPECT_EQ(psql_line(info, "/a b/it's"), R"(PGPASSFILE='/a b/it'\''s' psql -h ::1 -p 1 -U admin -d lake)");
}

TEST(ReadyFile, WildcardsAreDialledOverLoopback) {
    EXPECT_EQ(dialable("0.0.0.0:80"), "127.0.0.1:80");
    EXPECT_EQ(dialable("[::]:80"), "[::1]:80");
    EXPECT_EQ(dialable("10.0.0.1:80"), "10.0.0.1:80");
}

class FindPool : public testing::Test {
protected:
    FindPool() {
        std::string pattern = (fs::temp_directory_path() / "roost-find-XXXXXX").string();
        dir_ = ::mkdtemp(pattern.data());
    }
    ~FindPool() override { fs::remove_all(dir_); }

    // "URL TOKEN", or the error's code name.
    std::string find(PoolArguments arguments, std::map<std::string, std::string> variables = {}) {
        if (arguments.dir.empty() && !variables.contains("ROOST_DIR")) arguments.dir = dir_;
        const auto found = find_pool(arguments, [&](const std::string &name) -> std::optional<std::string> {
            const auto at = variables.find(name);
            return at == variables.end() ? std::nullopt : std::optional(at->second);
        });
        return found.ok() ? found->url + " " + found->token : std::string(code_name(found.status().code()));
    }

    void pool_runs() {
        const PoolPaths paths = pool_paths(dir_);
        ASSERT_TRUE(write_file_atomically(paths.ready(), ready_to_json(example())).ok());
        ASSERT_TRUE(ensure_credentials(paths.credentials()).ok());
    }

    std::string dir_;
};

TEST_F(FindPool, TakesWhatRunsInTheDirectory) {
    EXPECT_EQ(find({}), "not_found");
    pool_runs();
    EXPECT_EQ(find({}), "http://127.0.0.1:8080 roost_token");
    EXPECT_EQ(find({}, {{"ROOST_DIR", dir_}}), "http://127.0.0.1:8080 roost_token");
}

TEST_F(FindPool, FlagsBeatVariablesBeatTheDirectory) {
    pool_runs();
    EXPECT_EQ(find({.url = "http://a:1", .token = "t"}, {{"ROOST_URL", "http://b:1"}, {"ROOST_TOKEN", "u"}}),
              "http://a:1 t");
    EXPECT_EQ(find({}, {{"ROOST_URL", "http://b:1"}, {"ROOST_TOKEN", "u"}}), "http://b:1 u");
    EXPECT_EQ(find({.token = "t"}), "http://127.0.0.1:8080 t");
}

TEST_F(FindPool, TheDirectorysTokenDoesNotLeaveTheMachine) {
    pool_runs();
    const std::string token = load_credentials(pool_paths(dir_).credentials())->token;
    EXPECT_EQ(find({.url = "http://localhost:9"}), "http://localhost:9 " + token);
    EXPECT_EQ(find({.url = "http://[::1]:9"}), "http://[::1]:9 " + token);
    EXPECT_EQ(find({.url = "http://elsewhere:8080"}), "unauthorized");
    EXPECT_EQ(find({.url = "http://localhost.elsewhere:8080"}), "unauthorized");
    EXPECT_EQ(find({.url = "http://127.0.0.1@elsewhere:8080"}), "unauthorized");
}

}  // namespace
}  // namespace roost::app
