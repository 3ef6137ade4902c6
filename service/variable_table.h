// The session variables that PostgreSQL clients set and read: what each may hold and how it is shown. Constant data,
// thread-safe. Used by SessionVariables.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace roost::service {

enum class VariableType : uint8_t {
    text,
    boolean,  // on | off
    integer,  // from `least` to `most`
    real,
    duration,    // milliseconds when no unit is given
    memory,      // kilobytes when no unit is given
    choice,      // one of `choices`, separated by blanks; '_' in a choice stands for a blank
    encoding,    // UTF8 and its spellings
    date_style,  // ISO with an order
    time_zone,
    search_path,
    role,  // none, or the user's own name
    isolation,
    transaction_isolation,  // as isolation, but of this transaction only
    transaction_read_only,  // as boolean, but of this transaction only
    fixed,                  // shown, never set
};

struct Variable {
    std::string_view name;  // as SHOW ALL and ParameterStatus spell it
    VariableType type;
    std::string_view initial;
    std::string_view description;
    std::string_view choices = {};
    int64_t least = 0, most = 2'147'483'647;
    bool reported = false;  // ParameterStatus is sent when it changes
};

// Sorted by name, case ignored.
std::span<const Variable> variables();
// nullptr: unknown. `name` in lower case.
const Variable *find_variable(std::string_view name);

}  // namespace roost::service
