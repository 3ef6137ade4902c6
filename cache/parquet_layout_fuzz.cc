// Any bytes as a footer: no crash, and nothing outside of the file.
#include <cstdint>
#include <cstdlib>

#include "cache/parquet_layout.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    constexpr uint64_t kFileBytes = 1 << 30;
    const std::string_view bytes(reinterpret_cast<const char *>(data), size);
    if (size >= 8) (void)roost::cache::parquet_metadata_range(bytes.substr(size - 8), kFileBytes);
    const auto layout = roost::cache::parse_parquet_layout(bytes, kFileBytes);
    if (!layout) return 0;
    const auto check = [](const roost::cache::ByteRange &range) {
        if (range.offset > kFileBytes || range.length > kFileBytes - range.offset) abort();
    };
    for (const auto &row_group : layout->row_groups) {
        for (const auto &chunk : row_group) check(chunk);
    }
    for (const auto &region : layout->index_regions) check(region);
    return 0;
}
