// Cuts a JSON text into the raw texts of its members or elements without converting values: a DOUBLE's digits, a wide
// integer and the bare NaN and Infinity of the rows route reach the person as the server wrote them. It finds where
// values end and leaves judging them to whoever converts one. Pure. Used for rows pages; everything else goes through
// the JSON library.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace roost::app {

// REQUIRES nothing of the text: data_loss when it is no object (array) or is cut short. Slices point into `text`.
Result<std::vector<std::pair<std::string, std::string_view>>> json_members(std::string_view text);
Result<std::vector<std::string_view>> json_elements(std::string_view text);

// What a person reads in a cell: a string's content, anything else as it stands.
std::string json_as_text(std::string_view value);

}  // namespace roost::app
