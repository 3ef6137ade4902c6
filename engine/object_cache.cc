#include "engine/object_cache.h"

#include <utility>
#include <vector>

#include "base/mutex.h"
#include "duckdb/common/exception.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/main/database.hpp"
#include "engine/duckdb_errors.h"

namespace roost {

namespace {

constexpr size_t kIdleHandlesMax = 64;
// Read ahead as a whole: a second request would take longer than the bytes that nobody may want.
constexpr uint64_t kSmallFileBytes = 2 << 20;
constexpr uint64_t kFooterGuessBytes = 256 << 10;

// The statement that opened the file was interrupted.
class Interrupted final : public cache::Cancellation {
public:
    explicit Interrupted(duckdb::ClientContext &context) : context_(context.shared_from_this()) {}
    bool requested() const override {
        const auto context = context_.lock();
        return !context || context->IsInterrupted();
    }

private:
    const duckdb::weak_ptr<duckdb::ClientContext> context_;
};

// DuckDB's client of the store, in the private database that holds the keys.
class ClientStore final : public cache::Store {
public:
    explicit ClientStore(std::shared_ptr<StoreKeys> keys) : keys_(std::move(keys)) {}

    Status fetch(const cache::FileKey &file, uint64_t offset, size_t length, char *buffer, const cache::Patience &,
                 cache::Source &from) override {
        try {
            auto handle = take(file);
            handle->file_system.Read(*handle, buffer, static_cast<int64_t>(length), offset);
            give_back(file, std::move(handle));
        } catch (const std::exception &error) {
            Status status = status_of(error, "", {});
            // The client compares the ETag of each answer: the object is another one now.
            if (status.message().find("ETag on reading") == std::string::npos) return status;
            return Status(Code::conflict, status.message());
        }
        from = cache::Source::store;
        return Status();
    }

private:
    using Handle = duckdb::unique_ptr<duckdb::FileHandle>;

    Handle take(const cache::FileKey &file) {
        {
            MutexLock lock(mutex_);
            for (auto it = idle_.begin(); it != idle_.end(); ++it) {
                if (it->handle->path != file.path || it->version != file.version) continue;
                Handle handle = std::move(it->handle);
                idle_.erase(it);
                return handle;
            }
        }
        // With these three the client does not ask the store what the object is.
        duckdb::OpenFileInfo info(file.path);
        info.extended_info = duckdb::make_shared_ptr<duckdb::ExtendedOpenFileInfo>();
        info.extended_info->options["file_size"] = duckdb::Value::UBIGINT(file.size_bytes);
        info.extended_info->options["etag"] = duckdb::Value(file.version == cache::kImmutable ? "" : file.version);
        info.extended_info->options["last_modified"] = duckdb::Value::TIMESTAMP(duckdb::timestamp_t(0));
        // Direct: the cache reads in large parts, the client's own buffer would only copy them.
        auto flags = duckdb::FileFlags::FILE_FLAGS_READ;
        flags |= duckdb::FileFlags::FILE_FLAGS_DIRECT_IO;
        return keys_->database().GetFileSystem().OpenFile(info, flags);
    }
    void give_back(const cache::FileKey &file, Handle handle) {
        MutexLock lock(mutex_);
        idle_.push_back({file.version, std::move(handle)});
        if (idle_.size() > kIdleHandlesMax) idle_.erase(idle_.begin());
    }

