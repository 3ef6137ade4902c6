// The lake's objects through the node's segment cache. An `ObjectCache` is the way of one lake: it fetches with the
// store's own client and keys (those of `StoreKeys`, so that a fetch may outlive the instance that asked), with retries
// and a hedge. Its handles are served by the file system that made them (object_store.cc). Thread-safe.
//
// What DuckLake names goes through it with the size that its catalog says: such files never change under their name, so
// that opening one asks the store nothing. Files of others go through it by the ETag that they had when they were
// opened: the store is asked for it each time, bytes of two versions are never mixed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "cache/segment_cache.h"
#include "cache/store_fetcher.h"
#include "duckdb/common/file_opener.hpp"
#include "duckdb/common/file_system.hpp"
#include "duckdb/common/open_file_info.hpp"
#include "engine/object_store.h"
#include "engine/statement_reads.h"

namespace roost {

class ObjectCache {
public:
    // `cache` and `clock` outlive it and all handles.
    ObjectCache(cache::SegmentCache &cache, std::shared_ptr<StoreKeys> keys, Clock &clock);
    ~ObjectCache();

    // The size that DuckLake gives an object to read; nothing: it is somebody's path.
    static std::optional<uint64_t> size_of(const duckdb::OpenFileInfo &file);
    // `reads`: the statement that reads it, may be null.
    std::unique_ptr<cache::CacheReader> reader(const std::string &path, uint64_t size_bytes, StatementReads *reads);
    // Of a file of others; `etag` as the store writes it.
    std::unique_ptr<cache::CacheReader> reader(const std::string &path, const std::string &etag, uint64_t size_bytes,
                                               StatementReads *reads);
    std::unique_ptr<cache::CacheWriter> writer() { return cache_.writer(); }
    // The object was written whole.
    void written(cache::CacheWriter &writer, const std::string &path, uint64_t size_bytes);
    // Where the files of the table are that this one belongs to: what is told of as one.
    static std::string folder_of(const std::string &path);
    cache::SegmentCache &segments() { return cache_; }
    // These will be opened next: what is not here yet of small ones, and the ends of others, where their footers are.
    void fetch_ahead(const std::vector<FilesAhead::File> &files, StatementReads &reads,
                     const cache::Patience &patience);
    void removed(const std::string &path) { (void)cache_.blocks().evict_file(path); }

private:
    cache::SegmentCache &cache_;
    SeededRandom random_;
    std::unique_ptr<cache::Pause> pause_;
    std::shared_ptr<cache::Store> store_;
};

// As long as the statement that opens a file wants it.
cache::Patience patience_of(duckdb::optional_ptr<duckdb::FileOpener> opener);

// What DuckDB tells versions of a file apart by; objects of a lake have neither.
struct ObjectIdentity {
    std::string tag;
    duckdb::timestamp_t modified{0};
};

// An object that is read through the cache. What the cache can't get is asked of the client once more, whose error it
// then is.
class CachedObject final : public duckdb::FileHandle {
public:
    using OpenPlain = std::function<duckdb::unique_ptr<duckdb::FileHandle>()>;
    CachedObject(duckdb::FileSystem &files, const duckdb::OpenFileInfo &file, duckdb::FileOpenFlags flags,
                 std::unique_ptr<cache::CacheReader> reader, duckdb::optional_ptr<duckdb::FileOpener> opener,
                 OpenPlain open_plain, ObjectIdentity identity = {});
    const ObjectIdentity &identity() const { return identity_; }
    void Close() override {}
    // Throws DuckDB's exceptions.
    void read(void *buffer, int64_t length, uint64_t offset);
    uint64_t size_bytes() const { return reader_->key().size_bytes; }
    // All of its data is on this disk. DuckDB then reads page by page, straight into its columns, instead of large
    // parts into buffers of its own first.
    bool on_disk() { return reader_->all_here(); }

    uint64_t position = 0;

private:
    const std::unique_ptr<cache::CacheReader> reader_;
    const OpenPlain open_plain_;
    const ObjectIdentity identity_;
    const cache::Patience patience_;
};

// An object that is written to the store, and to the cache beside it.
class TeedObject final : public duckdb::FileHandle {
public:
    // `reads`: the statement that writes it, may be null.
    TeedObject(duckdb::FileSystem &files, duckdb::unique_ptr<duckdb::FileHandle> plain,
               std::shared_ptr<ObjectCache> cache, std::shared_ptr<StatementReads> reads);
    void Close() override;
    void write(void *buffer, int64_t length, uint64_t offset);
    duckdb::FileHandle &plain() { return *plain_; }

    uint64_t size_bytes = 0;  // written so far

private:
    const duckdb::unique_ptr<duckdb::FileHandle> plain_;
    const std::shared_ptr<ObjectCache> cache_;
    const std::shared_ptr<StatementReads> reads_;
    std::unique_ptr<cache::CacheWriter> writer_;  // null: closed
};

// What the cache says of itself; see Engine::cache_report.
CacheReport report_of(cache::SegmentCache &segments, bool all);
// See Engine::cache_work. `data_path`: of the lake, nothing else is touched.
Result<uint64_t> work_on(ObjectCache &objects, const std::string &data_path, const CacheWork &work,
                         const std::function<bool()> &cancelled);

}  // namespace roost
