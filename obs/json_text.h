// JSON text without a document tree, for lines that are written often. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace roost::obs {

// Appends `text` as a JSON string with its quotes. Control characters are escaped; each byte that is not part of valid
// UTF-8 becomes U+FFFD, so the output is valid JSON whatever comes in. Text longer than `max_bytes` is cut at a
// character and marked with an ellipsis.
void append_json_string(std::string &out, std::string_view text, size_t max_bytes = std::string_view::npos);

// Length in bytes of the UTF-8 character at the start of `text` (1 to 4), or 0 where there is none: overlong forms,
// surrogates and values past U+10FFFF are not characters. REQUIRES: text is not empty.
size_t utf8_char_bytes(std::string_view text);

}  // namespace roost::obs
