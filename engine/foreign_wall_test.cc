// What the file wall lets through below folders of others.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "duckdb/common/exception.hpp"
#include "duckdb/common/virtual_file_system.hpp"
#include "engine/file_system.h"
#include "engine/pinned_file.h"

namespace roost {
namespace {

namespace fs = std::filesystem;

class ForeignWall : public ::testing::Test {
protected:
    ForeignWall() {
        char name[] = "/tmp/roost-foreign-XXXXXX";
        dir_ = fs::canonical(mkdtemp(name)).string();
        file_ = dir_ + "/theirs/a.parquet";
        for (const char *sub : {"/data", "/spill", "/staging", "/theirs/deep"}) fs::create_directories(dir_ + sub);
        std::ofstream(dir_ + "/secret") << "text";
        std::ofstream(file_) << "0123456789";
        fs::create_symlink(dir_ + "/secret", dir_ + "/theirs/link");
        version_ = version_on_disk(file_).value();
    }
    ~ForeignWall() override { fs::remove_all(dir_); }

    void make(bool internal) {
        wall_ = std::make_shared<FileWall>(FileWallOptions{
            .data_dirs = {{"lake", dir_ + "/data/"}},
            .spill_dir = dir_ + "/spill",
            .staging_dir = internal ? dir_ + "/staging" : "",
            .external = {dir_ + "/theirs/", "s3://bucket/their prefix/"},
            .pin_of = [this](const DataFileKey &key) -> Result<std::optional<FileVersion>> {
                asked_.push_back(key.path);
                return key.mapping_id == 3 && key.row_id_start == 4 ? std::optional(version_) : std::nullopt;
            },
            .on_deferred_removal = {},
        });
        files_ = std::make_unique<duckdb::VirtualFileSystem>(make_walled_file_system(wall_));
        wall_->seal();
    }
    static duckdb::OpenFileInfo of_a_table(const std::string &path, uint64_t mapping = 3) {
        duckdb::OpenFileInfo file(path);
        file.extended_info = duckdb::make_shared_ptr<duckdb::ExtendedOpenFileInfo>();
        file.extended_info->options["file_size"] = duckdb::Value::UBIGINT(10);
        file.extended_info->options["mapping_id"] = duckdb::Value::UBIGINT(mapping);
        file.extended_info->options["row_id_start"] = duckdb::Value::UBIGINT(4);
        return file;
    }
    duckdb::unique_ptr<duckdb::FileHandle> open(const duckdb::OpenFileInfo &file) {
        return static_cast<duckdb::FileSystem &>(*files_).OpenFile(file, duckdb::FileFlags::FILE_FLAGS_READ);
    }
    std::string failure(const duckdb::OpenFileInfo &file) {
        try {
            open(file);
            return "";
        } catch (const std::exception &error) {
            return duckdb::ErrorData(error).Message();
        }
    }

