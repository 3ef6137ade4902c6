#include "cache/cache_files.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/codec.h"

#define XXH_INLINE_ALL  // header only: no library to ship
#include <xxhash.h>

namespace roost::cache {
namespace {

constexpr std::string_view kFirstLine = "roost-cache 1";
constexpr uint32_t kFileMagic = 0x656C6966;  // "file"
constexpr size_t kFileHeadBytes = 16;        // magic, length, checksum

std::optional<std::string_view> next_line(std::string_view &text) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
}

template <class T>
bool read_number(std::string_view text, T &number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Uuid FileKey::id() const {
    Writer name;
    name.put_string(path);
    name.put_string(version);
    name.put(size_bytes);
    return Uuid::from_name(name.bytes());
}

std::string encode_identity(const DirectoryIdentity &identity) {
    std::string text(kFirstLine);
    text += "\nidentity " + identity.identity.to_string();
    text += "\ngeneration " + std::to_string(identity.generation);
    text += "\nblock_bytes " + std::to_string(identity.block_bytes) + "\n";
    return text;
}

std::optional<DirectoryIdentity> decode_identity(std::string_view text) {
    DirectoryIdentity identity;
    const auto value = [&text](std::string_view name) -> std::optional<std::string_view> {
        auto line = next_line(text);
        if (!line || !line->starts_with(name)) return std::nullopt;
        line->remove_prefix(name.size());
        return line;
    };
    if (next_line(text) != kFirstLine) return std::nullopt;
    const auto id = value("identity "), generation = value("generation "), block = value("block_bytes ");
    if (!id || !generation || !block || !text.empty()) return std::nullopt;
    const auto parsed = Uuid::parse(*id);
    if (!parsed || parsed->is_nil()) return std::nullopt;
    identity.identity = *parsed;
    if (!read_number(*generation, identity.generation) || !read_number(*block, identity.block_bytes))
        return std::nullopt;
    return identity;
}

uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Checksums checksums_of(std::string_view data, uint32_t block_bytes) {
    Checksums sums{};
    const size_t grain_bytes = block_bytes / kGrains;
    for (size_t grain = 0; grain * grain_bytes < data.size(); ++grain) {
        sums[grain] = checksum(data.substr(grain * grain_bytes, grain_bytes));
    }
    return sums;
}

RecordBytes encode_block(const BlockRecord &record, uint32_t slot, uint64_t seed) {
    Writer out;
    out.put_raw(record.file.raw());
    out.put(record.block);
    out.put(record.length_bytes);
    out.put(record.sequence);
    out.put<uint64_t>(static_cast<uint8_t>(record.kind));
    for (const uint64_t sum : record.sums) out.put(sum);
    out.put<uint64_t>(0);
    RecordBytes bytes{};
    std::memcpy(bytes.data() + 8, out.bytes().data(), std::min(out.bytes().size(), kRecordBytes - 8));
    const uint64_t sum = XXH3_64bits_withSeed(bytes.data() + 8, kRecordBytes - 8, seed + slot);
    std::memcpy(bytes.data(), &sum, sizeof(sum));
    return bytes;
}

std::optional<BlockRecord> decode_block(std::string_view bytes, uint32_t slot, uint64_t seed) {
    if (bytes.size() != kRecordBytes) return std::nullopt;
    Reader in(bytes);
    const auto sum = in.get<uint64_t>();
    if (sum != XXH3_64bits_withSeed(bytes.data() + 8, kRecordBytes - 8, seed + slot)) return std::nullopt;
    BlockRecord record;
    const std::string_view id = in.get_raw(record.file.bytes.size());
    std::copy(id.begin(), id.end(), record.file.bytes.begin());
    record.block = in.get<uint32_t>();
    record.length_bytes = in.get<uint32_t>();
    record.sequence = in.get<uint64_t>();
    const auto kind = in.get<uint64_t>();
    if (kind > static_cast<uint64_t>(BlockKind::index)) return std::nullopt;
    record.kind = static_cast<BlockKind>(kind);
    for (uint64_t &one : record.sums) one = in.get<uint64_t>();
    return record;
}

std::string encode_file(const FileRecord &record, uint64_t seed) {
    Writer payload;
    payload.put_string(record.key.path);
    payload.put_string(record.key.version);
    payload.put(record.key.size_bytes);
    payload.put_string(record.tag);
    payload.put_bool(record.pinned);
    payload.put(record.sequence);
    Writer out;
    out.put(kFileMagic);
    out.put(static_cast<uint32_t>(payload.bytes().size()));
    out.put<uint64_t>(XXH3_64bits_withSeed(payload.bytes().data(), payload.bytes().size(), seed));
    out.put_raw(payload.bytes());
    std::string bytes = out.take();
    bytes.resize((bytes.size() + kLogStep - 1) / kLogStep * kLogStep);
    return bytes;
}

void for_each_file(std::string_view log, uint64_t seed, const std::function<void(FileRecord)> &found) {
    while (log.size() >= kLogStep) {
        Reader head(log.substr(0, kFileHeadBytes));
        const auto magic = head.get<uint32_t>(), length = head.get<uint32_t>();
        const auto sum = head.get<uint64_t>();
        const bool whole = magic == kFileMagic && length <= 4 * kNameMaxBytes &&
                           length <= log.size() - kFileHeadBytes &&
                           sum == XXH3_64bits_withSeed(log.data() + kFileHeadBytes, length, seed);
        if (!whole) {
            log.remove_prefix(kLogStep);
            continue;
        }
        Reader in(log.substr(kFileHeadBytes, length));
        FileRecord record;
        record.key.path = in.get_string();
        record.key.version = in.get_string();
        record.key.size_bytes = in.get<uint64_t>();
        record.tag = in.get_string();
        record.pinned = in.get_bool();
        record.sequence = in.get<uint64_t>();
        if (in.done()) found(std::move(record));
        log.remove_prefix(std::min(log.size(), (kFileHeadBytes + length + kLogStep - 1) / kLogStep * kLogStep));
    }
}

}  // namespace roost::cache
