#include "app/import_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace roost::app {
namespace {

namespace fs = std::filesystem;

// A directory of its own with some files in it.
class ImportFiles : public testing::Test {
protected:
    ImportFiles() {
        std::string pattern = (fs::temp_directory_path() / "roost-import-XXXXXX").string();
        root_ = ::mkdtemp(pattern.data());
        for (const char *name :
             {"a.parquet", "b.csv", "B2.CSV", "c.csv.gz", "d.tsv", "notes.txt", "y=1/e.parquet", "y=1/z/f.parquet",
              "_tmp/g.parquet", ".hidden/h.parquet", "_SUCCESS.csv", "odd[1].csv"}) {
            fs::create_directories((root_ / name).parent_path());
            std::ofstream(root_ / name) << "123";
        }
    }
    ~ImportFiles() override { fs::remove_all(root_); }

    // The files that the arguments (relative to the directory) come to, relative again; or the error's message.
    std::vector<std::string> expand(const std::vector<std::string> &arguments) {
        std::vector<std::string> full;
        for (const std::string &argument : arguments) full.push_back((root_ / argument).string());
        const auto found = expand_import_files(full);
        if (!found.ok()) return {found.status().message()};
        std::vector<std::string> out;
        for (const ImportFile &file : *found) out.push_back(fs::path(file.path).lexically_relative(root_).string());
        return out;
    }

    fs::path root_;
};

using Names = std::vector<std::string>;

TEST_F(ImportFiles, GlobsAreExpandedInOrder) {
    EXPECT_EQ(expand({"*.csv"}), (Names{"_SUCCESS.csv", "b.csv", "odd[1].csv"}));
    EXPECT_EQ(expand({"?.csv*", "a.*"}), (Names{"b.csv", "c.csv.gz", "a.parquet"}));
    EXPECT_EQ(expand({"y=*/*.parquet"}), (Names{"y=1/e.parquet"}));
    EXPECT_EQ(expand({"[ab].*"}), (Names{"a.parquet", "b.csv"}));
}

TEST_F(ImportFiles, TwoStarsCrossDirectoriesButNotHiddenOnes) {
    EXPECT_EQ(expand({"y=1/**/*.parquet"}), (Names{"y=1/e.parquet", "y=1/z/f.parquet"}));
    EXPECT_EQ(expand({"**/[efgh].parquet"}),
              (Names{".hidden/h.parquet", "_tmp/g.parquet", "y=1/e.parquet", "y=1/z/f.parquet"}));
}

TEST_F(ImportFiles, DirectoriesStandForTheDataBelowThem) {
    EXPECT_EQ(expand({""}), (Names{"B2.CSV", "a.parquet", "b.csv", "c.csv.gz", "d.tsv", "odd[1].csv", "y=1/e.parquet",
                                   "y=1/z/f.parquet"}));
}

TEST_F(ImportFiles, NamesAreTakenLiterallyWhenTheyExistAndOnce) {
    EXPECT_EQ(expand({"odd[1].csv", "b.csv", "*.csv"}), (Names{"odd[1].csv", "b.csv", "_SUCCESS.csv"}));
}

TEST_F(ImportFiles, WhatMatchesNothingIsAnErrorThatNamesIt) {
    EXPECT_NE(expand({"b.csv", "none.csv"})[0].find("no such file: " + (root_ / "none.csv").string()),
              std::string::npos);
    EXPECT_NE(expand({"*.json"})[0].find("no file matches"), std::string::npos);
    EXPECT_NE(expand({"nowhere/*.csv"})[0].find("no file matches"), std::string::npos);
    EXPECT_NE(expand({"notes.txt"})[0].find("cannot tell the format of"), std::string::npos);
    EXPECT_FALSE(expand_import_files({}).ok());
    EXPECT_FALSE(expand_import_files({"/dev/null"}).ok());
}

TEST_F(ImportFiles, StagedNamesAreUniqueAndPlain) {
    const auto found =
        expand_import_files({(root_ / "y=1").string(), (root_ / "odd[1].csv").string(), (root_ / "B2.CSV").string()});
    ASSERT_TRUE(found.ok());
    Names names;
    for (const ImportFile &file : *found) names.push_back(file.staged_name);
    EXPECT_EQ(names, (Names{"00001-e.parquet", "00002-f.parquet", "00003-odd_1_.csv", "00004-b2.csv"}));
    EXPECT_EQ(found->at(0).format, "parquet");
    EXPECT_EQ(found->at(2).format, "csv");
    EXPECT_EQ(found->at(2).size_bytes, 3u);
}

TEST(ImportTableName, PartsAndQuotes) {
    const auto parts = [](std::string_view text) {
        const auto name = parse_table_name(text);
        return name.ok() ? name->schema + "|" + name->table : "error";
    };
    EXPECT_EQ(parts("orders"), "main|orders");
    EXPECT_EQ(parts("sales.orders"), "sales|orders");
    EXPECT_EQ(parts(R"("my.schema"."a ""b""")"), R"(my.schema|a "b")");
    for (const char *wrong : {"", ".", "a.", ".a", "a.b.c", "\"a", "\"a\"b", "a\"b\""})
        EXPECT_EQ(parts(wrong), "error") << wrong;
}

}  // namespace
}  // namespace roost::app
