// From the names in a statement to the tables of the lake that placement places, with views and macros expanded, as
// the mirrors have them. Names that no mirror knows (temporary tables, system views, files) are left out. Pure but for the states
// it is given; the epochs remember. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "lake/lake_state.h"
#include "placement/decision.h"
#include "sql/statement.h"

namespace roost::routing {

// When each table's contents changed last, as far as this gateway has seen: the snapshot of the first state in which it
// saw them so. States share what a commit left alone, so that is a comparison of pointers.
class TableEpochs {
public:
    uint64_t epoch(const std::string &catalog, const LakeState &state, const TableState &table);

private:
    static constexpr size_t kTablesMax = 65'536;
    struct Seen {
        std::weak_ptr<const TableData> data;
        uint64_t epoch = 0;
    };
    std::map<std::pair<std::string, uint64_t>, Seen> seen_;
};

struct NameScope {
    std::string catalog;                   // active
    std::vector<std::string> search_path;  // schemas in it; empty: main
};

using LakeStates = std::map<std::string, std::shared_ptr<const LakeState>>;  // by catalog
using ParseView = std::function<Result<std::vector<sql::Statement>>(const std::string &)>;

// What find_table_uses found. `uses` point into it: keep it where it is as long as they are used.
class FoundTables {
public:
    std::vector<placement::TableUse> uses;

private:
    friend class TableUseFinder;
    std::vector<std::unique_ptr<placement::SegmentSource>> sources_;
};

FoundTables find_table_uses(const sql::Statement &statement, const NameScope &scope, const LakeStates &states,
                            const ParseView &parse, TableEpochs &epochs);

}  // namespace roost::routing
