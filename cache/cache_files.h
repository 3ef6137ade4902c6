// The formats of the cache directory's files (README.md, On disk): what is written, and what is believed of it when it
// is read back. Pure; every byte read is taken for hostile, for a crash may have left anything.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "cache/eviction.h"

namespace roost::cache {

// A file of the store at one version. Bytes of two keys are never mixed.
struct FileKey {
    std::string path;
    std::string version;  // ETag, or size and time of the last change, or kImmutable
    uint64_t size_bytes = 0;

    // The first half of the SHA-256 of all three.
    Uuid id() const;
    bool operator==(const FileKey &) const = default;
};
// The version of files that never change under their name: DuckLake's.
constexpr std::string_view kImmutable = "immutable";

// An upper bound of what a path, a version or a tag may hold; longer ones are not cached.
constexpr size_t kNameMaxBytes = 16 * 1024;

struct DirectoryIdentity {
    Uuid identity;
    uint64_t generation = 0;  // openings so far
    uint32_t block_bytes = 0;
};
std::string encode_identity(const DirectoryIdentity &identity);
std::optional<DirectoryIdentity> decode_identity(std::string_view text);

constexpr size_t kGrains = 8;  // parts of a block that have a checksum each
constexpr size_t kRecordBytes = 128;
using Checksums = std::array<uint64_t, kGrains>;

// XXH3-64.
uint64_t checksum(std::string_view bytes);
// Of each eighth of `block_bytes` that `data` reaches into; 0 of the others.
Checksums checksums_of(std::string_view data, uint32_t block_bytes);

struct BlockRecord {
    Uuid file;
    uint32_t block = 0;
    uint32_t length_bytes = 0;
    BlockKind kind = BlockKind::data;
    uint64_t sequence = 0;  // larger is later
    Checksums sums{};
};
// `seed`: the directory's, so that an index of another one is not believed.
using RecordBytes = std::array<char, kRecordBytes>;
RecordBytes encode_block(const BlockRecord &record, uint32_t slot, uint64_t seed);
std::optional<BlockRecord> decode_block(std::string_view bytes, uint32_t slot, uint64_t seed);

struct FileRecord {
    FileKey key;
    std::string tag;
    bool pinned = false;
    uint64_t sequence = 0;  // of two records of one file, the larger holds
};
// A whole number of kLogStep bytes.
constexpr size_t kLogStep = 64;
std::string encode_file(const FileRecord &record, uint64_t seed);
// Each whole record of a log, in order; what is broken between them is passed over.
void for_each_file(std::string_view log, uint64_t seed, const std::function<void(FileRecord)> &found);

}  // namespace roost::cache
