#include "engine/object_store.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "duckdb/common/exception/http_exception.hpp"
#include "duckdb/common/file_opener.hpp"
#include "duckdb/common/http_util.hpp"
#include "duckdb/common/multi_file/multi_file_list.hpp"
#include "duckdb/logging/log_manager.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/storage/buffer_manager.hpp"
#include "engine/duckdb_errors.h"
#include "engine/object_cache.h"
#include "engine/pinned_file.h"
#include "lake/ducklake.h"

namespace roost {

namespace {

constexpr const char *kClientName = "S3FileSystem";
// The client's other file systems, which nobody may use.
constexpr const char *kOtherNames[] = {"HTTPFileSystem", "HuggingFaceFileSystem"};
// What the client reads from the process's environment when it is loaded.
constexpr const char *kEnvironmentOptions[] = {"s3_region",   "s3_access_key_id", "s3_secret_access_key",
                                               "s3_endpoint", "s3_session_token", "s3_kms_key_id"};
constexpr std::chrono::milliseconds kUploadPoll{5};
constexpr std::chrono::seconds kUploadPatience{120};

void run(duckdb::Connection &connection, const std::string &sql) {
    auto result = connection.Query(sql);
    if (result->HasError()) result->ThrowError();
}

void load_client(duckdb::Connection &connection, const std::string &extension_dir) {
    run(connection, "LOAD " + quote_literal(extension_dir + "/httpfs.duckdb_extension"));
    for (const char *name : kEnvironmentOptions) run(connection, std::string("RESET GLOBAL ") + name);
}

// Answers the client's questions from the private database: settings, secrets, connections.
class KeyOpener final : public duckdb::FileOpener {
public:
    explicit KeyOpener(duckdb::DatabaseInstance &database) : database_(database) {}

    duckdb::SettingLookupResult TryGetCurrentSetting(const std::string &key, duckdb::Value &result) override {
        return database_.TryGetCurrentSetting(key, result);
    }
    duckdb::SettingLookupResult TryGetCurrentSetting(const std::string &key, duckdb::Value &result,
                                                     duckdb::FileOpenerInfo &) override {
        return database_.TryGetCurrentSetting(key, result);
    }
    duckdb::optional_ptr<duckdb::ClientContext> TryGetClientContext() override { return nullptr; }
    duckdb::optional_ptr<duckdb::DatabaseInstance> TryGetDatabase() override { return &database_; }
    duckdb::HTTPUtil &GetHTTPUtil() override { return duckdb::HTTPUtil::Get(database_); }
    duckdb::Logger &GetLogger() const override { return database_.GetLogManager().GlobalLogger(); }

private:
    duckdb::DatabaseInstance &database_;
};

// Stands for everything with a scheme. Handles come from the client and carry it, so reads and writes of an open file
// go to it directly; or they are of the cache (object_cache.h), then they come by here.
class ObjectStoreFileSystem final : public duckdb::FileSystem {
public:
    ObjectStoreFileSystem(duckdb::unique_ptr<duckdb::FileSystem> client, std::shared_ptr<FileWall> wall,
                          std::shared_ptr<StoreKeys> keys, std::shared_ptr<ObjectCache> cache)
        : client_(std::move(client)),
          wall_(std::move(wall)),
          keys_(std::move(keys)),
          cache_(std::move(cache)),
          opener_(keys_->database()) {}

    using Access = FileWall::Access;
    using Opener = duckdb::optional_ptr<duckdb::FileOpener>;

