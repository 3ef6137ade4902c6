#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "base/mutex.h"
#include "duckdb/common/types/data_chunk.hpp"
#include "duckdb/main/connection.hpp"
#include "duckdb/main/database.hpp"
#include "engine/arrow_encoder.h"
#include "engine/duckdb_errors.h"
#include "engine/encode.h"
#include "engine/engine.h"
#include "engine/json_encoder.h"
#include "engine/result_file.h"

namespace roost {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".rows";
constexpr std::string_view kUnfinishedSuffix = ".part";
// Results kept open, and with each the chunks read last: paging reads one chunk several times.
constexpr size_t kMaxOpenResults = 32;
constexpr size_t kCachedChunks = 2;
constexpr uint64_t kMaxCachedChunkBytes = 8 << 20;
// A page is one string in memory and in the client's. It is filled a few rows at a time, so that it ends near the
// limit.
constexpr size_t kMaxPageBytes = 256 << 20;
constexpr uint64_t kPageStepRows = 64;
// Encoded Arrow bytes to hand over at a time.
constexpr size_t kArrowPieceBytes = 256 << 10;

int64_t now_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

int64_t modified_ms(const struct stat &info) {
    return int64_t{info.st_mtim.tv_sec} * 1000 + info.st_mtim.tv_nsec / 1'000'000;
}

// What reading pages of one result needs; used by one thread at a time.
struct Pager {
    std::shared_ptr<ResultFile> file;
    std::unique_ptr<duckdb::Connection> connection;  // for time zones; null when no column shows one
    std::unique_ptr<JsonPageEncoder> encoder;
    struct Chunk {
        uint64_t number;
        std::unique_ptr<duckdb::DataChunk> data;
    };
    std::vector<Chunk> chunks;  // newest last
    std::string buffer;

    Result<duckdb::DataChunk *> chunk(uint64_t number) {
        for (auto &known : chunks) {
            if (known.number == number) return known.data.get();
        }
        auto data = std::make_unique<duckdb::DataChunk>();
        ROOST_RETURN_IF_ERROR(file->read(number, *data, buffer));
        if (chunks.size() >= kCachedChunks) chunks.erase(chunks.begin());
        chunks.push_back({number, std::move(data)});
        return chunks.back().data.get();
    }

    // Rows [offset, offset + limit) as a JSON array. Throws what DuckDB throws.
    Result<std::string> page(uint64_t offset, uint64_t limit) {
        std::string out = "[";
        const uint64_t end = std::min(file->rows(), offset < file->rows() ? offset + limit : offset);
        while (offset < end) {
            const uint64_t number = file->chunk_of(offset);
            ROOST_ASSIGN_OR_RETURN(duckdb::DataChunk * data, chunk(number));
            const uint64_t first = file->first_row(number);
            const uint64_t stop = std::min({end, first + data->size(), offset + kPageStepRows});
            encoder->append(*data, offset - first, stop - first, out);
            offset = stop;
            if (out.size() > kMaxPageBytes) {
                return Status(Code::resource_exhausted, "the rows are too large for one page")
                    .with_sqlstate("54000")
                    .with_hint("ask for fewer rows at a time, or read the result as Arrow");
            }
        }
        out += ']';
        return out;
    }

    // What is too large to keep between pages is let go.
    void trim() {
        if (buffer.capacity() > kMaxCachedChunkBytes) buffer = {};
        std::erase_if(chunks,
                      [&](const Chunk &chunk) { return file->chunk_bytes(chunk.number) > kMaxCachedChunkBytes; });
    }
};

class FileResultStore;

class FileResultWriter final : public StoredResultWriter {
public:
    FileResultWriter(FileResultStore &store, const Uuid &id, std::string part_path,
                     std::unique_ptr<ResultFileWriter> file)
        : store_(store), id_(id), part_path_(std::move(part_path)), file_(std::move(file)) {}
    ~FileResultWriter() override;
    Status append(duckdb::DataChunk &chunk) override;
    Status finish() override;
    uint64_t rows() const override { return file_->rows(); }
    uint64_t bytes() const override { return file_->bytes(); }

private:
    Status reserve();
    FileResultStore &store_;
    Uuid id_;
    std::string part_path_;
    std::unique_ptr<ResultFileWriter> file_;
    uint64_t reserved_bytes_ = 0;
    bool finished_ = false;
};

class FileResultStore final : public ResultStore {
public:
    FileResultStore(std::string dir, int64_t retention_ms, uint64_t max_bytes, std::unique_ptr<duckdb::DuckDB> db)
        : dir_(std::move(dir)), retention_ms_(retention_ms), max_bytes_(max_bytes), db_(std::move(db)) {}

