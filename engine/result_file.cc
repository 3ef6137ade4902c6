#include "engine/result_file.h"

#define XXH_INLINE_ALL  // header only: no library to ship

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/codec.h"
#include "base/ids.h"
#include "duckdb/common/serializer/binary_deserializer.hpp"
#include "duckdb/common/serializer/binary_serializer.hpp"
#include "duckdb/common/types/data_chunk.hpp"
#include "engine/duckdb_errors.h"
#include "engine/serialization.h"

namespace roost {

namespace {

constexpr std::string_view kMagic = "roostRS1";
constexpr std::string_view kEndMagic = "1SRtsoor";
constexpr uint64_t kHeaderPrefixBytes = 8 + 4 + 8;
constexpr uint64_t kRecordPrefixBytes = 4 + 4 + 8;
constexpr uint64_t kIndexEntryBytes = 16;
constexpr uint64_t kFooterBytes = 5 * 8 + 8;
constexpr uint64_t kMaxHeaderBytes = 64 << 20;
constexpr uint64_t kMaxChunkBytes = uint64_t{2} << 30;
constexpr size_t kBufferBytes = 256 << 10;

// Bound to where the bytes belong by the seed. (DuckDB's own hash lets pairs of flipped bits pass.)
uint64_t checksum(std::string_view bytes, uint64_t nonce, uint64_t place) {
    constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), nonce + kSpread * (place + 1));
}

Status errno_status(const char *what) {
    const int error = errno;
    if (error == ENOENT) return Status(Code::not_found, "no such result");
    if (error == ENOSPC || error == EDQUOT) {
        return Status(Code::resource_exhausted, "the node's disk is full").with_sqlstate("53100").with_detail(what);
    }
    return Status(Code::io_error, std::string(what) + ": " + std::strerror(error));
}

Status broken(const char *what) {
    return Status(Code::data_loss, std::string("the stored result is damaged: ") + what);
}

// Runs `read` on a deserializer over `bytes`; DuckDB's exceptions become data_loss.
template <class Read>
Status deserialize(std::string_view bytes, Read &&read) {
    try {
        duckdb::MemoryStream stream(data_of(bytes), bytes.size());
        duckdb::BinaryDeserializer deserializer(stream);
        read(deserializer);
        if (stream.GetPosition() != bytes.size()) return broken("bytes left over");
        return {};
    } catch (const std::exception &) {
        return broken("a value can't be read");
    }
}

}  // namespace

ResultFileWriter::ResultFileWriter(int fd, uint64_t nonce)
    : fd_(fd), nonce_(nonce), stream_(std::make_unique<duckdb::MemoryStream>()) {}

ResultFileWriter::~ResultFileWriter() { ::close(fd_); }

Result<std::unique_ptr<ResultFileWriter>> ResultFileWriter::create(const std::string &path,
                                                                   const ResultSchema &schema) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return errno_status("can't create the result file");
    uint64_t nonce = 0;
    const std::string random = random_bytes(sizeof nonce);
    std::memcpy(&nonce, random.data(), sizeof nonce);
    std::unique_ptr<ResultFileWriter> writer(new ResultFileWriter(fd, nonce));
    try {
        duckdb::BinarySerializer serializer(*writer->stream_, newest_format());
        serializer.Begin();
        serializer.WriteProperty(100, "nonce", nonce);
        serializer.WriteProperty(101, "names", duckdb::vector<std::string>(schema.names.begin(), schema.names.end()));
        serializer.WriteProperty(102, "types",
                                 duckdb::vector<duckdb::LogicalType>(schema.types.begin(), schema.types.end()));
        serializer.WriteProperty(103, "time_zone", schema.time_zone);
        serializer.End();
    } catch (const std::exception &e) {
        return status_of(e, {}, {});
    }
    const std::string_view header = view_of(*writer->stream_);
    if (header.size() > kMaxHeaderBytes)
        return Status(Code::resource_exhausted, "the result's types are too large").with_sqlstate("54000");
    Writer prefix;
    prefix.put_raw(kMagic);
    prefix.put(static_cast<uint32_t>(header.size()));
    prefix.put(checksum(header, 0, 0));
    ROOST_RETURN_IF_ERROR(writer->put(prefix.bytes()));
    ROOST_RETURN_IF_ERROR(writer->put(header));
    return writer;
}

