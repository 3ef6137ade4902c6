// One stored result on disk. Layout, little-endian:
//   magic, u32 size, u64 checksum, header (nonce, names, types, time zone in DuckDB's serialisation)
//   for each chunk: u32 size, u32 rows, u64 checksum, DuckDB's serialisation of the chunk
//   index: for each chunk u64 offset, u64 first row
//   footer: u64 index offset, u64 chunks, u64 rows, u64 nonce, u64 checksum of index and footer, magic
// Checksums are XXH3; the nonce and a chunk's number are part of a chunk's, so bytes of another place or file do not
// pass. A file without its footer is no result. Called by the result store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "duckdb/common/types.hpp"

namespace duckdb {
class DataChunk;
class MemoryStream;
}  // namespace duckdb

namespace roost {

struct ResultSchema {
    std::vector<std::string> names;
    std::vector<duckdb::LogicalType> types;
    std::string time_zone;
};

// Writes one file through a buffer. Not thread-safe.
class ResultFileWriter {
public:
    static Result<std::unique_ptr<ResultFileWriter>> create(const std::string &path, const ResultSchema &schema);
    ~ResultFileWriter();
    ResultFileWriter(const ResultFileWriter &) = delete;
    ResultFileWriter &operator=(const ResultFileWriter &) = delete;

    Status append(duckdb::DataChunk &chunk);
    // Index and footer; the file is complete after it.
    Status finish();
    uint64_t rows() const { return rows_; }
    uint64_t bytes() const { return bytes_; }

private:
    struct Place {
        uint64_t offset, first_row;
    };
    ResultFileWriter(int fd, uint64_t nonce);
    Status put(std::string_view bytes);
    Status flush();

    int fd_;
    uint64_t nonce_;
    std::unique_ptr<duckdb::MemoryStream> stream_;
    std::string buffer_;
    std::vector<Place> index_;
    uint64_t rows_ = 0;
    uint64_t bytes_ = 0;
};

// A complete file, open for reading. Thread-safe.
class ResultFile {
public:
    // data_loss when the file is not what a writer made, not_found when there is none.
    static Result<std::shared_ptr<ResultFile>> open(const std::string &path);
    ~ResultFile();
    ResultFile(const ResultFile &) = delete;
    ResultFile &operator=(const ResultFile &) = delete;

    const ResultSchema &schema() const { return schema_; }
    uint64_t rows() const { return rows_; }
    uint64_t chunks() const { return index_.size(); }
    uint64_t first_row(uint64_t chunk) const { return index_[chunk].first_row; }
    // Bytes of the chunk's serialisation.
    uint64_t chunk_bytes(uint64_t chunk) const;
    // The chunk that holds a row. REQUIRES: row < rows().
    uint64_t chunk_of(uint64_t row) const;
    // Reads chunk `chunk` into an empty DataChunk. `buffer` is only memory to be reused from call to call.
    Status read(uint64_t chunk, duckdb::DataChunk &out, std::string &buffer) const;

private:
    struct Place {
        uint64_t offset, first_row;
    };
    explicit ResultFile(int fd) : fd_(fd) {}
    Status read_footer();
    Status read_header();
    Status read_at(uint64_t offset, uint64_t size, std::string &out) const;
    uint64_t chunk_rows(uint64_t chunk) const;

    int fd_;
    uint64_t nonce_ = 0;
    uint64_t index_offset_ = 0;
    uint64_t rows_ = 0;
    ResultSchema schema_;
    std::vector<Place> index_;
};

}  // namespace roost