    Status scan();
    Result<std::unique_ptr<StoredResultWriter>> create(const Uuid &id, std::vector<std::string> names,
                                                       std::vector<duckdb::LogicalType> types,
                                                       const std::string &time_zone) override;
    Result<std::string> read_page(const Uuid &id, uint64_t offset_rows, uint32_t limit_rows) override;
    Result<std::unique_ptr<StoredResultReader>> open_arrow(const Uuid &id) override;
    Status drop(const Uuid &id) override;
    void sweep() override;

    // For writers: bytes of unfinished files count as well.
    Status reserve_bytes(uint64_t bytes);
    void release_bytes(uint64_t bytes);
    Status publish(const Uuid &id, const std::string &part_path, uint64_t bytes);

private:
    std::string path_of(const Uuid &id) const { return dir_ + "/" + id.to_string() + std::string(kSuffix); }
    bool try_reserve(uint64_t bytes);
    Result<std::unique_ptr<Pager>> take_pager(const Uuid &id);
    void return_pager(const Uuid &id, std::unique_ptr<Pager> pager);
    Result<std::unique_ptr<Pager>> open_pager(const Uuid &id);

    struct Entry {
        uint64_t bytes = 0;
        uint64_t last_used = 0;
        std::unique_ptr<Pager> pager;  // at rest; none while a page is read
    };

    const std::string dir_;
    const int64_t retention_ms_;
    const uint64_t max_bytes_;
    const std::unique_ptr<duckdb::DuckDB> db_;
    std::atomic<uint64_t> part_number_{0};
    Mutex mutex_;
    std::unordered_map<Uuid, Entry> entries_ ROOST_GUARDED_BY(mutex_);
    uint64_t total_bytes_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t uses_ ROOST_GUARDED_BY(mutex_) = 0;
};

// An Arrow stream of one result. Keeps the file open, so a result that is dropped meanwhile can be read to its end.
class ArrowResultReader final : public StoredResultReader {
public:
    ArrowResultReader(std::shared_ptr<ResultFile> file, duckdb::DuckDB &db) : file_(std::move(file)), connection_(db) {}

    Status open() {
        ROOST_ASSIGN_OR_RETURN(encoder_, ArrowEncoder::make(file_->schema(), *connection_.context));
        return {};
    }

    Result<bool> step(ResultSink &sink) override {
        if (done_) return false;
        if (next_ == 0 && row_ == 0) sink.header(header());
        for (;;) {
            if (next_ == file_->chunks()) return finish(sink);
            if (row_ == 0) {
                chunk_.Destroy();
                ROOST_RETURN_IF_ERROR(file_->read(next_, chunk_, buffer_));
            }
            ROOST_ASSIGN_OR_RETURN(const uint64_t stop,
                                   encoder_->append(chunk_, row_, file_->chunk_bytes(next_), pending_));
            rows_ += static_cast<uint32_t>(stop - row_);
            row_ = stop;
            if (row_ == chunk_.size()) {
                row_ = 0;
                ++next_;
            }
            if (pending_.size() < kArrowPieceBytes) continue;
            if (!sink.rows(std::exchange(rows_, 0), std::exchange(pending_, {}))) return true;
        }
    }

private:
    ResultHeader header() const {
        ResultHeader header;
        header.has_grid = true;
        const auto &schema = file_->schema();
        for (size_t i = 0; i < schema.names.size(); ++i)
            header.columns.push_back(describe_column(schema.names[i], schema.types[i]));
        return header;
    }

    Result<bool> finish(ResultSink &sink) {
        done_ = true;
        ROOST_RETURN_IF_ERROR(encoder_->end(pending_));
        sink.rows(rows_, std::move(pending_));
        return false;
    }