Status ResultFileWriter::append(duckdb::DataChunk &chunk) {
    if (chunk.size() == 0) return {};
    stream_->Rewind();
    try {
        duckdb::BinarySerializer serializer(*stream_, newest_format());
        serializer.Begin();
        chunk.Serialize(serializer);
        serializer.End();
    } catch (const std::exception &e) {
        return status_of(e, {}, {});
    }
    const std::string_view payload = view_of(*stream_);
    if (payload.size() > kMaxChunkBytes)
        return Status(Code::resource_exhausted, "rows too large to store").with_sqlstate("54000");
    Writer prefix;
    prefix.put(static_cast<uint32_t>(payload.size()));
    prefix.put(static_cast<uint32_t>(chunk.size()));
    prefix.put(checksum(payload, nonce_, index_.size()));
    index_.push_back({bytes_, rows_});
    rows_ += chunk.size();
    ROOST_RETURN_IF_ERROR(put(prefix.bytes()));
    return put(payload);
}

Status ResultFileWriter::finish() {
    const uint64_t index_offset = bytes_;
    Writer tail;
    for (const auto &place : index_) {
        tail.put(place.offset);
        tail.put(place.first_row);
    }
    tail.put(index_offset);
    tail.put(uint64_t{index_.size()});
    tail.put(rows_);
    tail.put(nonce_);
    tail.put(checksum(tail.bytes(), nonce_, index_.size()));
    tail.put_raw(kEndMagic);
    ROOST_RETURN_IF_ERROR(put(tail.bytes()));
    return flush();
}

Status ResultFileWriter::put(std::string_view bytes) {
    bytes_ += bytes.size();
    buffer_ += bytes;
    return buffer_.size() < kBufferBytes ? Status() : flush();
}

