#include "engine/file_system.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "duckdb/common/exception.hpp"
#include "duckdb/common/virtual_file_system.hpp"

namespace roost {
namespace {

namespace fs = std::filesystem;

class FileWallTest : public ::testing::Test {
protected:
    FileWallTest() {
        char name[] = "/tmp/roost-wall-XXXXXX";
        dir_ = fs::canonical(mkdtemp(name)).string();
        for (const char *sub : {"/data/main", "/spill", "/staging", "/database"}) fs::create_directories(dir_ + sub);
        for (const char *file : {"/secret", "/data/main/a.parquet", "/staging/up.csv", "/database/b"}) {
            std::ofstream(dir_ + file) << "text";
        }
        fs::create_symlink(dir_ + "/secret", dir_ + "/data/link");
        fs::create_directory_symlink(dir_, dir_ + "/data/up");
        wall_ = std::make_shared<FileWall>(FileWallOptions{
            .data_dirs = {{"lake", dir_ + "/data/"}},
            .spill_dir = dir_ + "/spill",
            .staging_dir = dir_ + "/staging",
            .on_deferred_removal = [this](const std::string &, const std::string &path) { deferred_.push_back(path); },
        });
        files_ = std::make_unique<duckdb::VirtualFileSystem>(make_walled_file_system(wall_));
        wall_->seal();
    }
    ~FileWallTest() override { fs::remove_all(dir_); }

