#include "lake/lake_changes.h"

#include <charconv>
#include <string>

#include "lake/lake_state.h"

namespace roost {

namespace {

enum class Effect : uint8_t { unknown, definitions, altered, appended, changed, rewritten };

struct Kind {
    std::string_view name;
    Effect effect;
};
// DuckLake 1.0 (metadata version) writes these; compacted_table and flushed_inlined are older names of the last ones.
constexpr Kind kKinds[] = {
    {"created_schema", Effect::definitions},
    {"dropped_schema", Effect::definitions},
    {"created_table", Effect::definitions},
    {"dropped_table", Effect::definitions},
    {"altered_table", Effect::altered},
    {"created_view", Effect::definitions},
    {"dropped_view", Effect::definitions},
    {"altered_view", Effect::definitions},
    {"created_scalar_macro", Effect::definitions},
    {"dropped_scalar_macro", Effect::definitions},
    {"created_table_macro", Effect::definitions},
    {"dropped_table_macro", Effect::definitions},
    {"inserted_into_table", Effect::appended},
    {"deleted_from_table", Effect::changed},
    {"inlined_insert", Effect::changed},
    {"inlined_delete", Effect::changed},
    {"merge_adjacent", Effect::rewritten},
    {"rewrite_delete", Effect::rewritten},
    {"inline_flush", Effect::rewritten},
    {"flushed_inlined", Effect::rewritten},
    {"compacted_table", Effect::rewritten},
};

Effect effect_of(std::string_view name) {
    const std::string lower = folded(name);
    for (const Kind &kind : kKinds) {
        if (kind.name == lower) return kind.effect;
    }
    return Effect::unknown;
}

// The value ends at a comma outside quotes; a quote inside a name is doubled.
size_t end_of_value(std::string_view text, size_t from) {
    bool quoted = false;
    for (size_t i = from; i < text.size(); i++) {
        if (text[i] == '"') quoted = !quoted;
        if (text[i] == ',' && !quoted) return i;
    }
    return quoted ? std::string_view::npos : text.size();
}

bool parse_id(std::string_view text, uint64_t &id) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool LakeChanges::add(std::string_view text) {
    if (text.empty()) return false;
    for (size_t at = 0; at < text.size();) {
        const size_t colon = text.find(':', at);
        if (colon == std::string_view::npos) return false;
        const Effect effect = effect_of(text.substr(at, colon - at));
        const size_t end = end_of_value(text, colon + 1);
        if (effect == Effect::unknown || end == std::string_view::npos || end == colon + 1) return false;
        const std::string_view value = text.substr(colon + 1, end - colon - 1);
        at = end + 1;
        if (effect == Effect::definitions) {
            definitions = true;
            continue;
        }
        uint64_t id = 0;
        if (!parse_id(value, id)) return false;
        // Rows of the new shape get a place of their own in the catalog.
        definitions = definitions || effect == Effect::altered;
        (effect == Effect::appended ? appended : effect == Effect::rewritten ? rewritten : changed).insert(id);
    }
    return true;
}

}  // namespace roost
