// What the key of an object of the lake looks like. Stateless, thread-safe. Called by FileWall.
#pragma once

#include <string_view>

namespace roost {

// `key`, relative to the lake's prefix, is one that means the same to whoever reads it: parts of letters, digits and
// `-_.~=+@,` between single slashes, none of them empty, `.` or `..`, and %XX (uppercase) as DuckLake writes the values
// of partitions. The client escapes the % again, so the store sees it as it stands; a part that would decode to `.` or
// `..` is refused all the same. No `?` (options of the client), no `#`, no wildcards, backslashes or control
// characters, nothing that needs escaping in XML.
bool is_plain_key(std::string_view key);

}  // namespace roost