    // Every way in with a path, refused.
    void expect_wall(const std::string &path) {
        using duckdb::PermissionException;
        duckdb::FileSystem &files = *files_;
        EXPECT_THROW(files.OpenFile(path, duckdb::FileFlags::FILE_FLAGS_READ), PermissionException) << path;
        EXPECT_THROW(files.OpenFile(duckdb::OpenFileInfo(path), duckdb::FileFlags::FILE_FLAGS_READ),
                     PermissionException)
            << path;
        EXPECT_THROW(
            files.OpenFile(path, duckdb::FileFlags::FILE_FLAGS_WRITE | duckdb::FileFlags::FILE_FLAGS_FILE_CREATE_NEW),
            PermissionException)
            << path;
        EXPECT_THROW(files.FileExists(path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.DirectoryExists(path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.CreateDirectory(path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.RemoveDirectory(path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.RemoveFile(path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.TryRemoveFile(path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.RemoveFiles({path}, nullptr), PermissionException) << path;
        EXPECT_THROW(files.MoveFile(path, dir_ + "/spill/x", nullptr), PermissionException) << path;
        EXPECT_THROW(files.MoveFile(dir_ + "/data/main/a.parquet", path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.IsPipe(path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.CanonicalizePath(path, nullptr), PermissionException) << path;
        EXPECT_THROW(files.GlobFiles(path + "/*"), PermissionException) << path;
        EXPECT_THROW(files.ListFiles(path, [](const std::string &, bool) {}), PermissionException) << path;
    }

    std::string dir_;
    std::shared_ptr<FileWall> wall_;
    std::unique_ptr<duckdb::VirtualFileSystem> files_;
    std::vector<std::string> deferred_;
};

TEST_F(FileWallTest, NothingOutsideIsReached) {
    for (const std::string &path :
         {dir_ + "/secret", std::string("/etc/passwd"), dir_, std::string("/"), std::string(""),
          std::string("relative/path"), dir_ + "/data/../secret", dir_ + "/data/link", dir_ + "/data/up/secret",
          dir_ + "/data/up/new/file", dir_ + "/database/b", std::string("file://") + dir_ + "/data/main/a.parquet",
          dir_ + "/data/main/..", std::string("/proc/self/environ"), dir_ + "/data/main/a.parquet/../../../secret"}) {
        expect_wall(path);
    }
    EXPECT_TRUE(fs::exists(dir_ + "/secret"));
}

TEST_F(FileWallTest, TheLakeAndTheSpillAreOpen) {
    duckdb::FileSystem &files = *files_;
    EXPECT_TRUE(files.FileExists(dir_ + "/data/main/a.parquet"));
    EXPECT_TRUE(files.FileExists(dir_ + "//data//main/a.parquet"));
    EXPECT_FALSE(files.FileExists(dir_ + "/data/main/absent"));
    files.CreateDirectory(dir_ + "/data/other");
    auto file = files.OpenFile(dir_ + "/data/other/new",
                               duckdb::FileFlags::FILE_FLAGS_WRITE | duckdb::FileFlags::FILE_FLAGS_FILE_CREATE_NEW);
    char text[] = "abc";
    file->Write(text, 3);
    file->Close();
    EXPECT_EQ(fs::file_size(dir_ + "/data/other/new"), 3u);
    EXPECT_EQ(files.GlobFiles(dir_ + "/data/*/*").size(), 2u);
    files.RemoveFile(dir_ + "/data/other/new");
    EXPECT_FALSE(fs::exists(dir_ + "/data/other/new"));
    files.CreateDirectory(dir_ + "/spill/x");
    files.RemoveDirectory(dir_ + "/spill/x");
}

TEST_F(FileWallTest, StagedFilesAreReadOnly) {
    duckdb::FileSystem &files = *files_;
    EXPECT_TRUE(files.FileExists(dir_ + "/staging/up.csv"));
    EXPECT_EQ(files.GlobFiles(dir_ + "/staging/*.csv").size(), 1u);
    EXPECT_THROW(files.RemoveFile(dir_ + "/staging/up.csv"), duckdb::PermissionException);
    EXPECT_THROW(files.OpenFile(dir_ + "/staging/new",
                                duckdb::FileFlags::FILE_FLAGS_WRITE | duckdb::FileFlags::FILE_FLAGS_FILE_CREATE_NEW),
                 duckdb::PermissionException);
}

TEST_F(FileWallTest, RemovalsDuringACommitAreDeferredAndTold) {
    duckdb::FileSystem &files = *files_;
    const std::string file = dir_ + "/data/main/a.parquet";
    {
        const FileWall::DeferRemovals commit(*wall_);
        EXPECT_TRUE(files.TryRemoveFile(file));
        files.RemoveFile(file);
    }
    EXPECT_TRUE(fs::exists(file));
    EXPECT_EQ(deferred_, (std::vector<std::string>{file, file}));
    files.RemoveFile(file);
    EXPECT_FALSE(fs::exists(file));
}

TEST(FileWallOfAStore, LetsThroughKeysBelowThePrefixAndNothingElse) {
    using Access = FileWall::Access;
    FileWall wall({.data_dirs = {{"lake", "s3://bucket/my prefix/data/"}},
                   .spill_dir = "/tmp",
                   .staging_dir = "",
                   .on_deferred_removal = {}});
    // Set-up has nothing to do with the store: it is judged from the start.
    for (const bool sealed : {false, true}) {
        if (sealed) wall.seal();
        for (const auto access : {Access::read, Access::write, Access::remove}) {
            EXPECT_TRUE(wall.allows("s3://bucket/my prefix/data/main/t/p=a%20b/f.parquet", access));
            for (const char *path : {"s3://bucket/my prefix/data/",
                                     "s3://bucket/my prefix/data",
                                     "s3://bucket/my prefix/data/main/",
                                     "s3://bucket/my prefix/data/../x",
                                     "s3://bucket/my prefix/data/a/../../x",
                                     "s3://bucket/my prefix/data/a/./b",
                                     "s3://bucket/my prefix/data//a",
                                     "s3://bucket/my prefix/data/a?s3_endpoint=evil",
                                     "s3://bucket/my prefix/data/a#b",
                                     "s3://bucket/my prefix/data/a\\b",
                                     "s3://bucket/my prefix/data/a*",
                                     "s3://bucket/my prefix/data2/a",
                                     "s3://bucket/my prefix/staging/a",
                                     "s3://other/my prefix/data/a",
                                     "S3://bucket/my prefix/data/a",
                                     "s3a://bucket/my prefix/data/a",
                                     "gcs://bucket/my prefix/data/a",
                                     "http://bucket/my prefix/data/a",
                                     "https://host/a",
                                     "hf://datasets/a",
                                     "file:///etc/passwd",
                                     "s3://bucket",
                                     "s3://"}) {
                EXPECT_FALSE(wall.allows(path, access)) << path;
            }
        }
        EXPECT_TRUE(wall.allows("s3://bucket/my prefix/data/", Access::list));
        EXPECT_TRUE(wall.allows("s3://bucket/my prefix/data/main/", Access::list));
        EXPECT_FALSE(wall.allows("s3://bucket/my prefix/", Access::list));
        EXPECT_FALSE(wall.allows("s3://bucket/my prefix/data/../", Access::list));
    }
    EXPECT_FALSE(wall.allows("/etc/passwd", Access::read));
}

TEST(FileWallOfAStore, PutsRemovalsOffWhileACommitIsUnderWay) {
    std::vector<std::string> deferred;
    FileWall wall({.data_dirs = {{"lake", "s3://bucket/data/"}},
                   .spill_dir = "/tmp",
                   .staging_dir = "",
                   .on_deferred_removal = [&deferred](const std::string &, const std::string &path) {
                       deferred.push_back(path);
                   }});
    wall.seal();
    EXPECT_FALSE(wall.check_removal("s3://bucket/data/a"));
    {
        const FileWall::DeferRemovals keep(wall);
        EXPECT_TRUE(wall.check_removal("s3://bucket/data/a"));
    }
    EXPECT_EQ(deferred, std::vector<std::string>{"s3://bucket/data/a"});
    EXPECT_THROW(wall.check_removal("s3://bucket/else"), duckdb::PermissionException);
}

}  // namespace
}  // namespace roost