    std::string dir_;
    std::string file_;
    FileVersion version_;
    std::shared_ptr<FileWall> wall_;
    std::unique_ptr<duckdb::VirtualFileSystem> files_;
    std::vector<std::string> asked_;
};

TEST_F(ForeignWall, AFileOfATableIsReadAsLongAsItIsTheRegisteredOne) {
    make(false);
    auto handle = open(of_a_table(file_));
    char bytes[4] = {};
    handle->Read(bytes, 4, 2);
    EXPECT_EQ(std::string(bytes, 4), "2345");
    EXPECT_EQ(handle->GetFileSize(), 10);
    EXPECT_TRUE(handle->CanSeek());
    handle->Seek(8);
    EXPECT_EQ(handle->Read(bytes, 4), 2);
    EXPECT_EQ(asked_, std::vector<std::string>{file_});
    // Written in place while it is read: no byte of it is believed.
    std::ofstream(file_) << "abcdefghij";
    fs::last_write_time(file_, fs::last_write_time(file_) + std::chrono::seconds(5));
    EXPECT_THROW(handle->Read(bytes, 4, 2), duckdb::IOException);
    EXPECT_NE(failure(of_a_table(file_)).find("was changed after it was registered: it was of "), std::string::npos);
    std::ofstream(file_) << "short";
    EXPECT_NE(failure(of_a_table(file_)).find("it had 10 bytes and has 5"), std::string::npos);
    fs::remove(file_);
    EXPECT_NE(failure(of_a_table(file_)).find("is gone"), std::string::npos);
}

TEST_F(ForeignWall, NoOtherWayLeadsToIt) {
    make(false);
    duckdb::FileSystem &files = *files_;
    using duckdb::PermissionException;
    EXPECT_THROW(files.OpenFile(file_, duckdb::FileFlags::FILE_FLAGS_READ), PermissionException);
    EXPECT_THROW(open(duckdb::OpenFileInfo(file_)), PermissionException);
    EXPECT_THROW(files.FileExists(file_, nullptr), PermissionException);
    EXPECT_THROW(files.CanonicalizePath(file_, nullptr), PermissionException);
    EXPECT_THROW(files.GlobFiles(dir_ + "/theirs/*"), PermissionException);
    EXPECT_THROW(files.ListFiles(dir_ + "/theirs", [](const std::string &, bool) {}), PermissionException);
    EXPECT_THROW(open(of_a_table(dir_ + "/theirs/link")), PermissionException);
    EXPECT_THROW(open(of_a_table(dir_ + "/theirs/../secret")), PermissionException);
    EXPECT_THROW(open(of_a_table(dir_ + "/secret")), PermissionException);
    // A file that the catalog names and roost did not register.
    EXPECT_NE(failure(of_a_table(file_, 8)).find("rule files.not_pinned"), std::string::npos);
    for (const char *path :
         {"s3://bucket/their prefix/a.parquet", "s3://bucket/other/a", "s3://bucket/their prefix/../a"}) {
        EXPECT_THROW(wall_->check(path, FileWall::Access::read), PermissionException) << path;
        EXPECT_THROW(wall_->check_open(duckdb::OpenFileInfo(path), FileWall::Access::read), PermissionException)
            << path;
    }
    EXPECT_EQ(wall_->check_open(of_a_table("s3://bucket/their prefix/a.parquet"), FileWall::Access::read), version_);
}

TEST_F(ForeignWall, NothingIsWrittenOrRemovedWhoeverAsks) {
    const auto write = duckdb::FileFlags::FILE_FLAGS_WRITE | duckdb::FileFlags::FILE_FLAGS_FILE_CREATE;
    for (const bool internal : {false, true}) {
        make(internal);
        duckdb::FileSystem &files = *files_;
        using duckdb::PermissionException;
        EXPECT_THROW(files.OpenFile(file_, write), PermissionException);
        EXPECT_THROW(files.OpenFile(dir_ + "/theirs/new", write), PermissionException);
        EXPECT_THROW(files.CreateDirectory(dir_ + "/theirs/new", nullptr), PermissionException);
        EXPECT_THROW(files.MoveFile(file_, dir_ + "/spill/x", nullptr), PermissionException);
        // DuckLake's clean-up hears that it is done.
        files.RemoveFile(file_, nullptr);
        EXPECT_TRUE(files.TryRemoveFile(file_, nullptr));
        files.RemoveFiles({file_}, nullptr);
        files.RemoveDirectory(dir_ + "/theirs/deep", nullptr);
        EXPECT_TRUE(fs::exists(file_));
        EXPECT_TRUE(fs::exists(dir_ + "/theirs/deep"));
        EXPECT_TRUE(wall_->check_removal("s3://bucket/their prefix/a.parquet"));
        for (const char *path : {"s3://bucket/their prefix/a.parquet", "s3://bucket/their prefix/"}) {
            EXPECT_THROW(wall_->check(path, FileWall::Access::write), PermissionException) << path;
        }
    }
}

TEST_F(ForeignWall, ARegistrationListsAndReadsWhatItLookedAt) {
    make(true);
    duckdb::FileSystem &files = *files_;
    EXPECT_EQ(files.GlobFiles(dir_ + "/theirs/*").size(), 1);  // not the link, which leads out
    EXPECT_NE(files.OpenFile(file_, duckdb::FileFlags::FILE_FLAGS_READ), nullptr);
    FileVersion other = version_;
    other.modified_ns++;
    wall_->expect({{file_, other}});
    EXPECT_THROW(files.OpenFile(file_, duckdb::FileFlags::FILE_FLAGS_READ), duckdb::IOException);
    wall_->expect({{file_, version_}});
    EXPECT_NE(files.OpenFile(file_, duckdb::FileFlags::FILE_FLAGS_READ), nullptr);
    EXPECT_EQ(wall_->check_open(duckdb::OpenFileInfo("s3://bucket/their prefix/a"), FileWall::Access::read),
              std::nullopt);
}

TEST(PinnedFile, AListingSaysTheVersionOfAnObject) {
    duckdb::OpenFileInfo object("s3://bucket/a");
    EXPECT_EQ(version_listed(object), std::nullopt);
    object.extended_info = duckdb::make_shared_ptr<duckdb::ExtendedOpenFileInfo>();
    object.extended_info->options["file_size"] = duckdb::Value::UBIGINT(5);
    EXPECT_EQ(version_listed(object), std::nullopt);
    object.extended_info->options["etag"] = duckdb::Value("\"abc-1\"");
    EXPECT_EQ(version_listed(object), (FileVersion{5, 0, "abc-1"}));
    object.extended_info->options["etag"] = duckdb::Value("&quot;abc&quot;");
    EXPECT_EQ(version_listed(object), std::nullopt);
    object.extended_info->options["etag"] = duckdb::Value("abc");
    EXPECT_EQ(version_listed(object)->etag, "abc");
    object.path = "/local/a";
    EXPECT_EQ(version_listed(object), std::nullopt);
}

}  // namespace
}  // namespace roost