    const std::shared_ptr<StoreKeys> keys_;  // after idle_ goes: handles use its database
    Mutex mutex_;
    struct Idle {
        std::string version;
        Handle handle;
    };
    std::vector<Idle> idle_ ROOST_GUARDED_BY(mutex_);
};

cache::FileKey key_of(const std::string &path, uint64_t size_bytes) {
    return {path, std::string(cache::kImmutable), size_bytes};
}

cache::StoreFetcherOptions fetcher_options() {
    cache::StoreFetcherOptions options;
    // The client asks once more by itself, and a statement may wait for it after that.
    options.retry_for_ms = 4'000;
    return options;
}

}  // namespace

ObjectCache::ObjectCache(cache::SegmentCache &cache, std::shared_ptr<StoreKeys> keys, Clock &clock)
    : cache_(cache),
      random_(static_cast<uint64_t>(clock.wall_us())),
      pause_(cache::make_pause(clock)),
      store_(std::make_shared<cache::StoreFetcher>(std::make_shared<ClientStore>(std::move(keys)), fetcher_options(),
                                                   clock, *pause_, random_)) {}
ObjectCache::~ObjectCache() = default;

std::optional<uint64_t> ObjectCache::size_of(const duckdb::OpenFileInfo &file) {
    if (!file.extended_info) return std::nullopt;
    const auto size = file.extended_info->options.find("file_size");
    if (size == file.extended_info->options.end() || size->second.IsNull()) return std::nullopt;
    return size->second.GetValue<uint64_t>();
}

// Files of a table are in one folder, those of a partition in one of NAME=VALUE below it.
std::string ObjectCache::folder_of(const std::string &path) {
    std::string_view folder = std::string_view(path).substr(0, path.rfind('/') + 1);
    while (!folder.empty()) {
        const std::string_view above = folder.substr(0, folder.substr(0, folder.size() - 1).rfind('/') + 1);
        if (above.empty() || folder.substr(above.size()).find('=') == std::string_view::npos) break;
        folder = above;
    }
    return std::string(folder);
}

std::unique_ptr<cache::CacheReader> ObjectCache::reader(const std::string &path, uint64_t size_bytes,
                                                        StatementReads *reads) {
    const std::string folder = folder_of(path);
    return cache_.reader(key_of(path, size_bytes), folder, store_, reads ? reads->stats_of(path, folder) : nullptr);
}

std::unique_ptr<cache::CacheReader> ObjectCache::reader(const std::string &path, const std::string &etag,
                                                        uint64_t size_bytes, StatementReads *reads) {
    const std::string folder = folder_of(path);
    return cache_.reader({path, etag, size_bytes}, folder, store_, reads ? reads->stats_of(path, folder) : nullptr);
}

void ObjectCache::written(cache::CacheWriter &writer, const std::string &path, uint64_t size_bytes) {
    (void)writer.commit(key_of(path, size_bytes), folder_of(path));
}

void ObjectCache::fetch_ahead(const std::vector<FilesAhead::File> &files, StatementReads &reads,
                              const cache::Patience &patience) {
    for (const FilesAhead::File &file : files) {
        const uint64_t bytes = file.size_bytes <= kSmallFileBytes ? file.size_bytes : kFooterGuessBytes;
        reader(file.path, file.size_bytes, &reads)->fetch_soon({{file.size_bytes - bytes, bytes}}, patience);
    }
}

cache::Patience patience_of(duckdb::optional_ptr<duckdb::FileOpener> opener) {
    cache::Patience patience;
    duckdb::optional_ptr<duckdb::ClientContext> context = opener ? opener->TryGetClientContext() : nullptr;
    if (context) patience.cancellation = std::make_shared<Interrupted>(*context);
    return patience;
}

CachedObject::CachedObject(duckdb::FileSystem &files, const duckdb::OpenFileInfo &file, duckdb::FileOpenFlags flags,
                           std::unique_ptr<cache::CacheReader> reader, duckdb::optional_ptr<duckdb::FileOpener> opener,
                           OpenPlain open_plain, ObjectIdentity identity)
    : duckdb::FileHandle(files, file.path, flags),
      reader_(std::move(reader)),
      open_plain_(std::move(open_plain)),
      identity_(std::move(identity)),
      patience_(patience_of(opener)) {}

void CachedObject::read(void *buffer, int64_t length, uint64_t offset) {
    const Status status = reader_->read(offset, static_cast<size_t>(length), static_cast<char *>(buffer), patience_);
    if (status.ok()) return;
    if (status.code() == Code::cancelled) throw duckdb::InterruptException();
    auto plain = open_plain_();
    plain->file_system.Read(*plain, buffer, length, offset);
}

TeedObject::TeedObject(duckdb::FileSystem &files, duckdb::unique_ptr<duckdb::FileHandle> plain,
                       std::shared_ptr<ObjectCache> cache, std::shared_ptr<StatementReads> reads)
    : duckdb::FileHandle(files, plain->path, plain->flags),
      plain_(std::move(plain)),
      cache_(std::move(cache)),
      reads_(std::move(reads)),
      writer_(cache_->writer()) {}

void TeedObject::write(void *buffer, int64_t length, uint64_t offset) {
    plain_->file_system.Write(*plain_, buffer, length, offset);
    if (writer_) writer_->append(offset, {static_cast<const char *>(buffer), static_cast<size_t>(length)});
    size_bytes = offset + static_cast<uint64_t>(length);
}

void TeedObject::Close() {
    auto writer = std::exchange(writer_, nullptr);
    plain_->Close();  // throws when the store did not take it: then nothing of it is kept
    if (!writer) return;
    cache_->written(*writer, path, size_bytes);
    if (reads_) reads_->wrote(ObjectCache::folder_of(path));
}

}  // namespace roost
