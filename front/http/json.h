// JSON in and out for the HTTP front. Out: text is appended piece by piece, so that rows made on a node are spliced in
// as the bytes they are. In: the fields of one object, read without building a tree of what a hostile body may nest.
// Not thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace roost::http {

// Builds one object. Names are literals of ours and need no escape.
class JsonObject {
public:
    JsonObject &text(std::string_view name, std::string_view value);
    JsonObject &text_or_null(std::string_view name, std::string_view value);  // empty: null
    JsonObject &flag(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
    JsonObject &null(std::string_view name) { return raw(name, "null"); }
    JsonObject &number(std::string_view name, std::integral auto value) { return raw(name, std::to_string(value)); }
    JsonObject &real(std::string_view name, double value);
    // `json` is a JSON value already.
    JsonObject &raw(std::string_view name, std::string_view json);
    JsonObject &raw_or_null(std::string_view name, std::string_view json) {
        return raw(name, json.empty() ? std::string_view("null") : json);
    }
    std::string take();

private:
    std::string text_ = "{";
};

// "[a,b]" of what `render` makes of each item.
template <class Items, class Render>
std::string json_array(Items &&items, Render render) {
    std::string text = "[";
    for (auto &item : items) {
        if (text.size() > 1) text += ',';
        text += render(item);
    }
    text += ']';
    return text;
}

std::string json_string(std::string_view text);

// A value of a field, or an element of a field that is an array.
struct JsonValue {
    enum class Kind : uint8_t { null, boolean, integer, real, string, array, object };
    Kind kind = Kind::null;
    std::string text;              // string: decoded; number, boolean: as written; object, nested array: its JSON
    std::vector<JsonValue> items;  // of a field that is an array
};

// The JSON text of a value.
std::string to_json(const JsonValue &value);

using JsonFields = std::map<std::string, JsonValue, std::less<>>;

struct JsonLimits {
    size_t items_max = 1'000'000;  // elements of all array fields together
    uint32_t depth_max = 32;
};

// Reads an object and keeps the fields named in `known`; others are checked for syntax and dropped. Of a name given
// twice the last one counts. Errors: bad_request (not JSON, not an object, too deep or too many elements).
Result<JsonFields> parse_fields(std::string_view text, std::initializer_list<std::string_view> known,
                                const JsonLimits &limits = {});

}  // namespace roost::http
