#!/usr/bin/env python3
"""Writes rules.cc from functions.tsv and settings.tsv. Run it after editing those: sql/generate_rules.py
rules_test.cc fails when rules.cc and the tables differ."""

import csv
import pathlib

folder = pathlib.Path(__file__).parent
head = '''// Written by generate_rules.py from functions.tsv and settings.tsv: edit those.
#include "sql/rules.h"

#include <algorithm>
#include <iterator>

namespace roost::sql {
namespace {

using K = FunctionKind;
using V = Verdict;

'''
tail = '''
}  // namespace

FunctionEntries find_functions(std::string_view folded) {
    struct ByName {
        bool operator()(const FunctionEntry &entry, std::string_view name) const { return entry.name < name; }
        bool operator()(std::string_view name, const FunctionEntry &entry) const { return name < entry.name; }
    };
    const auto range = std::equal_range(std::begin(functions), std::end(functions), folded, ByName{});
    return FunctionEntries{range.first, range.second};
}

const SettingEntry *find_setting(std::string_view folded) {
    const auto found = std::lower_bound(std::begin(settings), std::end(settings), folded,
                                        [](const SettingEntry &entry, std::string_view name) { return entry.name < name; });
    return found != std::end(settings) && found->name == folded ? &*found : nullptr;
}

}  // namespace roost::sql
'''


def rows(name):
    with open(folder / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


functions = sorted({(row["name"].lower(), row["kind"], row["verdict"]) for row in rows("functions.tsv")})
settings = sorted({(row["name"].lower(), row["set"] == "tenant", row["read"] == "literal") for row in rows("settings.tsv")})
with open(folder / "rules.cc", "w", encoding="utf-8") as out:
    out.write(head)
    out.write("// clang-format off\n// Sorted by name.\nconstexpr FunctionEntry functions[] = {\n")
    out.writelines(f"    {{{quoted(name)}, K::{kind}, V::{verdict}}},\n" for name, kind, verdict in functions)
    out.write("};\n\n// Sorted by name.\nconstexpr SettingEntry settings[] = {\n")
    out.writelines(f"    {{{quoted(name)}, {str(s).lower()}, {str(r).lower()}}},\n" for name, s, r in settings)
    out.write("};\n// clang-format on\n")
    out.write(tail)
