#include "service/write_turns.h"

#include <algorithm>

namespace roost::service {

namespace {

using sql::Kind;

// Adding rows loses to nobody but DDL. A table that is made from a query may take hours: others don't wait for it.
bool changes_rows(Kind kind) {
    return kind == Kind::update || kind == Kind::delete_rows || kind == Kind::merge || kind == Kind::truncate;
}

bool is_short_ddl(Kind kind) {
    return kind == Kind::create_table || kind == Kind::create_view || kind == Kind::create_schema ||
           kind == Kind::create_other || kind == Kind::alter || kind == Kind::drop || kind == Kind::comment_on;
}

}  // namespace

WriteTurns turns_of(const sql::Statement &statement, const std::string &catalog, const StatementSettings &settings,
                    const LakeState *state) {
    WriteTurns turns;
    if (is_short_ddl(statement.kind)) return {.names = {catalog}, .always = true};
    if (!changes_rows(statement.kind)) return turns;
    for (const sql::TableName &name : statement.writes) {
        // `a.t`: a schema, or a catalog, which then is the one that is written.
        std::string schema = folded(name.catalog.empty() && name.schema == catalog ? "main" : name.schema);
        const std::string table = folded(name.table);
        if (schema.empty() && state) {
            const auto has = [&](const std::string &candidate) { return state->table(candidate, table) != nullptr; };
            const auto found = std::ranges::find_if(settings.search_path, has);
            if (found != settings.search_path.end()) schema = folded(*found);
        }
        if (schema.empty()) schema = settings.search_path.empty() ? "main" : folded(settings.search_path.front());
        turns.names.push_back(catalog + '.' + schema + '.' + table);
    }
    std::ranges::sort(turns.names);
    return turns;
}

}  // namespace roost::service
