// Where the column chunks and index regions of a Parquet file are, from its footer. Pure. A footer is outside data:
// every length is checked, nesting and counts are bounded, and what does not parse has no layout, which costs reading
// ahead and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "cache/read_ahead.h"

namespace roost::cache {

// The metadata's place, from the last 8 bytes of a file: a length and "PAR1". None for other files and for encrypted
// footers.
std::optional<ByteRange> parquet_metadata_range(std::string_view last_8_bytes, uint64_t file_bytes);

// Of the metadata itself: Thrift's compact protocol, a FileMetaData (parquet-format, parquet.thrift). Null when it is
// none, or places anything outside of the file.
std::shared_ptr<const FileLayout> parse_parquet_layout(std::string_view metadata, uint64_t file_bytes);

}  // namespace roost::cache