Status ResultFileWriter::flush() {
    std::string_view rest = buffer_;
    while (!rest.empty()) {
        const ssize_t written = ::write(fd_, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno_status("can't write the result file");
        rest.remove_prefix(static_cast<size_t>(written));
    }
    buffer_.clear();
    return {};
}

ResultFile::~ResultFile() { ::close(fd_); }

Result<std::shared_ptr<ResultFile>> ResultFile::open(const std::string &path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno_status("can't open the result file");
    std::shared_ptr<ResultFile> file(new ResultFile(fd));
    ROOST_RETURN_IF_ERROR(file->read_footer());
    ROOST_RETURN_IF_ERROR(file->read_header());
    return file;
}

Status ResultFile::read_at(uint64_t offset, uint64_t size, std::string &out) const {
    out.resize(size);
    for (uint64_t done = 0; done < size;) {
        const ssize_t got = ::pread(fd_, out.data() + done, size - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno_status("can't read the result file");
        if (got == 0) return broken("it is too short");
        done += static_cast<uint64_t>(got);
    }
    return {};
}

Status ResultFile::read_footer() {
    struct stat info;
    if (::fstat(fd_, &info) != 0) return errno_status("can't read the result file");
    const auto size = static_cast<uint64_t>(info.st_size);
    if (size < kHeaderPrefixBytes + kFooterBytes) return broken("it is too short");
    std::string footer;
    ROOST_RETURN_IF_ERROR(read_at(size - kFooterBytes, kFooterBytes, footer));
    Reader in(footer);
    index_offset_ = in.get<uint64_t>();
    const auto chunks = in.get<uint64_t>();
    rows_ = in.get<uint64_t>();
    nonce_ = in.get<uint64_t>();
    const auto sum = in.get<uint64_t>();
    if (in.get_raw(8) != kEndMagic) return broken("it has no end");
    if (index_offset_ > size - kFooterBytes || (size - kFooterBytes - index_offset_) / kIndexEntryBytes != chunks ||
        (size - kFooterBytes - index_offset_) % kIndexEntryBytes != 0) {
        return broken("its index does not fit");
    }
    std::string tail;
    ROOST_RETURN_IF_ERROR(read_at(index_offset_, chunks * kIndexEntryBytes + kFooterBytes - 16, tail));
    if (checksum(tail, nonce_, chunks) != sum) return broken("its index fails the checksum");
    Reader places(tail);
    index_.resize(chunks);
    Place last{0, 0};
    for (size_t i = 0; i < chunks; ++i) {
        Place &place = index_[i];
        place.offset = places.get<uint64_t>();
        place.first_row = places.get<uint64_t>();
        const bool rows_grow = i == 0 ? place.first_row == 0 : place.first_row > last.first_row;
        if (place.offset < last.offset + kRecordPrefixBytes || !rows_grow) return broken("its index is not in order");
        last = place;
    }
    const bool ends_well =
        last.offset + kRecordPrefixBytes <= index_offset_ && (chunks == 0 ? rows_ == 0 : rows_ > last.first_row);
    return ends_well ? Status() : broken("its index is not in order");
}

Status ResultFile::read_header() {
    std::string prefix;
    ROOST_RETURN_IF_ERROR(read_at(0, kHeaderPrefixBytes, prefix));
    Reader in(prefix);
    if (in.get_raw(8) != kMagic) return broken("it does not begin as one");
    const auto size = in.get<uint32_t>();
    const auto sum = in.get<uint64_t>();
    if (size > kMaxHeaderBytes || kHeaderPrefixBytes + size > index_offset_) return broken("its header does not fit");
    std::string header;
    ROOST_RETURN_IF_ERROR(read_at(kHeaderPrefixBytes, size, header));
    if (checksum(header, 0, 0) != sum) return broken("its header fails the checksum");
    uint64_t nonce = 0;
    ROOST_RETURN_IF_ERROR(deserialize(header, [&](duckdb::BinaryDeserializer &deserializer) {
        deserializer.Begin();
        nonce = deserializer.ReadProperty<uint64_t>(100, "nonce");
        schema_.names = deserializer.ReadProperty<duckdb::vector<std::string>>(101, "names");
        schema_.types = deserializer.ReadProperty<duckdb::vector<duckdb::LogicalType>>(102, "types");
        schema_.time_zone = deserializer.ReadProperty<std::string>(103, "time_zone");
        deserializer.End();
    }));
    if (nonce != nonce_ || schema_.names.size() != schema_.types.size()) return broken("header and footer differ");
    return {};
}

uint64_t ResultFile::chunk_bytes(uint64_t chunk) const {
    const uint64_t end = chunk + 1 < index_.size() ? index_[chunk + 1].offset : index_offset_;
    return end - index_[chunk].offset - kRecordPrefixBytes;
}

uint64_t ResultFile::chunk_rows(uint64_t chunk) const {
    return (chunk + 1 < index_.size() ? index_[chunk + 1].first_row : rows_) - index_[chunk].first_row;
}

uint64_t ResultFile::chunk_of(uint64_t row) const {
    const auto after = std::upper_bound(index_.begin(), index_.end(), row,
                                        [](uint64_t wanted, const Place &place) { return wanted < place.first_row; });
    return static_cast<uint64_t>(after - index_.begin()) - 1;
}

Status ResultFile::read(uint64_t chunk, duckdb::DataChunk &out, std::string &buffer) const {
    const uint64_t size = chunk_bytes(chunk);
    if (size > kMaxChunkBytes) return broken("a chunk does not fit");
    ROOST_RETURN_IF_ERROR(read_at(index_[chunk].offset, kRecordPrefixBytes + size, buffer));
    Reader in(buffer);
    const auto stored_size = in.get<uint32_t>();
    const auto stored_rows = in.get<uint32_t>();
    const auto sum = in.get<uint64_t>();
    const std::string_view payload = in.get_raw(in.remaining());
    if (stored_size != size || stored_rows != chunk_rows(chunk)) return broken("a chunk differs from the index");
    if (checksum(payload, nonce_, chunk) != sum) return broken("a chunk fails the checksum");
    ROOST_RETURN_IF_ERROR(deserialize(payload, [&](duckdb::BinaryDeserializer &deserializer) {
        deserializer.Begin();
        out.Deserialize(deserializer);
        deserializer.End();
    }));
    if (out.size() != stored_rows || out.ColumnCount() != schema_.types.size())
        return broken("a chunk has another shape");
    return {};
}

}  // namespace roost