    duckdb::unique_ptr<duckdb::FileHandle> OpenFile(const std::string &path, duckdb::FileOpenFlags flags,
                                                    Opener opener) override {
        return OpenFileExtended(duckdb::OpenFileInfo(path), flags, opener);
    }
    // A store has no directories: each one is there.
    bool DirectoryExists(const std::string &directory, Opener) override {
        wall_->check(directory, Access::list);
        return true;
    }
    void CreateDirectory(const std::string &directory, Opener) override { wall_->check(directory, Access::list); }
    void RemoveDirectory(const std::string &directory, Opener) override {
        wall_->check(directory, Access::list);
        throw duckdb::NotImplementedException("folders of an object store are not removed");
    }
    void MoveFile(const std::string &source, const std::string &target, Opener) override {
        wall_->check(source, Access::remove);
        wall_->check(target, Access::write);
        throw duckdb::NotImplementedException("objects can't be renamed");
    }
    // The client's own takes every failure for absence.
    bool FileExists(const std::string &filename, Opener) override {
        wall_->check(filename, Access::read);
        try {
            return client_->OpenFile(filename, duckdb::FileFlags::FILE_FLAGS_READ, &opener_) != nullptr;
        } catch (const std::exception &error) {
            const duckdb::ErrorData data(error);
            const auto status = data.ExtraInfo().find("status_code");
            if (status != data.ExtraInfo().end() && status->second == "404") return false;
            throw;
        }
    }
    bool IsPipe(const std::string &, Opener) override { return false; }
    void RemoveFile(const std::string &filename, Opener) override {
        if (wall_->check_removal(filename)) return;
        if (cache_) cache_->removed(filename);
        client_->RemoveFile(filename, &opener_);
    }
    bool TryRemoveFile(const std::string &filename, Opener) override {
        if (wall_->check_removal(filename)) return true;
        if (!FileExists(filename, nullptr)) return false;
        if (cache_) cache_->removed(filename);
        client_->RemoveFile(filename, &opener_);
        return true;
    }
    void RemoveFiles(const duckdb::vector<std::string> &filenames, Opener) override {
        duckdb::vector<std::string> now;
        for (const auto &filename : filenames) {
            if (wall_->check_removal(filename)) continue;
            if (cache_) cache_->removed(filename);
            now.push_back(filename);
        }
        client_->RemoveFiles(now, &opener_);
    }
    std::string CanonicalizePath(const std::string &path, Opener) override { return path; }
    duckdb::vector<duckdb::OpenFileInfo> Glob(const std::string &path, duckdb::FileOpener *) override {
        return matches(path, duckdb::FileGlobInput(duckdb::FileGlobOptions::ALLOW_EMPTY));
    }
    // Of the cache's handles.
    using duckdb::FileSystem::Read;
    using duckdb::FileSystem::Write;
    void Read(duckdb::FileHandle &handle, void *buffer, int64_t length, duckdb::idx_t offset) override {
        handle.Cast<CachedObject>().read(buffer, length, offset);
    }
    int64_t Read(duckdb::FileHandle &handle, void *buffer, int64_t length) override {
        auto &object = handle.Cast<CachedObject>();
        const auto left = static_cast<int64_t>(object.size_bytes() - std::min(object.position, object.size_bytes()));
        length = std::min(length, left);
        object.read(buffer, length, object.position);
        object.position += static_cast<uint64_t>(length);
        return length;
    }
    void Write(duckdb::FileHandle &handle, void *buffer, int64_t length, duckdb::idx_t offset) override {
        handle.Cast<TeedObject>().write(buffer, length, offset);
    }
    int64_t Write(duckdb::FileHandle &handle, void *buffer, int64_t length) override {
        auto &object = handle.Cast<TeedObject>();
        object.write(buffer, length, object.size_bytes);
        return length;
    }
    void FileSync(duckdb::FileHandle &handle) override { handle.Cast<TeedObject>().plain().Sync(); }
    int64_t GetFileSize(duckdb::FileHandle &handle) override {
        const auto *object = dynamic_cast<CachedObject *>(&handle);
        if (object == nullptr) return static_cast<int64_t>(handle.Cast<TeedObject>().size_bytes);
        return static_cast<int64_t>(object->size_bytes());
    }
    void Seek(duckdb::FileHandle &handle, duckdb::idx_t offset) override {
        handle.Cast<CachedObject>().position = offset;
    }
    duckdb::idx_t SeekPosition(duckdb::FileHandle &handle) override {
        const auto *object = dynamic_cast<CachedObject *>(&handle);
        return object != nullptr ? object->position : handle.Cast<TeedObject>().size_bytes;
    }
    // As DuckLake tells the client: objects of a lake have neither. Those of others have what the store says.
    duckdb::timestamp_t GetLastModifiedTime(duckdb::FileHandle &handle) override {
        const auto *object = dynamic_cast<CachedObject *>(&handle);
        return object != nullptr ? object->identity().modified : duckdb::timestamp_t(0);
    }
    std::string GetVersionTag(duckdb::FileHandle &handle) override {
        const auto *object = dynamic_cast<CachedObject *>(&handle);
        return object != nullptr ? object->identity().tag : "";
    }
    duckdb::FileType GetFileType(duckdb::FileHandle &) override { return duckdb::FileType::FILE_TYPE_REGULAR; }
    bool OnDiskFile(duckdb::FileHandle &handle) override {
        auto *object = dynamic_cast<CachedObject *>(&handle);
        return object != nullptr && object->on_disk();
    }

