// Stored results from a damaged disk. Input: a zero byte, then a whole file; or another byte, then edits of a sound
// file (position, operation, bytes). Reading gives an error or, after edits, exactly the rows that were stored.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/codec.h"
#include "duckdb/common/types/data_chunk.hpp"
#include "engine/result_file.h"

namespace roost {
namespace {

constexpr uint64_t kRows = 5000;

void require(bool condition, const char *what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

// A file in memory with a path.
class MemoryFile {
public:
    MemoryFile() : fd_(::memfd_create("result", 0)) {}
    ~MemoryFile() { ::close(fd_); }
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
    void write(std::string_view bytes) const {
        require(::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "write");
    }
    std::string read() const {
        std::string out(static_cast<size_t>(::lseek(fd_, 0, SEEK_END)), '\0');
        require(::pread(fd_, out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()), "read");
        return out;
    }

private:
    int fd_;
};

std::string sound_file() {
    const MemoryFile memory;
    const ResultSchema schema{{"n", "text"}, {duckdb::LogicalType::BIGINT, duckdb::LogicalType::VARCHAR}, "UTC"};
    auto writer = ResultFileWriter::create(memory.path(), schema);
    require(writer.ok(), "create");
    duckdb::DataChunk chunk;
    chunk.Initialize(duckdb::Allocator::DefaultAllocator(), {schema.types[0], schema.types[1]});
    for (uint64_t row = 0; row < kRows;) {
        chunk.Reset();
        duckdb::idx_t count = 0;
        for (; count < 700 && row < kRows; ++count, ++row) {
            chunk.SetValue(0, count, duckdb::Value::BIGINT(static_cast<int64_t>(row)));
            chunk.SetValue(1, count,
                           row % 3 == 0 ? duckdb::Value(schema.types[1]) : duckdb::Value("row " + std::to_string(row)));
        }
        chunk.SetCardinality(count);
        require((*writer)->append(chunk).ok(), "append");
    }
    require((*writer)->finish().ok(), "finish");
    return memory.read();
}

std::string edited(std::string bytes, std::string_view edits) {
    Reader in(edits);
    while (in.ok() && in.remaining() > 0 && !bytes.empty()) {
        const size_t at = in.get<uint16_t>() * size_t{37} % bytes.size();
        const auto operation = in.get<uint8_t>();
        const auto argument = in.get<uint8_t>();
        switch (operation % 5) {
            case 0:
                bytes[at] = static_cast<char>(argument);
                break;
            case 1:
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << argument % 8));
                break;
            case 2:
                bytes.resize(at);
                break;
            case 3:
                bytes.insert(at, argument, '\0');
                break;
            default:
                bytes.replace(at, argument, bytes, bytes.size() - at - 1, argument);
                break;
        }
    }
    return bytes;
}

void check_row(duckdb::DataChunk &chunk, duckdb::idx_t i, uint64_t row) {
    require(chunk.GetValue(0, i) == duckdb::Value::BIGINT(static_cast<int64_t>(row)), "a row is another");
    const auto text = chunk.GetValue(1, i);
    require(row % 3 == 0 ? text.IsNull() : text.ToString() == "row " + std::to_string(row), "a text is another");
}

void run(const uint8_t *data, size_t size) {
    if (size == 0) return;
    static const std::string sound = sound_file();
    const std::string_view rest(reinterpret_cast<const char *>(data) + 1, size - 1);
    const bool edits = data[0] != 0;
    const MemoryFile memory;
    memory.write(edits ? edited(sound, rest) : rest);
    const auto file = ResultFile::open(memory.path());
    if (!file.ok()) return require(file.status().code() == Code::data_loss, "damage has another code");
    std::string buffer;
    uint64_t row = 0;
    for (uint64_t number = 0; number < (*file)->chunks(); ++number) {
        duckdb::DataChunk chunk;
        const Status status = (*file)->read(number, chunk, buffer);
        if (!status.ok()) return require(status.code() == Code::data_loss, "damage has another code");
        if (!edits) continue;
        for (duckdb::idx_t i = 0; i < chunk.size(); ++i) check_row(chunk, i, row++);
    }
    if (edits) require(row == kRows, "rows are missing");
}

}  // namespace
}  // namespace roost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    roost::run(data, size);
    return 0;
}
