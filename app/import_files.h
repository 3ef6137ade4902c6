// Which files `roost import` is to take: names, globs (also when the shell passed them on unexpanded) and directories,
// with the format that each file's name says. Reads directories, never a file's content. No state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace roost::app {

struct ImportFile {
    std::string path;  // as the person would write it; also what is opened
    std::string
        format;  // "parquet" | "csv": the server's word; tab-separated files are csv whose delimiter the engine detects
    std::string staged_name;  // unique in the import, keeps the extension: "00001-orders.csv.gz"
    uint64_t size_bytes = 0;
};

// All files that the arguments name, each once, in the order of the arguments and by name within one; "**" matches any
// number of directories. A directory stands for the files below it that have a known extension; names that begin with
// '.' or '_' are passed over there. not_found: an argument that matches nothing. invalid_argument: an extension that is
// none of ours, no argument at all.
Result<std::vector<ImportFile>> expand_import_files(const std::vector<std::string> &arguments);

// "parquet", "csv", or empty when the extension is none of .parquet .pq .csv .csv.gz .tsv .tsv.gz (in any case).
std::string_view import_format(std::string_view name);

// "sales.orders" → {"sales","orders"}, "orders" → {"main","orders"}; either part may be "quoted". invalid_argument when
// it is neither.
struct TableName {
    std::string schema, table;
};
Result<TableName> parse_table_name(std::string_view text);

}  // namespace roost::app
