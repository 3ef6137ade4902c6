// The guard's tables: every function, view and setting of the engine with its verdict, made from functions.tsv and
// settings.tsv beside them by generate_rules.py. What is not in the tables is refused. Pure data, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace roost::sql {

enum class FunctionKind : uint8_t {
    table,
    table_macro,
    lake_macro,
    catalog,
    view,
    pragma,
    scalar,
    macro,
    aggregate,
    unregistered
};
enum class Verdict : uint8_t { safe, conditional, forbidden };

struct FunctionEntry {
    std::string_view name;  // lower case
    FunctionKind kind;
    Verdict verdict;
};

struct SettingEntry {
    std::string_view name;  // lower case
    bool may_set;           // the tenant's allow-list
    bool may_read;          // by current_setting() of a literal
};

// All entries of a name (several kinds may share one) as [begin, end); both null when there is none.
struct FunctionEntries {
    const FunctionEntry *first = nullptr;
    const FunctionEntry *last = nullptr;
    const FunctionEntry *begin() const { return first; }
    const FunctionEntry *end() const { return last; }
    bool empty() const { return first == last; }
};
FunctionEntries find_functions(std::string_view folded);

const SettingEntry *find_setting(std::string_view folded);

}  // namespace roost::sql