    std::shared_ptr<ResultFile> file_;
    duckdb::Connection connection_;
    std::unique_ptr<ArrowEncoder> encoder_;
    duckdb::DataChunk chunk_;
    uint64_t next_ = 0;  // the chunk to take rows from, and the row of it
    uint64_t row_ = 0;
    std::string buffer_;
    std::string pending_;
    uint32_t rows_ = 0;
    bool done_ = false;
};

FileResultWriter::~FileResultWriter() {
    if (finished_) return;
    ::unlink(part_path_.c_str());
    store_.release_bytes(reserved_bytes_);
}

Status FileResultWriter::reserve() {
    const uint64_t more = file_->bytes() - reserved_bytes_;
    ROOST_RETURN_IF_ERROR(store_.reserve_bytes(more));
    reserved_bytes_ += more;
    return {};
}

Status FileResultWriter::append(duckdb::DataChunk &chunk) {
    ROOST_RETURN_IF_ERROR(file_->append(chunk));
    return reserve();
}

Status FileResultWriter::finish() {
    ROOST_RETURN_IF_ERROR(file_->finish());
    ROOST_RETURN_IF_ERROR(reserve());
    ROOST_RETURN_IF_ERROR(store_.publish(id_, part_path_, file_->bytes()));
    finished_ = true;
    return {};
}

Status FileResultStore::scan() {
    std::error_code error;
    fs::create_directories(dir_, error);
    if (error) return Status(Code::io_error, "can't make the folder of results: " + error.message());
    MutexLock lock(mutex_);
    for (const auto &item : fs::directory_iterator(dir_, error)) {
        const std::string name = item.path().filename();
        if (name.ends_with(kUnfinishedSuffix)) ::unlink(item.path().c_str());
        if (!name.ends_with(kSuffix)) continue;
        const auto id = Uuid::parse(std::string_view(name).substr(0, name.size() - kSuffix.size()));
        if (!id) continue;
        // A machine that lost power may have published a file that never reached the disk whole.
        if (ResultFile::open(item.path()).status().code() == Code::data_loss) ::unlink(item.path().c_str());
        struct stat info;
        if (::stat(item.path().c_str(), &info) != 0) continue;
        entries_[*id].bytes = static_cast<uint64_t>(info.st_size);
        total_bytes_ += static_cast<uint64_t>(info.st_size);
    }
    return error ? Status(Code::io_error, "can't list the folder of results: " + error.message()) : Status();
}

Result<std::unique_ptr<StoredResultWriter>> FileResultStore::create(const Uuid &id, std::vector<std::string> names,
                                                                    std::vector<duckdb::LogicalType> types,
                                                                    const std::string &time_zone) {
    const std::string part =
        dir_ + "/" + id.to_string() + "." + std::to_string(part_number_++) + std::string(kUnfinishedSuffix);
    ROOST_ASSIGN_OR_RETURN(
        auto file, ResultFileWriter::create(part, {unique_names(std::move(names)), std::move(types), time_zone}));
    return std::unique_ptr<StoredResultWriter>(std::make_unique<FileResultWriter>(*this, id, part, std::move(file)));
}

bool FileResultStore::try_reserve(uint64_t bytes) {
    MutexLock lock(mutex_);
    if (bytes > max_bytes_ - std::min(max_bytes_, total_bytes_)) return false;
    total_bytes_ += bytes;
    return true;
}

Status FileResultStore::reserve_bytes(uint64_t bytes) {
    if (try_reserve(bytes)) return {};
    sweep();
    if (try_reserve(bytes)) return {};
    return Status(Code::resource_exhausted, "the node's space for stored results is used up")
        .with_sqlstate("53100")
        .with_hint("fetch fewer rows, or wait until older results expire");
}

void FileResultStore::release_bytes(uint64_t bytes) {
    MutexLock lock(mutex_);
    total_bytes_ -= bytes;
}

Status FileResultStore::publish(const Uuid &id, const std::string &part_path, uint64_t bytes) {
    if (::rename(part_path.c_str(), path_of(id).c_str()) != 0)
        return Status(Code::io_error, "can't publish the result");
    MutexLock lock(mutex_);
    Entry &entry = entries_[id];
    total_bytes_ -= entry.bytes;  // of a result that this one replaces
    entry = {bytes, ++uses_, nullptr};
    return {};
}

Result<std::unique_ptr<Pager>> FileResultStore::open_pager(const Uuid &id) {
    ROOST_ASSIGN_OR_RETURN(auto file, ResultFile::open(path_of(id)));
    const auto &schema = file->schema();
    auto pager = std::make_unique<Pager>();
    auto zone = ZoneOffsets::utc();
    if (std::any_of(schema.types.begin(), schema.types.end(), shows_time_zone)) {
        pager->connection = std::make_unique<duckdb::Connection>(*db_);
        ROOST_ASSIGN_OR_RETURN(zone, ZoneOffsets::make(schema.time_zone, *pager->connection->context));
    }
    pager->encoder = std::make_unique<JsonPageEncoder>(schema.names, schema.types, std::move(zone));
    pager->file = std::move(file);
    return pager;
}

Result<std::unique_ptr<Pager>> FileResultStore::take_pager(const Uuid &id) {
    {
        MutexLock lock(mutex_);
        const auto found = entries_.find(id);
        if (found == entries_.end()) return Status(Code::not_found, "no such result, or it has expired");
        if (found->second.pager) return std::move(found->second.pager);
    }
    return open_pager(id);
}

void FileResultStore::return_pager(const Uuid &id, std::unique_ptr<Pager> pager) {
    pager->trim();
    std::unique_ptr<Pager> evicted;  // destroyed after the lock is gone
    MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.pager) return;
    found->second.pager = std::move(pager);
    found->second.last_used = ++uses_;
    Entry *oldest = nullptr;
    size_t open = 0;
    for (auto &[other, entry] : entries_) {
        if (!entry.pager) continue;
        ++open;
        if (!oldest || entry.last_used < oldest->last_used) oldest = &entry;
    }
    if (open > kMaxOpenResults) evicted = std::move(oldest->pager);
}

