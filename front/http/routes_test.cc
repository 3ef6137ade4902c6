#include "front/http/routes.h"

#include <gtest/gtest.h>

namespace roost::http {
namespace {

TEST(Routes, ExactPathAndMethod) {
    const auto match = match_route("GET", {"api", "queries", "17", "rows"});
    EXPECT_EQ(match.route, Route::statement_rows);
    EXPECT_EQ(match.args, std::vector<std::string>{"17"});
    const auto upload = match_route("PUT", {"api", "workspaces", "main", "imports", "id", "files", "a b.csv"});
    EXPECT_EQ(upload.route, Route::import_upload);
    EXPECT_EQ(upload.args, (std::vector<std::string>{"main", "id", "a b.csv"}));
}

TEST(Routes, HeadCountsAsGet) { EXPECT_EQ(match_route("HEAD", {"api", "version"}).route, Route::version); }

TEST(Routes, WrongMethodNamesTheRightOnes) {
    const auto match = match_route("PATCH", {"api", "queries", "17"});
    EXPECT_EQ(match.route, Route::wrong_method);
    EXPECT_EQ(match.allow, "GET, HEAD, DELETE");
    EXPECT_TRUE(match.args.empty());
}

TEST(Routes, OtherPathsAreNone) {
    for (const std::vector<std::string> &path :
         std::vector<std::vector<std::string>>{{},
                                               {""},
                                               {"api"},
                                               {"api", "queries"},
                                               {"api", "queries", ""},
                                               {"api", "queries", "1", ""},
                                               {"API", "version"},
                                               {"version"},
                                               {"api", "queries", "1", "rows", "2"},
                                               {"api", "", "queries", "1"}}) {
        EXPECT_EQ(match_route("GET", path).route, Route::none);
    }
}

TEST(Routes, OnlyHealthAndVersionArePublic) {
    for (int i = 0; i <= static_cast<int>(Route::stage_files); ++i) {
        const auto route = static_cast<Route>(i);
        EXPECT_EQ(is_public(route), route == Route::liveness || route == Route::readiness || route == Route::version)
            << i;
    }
}

}  // namespace
}  // namespace roost::http