    std::string PathSeparator(const std::string &) override { return "/"; }
    bool CanSeek() override { return true; }
    bool CanHandleFile(const std::string &path) override { return has_scheme(path); }
    std::string GetName() const override { return kClientName; }

protected:
    bool SupportsOpenFileExtended() const override { return true; }
    duckdb::unique_ptr<duckdb::FileHandle> OpenFileExtended(const duckdb::OpenFileInfo &file,
                                                            duckdb::FileOpenFlags flags, Opener opener) override {
        const auto version = wall_->check_open(file, access_of(flags));
        if (version) return open_pinned(file.path, flags, *version, opener);
        if (cache_ && !wall_->is_external(file.path)) return open_cached(file, flags, opener);
        return client_->OpenFile(file, flags, &opener_);
    }
    bool SupportsListFilesExtended() const override { return true; }
    bool ListFilesExtended(const std::string &directory, const std::function<void(duckdb::OpenFileInfo &)> &callback,
                           Opener) override {
        wall_->check(directory, Access::list);
        return client_->ListFiles(directory, callback, &opener_);
    }
    bool SupportsGlobExtended() const override { return true; }
    // Found at once: the client's own list would outlive the opener.
    duckdb::unique_ptr<duckdb::MultiFileList> GlobFilesExtended(const std::string &path,
                                                                const duckdb::FileGlobInput &input, Opener) override {
        return duckdb::make_uniq<duckdb::SimpleMultiFileList>(matches(path, input));
    }

private:
    static Access access_of(const duckdb::FileOpenFlags &flags) {
        return flags.OpenForWriting() ? Access::write : Access::read;
    }
    // The account of the statement that opens a file; may be null.
    static std::shared_ptr<StatementReads> reads_at(Opener opener) {
        duckdb::optional_ptr<duckdb::ClientContext> context;
        if (opener) context = opener->TryGetClientContext();
        return context ? reads_of(*context) : nullptr;
    }
    duckdb::unique_ptr<duckdb::FileHandle> open_cached(const duckdb::OpenFileInfo &file, duckdb::FileOpenFlags flags,
                                                       Opener opener) {
        const auto open_plain = [this, file, flags] { return client_->OpenFile(file, flags, &opener_); };
        const std::shared_ptr<StatementReads> reads = reads_at(opener);
        if (flags.OpenForWriting()) {
            auto handle = open_plain();
            if (!handle || flags.OpenForReading()) return handle;
            return duckdb::make_uniq<TeedObject>(*this, std::move(handle), cache_, reads);
        }
        const auto size_bytes = ObjectCache::size_of(file);
        if (!size_bytes) return open_plain();
        if (reads) cache_->fetch_ahead(reads->files_ahead().after(file.path), *reads, patience_of(opener));
        return duckdb::make_uniq<CachedObject>(*this, file, flags, cache_->reader(file.path, *size_bytes, reads.get()),
                                               opener, open_plain);
    }
    // By its path alone, so that the client asks the store what it is. The client compares the ETag that it got then
    // with that of each part it reads.
    duckdb::unique_ptr<duckdb::FileHandle> open_as_registered(const std::string &path, duckdb::FileOpenFlags flags,
                                                              const FileVersion &version) {
        duckdb::unique_ptr<duckdb::FileHandle> handle;
        try {
            handle = client_->OpenFile(path, flags, &opener_);
        } catch (const std::exception &error) {
            const duckdb::ErrorData data(error);
            const auto status = data.ExtraInfo().find("status_code");
            if (status == data.ExtraInfo().end() || status->second != "404") throw;
            check_pinned(path, version, std::nullopt);
        }
        check_pinned(path, version, version_of(*client_, *handle));
        return handle;
    }
    // What is cached of that version needs no more of the store than that.
    duckdb::unique_ptr<duckdb::FileHandle> open_pinned(const std::string &path, duckdb::FileOpenFlags flags,
                                                       const FileVersion &version, Opener opener) {
        auto handle = open_as_registered(path, flags, version);
        const std::string tag = client_->GetVersionTag(*handle);
        if (!cache_ || tag.empty()) return handle;
        auto reader = cache_->reader(path, tag, version.size_bytes, reads_at(opener).get());
        const auto open_plain = [this, path, flags, version] { return open_as_registered(path, flags, version); };
        return duckdb::make_uniq<CachedObject>(*this, duckdb::OpenFileInfo(path), flags, std::move(reader), opener,
                                               open_plain, ObjectIdentity{tag, client_->GetLastModifiedTime(*handle)});
    }
    duckdb::vector<duckdb::OpenFileInfo> matches(const std::string &pattern, const duckdb::FileGlobInput &input) {
        const size_t wildcard = pattern.find_first_of("*?[{");
        if (wildcard == std::string::npos) {
            wall_->check(pattern, Access::read);
            return {duckdb::OpenFileInfo(pattern)};
        }
        wall_->check(pattern.substr(0, pattern.rfind('/', wildcard) + 1), Access::list);
        auto found = client_->Glob(pattern, input, &opener_)->GetAllFiles();
        std::erase_if(found, [this](const auto &file) { return !wall_->allows(file.path, Access::read); });
        return found;
    }