Result<std::string> FileResultStore::read_page(const Uuid &id, uint64_t offset_rows, uint32_t limit_rows) {
    ROOST_ASSIGN_OR_RETURN(auto pager, take_pager(id));
    try {
        auto page = pager->page(offset_rows, limit_rows);
        if (page.ok()) return_pager(id, std::move(pager));
        return page;
    } catch (const std::exception &e) {
        return status_of(e, {}, {});
    }
}

Result<std::unique_ptr<StoredResultReader>> FileResultStore::open_arrow(const Uuid &id) {
    ROOST_ASSIGN_OR_RETURN(auto pager, take_pager(id));
    auto reader = std::make_unique<ArrowResultReader>(pager->file, *db_);
    return_pager(id, std::move(pager));
    ROOST_RETURN_IF_ERROR(reader->open());
    return std::unique_ptr<StoredResultReader>(std::move(reader));
}

Status FileResultStore::drop(const Uuid &id) {
    {
        MutexLock lock(mutex_);
        const auto found = entries_.find(id);
        if (found == entries_.end()) return {};
        total_bytes_ -= found->second.bytes;
        entries_.erase(found);
    }
    if (::unlink(path_of(id).c_str()) != 0 && errno != ENOENT) return Status(Code::io_error, "can't remove the result");
    return {};
}

void FileResultStore::sweep() {
    std::vector<Uuid> ids;
    {
        MutexLock lock(mutex_);
        for (const auto &[id, entry] : entries_) ids.push_back(id);
    }
    const int64_t oldest_ms = now_ms() - retention_ms_;
    for (const auto &id : ids) {
        struct stat info;
        const bool gone = ::stat(path_of(id).c_str(), &info) != 0;
        // A file that can't be removed stays known and is tried again at the next sweep.
        if (gone || modified_ms(info) < oldest_ms) (void)drop(id);
    }
}

}  // namespace

Result<std::unique_ptr<ResultStore>> ResultStore::open(std::string dir, int64_t retention_ms, uint64_t max_bytes) {
    try {
        duckdb::DBConfig config;
        config.options.maximum_threads = 1;
        auto db = std::make_unique<duckdb::DuckDB>(nullptr, &config);
        auto store = std::make_unique<FileResultStore>(std::move(dir), retention_ms, max_bytes, std::move(db));
        ROOST_RETURN_IF_ERROR(store->scan());
        return std::unique_ptr<ResultStore>(std::move(store));
    } catch (const std::exception &e) {
        return status_of(e, {}, {});
    }
}

}  // namespace roost