    const duckdb::unique_ptr<duckdb::FileSystem> client_;
    const std::shared_ptr<FileWall> wall_;
    const std::shared_ptr<StoreKeys> keys_;
    const std::shared_ptr<ObjectCache> cache_;  // may be null
    KeyOpener opener_;
};

std::string without_scheme(const std::string &endpoint) {
    const size_t scheme = endpoint.find("://");
    std::string host = scheme == std::string::npos ? endpoint : endpoint.substr(scheme + 3);
    while (!host.empty() && host.back() == '/') host.pop_back();
    return host;
}

}  // namespace

StoreKeys::~StoreKeys() = default;

duckdb::DatabaseInstance &StoreKeys::database() { return *database_->instance; }

Result<std::shared_ptr<StoreKeys>> StoreKeys::make(const ObjectStore &store, const std::string &extension_dir) {
    std::shared_ptr<StoreKeys> keys(new StoreKeys());
    try {
        duckdb::DBConfig config;
        config.options.maximum_threads = 1;
        config.options.maximum_memory = 16ull << 20;
        config.SetOptionByName("allow_unsigned_extensions", duckdb::Value::BOOLEAN(true));
        config.SetOptionByName("autoload_known_extensions", duckdb::Value::BOOLEAN(false));
        config.SetOptionByName("autoinstall_known_extensions", duckdb::Value::BOOLEAN(false));
        keys->database_ = std::make_unique<duckdb::DuckDB>(nullptr, &config);
        duckdb::Connection connection(*keys->database_);
        load_client(connection, extension_dir);
        configure_client(connection, store);
        run(connection, "SET GLOBAL lock_configuration = true");
    } catch (const std::exception &error) {
        return status_of(error, "", {{store.secret_access_key, "***"}, {store.session_token, "***"}});
    }
    return keys;
}

void configure_client(duckdb::Connection &connection, const ObjectStore &store) {
    const auto set = [&](const char *name, const std::string &value) {
        run(connection, std::string("SET GLOBAL ") + name + " = " + quote_literal(value));
    };
    const auto set_if_any = [&](const char *name, const std::string &value) {
        if (!value.empty()) set(name, value);
    };
    set_if_any("s3_endpoint", without_scheme(store.endpoint));
    set("s3_use_ssl", store.endpoint.starts_with("http://") ? "false" : "true");
    set_if_any("s3_region", store.region);
    set_if_any("s3_url_style", store.url_style);
    set_if_any("s3_access_key_id", store.access_key_id);
    set_if_any("s3_secret_access_key", store.secret_access_key);
    set_if_any("s3_session_token", store.session_token);
    // Seconds, of a whole request. Opening a file takes up to two requests, each tried twice.
    set("http_timeout", std::to_string(std::max<int64_t>(1, store.timeout_ms / 1'000)));
    set("http_retries", "1");
    set("http_retry_wait_ms", "100");
    set("httpfs_connection_caching", "true");
    // A store that can't send a part of an object would have the whole of it read into memory.
    set("auto_fallback_to_full_download", "false");
    // Parts of 5 MiB, the least there is: each file that is written holds one and up to three more that are under way,
    // in the instance's memory. Objects can be 50 GB.
    set("s3_uploader_max_filesize", "50GB");
    set("s3_uploader_thread_limit", "3");
}

void let_in(duckdb::Connection &connection, const std::string &extension_dir, std::shared_ptr<FileWall> wall,
            std::shared_ptr<StoreKeys> keys, std::shared_ptr<ObjectCache> cache) {
    load_client(connection, extension_dir);
    auto &files = connection.context->db->GetFileSystem();
    auto client = files.ExtractSubSystem(kClientName);
    if (!client) throw duckdb::InternalException("the S3 client has another name than expected");
    for (const char *name : kOtherNames) {
        if (!files.ExtractSubSystem(name)) throw duckdb::InternalException(std::string(name) + " is not there");
    }
    files.RegisterSubSystem(duckdb::make_uniq<ObjectStoreFileSystem>(std::move(client), std::move(wall),
                                                                     std::move(keys), std::move(cache)));
}

void await_uploads(duckdb::DatabaseInstance &database) {
    const auto uploading = [&database] {
        for (const auto &use : database.GetBufferManager().GetMemoryUsageInfo()) {
            if (use.tag == duckdb::MemoryTag::EXTENSION) return use.size > 0;
        }
        return false;
    };
    const auto give_up = std::chrono::steady_clock::now() + kUploadPatience;
    while (uploading() && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(kUploadPoll);
}

}  // namespace roost
